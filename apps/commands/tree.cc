#include "apps/commands/tree.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "apps/cli/error.h"
#include "apps/cli/flags.h"
#include "apps/cli/numbers.h"
#include "apps/commands/book_summary.h"
#include "apps/commands/command.h"
#include "apps/commands/forecast.h"
#include "apps/commands/generation.h"
#include "apps/commands/readings.h"
#include "apps/commands/requests.h"
#include "apps/commands/sampling.h"
#include "apps/commands/sections.h"
#include "apps/commands/supported.h"
#include "apps/commands/text_length.h"
#include "apps/reader/outline.h"
#include "apps/reader/parts.h"
#include "apps/reader/places.h"
#include "apps/terminal/output.h"
#include "apps/terminal/progress.h"
#include "apps/terminal/screen.h"
#include "apps/terminal/signals.h"
#include "lib/status/status_macros.h"

namespace tiercel::cli {
namespace {

using Tokens = std::vector<int32_t>;

// Paragraphs of a summary if the user gives no length, the most that it has,
// and the words of one.
constexpr size_t kParagraphs = 4;
constexpr size_t kMostParagraphs = 8;
constexpr int64_t kParagraphWords = 100;

// An upper bound of the tokens between texts that are read together.
constexpr size_t kBetween = 16;

// A level's texts, joined.
struct Joined {
  std::string text;
  std::vector<size_t> begins;  // offset of each text
};

Joined Join(const std::vector<Node>& nodes, size_t first, size_t last) {
  Joined joined;
  for (size_t i = first; i < last; ++i) {
    if (i > first) joined.text += "\n\n";
    joined.begins.push_back(joined.text.size());
    joined.text += nodes[i].writing.text;
  }
  return joined;
}

// The node of the text to be made of the joined texts from `begin` to `end`.
Node Over(const std::vector<Node>& nodes, const Joined& joined, size_t begin,
          size_t end) {
  const auto node_at = [&](size_t offset) -> const Node& {
    const auto after =
        std::upper_bound(joined.begins.begin(), joined.begins.end(), offset);
    return nodes[static_cast<size_t>(after - joined.begins.begin()) - 1];
  };
  const Node& first = node_at(begin);
  const Node& last = node_at(end - 1);
  return {first.begin, last.end, first.first_token, last.last_token, {}};
}

class Tree {
 public:
  Tree(const Options& options, Model* model, const document::Document& book,
       Leaves leaves, std::vector<std::string> warnings)
      : asked_(options),
        options_(options),
        model_(model),
        book_(book),
        sections_(leaves == Leaves::kSections) {
    summary_.warnings = std::move(warnings);
    // The texts of the parts are kept, and the KV of the part that is being
    // read, but not that of all parts, which is gigabytes.
    options_.session.keeps_prompts_alone = true;
  }

  // Returns true if the context holds parts of a text, the request, and an
  // answer. Errors: a plan's.
  absl::StatusOr<bool> HasRoom();
  // Advice if HasRoom is false: "; or in parts, make room: -c 800", about the
  // least context that has room; empty if the model was made for less, or
  // memory has no room for it.
  std::string InPartsAdvice() const;
  // Cuts the book into the parts of level 0.
  absl::Status Cut();
  // Says the plan, with times.
  absl::Status SayPlan();
  absl::Status Run();
  BookSummary Take() && { return std::move(summary_); }

 private:
  using Level = BookSummary::Level;

  // Returns true if the context holds the conversation that `talk` makes of a
  // text, and an answer. Sets error_ if that cannot be told.
  bool Fits(const TalkFn& talk, std::string_view text);
  // The runs of a level's texts that are summarized next. If these are not much
  // fewer than the texts, which may have more tokens as they are read than as
  // they were written, the next texts may only be half as long, so that in the
  // end two of them fit.
  absl::StatusOr<std::vector<reader::Part>> CutAgain(const Level& below,
                                                     const Joined& joined);
  // Sets the most tokens of each text of the level that is made next.
  void AnswerWith(size_t tokens) {
    options_.sampling.max_tokens = static_cast<int64_t>(tokens);
  }
  // The flags with which the whole book is read at once, within the context
  // that the model was made for; empty if memory has no room for that.
  absl::StatusOr<std::string> AtOnceAdvice() const;
  // The number of texts of the last level, each of a share of the `below`
  // texts.
  size_t Shares(size_t below) const;
  bool SharesFit(const Level& below);
  // Makes the text `index` of `count` of a level.
  absl::Status RunNode(size_t level, size_t index, size_t count,
                       const TalkFn& talk, std::string_view text, Node* node);
  // Reads a prompt of `talk`.
  absl::Status Read(const TalkFn& talk, const Tokens& prompt);
  // Gives `node` its text, made now or before.
  void Put(const reader::Writing& writing, Node* node);
  // Makes the session hold the request of a prompt alone. So every run reads
  // the rest behind the same tokens, and finds a prompt that another run has
  // left on disk.
  absl::Status ReadRequest(const TalkFn& talk, const Tokens& prompt);
  // Shows the text that is made from here on.
  void BeginPart(size_t level, size_t index, size_t count, const Node& node);
  // Says that the text is made, unless the text itself shows.
  void EndPart();
  absl::StatusOr<Generator*> OpenGenerator();
  // Opens the session that scores words by the full model, so that every policy
  // keeps the same sentences of a text.
  absl::StatusOr<Generator*> OpenScorer();
  // Cuts a writing about `prompt` to the sentences that the text in the prompt
  // supports; `bare` is the prompt without the text, `ends` has the byte offset
  // behind each token of `said`.
  absl::Status KeepSupported(const Tokens& prompt, const Tokens& bare,
                             std::string_view said,
                             const std::vector<size_t>& ends,
                             reader::Writing* writing);
  // Writes a paragraph of the summary, if `node` is one.
  absl::Status Write(const Node& node);
  void Progressed(size_t prompt, size_t written);

  TalkFn ForPart() const {
    return [this](const std::string& text) {
      return sections_ ? SectionTalk(options_.book, text)
                       : PartTalk(options_.book, /*words=*/0, text);
    };
  }
  TalkFn ForJoin(int64_t words) const {
    return [this, words](const std::string& text) {
      return sections_ ? SectionTalk(options_.book, text)
                       : JoinTalk(options_.book, words, text);
    };
  }
  int64_t WordsOfShare(size_t shares) const {
    return options_.book.words / static_cast<int64_t>(shares);
  }
  absl::Status RunLevels();
  absl::Status RunLevelAbove();

  const Options& asked_;
  Options options_;  // asked_, changed for reading in parts
  Model* const model_;
  const document::Document& book_;
  const bool sections_;
  BookSummary summary_;  // the part made so far
  std::optional<Reading> reading_;
  std::optional<Generator> generator_;
  Options scoring_;                  // the scorer's
  std::optional<Generator> scorer_;  // absent: generator_ scores, or none yet
  std::unique_ptr<Progress> progress_;
  std::string part_;      // the text that is being made: "part 3 of 48"
  std::string place_;     // its place in the book; empty: there are no places
  size_t room_ = 0;       // most tokens of a text, its request and its answer
  size_t around_ = 0;     // tokens of the request of a text, or a few more
  size_t work_ = 0;       // estimated tokens to read and write
  size_t work_done_ = 0;  // tokens of finished parts
  bool is_last_ = false;  // the highest level is the summary
  bool written_ = false;  // a paragraph of the summary was written
  absl::Status error_;
};

absl::StatusOr<bool> Tree::HasRoom() {
  ASSIGN_OR_RETURN(const int64_t most, MostTokens(options_, *model_));
  summary_.context = static_cast<size_t>(most);
  const size_t quarter = summary_.context / 4;
  const int64_t wanted = options_.sampling.max_tokens;
  summary_.answer =
      wanted < 0 ? quarter : std::min(static_cast<size_t>(wanted), quarter);
  if (sections_) summary_.answer = std::min(summary_.answer, kSectionAnswer);
  for (const TalkFn& talk : {ForPart(), ForJoin(0), ForJoin(kParagraphWords)}) {
    ASSIGN_OR_RETURN(const Tokens tokens, talk("").Tokens(*model_));
    around_ = std::max(around_, tokens.size() + kBetween);
  }
  room_ = summary_.context;
  if (sections_) {
    room_ = std::min(room_, around_ + kSectionTokens + summary_.answer);
  }
  // Two summaries must fit into one prompt, or their number would never shrink.
  if (summary_.answer == 0 || around_ + 3 * summary_.answer > room_) {
    return false;
  }
  AnswerWith(summary_.answer);
  return true;
}

std::string Tree::InPartsAdvice() const {
  auto least = static_cast<int64_t>(4 * around_);  // an answer has a quarter
  const int64_t wanted = options_.sampling.max_tokens;
  if (wanted >= 0) {
    least = std::min(least, static_cast<int64_t>(around_) + 3 * wanted);
  }
  if (least > model_->info().context) return "";
  const std::string room = RoomAdvice(options_, *model_, least);
  return room.empty() ? "" : absl::StrCat("; or in parts, ", room);
}

bool Tree::Fits(const TalkFn& talk, std::string_view text) {
  if (!error_.ok()) return false;
  Model::TextLimits limits;
  limits.most_tokens = room_ - summary_.answer;
  // The text alone is checked first, so that a run that is far too long is not
  // copied.
  constexpr size_t kFewBytesOfToken = 8;
  if (text.size() > kFewBytesOfToken * limits.most_tokens) {
    const absl::Status alone =
        model_->Tokenize(text, /*flags=*/0, limits).status();
    if (CodeOf(alone) == "too_long") return false;
  }
  const absl::StatusOr<Tokens> tokens =
      talk(std::string(text)).Tokens(*model_, limits);
  if (tokens.ok()) return tokens->size() <= limits.most_tokens;
  if (CodeOf(tokens.status()) != "too_long") error_ = tokens.status();
  return false;
}

absl::Status Tree::Cut() {
  reader::Divisions divisions;
  const int level = reader::ChapterLevel(book_);
  for (const document::Section& section : book_.sections) {
    (section.level <= level ? divisions.chapters : divisions.headings)
        .push_back(section.begin);
  }
  constexpr size_t kBytesOfToken = 4;
  Progress progress(options_.progress, "planning", "bytes", "");
  const ProgressFn draw = progress.Callback();
  const std::vector<reader::Part> parts = reader::CutIntoParts(
      book_.text, divisions, kBytesOfToken * (room_ - summary_.answer),
      [&](std::string_view text) {
        if (draw) {
          draw(static_cast<uint64_t>(text.data() - book_.text.data()),
               book_.text.size());
        }
        return Fits(ForPart(), text);
      });
  if (!error_.ok()) return error_;
  if (parts.empty()) {
    return Error(Exit::kInput, "context_length_exceeded",
                 "the context does not hold one character of the text with "
                 "what is asked of it");
  }
  Level leaves;
  for (const reader::Part& part : parts) {
    ASSIGN_OR_RETURN(
        const Tokens tokens,
        model_->Tokenize(std::string_view(book_.text)
                             .substr(part.begin, part.end - part.begin),
                         /*flags=*/0, /*limits=*/{}));
    leaves.push_back({part.begin,
                      part.end,
                      summary_.book_tokens,
                      summary_.book_tokens + tokens.size(),
                      {}});
    summary_.book_tokens += tokens.size();
  }
  is_last_ = leaves.size() == 1 || Shares(leaves.size()) == leaves.size();
  summary_.levels.push_back(std::move(leaves));
  return absl::OkStatus();
}

size_t Tree::Shares(size_t below) const {
  const int64_t words = options_.book.words;
  if (sections_) {
    const auto paragraphs = static_cast<size_t>(words / kSectionWords);
    return std::min(below, words == 0 ? kSectionParagraphs
                                      : std::max<size_t>(paragraphs, 1));
  }
  const size_t wanted =
      words == 0
          ? kParagraphs
          : std::clamp<size_t>(static_cast<size_t>(words / kParagraphWords), 1,
                               kMostParagraphs);
  return std::clamp<size_t>(below / 2, 1, wanted);
}

absl::Status Tree::SayPlan() {
  ASSIGN_OR_RETURN(const Tokens around, ForPart()("").Tokens(*model_));
  const Level& leaves = summary_.levels.front();
  const auto leaves_s = [&] {
    Forecast forecast(options_, *model_);
    Forecast::Times all;
    for (const Node& leaf : leaves) {
      const size_t text = leaf.last_token - leaf.first_token;
      all.Add(forecast.Of(text + around.size(), summary_.answer)
                  .value_or(Forecast::Times()));
    }
    return all.Seconds();
  };
  std::vector<std::string> trouble;
  RETURN_IF_ERROR(MeasureRates(options_, *model_, leaves_s, &trouble));
  if (!trouble.empty()) {
    options_.session.cache_dir.clear();  // once is enough
    summary_.warnings.insert(summary_.warnings.end(), trouble.begin(),
                             trouble.end());
  }
  Forecast forecast(options_, *model_);
  summary_.predicted.emplace();
  const auto add = [&](size_t text) {
    size_t prompt = text + around.size();
    // The answer is scored with the text, and without.
    if (sections_) prompt += around.size() + 2 * summary_.answer;
    work_ += prompt + summary_.answer;
    const std::optional<Forecast::Times> times =
        forecast.Of(prompt, summary_.answer);
    if (!times.has_value()) summary_.predicted.reset();
    if (summary_.predicted.has_value()) summary_.predicted->Add(*times);
  };
  for (const Node& leaf : leaves) add(leaf.last_token - leaf.first_token);
  // Summaries are counted at their greatest length.
  size_t nodes = leaves.size();
  size_t above = 0;
  const size_t room = room_ - summary_.answer - around.size();
  while (nodes > 1) {
    const size_t shares = Shares(nodes);
    if (shares == nodes) break;
    const size_t next =
        nodes * summary_.answer <= shares * room
            ? shares
            : std::max(nodes * summary_.answer / room, size_t{1});
    if (next >= nodes) break;
    for (size_t i = 0; i < next; ++i) add(nodes * summary_.answer / next);
    above += next;
    if (next == shares) break;
    nodes = next;
  }
  std::string plan = absl::StrCat(
      Grouped(static_cast<int64_t>(summary_.book_tokens)),
      sections_ ? " tokens, a small model reads at most "
                : " tokens, the context holds ",
      Grouped(
          static_cast<int64_t>(sections_ ? kSectionTokens : summary_.context)),
      sections_ ? " at once: " : ": ", Parts(leaves.size()), " to summarize");
  if (above > 0) {
    absl::StrAppend(&plan, ", then the summaries in ", above);
  }
  absl::StrAppend(&plan, "; ", Grouped(static_cast<int64_t>(work_)),
                  " tokens to read and write at most");
  if (summary_.predicted.has_value()) {
    absl::StrAppend(&plan, ", in about ",
                    Duration(summary_.predicted->Seconds()));
  }
  WriteNote(plan + "\n");
  ASSIGN_OR_RETURN(const std::string at_once, AtOnceAdvice());
  if (!at_once.empty()) {
    WriteNote(absl::StrCat("it could be read at once; ", at_once, "\n"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Tree::AtOnceAdvice() const {
  const int64_t made_for = model_->info().context;
  if (static_cast<int64_t>(summary_.book_tokens) > made_for) return "";
  ASSIGN_OR_RETURN(const Tokens prompt,
                   SummaryTalk(options_.book, book_.text).Tokens(*model_));
  const auto tokens = static_cast<int64_t>(prompt.size());
  if (tokens >= made_for) return "";
  if (sections_) return absl::StrCat("-c ", made_for);
  const int64_t answer = std::max<int64_t>(asked_.sampling.max_tokens, 1);
  return RoomAdvice(asked_, *model_, std::min(tokens + answer, made_for));
}

absl::StatusOr<Generator*> Tree::OpenScorer() {
  if (scorer_.has_value()) return &*scorer_;
  // With --plain or SPEED the session's rows are not the full model's.
  if (!options_.sampling.plain && options_.sampling.policy != "speed") {
    return OpenGenerator();
  }
  scoring_ = BaselineOf(options_, {{"context", options_.session.context}});
  scoring_.sampling.policy = "full";
  scoring_.sampling.settings.clear();
  scoring_.sampling.baseline = false;
  ASSIGN_OR_RETURN(Generator scorer,
                   Generator::Open(scoring_, *model_, summary_.context));
  scorer_.emplace(std::move(scorer));
  return &*scorer_;
}

absl::StatusOr<Generator*> Tree::OpenGenerator() {
  if (generator_.has_value()) return &*generator_;
  RETURN_IF_ERROR(LoadModel(options_, model_));
  ASSIGN_OR_RETURN(Generator generator,
                   Generator::Open(options_, *model_, summary_.context));
  generator_.emplace(std::move(generator));
  RETURN_IF_ERROR(generator_->SayWarnings());
  progress_ = std::make_unique<Progress>(options_.progress, "reading", "tokens",
                                         "tok/s");
  return &*generator_;
}

void Tree::Progressed(size_t prompt, size_t written) {
  const ProgressFn draw = progress_->Callback();
  if (draw) draw(std::min(work_done_ + prompt + written, work_), work_);
}

absl::Status Tree::ReadRequest(const TalkFn& talk, const Tokens& prompt) {
  // SPEED takes the end of what a session reads for the beginning of an answer,
  // so the prompt must be read in one piece.
  if (options_.sampling.policy == "speed") return generator_->Forget();
  ASSIGN_OR_RETURN(const Tokens around, talk("").Tokens(*model_));
  const auto [end, ignored] =
      std::mismatch(around.begin(), around.end(), prompt.begin(), prompt.end());
  if (end == around.begin()) return generator_->Forget();
  return generator_->Read({around.begin(), end}, nullptr);
}

absl::Status Tree::Read(const TalkFn& talk, const Tokens& prompt) {
  if (!options_.session.prompt_cache_dir.empty()) {
    RETURN_IF_ERROR(ReadRequest(talk, prompt));
  }
  return generator_->Read(prompt, [&](uint64_t done, uint64_t) {  //
    Progressed(done, 0);
  });
}

void Tree::BeginPart(size_t level, size_t index, size_t count,
                     const Node& node) {
  part_ =
      absl::StrCat(level == 0 ? "part " : "summary ", index + 1, " of ", count);
  place_ = reader::PlacesOf(book_, node.begin, node.end).text;
  progress_->SetPart(part_, place_, "reading");
}

void Tree::EndPart() {
  // A paragraph of the summary shows on the terminal when it is written.
  if (is_last_ && !options_.json && OutIsTerminal()) return;
  progress_->Say(absl::StrCat(part_, " is done", place_.empty() ? "" : ": ",
                              place_, "\n"));
}

void Tree::Put(const reader::Writing& writing, Node* node) {
  node->writing = writing;
  // CutAgain has warned of texts with fewer tokens, so these do not count.
  const auto most = static_cast<size_t>(options_.sampling.max_tokens);
  if (writing.cut && most == summary_.answer) ++summary_.cut;
}

absl::Status Tree::RunNode(size_t level, size_t index, size_t count,
                           const TalkFn& talk, std::string_view text,
                           Node* node) {
  if (SignalReceived() != 0) return Interrupted();
  const absl::string_view content =
      absl::StripAsciiWhitespace(absl::string_view(text.data(), text.size()));
  if (content.empty()) return absl::OkStatus();  // nothing to write about
  ASSIGN_OR_RETURN(const Tokens prompt,
                   talk(std::string(content)).Tokens(*model_));
  Tokens what = prompt;
  what.push_back(static_cast<int32_t>(options_.sampling.max_tokens));
  const uint64_t fingerprint =
      reader::Fingerprint({reinterpret_cast<const char*>(what.data()),
                           what.size() * sizeof(int32_t)});
  const auto depth = static_cast<int>(level);
  if (const reader::Writing* kept =
          reading_->journal().Find(depth, index, fingerprint)) {
    Put(*kept, node);
    ++summary_.resumed;
    work_ -= std::min(work_, prompt.size() + summary_.answer);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(Generator * generator, OpenGenerator());
  BeginPart(level, index, count, *node);
  RETURN_IF_ERROR(Read(talk, prompt));
  progress_->SetVerb("writing");
  size_t said = 0;           // bytes
  std::vector<size_t> ends;  // `said` behind each token
  ASSIGN_OR_RETURN(
      const Json report,
      (generator)->ContinueUnseen(options_.sampling.seed.value_or(0),
                                  [&](int32_t id, std::string_view words) {
                                    ends.push_back(said += words.size());
                                    Progressed(prompt.size(), ends.size());
                                    if (!options_.stream)
                                      return absl::OkStatus();
                                    return WriteJson({{"token", id},
                                                      {"text", words},
                                                      {"level", level},
                                                      {"number", index}});
                                  }));
  ASSIGN_OR_RETURN(const std::vector<double> seconds,
                   generator->TokenSeconds());
  summary_.spent.Add(report, seconds);
  summary_.resumed_layers += report.at("resumed").at("layers").get<int>();
  if (summary_.made++ == 0) {  // the same in every report
    for (const Json& warning : report.at("warnings")) {
      summary_.warnings.push_back(warning.get<std::string>());
    }
  }
  const Json& output = report.at("output").at(0);
  reader::Writing writing = {
      std::string(absl::StripAsciiWhitespace(generator->text())),
      output.at("tokens").get<Tokens>(),
      output.at("finish_reason") == "length"};
  if (sections_ && !writing.tokens.empty()) {
    ASSIGN_OR_RETURN(const Tokens bare, talk("").Tokens(*model_));
    const std::string text_said = generator->text();
    RETURN_IF_ERROR(KeepSupported(prompt, bare, text_said, ends, &writing));
    work_done_ += bare.size() + 2 * summary_.answer;
  } else if (writing.cut) {
    writing.text = std::string(reader::WholeSentences(writing.text));
  }
  work_done_ += prompt.size() + summary_.answer;
  const absl::Status kept =
      reading_->Add(depth, index, fingerprint, std::move(writing));
  if (!kept.ok()) {
    if (IsInterrupted(kept)) return kept;
    // A part that cannot be kept does not end the reading.
    summary_.warnings.push_back(
        absl::StrCat("parts are not kept from here on: ", kept.message()));
    WriteWarnings({summary_.warnings.back()});
    reading_->StopKeeping();
  }
  Put(*reading_->journal().Find(depth, index, fingerprint), node);
  EndPart();
  return absl::OkStatus();
}

absl::Status Tree::KeepSupported(const Tokens& prompt, const Tokens& bare,
                                 std::string_view said,
                                 const std::vector<size_t>& ends,
                                 reader::Writing* writing) {
  ASSIGN_OR_RETURN(Generator * scorer, OpenScorer());
  ASSIGN_OR_RETURN(const std::vector<double> with,
                   scorer->LogProbabilities(prompt, writing->tokens));
  ASSIGN_OR_RETURN(const std::vector<double> without,
                   scorer->LogProbabilities(bare, writing->tokens));
  std::vector<double> gains;
  for (size_t i = 0; i < with.size(); ++i) {
    gains.push_back(with[i] - without[i]);
  }
  gains.resize(ends.size());  // a --stop leaves tokens without words
  writing->text = SupportedSentences(said, ends, gains);
  ASSIGN_OR_RETURN(writing->tokens,
                   model_->Tokenize(writing->text, /*flags=*/0, /*limits=*/{}));
  // An answer of kSectionAnswer tokens has the three sentences that are kept,
  // so its cut loses none; a shorter one, by -n, may lose some.
  writing->cut = writing->cut && summary_.answer < kSectionAnswer;
  return absl::OkStatus();
}

absl::Status Tree::Write(const Node& node) {
  if (!is_last_ || options_.json || node.writing.text.empty()) {
    return absl::OkStatus();
  }
  return WriteParagraphs(book_, summary_.book_tokens, node,
                         std::exchange(written_, true));
}

bool Tree::SharesFit(const Level& below) {
  const size_t shares = Shares(below.size());
  const TalkFn talk = ForJoin(WordsOfShare(shares));
  for (size_t i = 0; i < shares; ++i) {
    const Joined share =
        Join(below, i * below.size() / shares, (i + 1) * below.size() / shares);
    if (!Fits(talk, share.text)) return false;
  }
  return true;
}

absl::StatusOr<std::vector<reader::Part>> Tree::CutAgain(const Level& below,
                                                         const Joined& joined) {
  std::vector<reader::Part> parts = reader::CutIntoParts(
      joined.text, {joined.begins, {}}, joined.text.size() / below.size() * 2,
      [&](std::string_view text) { return Fits(ForJoin(0), text); });
  if (!error_.ok()) return error_;
  constexpr size_t kFewer = 4;  // fewer by a quarter at least
  if (!parts.empty() && kFewer * parts.size() <= (kFewer - 1) * below.size()) {
    return parts;
  }
  const int64_t tokens = options_.sampling.max_tokens;
  if (parts.empty() || tokens < 2) {
    return Error(Exit::kFailed, "summaries_too_long",
                 absl::StrCat("the summaries of ", below.size(),
                              " parts do not become fewer: two of a token each "
                              "are too long for the context; a larger -c"));
  }
  summary_.warnings.push_back(absl::StrCat(
      "the summaries of ", below.size(),
      " parts are too long to become fewer: those of level ",
      summary_.levels.size(), " have ", tokens / 2, " tokens at most"));
  WriteWarnings({summary_.warnings.back()});
  AnswerWith(static_cast<size_t>(tokens / 2));
  return parts;
}

absl::Status Tree::Run() {
  ASSIGN_OR_RETURN(const std::string key,
                   ReadingKey(options_, *model_, book_.text));
  reading_ = Reading::Open(asked_, key);
  if (const size_t kept = reading_->journal().size(); kept > 0) {
    WriteNote(absl::StrCat("going on: ", Parts(kept),
                           " done before (--restart begins anew)\n"));
  }
  const auto begin = std::chrono::steady_clock::now();
  const KeepOnSignal keep;
  const absl::Status done = RunLevels();
  progress_.reset();
  summary_.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
          .count();
  if (IsInterrupted(done) && reading_->keeps()) {
    NoteKept(false);  // the note below says it
    const int32_t layers =
        generator_.has_value() ? generator_->KeptLayers() : 0;
    const size_t parts = reading_->journal().size();
    std::string where =
        parts > 0 ? absl::StrCat("behind ", Parts(parts)) : "in the first part";
    if (layers > 0) {
      absl::StrAppend(
          &where,
          parts > 0 ? ", and in the next behind layer " : ", behind layer ",
          layers, " of ", model_->info().layers);
    }
    WriteNote(absl::StrCat("the same command",
                           asked_.book.restart ? " without --restart" : "",
                           " goes on ", where, "\n"));
  }
  return done;
}

absl::Status Tree::RunLevels() {
  Level& leaves = summary_.levels.front();
  for (size_t i = 0; i < leaves.size(); ++i) {
    const std::string_view text =
        std::string_view(book_.text)
            .substr(leaves[i].begin, leaves[i].end - leaves[i].begin);
    absl::Status s = RunNode(0, i, leaves.size(), ForPart(), text, &leaves[i]);
    if (s.ok()) s = Write(leaves[i]);
    if (!s.ok()) return s;
  }
  while (!is_last_) {
    RETURN_IF_ERROR(RunLevelAbove());
  }
  return absl::OkStatus();
}

absl::Status Tree::RunLevelAbove() {
  const size_t level = summary_.levels.size();
  const Level& below = summary_.levels.back();
  is_last_ = SharesFit(below);
  if (!error_.ok()) return error_;
  const Joined joined = Join(below, 0, below.size());
  std::vector<reader::Part> parts;
  if (is_last_) {
    AnswerWith(summary_.answer);
    const size_t shares = Shares(below.size());
    for (size_t i = 0; i < shares; ++i) {
      const auto begin_of = [&](size_t share) {
        return share == shares ? joined.text.size()
                               : joined.begins[share * below.size() / shares];
      };
      parts.push_back({begin_of(i), begin_of(i + 1)});
    }
  } else {
    ASSIGN_OR_RETURN(parts, CutAgain(below, joined));
  }
  const TalkFn talk = ForJoin(is_last_ ? WordsOfShare(parts.size()) : 0);
  Level above;
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto [begin, end] = parts[i];
    above.push_back(Over(below, joined, begin, end));
    const std::string_view text =
        std::string_view(joined.text).substr(begin, end - begin);
    absl::Status s = RunNode(level, i, parts.size(), talk, text, &above.back());
    if (s.ok()) s = Write(above.back());
    if (!s.ok()) return s;
  }
  summary_.levels.push_back(std::move(above));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> SummarizeAsTree(const Options& options,
                                            Model* model,
                                            const document::Document& book,
                                            Leaves leaves,
                                            std::vector<std::string> warnings,
                                            const absl::Status& too_long) {
  if (options.sampling.verify_against_full) {
    return NotInThisVersion(
        "--verify-against of a text longer than the context");
  }
  Tree tree(options, model, book, leaves, std::move(warnings));
  ASSIGN_OR_RETURN(const bool has_room, tree.HasRoom());
  if (!has_room) {
    return Error(ExitOf(too_long), CodeOf(too_long),
                 absl::StrCat(too_long.message(), tree.InPartsAdvice()));
  }
  RETURN_IF_ERROR(tree.Cut());
  RETURN_IF_ERROR(tree.SayPlan());
  RETURN_IF_ERROR(tree.Run());
  return WriteBookSummary(options, book, std::move(tree).Take());
}

}  // namespace tiercel::cli
