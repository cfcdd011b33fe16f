#include "apps/commands/tree.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "apps/cli/error.h"
#include "apps/cli/numbers.h"
#include "apps/commands/book.h"
#include "apps/commands/command.h"
#include "apps/commands/generation.h"
#include "apps/commands/readings.h"
#include "apps/commands/requests.h"
#include "apps/commands/text_length.h"
#include "apps/reader/outline.h"
#include "apps/reader/parts.h"
#include "apps/reader/places.h"
#include "apps/terminal/output.h"
#include "apps/terminal/progress.h"
#include "apps/terminal/signals.h"

namespace tiercel::cli {
namespace {

using Tokens = std::vector<int32_t>;

// Paragraphs of a summary whose length nobody said, and words of one.
constexpr size_t kParagraphs = 4;
constexpr size_t kMostParagraphs = 8;
constexpr int64_t kParagraphWords = 100;
// Of the JSON document: goes up where a field changes its meaning.
constexpr int kSchema = 1;

// One part of the book, or of its summaries, and what was written about it.
struct Node {
  size_t begin;  // of the book's text, in bytes
  size_t end;
  size_t first_token;  // where those of level 0 are counted one by one
  size_t last_token;
  reader::Writing writing;
};

// A level's texts, one after the other.
struct Joined {
  std::string text;
  std::vector<size_t> begins;  // of each in it
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

// What is made of the joined texts from `begin` to `end`.
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

std::string Parts(size_t count) {
  return absl::StrCat(count, count == 1 ? " part" : " parts");
}

// What prompts and answers are expected to take of the machine, as plans have
// it.
class Forecast {
 public:
  Forecast(const Options& options, const Model& model)
      : options_(options), model_(model) {}

  // Seconds to read a prompt and write an answer; absent where this machine's
  // rates are not known.
  std::optional<double> Seconds(size_t prompt, size_t answer) {
    const std::optional<Times>& times = At(prompt + answer);
    if (!times.has_value()) return std::nullopt;
    const double share =
        static_cast<double>(prompt) / static_cast<double>(prompt + answer);
    return share * times->full_s + static_cast<double>(answer) * times->step_s;
  }

 private:
  struct Times {
    double full_s;  // to read a prompt of so many tokens
    double step_s;  // from a token to the next behind it
  };

  // Plans are made for a few lengths alone.
  const std::optional<Times>& At(size_t length) {
    constexpr size_t kStep = 256;
    const auto context = static_cast<int64_t>((length / kStep + 1) * kStep);
    const auto [at, is_new] = times_.try_emplace(context);
    if (!is_new) return at->second;
    Options options = options_;
    options.session.context = std::min(context, ContextOf(options_, model_));
    const absl::StatusOr<Json> plan =
        model_.Plan(SessionParams(options, model_.draft()).session);
    if (plan.ok() && plan->at("ttft_s").is_number()) {
      at->second = Times{plan->at("ttft_s").get<double>(),
                         plan->at("tbt_ms").get<double>() / 1000};
    }
    return at->second;
  }

  const Options& options_;
  const Model& model_;
  std::map<int64_t, std::optional<Times>> times_;
};

// Sums of what the parts of this run took.
struct Spent {
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;
  int64_t output_tokens = 0;
  double prefill_s = 0;
  double decode_s = 0;

  void Add(const Json& report) {
    const auto prompt = report.at("prompt_tokens").get<int64_t>();
    const auto cached = report.at("cached_tokens").get<int64_t>();
    const auto written =
        static_cast<int64_t>(report.at("output").at(0).at("tokens").size());
    prompt_tokens += prompt;
    cached_tokens += cached;
    output_tokens += written;
    const auto seconds = [&](const char* rate, int64_t tokens) {
      return report.at(rate).is_number() && report.at(rate).get<double>() > 0
                 ? static_cast<double>(tokens) / report.at(rate).get<double>()
                 : 0.0;
    };
    prefill_s += seconds("prefill_tok_s", prompt - cached);
    decode_s += seconds("decode_tok_s", written - 1);
  }
};

Json Rate(int64_t tokens, double seconds) {
  return seconds > 0 ? Json(static_cast<double>(tokens) / seconds)
                     : Json(nullptr);
}

class Tree {
 public:
  Tree(const Options& options, Model* model, const document::Document& book,
       std::vector<std::string> warnings)
      : asked_(options),
        options_(options),
        model_(model),
        book_(book),
        warnings_(std::move(warnings)) {}

  // Whether the context holds parts of a text, what is asked of them, and an
  // answer. Errors: a plan's.
  absl::StatusOr<bool> HasRoom();
  // Cuts the book into the parts of level 0.
  absl::Status Cut();
  // Says what is going to be done, with times.
  absl::Status SayPlan();
  absl::Status Run();
  absl::Status Write();

 private:
  using Level = std::vector<Node>;

  // Whether the context holds what `talk` makes of a text, and an answer.
  // Where that cannot be told, error_ says why.
  bool Fits(const TalkFn& talk, std::string_view text);
  // The runs of a level's texts that are summarized next.
  absl::StatusOr<std::vector<reader::Part>> CutAgain(const Level& below,
                                                     const Joined& joined);
  // The parts that the last level is made of: shares of `below`.
  size_t Shares(size_t below) const;
  bool SharesFit(const Level& below);
  absl::Status RunNode(size_t level, size_t index, const TalkFn& talk,
                       std::string_view text, Node* node);
  absl::StatusOr<Generator*> OpenGenerator();
  void Progressed(size_t prompt, size_t written);

  TalkFn ForPart() const {
    return [this](const std::string& text) {
      return PartTalk(options_.book, /*words=*/0, text);
    };
  }
  TalkFn ForJoin(int64_t words) const {
    return [this, words](const std::string& text) {
      return JoinTalk(options_.book, words, text);
    };
  }
  int64_t WordsOfShare(size_t shares) const {
    return options_.book.words / static_cast<int64_t>(shares);
  }
  // The text of one paragraph's place, whatever the book has to name it by.
  std::string PlaceOf(const Node& node) const;
  Json PartOf(size_t level, const Node& node) const;
  Json Document() const;
  reader::Notes Notes() const;
  absl::Status RunLevels();
  absl::Status RunLevelAbove();
  // The nodes that the summary is made of, in order.
  const Level& Last() const { return levels_.back(); }

  const Options& asked_;
  Options options_;  // as each part is read
  Model* const model_;
  const document::Document& book_;
  std::vector<std::string> warnings_;
  size_t most_ = 0;    // tokens that the context holds
  size_t answer_ = 0;  // of them for an answer
  std::vector<Level> levels_;
  size_t book_tokens_ = 0;
  std::optional<double> predicted_s_;
  std::optional<Reading> reading_;
  size_t resumed_ = 0;
  size_t made_ = 0;
  std::optional<Generator> generator_;
  std::unique_ptr<Progress> progress_;
  size_t work_ = 0;       // tokens to read and write, as far as is known
  size_t work_done_ = 0;  // of finished parts
  Spent spent_;
  double seconds_ = 0;
  bool is_last_ = false;  // the highest level is the summary
  absl::Status error_;
};

absl::StatusOr<bool> Tree::HasRoom() {
  const absl::StatusOr<int64_t> most = MostTokens(options_, *model_);
  if (!most.ok()) return most.status();
  most_ = static_cast<size_t>(*most);
  const size_t quarter = most_ / 4;
  const int64_t wanted = options_.sampling.max_tokens;
  answer_ =
      wanted < 0 ? quarter : std::min(static_cast<size_t>(wanted), quarter);
  size_t asked = 0;
  for (const TalkFn& talk : {ForPart(), ForJoin(0), ForJoin(kParagraphWords)}) {
    const absl::StatusOr<Tokens> tokens = talk("").Tokens(*model_);
    if (!tokens.ok()) return tokens.status();
    asked = std::max(asked, tokens->size());
  }
  // Two summaries must fit into one prompt, or there would never be fewer.
  constexpr size_t kBetween = 16;
  if (answer_ == 0 || asked + 3 * answer_ + kBetween > most_) return false;
  options_.sampling.max_tokens = static_cast<int64_t>(answer_);
  return true;
}

bool Tree::Fits(const TalkFn& talk, std::string_view text) {
  if (!error_.ok()) return false;
  Model::TextLimits limits;
  limits.most_tokens = most_ - answer_;
  // Of a run that is far too long no copy is made.
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
      book_.text, divisions, kBytesOfToken * (most_ - answer_),
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
    const absl::StatusOr<Tokens> tokens = model_->Tokenize(
        std::string_view(book_.text).substr(part.begin, part.end - part.begin),
        /*flags=*/0, /*limits=*/{});
    if (!tokens.ok()) return tokens.status();
    leaves.push_back({part.begin,
                      part.end,
                      book_tokens_,
                      book_tokens_ + tokens->size(),
                      {}});
    book_tokens_ += tokens->size();
  }
  is_last_ = leaves.size() == 1;
  levels_.push_back(std::move(leaves));
  return absl::OkStatus();
}

size_t Tree::Shares(size_t below) const {
  const int64_t words = options_.book.words;
  const size_t wanted =
      words == 0
          ? kParagraphs
          : std::clamp<size_t>(static_cast<size_t>(words / kParagraphWords), 1,
                               kMostParagraphs);
  return std::clamp<size_t>(below / 2, 1, wanted);
}

absl::Status Tree::SayPlan() {
  std::vector<std::string> trouble;
  if (absl::Status s = MeasureRates(options_, *model_, &trouble); !s.ok()) {
    return s;
  }
  if (!trouble.empty()) {  // said once is enough
    warnings_.insert(warnings_.end(), trouble.begin(), trouble.end());
  }
  Forecast forecast(options_, *model_);
  const absl::StatusOr<Tokens> around = ForPart()("").Tokens(*model_);
  if (!around.ok()) return around.status();
  predicted_s_ = 0;
  const auto add = [&](size_t text) {
    const size_t prompt = text + around->size();
    work_ += prompt + answer_;
    const std::optional<double> seconds = forecast.Seconds(prompt, answer_);
    if (!seconds.has_value()) predicted_s_.reset();
    if (predicted_s_.has_value()) *predicted_s_ += *seconds;
  };
  const Level& leaves = levels_.front();
  for (const Node& leaf : leaves) add(leaf.last_token - leaf.first_token);
  // Summaries are of the length that they may have at most.
  size_t nodes = leaves.size();
  size_t above = 0;
  const size_t room = most_ - answer_ - around->size();
  while (nodes > 1) {
    const size_t shares = Shares(nodes);
    const size_t next = nodes * answer_ <= shares * room
                            ? shares
                            : std::max(nodes * answer_ / room, size_t{1});
    if (next >= nodes) break;
    for (size_t i = 0; i < next; ++i) add(nodes * answer_ / next);
    above += next;
    if (next == shares) break;
    nodes = next;
  }
  std::string plan = absl::StrCat(Grouped(static_cast<int64_t>(book_tokens_)),
                                  " tokens, the context holds ",
                                  Grouped(static_cast<int64_t>(most_)), ": ",
                                  Parts(leaves.size()), " to summarize");
  if (above > 0) {
    absl::StrAppend(&plan, ", then the summaries in ", above);
  }
  absl::StrAppend(&plan, "; ", Grouped(static_cast<int64_t>(work_)),
                  " tokens to read and write at most");
  if (predicted_s_.has_value()) {
    absl::StrAppend(&plan, ", in about ", Duration(*predicted_s_));
  }
  WriteNote(plan + "\n");
  return absl::OkStatus();
}

absl::StatusOr<Generator*> Tree::OpenGenerator() {
  if (generator_.has_value()) return &*generator_;
  if (absl::Status s = LoadModel(options_, model_); !s.ok()) return s;
  absl::StatusOr<Generator> generator =
      Generator::Open(options_, *model_, most_);
  if (!generator.ok()) return generator.status();
  generator_.emplace(*std::move(generator));
  if (absl::Status s = generator_->SayWarnings(); !s.ok()) return s;
  progress_ = std::make_unique<Progress>(options_.progress, "reading", "tokens",
                                         "tok/s");
  return &*generator_;
}

void Tree::Progressed(size_t prompt, size_t written) {
  const ProgressFn draw = progress_->Callback();
  if (draw) draw(std::min(work_done_ + prompt + written, work_), work_);
}

absl::Status Tree::RunNode(size_t level, size_t index, const TalkFn& talk,
                           std::string_view text, Node* node) {
  if (SignalReceived() != 0) return Interrupted();
  const absl::string_view words =
      absl::StripAsciiWhitespace(absl::string_view(text.data(), text.size()));
  if (words.empty()) return absl::OkStatus();  // nothing to write about
  const absl::StatusOr<Tokens> prompt =
      talk(std::string(words)).Tokens(*model_);
  if (!prompt.ok()) return prompt.status();
  const uint64_t fingerprint =
      reader::Fingerprint({reinterpret_cast<const char*>(prompt->data()),
                           prompt->size() * sizeof(int32_t)});
  const auto depth = static_cast<int>(level);
  if (const reader::Writing* kept =
          reading_->journal().Find(depth, index, fingerprint)) {
    node->writing = *kept;
    ++resumed_;
    work_ -= std::min(work_, prompt->size() + answer_);
    return absl::OkStatus();
  }
  const absl::StatusOr<Generator*> generator = OpenGenerator();
  if (!generator.ok()) return generator.status();
  absl::Status read = (*generator)->Read(*prompt, [&](uint64_t done, uint64_t) {
    Progressed(done, 0);
  });
  if (!read.ok()) return read;
  const absl::StatusOr<Json> report =
      (*generator)
          ->ContinueUnseen(
              options_.sampling.seed.value_or(0),
              [&](size_t done) { Progressed(prompt->size(), done); });
  if (!report.ok()) return report.status();
  spent_.Add(*report);
  ++made_;
  work_done_ += prompt->size() + answer_;
  const Json& output = report->at("output").at(0);
  const absl::Status kept = reading_->Add(
      depth, index, fingerprint,
      {std::string(absl::StripAsciiWhitespace((*generator)->text())),
       output.at("tokens").get<Tokens>(),
       output.at("finish_reason") == "length"});
  if (!kept.ok()) {
    if (IsInterrupted(kept)) return kept;
    // What is read is worth more than a place to keep it.
    warnings_.push_back(
        absl::StrCat("parts are not kept from here on: ", kept.message()));
    WriteWarnings({warnings_.back()});
    reading_->StopKeeping();
  }
  node->writing = *reading_->journal().Find(depth, index, fingerprint);
  return absl::OkStatus();
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
  if (!parts.empty() && parts.size() < below.size()) return parts;
  return Error(Exit::kFailed, "summaries_too_long",
               absl::StrCat("the summaries of ", below.size(),
                            " parts do not become fewer: the model writes too "
                            "much; a smaller -n, or a larger -c"));
}

absl::Status Tree::Run() {
  const absl::StatusOr<std::string> key =
      ReadingKey(options_, *model_, book_.text);
  if (!key.ok()) return key.status();
  reading_ = Reading::Open(options_, *key);
  if (const size_t kept = reading_->journal().size(); kept > 0) {
    WriteNote(absl::StrCat("going on: ", Parts(kept),
                           " done before (--restart begins anew)\n"));
  }
  const auto begin = std::chrono::steady_clock::now();
  const KeepOnSignal keep;
  const absl::Status done = RunLevels();
  progress_.reset();
  seconds_ =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
          .count();
  if (IsInterrupted(done) && reading_->keeps()) {
    WriteNote(absl::StrCat("the same command goes on behind ",
                           Parts(reading_->journal().size()), "\n"));
  }
  return done;
}

absl::Status Tree::RunLevels() {
  Level& leaves = levels_.front();
  for (size_t i = 0; i < leaves.size(); ++i) {
    const std::string_view text =
        std::string_view(book_.text)
            .substr(leaves[i].begin, leaves[i].end - leaves[i].begin);
    absl::Status s = RunNode(0, i, ForPart(), text, &leaves[i]);
    if (!s.ok()) return s;
  }
  while (!is_last_) {
    if (absl::Status s = RunLevelAbove(); !s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::Status Tree::RunLevelAbove() {
  const size_t level = levels_.size();
  const Level& below = levels_.back();
  is_last_ = SharesFit(below);
  if (!error_.ok()) return error_;
  const Joined joined = Join(below, 0, below.size());
  std::vector<reader::Part> parts;
  if (is_last_) {
    const size_t shares = Shares(below.size());
    for (size_t i = 0; i < shares; ++i) {
      const auto begin_of = [&](size_t share) {
        return share == shares ? joined.text.size()
                               : joined.begins[share * below.size() / shares];
      };
      parts.push_back({begin_of(i), begin_of(i + 1)});
    }
  } else {
    absl::StatusOr<std::vector<reader::Part>> cut = CutAgain(below, joined);
    if (!cut.ok()) return cut.status();
    parts = *std::move(cut);
  }
  const TalkFn talk = ForJoin(is_last_ ? WordsOfShare(parts.size()) : 0);
  Level above;
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto [begin, end] = parts[i];
    above.push_back(Over(below, joined, begin, end));
    const std::string_view text =
        std::string_view(joined.text).substr(begin, end - begin);
    absl::Status s = RunNode(level, i, talk, text, &above.back());
    if (!s.ok()) return s;
  }
  levels_.push_back(std::move(above));
  return absl::OkStatus();
}

std::string Tree::PlaceOf(const Node& node) const {
  std::string place = reader::PlacesOf(book_, node.begin, node.end).text;
  if (!place.empty()) return place;
  return absl::StrCat("tokens ", node.first_token, " to ", node.last_token,
                      " of ", book_tokens_);
}

Json Tree::PartOf(size_t level, const Node& node) const {
  const reader::Places places = reader::PlacesOf(book_, node.begin, node.end);
  return {{"level", level},         {"begin", node.first_token},
          {"end", node.last_token}, {"chapters", places.chapters},
          {"pages", places.pages},  {"text", node.writing.text}};
}

Json Tree::Document() const {
  Json tokens = Json::array();
  bool cut = false;
  for (const Node& node : Last()) {
    for (const int32_t id : node.writing.tokens) tokens.push_back(id);
    cut = cut || node.writing.cut;
  }
  Json parts = Json::array();
  for (size_t level = 0; level < levels_.size(); ++level) {
    for (const Node& node : levels_[level]) {
      parts.push_back(PartOf(level, node));
    }
  }
  const std::string text = Join(Last(), 0, Last().size()).text;
  if (Last().size() > 1) {  // its paragraphs together
    Node whole = {0, book_.text.size(), 0, book_tokens_, {}};
    whole.writing.text = text;
    parts.push_back(PartOf(levels_.size(), whole));
  }
  return DocumentOf(
      asked_, options_.sampling.seed.value_or(0),
      {{"schema", kSchema},
       {"context", most_},
       {"prompt_tokens", spent_.prompt_tokens},
       {"cached_tokens", spent_.cached_tokens},
       {"output",
        {{{"text", text},
          {"tokens", std::move(tokens)},
          {"finish_reason", cut ? "length" : "stop"}}}},
       {"prefill_tok_s",
        Rate(spent_.prompt_tokens - spent_.cached_tokens, spent_.prefill_s)},
       {"decode_tok_s", Rate(spent_.output_tokens, spent_.decode_s)},
       {"seconds", seconds_},
       {"predicted",
        {{"seconds",
          predicted_s_.has_value() ? Json(*predicted_s_) : Json(nullptr)}}},
       {"parts", std::move(parts)},
       {"resumed", {{"layers", 0}, {"nodes", resumed_}}},
       {"warnings", warnings_},
       {"simulated", options_.model.simulation.has_value()}});
}

reader::Notes Tree::Notes() const {
  reader::Notes notes = NotesOn(asked_, book_);
  const auto leaf_id = [](size_t index) {
    return absl::StrCat("part-", index + 1);
  };
  reader::Notes::Section summary = {"Summary", "summary", {}};
  for (const Node& node : Last()) {
    const Level& leaves = levels_.front();
    const auto leaf =
        std::find_if(leaves.begin(), leaves.end(),
                     [&](const Node& one) { return one.end > node.begin; });
    for (std::string& text : reader::Paragraphs(node.writing.text)) {
      summary.paragraphs.push_back(
          {std::move(text), PlaceOf(node),
           leaf_id(static_cast<size_t>(leaf - leaves.begin()))});
    }
  }
  notes.sections.push_back(std::move(summary));
  if (levels_.size() == 1) return notes;
  for (size_t i = 0; i < levels_.front().size(); ++i) {
    const Node& leaf = levels_.front()[i];
    reader::Notes::Section section = {PlaceOf(leaf), leaf_id(i), {}};
    for (std::string& text : reader::Paragraphs(leaf.writing.text)) {
      section.paragraphs.push_back({std::move(text), "", ""});
    }
    notes.sections.push_back(std::move(section));
  }
  return notes;
}

absl::Status Tree::Write() {
  size_t cut = 0;
  for (const Level& level : levels_) {
    cut += static_cast<size_t>(
        std::count_if(level.begin(), level.end(),
                      [](const Node& node) { return node.writing.cut; }));
  }
  if (cut > 0) {
    warnings_.push_back(absl::StrCat("the summaries of ", Parts(cut),
                                     " were cut at ", answer_,
                                     " tokens; -n N for more"));
    WriteWarnings({warnings_.back()});
  }
  if (absl::Status s = WriteNotes(asked_, Notes()); !s.ok()) return s;
  if (options_.json) return WriteJson(Document());
  bool first = true;
  for (const Node& node : Last()) {
    for (const std::string& text : reader::Paragraphs(node.writing.text)) {
      absl::Status s = WriteOut(
          absl::StrCat(first ? "" : "\n", text, "\n[", PlaceOf(node), "]\n"));
      if (!s.ok()) return s;
      first = false;
    }
  }
  std::string took = absl::StrCat(
      Parts(made_), " made",
      resumed_ > 0 ? absl::StrCat(", ", Parts(resumed_), " kept") : "");
  if (made_ > 0) {
    absl::StrAppend(&took, ": read ", Grouped(spent_.prompt_tokens),
                    " tokens, ", Grouped(spent_.cached_tokens),
                    " of them cached, and wrote ",
                    Grouped(spent_.output_tokens), " in ", Duration(seconds_));
    if (predicted_s_.has_value() && resumed_ == 0) {
      absl::StrAppend(&took, " (predicted ", Duration(*predicted_s_), ")");
    }
  }
  WriteNote(
      absl::StrCat(took, ", seed ", options_.sampling.seed.value_or(0), "\n"));
  return absl::OkStatus();
}

}  // namespace

absl::Status SummarizeAsTree(const Options& options, Model* model,
                             const document::Document& book,
                             std::vector<std::string> warnings,
                             const absl::Status& too_long) {
  if (options.sampling.verify_against_full) {
    return NotInThisVersion(
        "--verify-against of a text longer than the context");
  }
  Tree tree(options, model, book, std::move(warnings));
  const absl::StatusOr<bool> has_room = tree.HasRoom();
  if (!has_room.ok()) return has_room.status();
  if (!*has_room) return too_long;
  if (absl::Status s = tree.Cut(); !s.ok()) return s;
  if (absl::Status s = tree.SayPlan(); !s.ok()) return s;
  if (absl::Status s = tree.Run(); !s.ok()) return s;
  return tree.Write();
}

}  // namespace tiercel::cli
