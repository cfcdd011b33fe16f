#include "apps/commands/read_here.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "apps/cli/error.h"
#include "apps/commands/requests.h"
#include "include/tiercel.h"
#include "lib/reader/places.h"
#include "lib/reader/text.h"
#include "lib/status/status_macros.h"

namespace tiercel::cli {
namespace {

constexpr size_t kMostPassages = 3;
// A passage has at least this many times the mean share of a run.
constexpr double kTimesTheMean = 2;
// A question with less of an excess (tiercel_reading) is hardly about the text.
constexpr double kLeastExcess = 0.045;
// A question that could be asked of any book: a passage that draws it, too,
// draws every question. It is the first of those that are compared.
constexpr char kAnyQuestion[] = "What is this text about?";
// The other questions that are compared; each is read once more.
constexpr size_t kMostOthers = 2;

// The byte offset of each token in the prompt's text, and that of the end. A
// token's bytes may depend on the one before it.
absl::StatusOr<std::vector<size_t>> BytesOf(const Model& model,
                                            const std::vector<int32_t>& ids) {
  std::vector<size_t> begins = {0};
  for (size_t i = 0; i < ids.size(); ++i) {
    std::vector<int32_t> before;
    if (i > 0) before.push_back(ids[i - 1]);
    std::vector<int32_t> with = before;
    with.push_back(ids[i]);
    ASSIGN_OR_RETURN(const auto shorter,
                     model.Detokenize(before, TIERCEL_PARSE_SPECIAL));
    ASSIGN_OR_RETURN(const auto longer,
                     model.Detokenize(with, TIERCEL_PARSE_SPECIAL));
    begins.push_back(begins.back() + longer.size() - shorter.size());
  }
  return begins;
}

// Cuts parts of words from the beginning and the end of a run of tokens.
std::pair<size_t, size_t> WholeWords(const std::string& text, size_t begin,
                                     size_t end) {
  constexpr std::string_view kBlanks = reader::kBlanks;
  if (begin > 0) {
    begin = std::min(text.find_first_of(kBlanks, begin - 1), end);
  }
  begin = std::min(text.find_first_not_of(kBlanks, begin), end);
  if (end < text.size()) {
    const size_t last = text.find_last_of(kBlanks, end);
    if (last != std::string::npos && last > begin) end = last;
  }
  while (end > begin && text.find_first_of(kBlanks, end - 1) == end - 1) --end;
  return {begin, end};
}

// A text, and where each of its tokens begins in it.
struct Words {
  std::string text;
  std::vector<size_t> begins;  // BytesOf

  size_t TokenAt(size_t byte) const {
    return static_cast<size_t>(
        std::upper_bound(begins.begin(), begins.end() - 1, byte) -
        begins.begin() - 1);
  }
};

// Returns std::nullopt if the tokens, one by one, are not the text of all.
std::optional<Words> WordsOf(const Model& model,
                             const std::vector<int32_t>& ids) {
  auto text = model.Detokenize(ids, TIERCEL_PARSE_SPECIAL);
  if (!text.ok()) return std::nullopt;
  auto begins = BytesOf(model, ids);
  if (!begins.ok() || begins->back() != text->size()) return std::nullopt;
  return Words{*std::move(text), *std::move(begins)};
}

// The tokens of a question, with those between it and its answer, as behind a
// text; none if it is not verbatim among them.
std::vector<int32_t> AsAsked(const Model& model, const BookOptions& book,
                             const std::string& question) {
  auto ids = QuestionTalk(book, "", question).Tokens(model);
  if (!ids.ok()) return {};
  const std::optional<Words> words = WordsOf(model, *ids);
  if (!words.has_value()) return {};
  const size_t asked = words->text.rfind(question);
  if (asked == std::string::npos) return {};
  return {ids->begin() + static_cast<int64_t>(words->TokenAt(asked)),
          ids->end()};
}

// The questions with which questions[number] is compared: those behind it
// first, in the place of its `room` tokens.
std::vector<std::vector<int32_t>> OthersOf(const Model& model,
                                           const Options& options,
                                           size_t number, size_t room) {
  const std::vector<std::string>& questions = options.questions;
  std::vector<std::string> texts = {kAnyQuestion};
  for (size_t i = 1; i < questions.size(); ++i) {
    const std::string& other = questions[(number + i) % questions.size()];
    if (texts.size() > kMostOthers) break;
    if (other == questions[number]) continue;
    if (std::find(texts.begin(), texts.end(), other) == texts.end()) {
      texts.push_back(other);
    }
  }
  std::vector<std::vector<int32_t>> others;
  for (const std::string& text : texts) {
    std::vector<int32_t> ids = AsAsked(model, options.book, text);
    // The first is compared alone, too: without it there are none.
    if (ids.empty() || ids.size() > room) break;
    others.push_back(std::move(ids));
  }
  return others;
}

}  // namespace

absl::StatusOr<Json> PassagesRead(const Model& model, Generator& generator,
                                  const std::vector<int32_t>& prompt,
                                  const Options& options, size_t number,
                                  const document::Document& book) {
  const Json unknown;
  const std::optional<Words> words = WordsOf(model, prompt);
  if (!words.has_value()) return unknown;
  const size_t text = words->text.find(book.text);
  const size_t asked = words->text.rfind(options.questions[number]);
  if (text == std::string::npos || asked == std::string::npos) return unknown;
  tiercel::Reading reading = {.begin = words->TokenAt(text),
                              .end = words->TokenAt(text + book.text.size()),
                              .asked = words->TokenAt(asked),
                              .answer = prompt.size()};
  reading.others =
      OthersOf(model, options, number, generator.Length() - reading.asked);
  const auto found = generator.Attended(reading);
  if (!found.ok()) {
    return IsInterrupted(found.status()) ? absl::StatusOr<Json>(found.status())
                                         : unknown;
  }
  Json passages = Json::array();
  if (found->excess < kLeastExcess) return passages;
  const std::vector<float>& shares = found->shares;
  std::vector<size_t> order(shares.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return shares[a] > shares[b]; });
  const double least = kTimesTheMean / static_cast<double>(order.size());
  const size_t run0 =
      (reading.begin + TIERCEL_RUN_TOKENS - 1) / TIERCEL_RUN_TOKENS;
  for (size_t i = 0; i < std::min(order.size(), kMostPassages); ++i) {
    const double share = shares[order[i]];
    if (share < least) break;
    const size_t token = (run0 + order[i]) * TIERCEL_RUN_TOKENS;
    const auto [from, to] =
        WholeWords(book.text, words->begins[token] - text,
                   words->begins[token + TIERCEL_RUN_TOKENS] - text);
    const reader::Places places = reader::PlacesOf(book, from, to);
    passages.push_back({{"text", book.text.substr(from, to - from)},
                        {"share", share},
                        {"chapters", places.chapters},
                        {"pages", places.pages},
                        {"place", places.text}});
  }
  return passages;
}

std::vector<std::string> PassageLines(const Json& passages) {
  if (passages.is_array() && passages.empty()) {
    return {"read here: the question drew no passage more than others do"};
  }
  std::vector<std::string> lines;
  for (const Json& passage : passages) {
    const auto place = passage.at("place").get<std::string>();
    lines.push_back(
        absl::StrCat("read here", place.empty() ? "" : ", ", place, ": ",
                     reader::OneLine(passage.at("text").get<std::string>())));
  }
  return lines;
}

}  // namespace tiercel::cli
