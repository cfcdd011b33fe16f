#include "apps/commands/requests.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace tiercel::cli {
namespace {

// Returns " Write in French.", or "".
std::string InLanguage(const BookOptions& book) {
  return book.language.empty() ? ""
                               : absl::StrCat(" Write in ", book.language, ".");
}

// Returns "in about 300 words", or `otherwise`.
std::string Length(int64_t words, const char* otherwise) {
  return words > 0 ? absl::StrCat("in about ", words, " words") : otherwise;
}

// Returns "Answer from the text above in about 50 words, in French:", where
// `answer` is its beginning; or --instruction, instead.
std::string AnswerWords(const BookOptions& book, const std::string& answer) {
  if (!book.instruction.empty()) return book.instruction + InLanguage(book);
  return absl::StrCat(
      answer, book.words > 0 ? " " + Length(book.words, "") : "",
      book.language.empty() ? "" : ", in " + book.language, ":");
}

// The question behind a text, for a checkpoint without a chat template.
std::string PlainQuestion(const BookOptions& book, const std::string& text,
                          const std::string& question) {
  const bool is_asked_for =
      book.words > 0 || !book.language.empty() || !book.instruction.empty();
  return absl::StrCat(text, "\n\n",
                      is_asked_for ? AnswerWords(book, "Answer") + "\n\n" : "",
                      "Question: ", question, "\nAnswer:");
}

// Puts `before` and `after` around a text, or --instruction instead of them.
Conversation AskAround(const BookOptions& book, const std::string& before,
                       const std::string& text, const std::string& after) {
  Conversation conversation;
  if (book.instruction.empty()) {
    conversation.Say(
        absl::StrCat(before, "\n\n", text, "\n\n", after, InLanguage(book)),
        absl::StrCat(text, "\n\nSummary:"));
    return conversation;
  }
  const std::string asked = book.instruction + InLanguage(book);
  const std::string whole = absl::StrCat(asked, "\n\n", text, "\n\n", asked);
  conversation.Say(whole, whole + "\n\n");
  return conversation;
}

}  // namespace

Conversation SummaryTalk(const BookOptions& book, const std::string& text) {
  return AskAround(
      book, "Summarize the following text.", text,
      absl::StrCat("Summarize the text above ",
                   Length(book.words, "in a few paragraphs"),
                   ": what it is about, what happens in it or what it argues, "
                   "and how it ends."));
}

Conversation PartTalk(const BookOptions& book, int64_t words,
                      const std::string& text) {
  return AskAround(book, "Summarize the following part of a longer text.", text,
                   absl::StrCat("Summarize the part above ",
                                Length(words, "in a few paragraphs"),
                                ": who is in it, what happens in it or what it "
                                "argues, and how it ends."));
}

Conversation JoinTalk(const BookOptions& book, int64_t words,
                      const std::string& summaries) {
  return AskAround(
      book, "These are summaries of parts of a longer text, in its order.",
      summaries,
      absl::StrCat("Summarize all of the above ",
                   Length(words, "in one paragraph"),
                   ", in its order: who is in it, what happens or what "
                   "it argues, and how it ends."));
}

Conversation SectionTalk(const BookOptions& book, const std::string& text) {
  return AskAround(book, "Summarize the following text.", text,
                   "Summarize the text above in up to three sentences.");
}

Conversation PartQuestionTalk(const BookOptions& book, const std::string& text,
                              const std::string& question) {
  const std::string asked =
      book.instruction.empty()
          ? absl::StrCat("Answer from the part above alone",
                         book.language.empty() ? "" : ", in " + book.language,
                         ", and quote the words that show it in quotation "
                         "marks.")
          : book.instruction + InLanguage(book);
  Conversation conversation;
  conversation.Say(
      absl::StrCat("Read the following part of a longer text.\n\n", text,
                   "\n\n", asked,
                   " If the part says nothing about it, write only: Nothing. "
                   "Question: ",
                   question),
      PlainQuestion(book, text, question));
  return conversation;
}

Conversation JoinAnswersTalk(const BookOptions& book,
                             const std::string& answers,
                             const std::string& question) {
  Conversation conversation;
  conversation.Say(
      absl::StrCat(
          "These are answers to one question from parts of a longer "
          "text, in its order.\n\n",
          answers, "\n\n",
          AnswerWords(book, "Answer the question from all of the above"), " ",
          question),
      PlainQuestion(book, answers, question));
  return conversation;
}

bool SaysNothing(std::string_view answer) {
  std::string letters;
  for (const char c : answer) {
    if (absl::ascii_isdigit(static_cast<unsigned char>(c))) return false;
    if (absl::ascii_isalpha(static_cast<unsigned char>(c))) {
      letters.push_back(absl::ascii_tolower(static_cast<unsigned char>(c)));
    } else if (static_cast<unsigned char>(c) >= 0x80) {
      return false;  // a word in another script
    }
  }
  return letters.empty() || letters == "nothing";
}

std::string TextPreface(const BookOptions& book, const std::string& text) {
  return absl::StrCat("Read the following text.\n\n", text, "\n\n",
                      AnswerWords(book, "Answer from the text above"), " ");
}

Conversation TalkAbout(const BookOptions& book, const std::string& text) {
  return Conversation(TextPreface(book, text));
}

Conversation QuestionTalk(const BookOptions& book, const std::string& text,
                          const std::string& question) {
  Conversation conversation;
  conversation.Say(TextPreface(book, text) + question,
                   PlainQuestion(book, text, question));
  return conversation;
}

}  // namespace tiercel::cli
