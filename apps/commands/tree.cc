#include "apps/commands/tree.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "apps/cli/error.h"
#include "apps/cli/flags.h"
#include "apps/cli/numbers.h"
#include "apps/commands/at_once.h"
#include "apps/commands/book_summary.h"
#include "apps/commands/command.h"
#include "apps/commands/forecast.h"
#include "apps/commands/part_maker.h"
#include "apps/commands/part_prompts.h"
#include "apps/commands/readings.h"
#include "apps/commands/requests.h"
#include "apps/commands/sections.h"
#include "apps/commands/text_length.h"
#include "apps/terminal/output.h"
#include "apps/terminal/progress.h"
#include "apps/terminal/screen.h"
#include "apps/terminal/signals.h"
#include "lib/reader/outline.h"
#include "lib/reader/parts.h"
#include "lib/reader/places.h"
#include "lib/reader/relevance.h"
#include "lib/status/status_macros.h"

namespace tiercel::cli {
namespace {

using Tokens = std::vector<int32_t>;

// Paragraphs of a summary if the user gives no length, the most that it has,
// and the words of one.
constexpr size_t kParagraphs = 4;
constexpr size_t kMostParagraphs = 8;
constexpr int64_t kParagraphWords = 100;

// The room that a part leaves to what is asked of it is a multiple of so many
// tokens.
constexpr size_t kQuestionStep = 64;

// An upper bound of the tokens between texts that are read together.
constexpr size_t kBetween = 16;

class Tree {
 public:
  Tree(const Options& options, Model* model, const document::Document& book,
       TreeForm form, std::vector<std::string> warnings)
      : asked_(options),
        options_(options),
        model_(model),
        book_(book),
        form_(std::move(form)),
        sections_(form_.sections) {
    summary_.warnings = std::move(warnings);
    // A summary keeps the texts of the parts, and the KV of those that are
    // being made, but not that of all parts, which is gigabytes.
    options_.session.keeps_prompts_alone = !form_.answers();
  }

  // Returns `too_long` with advice unless the context holds parts of a text,
  // the request, and an answer. Errors also: a plan's.
  absl::Status CheckRoom(const absl::Status& too_long);
  // Cuts the book into the parts of level 0.
  absl::Status Cut();
  // Skips the parts that --effort leaves out.
  absl::Status Choose();
  // Opens the journal of the texts that were made before.
  absl::Status OpenReading();
  // Says the plan, with the times of what is left.
  absl::Status SayPlan();
  absl::Status Run();
  BookSummary Take() && { return std::move(summary_); }

 private:
  using Level = BookSummary::Level;

  // Advice if there is no room: "; or in parts, make room: -c 800", about the
  // least context that has room; empty if the model was made for less, or
  // memory has no room for it.
  std::string InPartsAdvice() const;

  std::string_view TextOfLeaf(const Node& leaf) const {
    return std::string_view(book_.text)
        .substr(leaf.begin, leaf.end - leaf.begin);
  }
  // The texts of level 0; empty: of those that are skipped.
  std::vector<std::string_view> LeafTexts() const;
  // The tokens of the request about a part.
  absl::StatusOr<size_t> AroundPart() const;
  // Says a warning now, and keeps it for the document.
  void Warn(std::string warning) {
    WriteWarnings({warning});
    summary_.warnings.push_back(std::move(warning));
  }
  // Returns true if the context holds the conversation that `talk` makes of a
  // text, and an answer. Sets error_ if that cannot be told.
  bool Fits(const TalkFn& talk, std::string_view text);
  // The runs of a level's texts that are summarized next. If these are not much
  // fewer than the texts, which may have more tokens as they are read than as
  // they were written, the next texts may only be half as long, so that in the
  // end two of them fit.
  absl::StatusOr<std::vector<reader::Part>> CutAgain(const Level& below,
                                                     const JoinedTexts& joined);
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
  // A level whose texts are being made.
  struct Making {
    enum class State { kWaits, kNothing, kKept, kMade };

    size_t level;
    const TalkFn& talk;
    const std::vector<std::string_view>& texts;  // to make them of
    Level* nodes;
    Tokens bare;                         // the request alone
    std::vector<uint64_t> fingerprints;  // a prompt's, for each text
    std::vector<State> states;
    size_t next = 0;     // the text that is begun next
    size_t written = 0;  // texts that have their place in the summary
  };
  // Makes the texts of a level.
  absl::Status RunLevel(size_t level, const TalkFn& talk,
                        const std::vector<std::string_view>& texts,
                        Level* nodes);
  // The next text that is to be made, and was not kept.
  absl::StatusOr<std::optional<Part>> Next(Making& making);
  // Keeps a text that was made.
  absl::Status Keep(Making& making, const Part& part, MadePart made);
  // Gives the texts that are there their nodes, in their order, and writes
  // them.
  absl::Status Advance(Making& making);
  static std::string NameOf(const Making& making, size_t index) {
    return absl::StrCat(making.level == 0 ? "part " : "summary ", index + 1,
                        " of ", making.nodes->size());
  }
  std::string PlaceOf(const Node& node) const {
    return reader::PlacesOf(book_, node.begin, node.end).text;
  }
  // Words for the number of parts that are read at a time, and for the time
  // that is predicted.
  std::string Pace() const;
  // Says that the text is made, unless the text itself shows.
  void EndPart(const Making& making, size_t index);
  // Gives `node` its text, made now or before.
  void Put(const reader::Writing& writing, Node* node);
  // Writes a paragraph of the summary, if `node` is one.
  absl::Status Write(const Node& node);
  // The time that the texts of a level take, each behind so many tokens; absent
  // if this machine's rates are not known.
  std::optional<Forecast::Times> TimesOf(
      const std::vector<Forecast::Prompt>& prompts) const;
  // The texts of the parts of the book, without their requests, and those of
  // the levels above it at their longest.
  std::vector<std::vector<Forecast::Prompt>> LevelTexts(size_t around) const;
  PartMaker::Shape Shape() const;

  const TalkFn& ForPart() const { return form_.part; }
  TalkFn ForJoin(int64_t words) const { return form_.join(words); }
  int64_t WordsOfShare(size_t shares) const {
    return options_.book.words / static_cast<int64_t>(shares);
  }
  absl::Status RunLevels();
  absl::Status RunLevelAbove();

  const Options& asked_;
  Options options_;  // asked_, changed for reading in parts
  Model* const model_;
  const document::Document& book_;
  const TreeForm form_;
  const bool sections_;
  BookSummary summary_;  // the part made so far
  std::optional<Reading> reading_;
  std::optional<PartMaker> maker_;
  Work work_;              // estimated
  size_t room_ = 0;        // most tokens of a text, its request and its answer
  size_t around_ = 0;      // tokens of the request of a text, or a few more
  std::string chosen_as_;  // words for the parts that --effort chose
  bool is_last_ = false;   // the highest level is the summary
  bool written_ = false;   // a paragraph of the summary was written
  absl::Status error_;
};

absl::Status Tree::CheckRoom(const absl::Status& too_long) {
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
  // Questions of about one length read the same parts, so that one finds the KV
  // that another has left.
  if (form_.answers()) {
    room_ -= std::min(room_, kQuestionStep - around_ % kQuestionStep);
  }
  if (sections_) {
    room_ = std::min(room_, around_ + kSectionTokens + summary_.answer);
  }
  // Two summaries must fit into one prompt, or their number would never shrink.
  if (summary_.answer == 0 || around_ + 3 * summary_.answer > room_) {
    return Error(ExitOf(too_long), CodeOf(too_long),
                 absl::StrCat(too_long.message(), InPartsAdvice()));
  }
  AnswerWith(summary_.answer);
  return absl::OkStatus();
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
  TextLimits limits;
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
  constexpr size_t kBytesOfToken = 4;
  Progress progress(options_.progress, "planning", "bytes", "");
  const ProgressFn draw = progress.Callback();
  const std::vector<reader::Part> parts = reader::CutIntoParts(
      book_.text, reader::DivisionsOf(book_),
      kBytesOfToken * (room_ - summary_.answer), [&](std::string_view text) {
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

absl::Status Tree::Choose() {
  if (!form_.answers() || options_.book.effort == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const size_t around, AroundPart());
  Level& leaves = summary_.levels.front();
  std::vector<std::string_view> texts;
  std::vector<size_t> tokens;
  for (const Node& leaf : leaves) {
    texts.push_back(TextOfLeaf(leaf));
    tokens.push_back(leaf.tokens() + around);
  }
  const std::vector<double> relevance =
      reader::RelevanceOf(texts, form_.question);
  const std::vector<size_t> read = reader::MostRelevant(
      relevance, tokens, static_cast<size_t>(options_.book.effort));
  if (read.empty()) {
    return UsageError(absl::StrCat(
        "--effort: got ", options_.book.effort, ", need ",
        *std::min_element(tokens.begin(), tokens.end()),
        " tokens at least, those of the shortest part with the question"));
  }
  if (read.size() == leaves.size()) return absl::OkStatus();
  for (Node& leaf : leaves) leaf.skipped = true;
  for (const size_t i : read) leaves[i].skipped = false;
  const bool is_one = read.size() == 1;
  if (is_one) is_last_ = true;  // there is nothing to join
  const auto best = static_cast<size_t>(
      std::max_element(relevance.begin(), relevance.end()) - relevance.begin());
  if (relevance[best] == 0) {
    chosen_as_ = is_one ? "the first that fits" : "the first that fit";
  } else {
    chosen_as_ = absl::StrCat(is_one ? "the one" : "those",
                              " with most words of the question",
                              !leaves[best].skipped ? ""
                              : is_one              ? " that fits"
                                                    : " that fit");
  }
  if (relevance[best] > 0 && leaves[best].skipped) {
    Warn(absl::StrCat("the part with most words of this question has ",
                      tokens[best], " tokens, more than --effort ",
                      options_.book.effort, ": ", form_.question));
  }
  if (relevance[best] == 0) {
    Warn(
        absl::StrCat("no part of the text has a word of this question, so the "
                     "first parts are read: ",
                     form_.question));
  }
  return absl::OkStatus();
}

size_t Tree::Shares(size_t below) const {
  if (form_.answers()) return 1;
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

PartMaker::Shape Tree::Shape() const {
  const size_t longest = room_ - summary_.answer;
  const Level& leaves = summary_.levels.front();
  const auto read = static_cast<size_t>(
      std::count_if(leaves.begin(), leaves.end(),
                    [](const Node& leaf) { return !leaf.skipped; }));
  return {{read, longest, longest},
          summary_.context,
          summary_.answer,
          sections_,
          form_.index};
}

std::optional<Forecast::Times> Tree::TimesOf(
    const std::vector<Forecast::Prompt>& prompts) const {
  TextSizes sizes = Shape().sizes;
  sizes.count = std::clamp<size_t>(prompts.size(), 1, sizes.count);
  const size_t at_once = CountsAtOnce(options_, *model_, sizes).front();
  const Options sized = OptionsFor(options_, *model_, sizes, at_once);
  return Forecast(sized, *model_).OfAll(prompts, summary_.answer, at_once);
}

std::vector<std::vector<Forecast::Prompt>> Tree::LevelTexts(
    size_t around) const {
  const Level& leaves = summary_.levels.front();
  std::vector<std::vector<Forecast::Prompt>> levels(1);
  for (const Node& leaf : leaves) {
    if (!leaf.skipped) levels[0].push_back({leaf.tokens()});
  }
  size_t nodes = levels[0].size();
  const size_t room = room_ - summary_.answer - around;
  while (nodes > 1) {
    const size_t shares = Shares(nodes);
    if (shares == nodes) break;
    const size_t next =
        nodes * summary_.answer <= shares * room
            ? shares
            : std::max(nodes * summary_.answer / room, size_t{1});
    if (next >= nodes) break;
    levels.emplace_back(next, Forecast::Prompt{nodes * summary_.answer / next});
    if (next == shares) break;
    nodes = next;
  }
  return levels;
}

std::vector<std::string_view> Tree::LeafTexts() const {
  std::vector<std::string_view> texts;
  for (const Node& leaf : summary_.levels.front()) {
    texts.push_back(leaf.skipped ? std::string_view() : TextOfLeaf(leaf));
  }
  return texts;
}

absl::StatusOr<size_t> Tree::AroundPart() const {
  ASSIGN_OR_RETURN(const Tokens around, ForPart()("").Tokens(*model_));
  return around.size();
}

absl::Status Tree::SayPlan() {
  ASSIGN_OR_RETURN(const size_t around, AroundPart());
  std::vector<std::vector<Forecast::Prompt>> levels = LevelTexts(around);
  size_t above = 0;
  for (std::vector<Forecast::Prompt>& level : levels) {
    for (Forecast::Prompt& prompt : level) {
      prompt.tokens += around;
      // The answer is scored with the text, and without.
      if (sections_) prompt.tokens += around + 2 * summary_.answer;
      work_.total += prompt.tokens + summary_.answer;
    }
    above += level.size();
  }
  const std::vector<Forecast::Prompt> leaves = levels.front();
  above -= leaves.size();
  const Options alone = OptionsFor(options_, *model_, Shape().sizes, 1);
  ASSIGN_OR_RETURN(const PartsLeft left,
                   FindPartsLeft(alone, *model_, reading_->journal(), ForPart(),
                                 LeafTexts(), leaves));
  levels.front() = left.prompts;
  for (size_t level = 1; level < levels.size(); ++level) {
    const size_t made = reading_->journal().CountAt(static_cast<int>(level));
    levels[level].resize(levels[level].size() -
                         std::min(levels[level].size(), made));
  }
  const auto leaves_s = [&] {
    return TimesOf(left.prompts).value_or(Forecast::Times()).Seconds();
  };
  std::vector<std::string> trouble;
  RETURN_IF_ERROR(MeasureRates(options_, *model_, leaves_s, &trouble));
  if (!trouble.empty()) {
    options_.session.cache_dir.clear();  // once is enough
    summary_.warnings.insert(summary_.warnings.end(), trouble.begin(),
                             trouble.end());
  }
  summary_.predicted.emplace();
  size_t tokens = 0;
  for (const std::vector<Forecast::Prompt>& level : levels) {
    const std::optional<Forecast::Times> times = TimesOf(level);
    if (!times.has_value()) summary_.predicted.reset();
    if (summary_.predicted.has_value()) summary_.predicted->Add(*times);
    for (const Forecast::Prompt& prompt : level) {
      tokens += prompt.tokens - prompt.found + summary_.answer;
    }
  }
  const size_t all_leaves = summary_.levels.front().size();
  std::string plan = absl::StrCat(
      Grouped(static_cast<int64_t>(summary_.book_tokens)),
      sections_ ? " tokens, a small model reads at most "
                : " tokens, the context holds ",
      Grouped(
          static_cast<int64_t>(sections_ ? kSectionTokens : summary_.context)),
      sections_ ? " at once: " : ": ",
      leaves.size() < all_leaves ? absl::StrCat(leaves.size(), " of ") : "",
      Parts(all_leaves), form_.answers() ? " to ask" : " to summarize",
      leaves.size() < all_leaves ? absl::StrCat(", ", chosen_as_) : "",
      left.found > 0 ? absl::StrCat(", ",
                                    left.found == leaves.size()
                                        ? "all"
                                        : absl::StrCat(left.found, " of them"),
                                    " read before")
                     : "");
  if (above > 0) {
    absl::StrAppend(&plan,
                    form_.answers() ? ", then their answers in "
                                    : ", then the summaries in ",
                    above);
  }
  if (tokens == 0) {
    plan += "; all is done";
  } else {
    absl::StrAppend(&plan, "; ", Grouped(static_cast<int64_t>(tokens)),
                    " tokens to read and write at most", Pace());
  }
  WriteNote(plan + "\n");
  if (left.found < left.prompts.size()) {
    const std::string no_room = CacheSizeAdvice(alone, *model_, leaves);
    if (!no_room.empty()) WriteNote(no_room + "\n");
  }
  ASSIGN_OR_RETURN(const std::string advice, AtOnceAdvice());
  if (!advice.empty()) {
    WriteNote(absl::StrCat("it could be read at once; ", advice, "\n"));
  }
  return absl::OkStatus();
}

std::string Tree::Pace() const {
  std::string pace;
  const TextSizes sizes = Shape().sizes;
  const size_t at_once = CountsAtOnce(options_, *model_, sizes).front();
  const size_t most = MostAtOnce(options_, sizes);
  if (most > 1) {
    absl::StrAppend(&pace, ", ", Parts(at_once), " at a time",
                    at_once < most ? " as memory serves best" : "");
  }
  if (summary_.predicted.has_value()) {
    absl::StrAppend(&pace, ", in about ",
                    Duration(summary_.predicted->Seconds()));
  }
  return pace;
}

absl::StatusOr<std::string> Tree::AtOnceAdvice() const {
  const int64_t made_for = model_->info().context;
  if (static_cast<int64_t>(summary_.book_tokens) > made_for) return "";
  ASSIGN_OR_RETURN(const Tokens prompt,
                   (form_.answers() ? form_.part(book_.text)
                                    : SummaryTalk(options_.book, book_.text))
                       .Tokens(*model_));
  return AdviceForWhole(asked_, *model_, prompt.size(), sections_);
}

void Tree::EndPart(const Making& making, size_t index) {
  // A paragraph of the summary shows on the terminal when it is written.
  if (is_last_ && form_.shows && !options_.json && OutIsTerminal()) return;
  const Node& node = (*making.nodes)[index];
  const std::string place = PlaceOf(node);
  maker_->Say(absl::StrCat(NameOf(making, index), " is done",
                           place.empty() ? "" : ": ", place, "\n"));
}

void Tree::Put(const reader::Writing& writing, Node* node) {
  node->writing = writing;
  if (form_.answers() && SaysNothing(writing.text)) node->writing.text.clear();
  // CutAgain has warned of texts with fewer tokens, so these do not count, nor
  // do thoughts without an answer.
  const auto most = static_cast<size_t>(options_.sampling.max_tokens);
  if (writing.cut && !writing.text.empty() && most == summary_.answer) {
    ++summary_.cut;
  }
}

absl::Status Tree::RunLevel(size_t level, const TalkFn& talk,
                            const std::vector<std::string_view>& texts,
                            Level* nodes) {
  ASSIGN_OR_RETURN(Tokens bare, talk("").Tokens(*model_));
  Making making = {level, talk, texts, nodes, std::move(bare), {}, {}};
  making.fingerprints.resize(texts.size());
  making.states.resize(texts.size(), Making::State::kWaits);
  return maker_->Make([&] { return Next(making); },
                      [&](const Part& part, MadePart made) {
                        return Keep(making, part, std::move(made));
                      });
}

absl::StatusOr<std::optional<Part>> Tree::Next(Making& making) {
  while (making.next < making.texts.size()) {
    const size_t index = making.next++;
    ASSIGN_OR_RETURN(std::optional<PartPrompt> made,
                     PartPromptOf(making.talk, making.texts[index],
                                  options_.sampling.max_tokens, *model_));
    if (!made.has_value()) {  // nothing to write about
      making.states[index] = Making::State::kNothing;
      RETURN_IF_ERROR(Advance(making));
      continue;
    }
    making.fingerprints[index] = made->fingerprint;
    const auto depth = static_cast<int>(making.level);
    const reader::Writing* const kept =
        reading_->journal().Find(depth, index, made->fingerprint);
    if (kept == nullptr) {
      return Part{making.level,
                  index,
                  NameOf(making, index),
                  PlaceOf((*making.nodes)[index]),
                  std::move(made->tokens),
                  making.bare};
    }
    making.states[index] = Making::State::kKept;
    ++summary_.resumed;
    RETURN_IF_ERROR(maker_->Replay(making.level, index, *kept));
    work_.total -= std::min(work_.total, made->tokens.size() + summary_.answer);
    RETURN_IF_ERROR(Advance(making));
  }
  return std::nullopt;
}

absl::Status Tree::Keep(Making& making, const Part& part, MadePart made) {
  const Json& report = made.report;
  summary_.spent.Add(report, made.token_seconds);
  summary_.resumed_layers += report.at("resumed").at("layers").get<int>();
  if (made.in_thought) ++summary_.unanswered;
  ++summary_.made;
  AddNewWarnings(report.at("warnings").get<std::vector<std::string>>(),
                 &summary_.warnings);
  const absl::Status kept =
      reading_->Add(static_cast<int>(part.level), part.index,
                    making.fingerprints[part.index], std::move(made.writing));
  if (!kept.ok()) {
    if (IsInterrupted(kept)) return kept;
    // A part that cannot be kept does not end the reading.
    summary_.warnings.push_back(
        absl::StrCat("parts are not kept from here on: ", kept.message()));
    WriteNewWarnings({summary_.warnings.back()});
    reading_->StopKeeping();
  }
  making.states[part.index] = Making::State::kMade;
  return Advance(making);
}

absl::Status Tree::Advance(Making& making) {
  for (; making.written < making.states.size(); ++making.written) {
    const size_t index = making.written;
    const Making::State state = making.states[index];
    if (state == Making::State::kWaits) break;
    Node& node = (*making.nodes)[index];
    if (state != Making::State::kNothing) {
      Put(*reading_->journal().Find(static_cast<int>(making.level), index,
                                    making.fingerprints[index]),
          &node);
    }
    if (state == Making::State::kMade) EndPart(making, index);
    RETURN_IF_ERROR(Write(node));
  }
  return absl::OkStatus();
}

absl::Status Tree::Write(const Node& node) {
  const bool shows = is_last_ && !options_.json && form_.shows;
  if (!shows || node.writing.text.empty()) {
    return absl::OkStatus();
  }
  return WriteParagraphs(book_, summary_.book_tokens, node,
                         std::exchange(written_, true));
}

bool Tree::SharesFit(const Level& below) {
  const size_t shares = Shares(below.size());
  const TalkFn talk = ForJoin(WordsOfShare(shares));
  for (size_t i = 0; i < shares; ++i) {
    const JoinedTexts share = JoinTexts(below, i * below.size() / shares,
                                        (i + 1) * below.size() / shares);
    if (!Fits(talk, share.text)) return false;
  }
  return true;
}

absl::StatusOr<std::vector<reader::Part>> Tree::CutAgain(
    const Level& below, const JoinedTexts& joined) {
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
  Warn(absl::StrCat("the summaries of ", below.size(),
                    " parts are too long to become fewer: those of level ",
                    summary_.levels.size(), " have ", tokens / 2,
                    " tokens at most"));
  AnswerWith(static_cast<size_t>(tokens / 2));
  return parts;
}

absl::Status Tree::OpenReading() {
  ASSIGN_OR_RETURN(const std::string key,
                   ReadingKey(options_, *model_, book_.text));
  reading_ = Reading::Open(asked_, key);
  return absl::OkStatus();
}

absl::Status Tree::Run() {
  if (const size_t kept = reading_->journal().size(); kept > 0) {
    WriteNote(absl::StrCat("going on: ", Parts(kept),
                           " done before (--restart begins anew)\n"));
  }
  const auto begin = std::chrono::steady_clock::now();
  const KeepOnSignal keep;
  maker_.emplace(options_, model_, Shape(), &work_);
  const absl::Status done = RunLevels();
  const int32_t layers = maker_->KeptLayers();
  summary_.at_once = maker_->at_once();
  if (maker_->decode_seconds().has_value()) {
    summary_.spent.DecodedIn(*maker_->decode_seconds());
  }
  maker_.reset();
  summary_.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
          .count();
  if (IsInterrupted(done) && reading_->keeps()) {
    NoteKept(false);  // the note below says it
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
  RETURN_IF_ERROR(
      RunLevel(0, ForPart(), LeafTexts(), &summary_.levels.front()));
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
  const JoinedTexts joined = JoinTexts(below, 0, below.size());
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
  std::vector<std::string_view> texts;
  for (const auto& [begin, end] : parts) {
    above.push_back(NodeOver(below, joined, begin, end));
    texts.push_back(std::string_view(joined.text).substr(begin, end - begin));
  }
  RETURN_IF_ERROR(RunLevel(level, talk, texts, &above));
  summary_.levels.push_back(std::move(above));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<BookSummary> ReadAsTree(const Options& options, Model* model,
                                       const document::Document& book,
                                       TreeForm form,
                                       std::vector<std::string> warnings,
                                       const absl::Status& too_long) {
  if (options.sampling.verify_against_full) {
    return NotInThisVersion(
        "--verify-against of a text longer than the context");
  }
  Tree tree(options, model, book, std::move(form), std::move(warnings));
  RETURN_IF_ERROR(tree.CheckRoom(too_long));
  RETURN_IF_ERROR(tree.Cut());
  RETURN_IF_ERROR(tree.Choose());
  RETURN_IF_ERROR(tree.OpenReading());
  RETURN_IF_ERROR(tree.SayPlan());
  RETURN_IF_ERROR(tree.Run());
  return std::move(tree).Take();
}

absl::Status CheckHasRoom(const Options& options, Model* model,
                          const document::Document& book, TreeForm form,
                          const absl::Status& too_long) {
  return Tree(options, model, book, std::move(form), /*warnings=*/{})
      .CheckRoom(too_long);
}

}  // namespace tiercel::cli
