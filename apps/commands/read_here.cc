#include "apps/commands/read_here.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "apps/cli/error.h"
#include "include/tiercel.h"
#include "lib/reader/places.h"
#include "lib/reader/text.h"
#include "lib/status/status_macros.h"

namespace tiercel::cli {
namespace {

constexpr size_t kMostPassages = 3;
// A passage has at least this many times the mean share of a run.
constexpr double kTimesTheMean = 2;

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

}  // namespace

absl::StatusOr<Json> PassagesRead(const Model& model, Generator& generator,
                                  const std::vector<int32_t>& prompt,
                                  const std::string& question,
                                  const document::Document& book) {
  Json passages = Json::array();
  const auto whole = model.Detokenize(prompt, TIERCEL_PARSE_SPECIAL);
  if (!whole.ok()) return passages;
  const size_t text = whole->find(book.text);
  const size_t asked = whole->rfind(question);
  if (text == std::string::npos || asked == std::string::npos) return passages;
  const auto begins = BytesOf(model, prompt);
  if (!begins.ok() || begins->back() != whole->size()) return passages;
  const auto token_at = [&](size_t byte) {
    return static_cast<size_t>(
        std::upper_bound(begins->begin(), begins->end() - 1, byte) -
        begins->begin() - 1);
  };
  const size_t first = token_at(text);
  const size_t end = token_at(text + book.text.size());
  const auto shares =
      generator.Attended(first, end, token_at(asked), prompt.size());
  if (!shares.ok()) {
    return IsInterrupted(shares.status())
               ? absl::StatusOr<Json>(shares.status())
               : passages;
  }
  std::vector<size_t> order(shares->size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return (*shares)[a] > (*shares)[b];
  });
  const double least = kTimesTheMean / static_cast<double>(order.size());
  const size_t run0 = (first + TIERCEL_RUN_TOKENS - 1) / TIERCEL_RUN_TOKENS;
  for (size_t i = 0; i < std::min(order.size(), kMostPassages); ++i) {
    const double share = (*shares)[order[i]];
    if (share < least) break;
    const size_t token = (run0 + order[i]) * TIERCEL_RUN_TOKENS;
    const auto [from, to] =
        WholeWords(book.text, (*begins)[token] - text,
                   (*begins)[token + TIERCEL_RUN_TOKENS] - text);
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
