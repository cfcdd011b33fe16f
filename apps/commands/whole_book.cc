#include "apps/commands/whole_book.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "apps/commands/book.h"
#include "apps/commands/book_summary.h"
#include "apps/commands/generation.h"
#include "apps/commands/requests.h"
#include "apps/commands/tree.h"
#include "apps/notes/notes.h"
#include "apps/terminal/output.h"
#include "lib/reader/quotations.h"
#include "lib/reader/text.h"
#include "lib/status/status_macros.h"

namespace tiercel::cli {
namespace {

// A question, and the tree of its answer.
struct Answered {
  std::string question;
  BookSummary tree;
  // The quotations of each text that was made for it, the last one's last.
  std::vector<Json> quotations;

  // The text that was made of all others, or the only one.
  const Node& answer() const {
    const BookSummary::Level& last = tree.levels.back();
    return *std::find_if(last.begin(), last.end(),
                         [](const Node& node) { return !node.skipped; });
  }
  const BookSummary::Level& parts() const { return tree.levels.front(); }
  size_t asked() const {
    return static_cast<size_t>(
        std::count_if(parts().begin(), parts().end(),
                      [](const Node& part) { return !part.skipped; }));
  }
};

TreeForm AnswerForm(const BookOptions& book, const std::string& question) {
  TreeForm form;
  form.question = question;
  form.shows = false;
  form.part = [book, question](const std::string& text) {
    return PartQuestionTalk(book, text, question);
  };
  form.join = [book, question](int64_t) -> TalkFn {
    return [book, question](const std::string& text) {
      return JoinAnswersTalk(book, text, question);
    };
  };
  return form;
}

class BookAnswers {
 public:
  BookAnswers(const Options& options, Model* model,
              const document::Document& book, std::vector<std::string> warnings)
      : options_(options),
        model_(model),
        book_(book),
        finder_(book.text),
        warnings_(std::move(warnings)) {}

  // Makes the answer to a question, and writes it for people.
  absl::Status Answer(const std::string& question,
                      const absl::Status& too_long);
  // Writes the document and notes.
  absl::Status Finish();
  BookAnswer Last() const {
    return {answered_.back().answer().writing.text,
            answered_.back().quotations.back()};
  }

 private:
  // A line for people on each part that had something: its place, its text.
  std::vector<std::string> Found(const Answered& answered) const;
  // The place of the answer if it is that of one part of several.
  std::string OnlyPlace(const Answered& answered) const {
    const bool is_only = answered.tree.levels.size() == 1 &&
                         !answered.answer().writing.text.empty();
    return is_only ? PlaceOf(book_, book_tokens(), answered.answer()) : "";
  }
  absl::Status Write(const Answered& answered);
  // The quotations of each text that was made for a tree. A part quotes from
  // itself, and an answer what parts have quoted, if they have it.
  std::vector<Json> TreeQuotations(const BookSummary& tree);
  Json Document() const;
  reader::Notes Notes() const;
  size_t book_tokens() const { return answered_.front().tree.book_tokens; }
  // The tokens of the parts that were read for one question or more.
  size_t TokensRead() const;
  // Says a warning now, and keeps it for the document.
  void Warn(std::string warning) {
    WriteWarnings({warning});
    warnings_.push_back(std::move(warning));
  }

  const Options& options_;
  Model* const model_;
  const document::Document& book_;
  reader::QuotationFinder finder_;
  std::vector<std::string> warnings_;
  std::vector<Answered> answered_;
};

absl::Status BookAnswers::Answer(const std::string& question,
                                 const absl::Status& too_long) {
  Options options = options_;  // its texts are kept apart from others'
  options.questions = {question};
  TreeForm form = AnswerForm(options.book, question);
  const bool is_alone = options_.questions.size() <= 1;
  if (!is_alone) form.index = answered_.size();
  ASSIGN_OR_RETURN(BookSummary tree,
                   ReadAsTree(options, model_, book_, std::move(form),
                              /*warnings=*/{}, too_long));
  std::vector<Json> quotations = TreeQuotations(tree);
  answered_.push_back({question, std::move(tree), std::move(quotations)});
  const Answered& answered = answered_.back();
  AddNewWarnings(answered.tree.warnings, &warnings_);
  const size_t asked = answered.asked();
  const size_t left = answered.parts().size() - asked;
  const std::string of_question = is_alone ? "" : absl::StrCat(": ", question);
  for (const std::string& loss : LossesOf(answered.tree, "answer", "answers")) {
    Warn(loss + of_question);
  }
  if (answered.answer().writing.text.empty() && !IsLost(answered.tree)) {
    Warn(absl::StrCat("no part of the text", left > 0 ? " that was read" : "",
                      " says anything about: ", question));
  }
  if (left > 0) {
    Warn(absl::StrCat("the answer is from ", asked, " of ",
                      Parts(answered.parts().size()),
                      "; --effort full reads the others, too", of_question));
  }
  return options_.json ? absl::OkStatus() : Write(answered);
}

std::vector<std::string> BookAnswers::Found(const Answered& answered) const {
  std::vector<std::string> lines;
  for (const Node& part : answered.parts()) {
    if (part.writing.text.empty()) continue;
    lines.push_back(absl::StrCat(PlaceOf(book_, book_tokens(), part), ": ",
                                 reader::OneLine(part.writing.text)));
  }
  return lines;
}

std::vector<Json> BookAnswers::TreeQuotations(const BookSummary& tree) {
  std::vector<Json> all;
  std::vector<reader::QuotationFinder::Run> quoted;
  std::vector<reader::QuotationFinder::Run> parts;
  for (const BookSummary::Level& level : tree.levels) {
    const bool is_lowest = &level == &tree.levels.front();
    if (!is_lowest) quoted.insert(quoted.end(), parts.begin(), parts.end());
    parts.clear();
    for (const Node& node : level) {
      if (node.skipped) continue;
      const std::string& text = node.writing.text;
      const std::vector<reader::Quotation> found =
          is_lowest ? finder_.Find(text, {{node.begin, node.end}})
                    : finder_.Find(text, quoted);
      all.push_back(PlacedIn(book_, found));
      if (!is_lowest) continue;
      for (const reader::Quotation& one : found) {
        if (one.found) quoted.push_back({one.begin, one.end});
      }
      if (!text.empty()) parts.push_back({node.begin, node.end});
    }
  }
  return all;
}

absl::Status BookAnswers::Write(const Answered& answered) {
  const std::string& text = answered.answer().writing.text;
  if (options_.questions.size() > 1) {
    RETURN_IF_ERROR(WriteOut(absl::StrCat("# ", answered.question, "\n")));
  }
  if (!text.empty()) RETURN_IF_ERROR(WriteProse(text + "\n"));
  if (answered.tree.levels.size() > 1) {
    for (const std::string& line : Found(answered)) WriteNote(line + "\n");
  } else if (const std::string place = OnlyPlace(answered); !place.empty()) {
    WriteNote(absl::StrCat("from ", place, "\n"));
  }
  for (const std::string& line : QuotationLines(answered.quotations.back())) {
    WriteNote(line + "\n");
  }
  if (options_.statistics) WriteNote(TookOf(options_, answered.tree));
  return absl::OkStatus();
}

size_t BookAnswers::TokensRead() const {
  std::vector<std::pair<size_t, size_t>> runs;
  for (const Answered& one : answered_) {
    for (const Node& part : one.parts()) {
      if (!part.skipped) runs.emplace_back(part.first_token, part.last_token);
    }
  }
  std::sort(runs.begin(), runs.end());
  size_t read = 0;
  size_t end = 0;
  for (const auto& [first, last] : runs) {
    read += std::max(end, last) - std::max(end, first);
    end = std::max(end, last);
  }
  return read;
}

Json BookAnswers::Document() const {
  Json outputs = Json::array();
  Json parts = Json::array();
  Json quotations = Json::array();
  std::vector<const BookSummary*> trees;
  size_t asked = 0;
  for (size_t i = 0; i < answered_.size(); ++i) {
    const Answered& one = answered_[i];
    const reader::Writing& answer = one.answer().writing;
    outputs.push_back(
        {{"question", one.question},
         {"text", answer.text},
         {"tokens", answer.tokens},
         {"finish_reason", answer.cut || IsLost(one.tree) ? "length" : "stop"},
         {"prompt_tokens", one.tree.spent.prompt_tokens()},
         {"cached_tokens", one.tree.spent.cached_tokens()}});
    for (Json& part : PartsOf(book_, one.tree, /*first_token=*/0)) {
      part["question"] = i;
      parts.push_back(std::move(part));
    }
    for (const Json& of_text : one.quotations) {
      for (Json quotation : of_text) {
        quotation["question"] = i;
        quotations.push_back(std::move(quotation));
      }
    }
    trees.push_back(&one.tree);
    asked += one.asked();
  }
  return TreesDocument(
      options_,
      {{"context", answered_.back().tree.context},
       {"output", std::move(outputs)}},
      trees,
      {{"predicted", PredictedOf(options_, answered_.front().tree)},
       {"parts", std::move(parts)},
       {"asked", asked},
       {"read", TokensRead()},
       {"quotations", std::move(quotations)}},
      warnings_);
}

reader::Notes BookAnswers::Notes() const {
  reader::Notes notes = NotesOn(options_, book_);
  for (const Answered& one : answered_) {
    reader::Notes::Section section = {
        one.question, absl::StrCat("question-", notes.sections.size() + 1), {}};
    section.Add(one.answer().writing.text, OnlyPlace(one));
    if (one.tree.levels.size() > 1) {
      for (const Node& part : one.parts()) {
        section.Add(part.writing.text, PlaceOf(book_, book_tokens(), part));
      }
    }
    notes.sections.push_back(std::move(section));
  }
  return notes;
}

absl::Status BookAnswers::Finish() {
  RETURN_IF_ERROR(WriteNotes(options_, Notes()));
  return options_.json ? WriteJson(Document()) : absl::OkStatus();
}

}  // namespace

absl::Status AskInParts(const Options& options, Model* model,
                        const document::Document& book,
                        std::vector<std::string> warnings,
                        const absl::Status& too_long) {
  BookAnswers answers(options, model, book, std::move(warnings));
  for (const std::string& question : options.questions) {
    RETURN_IF_ERROR(answers.Answer(question, too_long));
  }
  return answers.Finish();
}

absl::Status CheckCanAskInParts(const Options& options, Model* model,
                                const document::Document& book,
                                const absl::Status& too_long) {
  return CheckHasRoom(options, model, book, AnswerForm(options.book, "?"),
                      too_long);
}

absl::StatusOr<BookAnswer> AnswerInParts(const Options& options, Model* model,
                                         const document::Document& book,
                                         const std::string& question,
                                         const absl::Status& too_long) {
  BookAnswers answers(options, model, book, /*warnings=*/{});
  RETURN_IF_ERROR(answers.Answer(question, too_long));
  return answers.Last();
}

}  // namespace tiercel::cli
