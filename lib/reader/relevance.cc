#include "lib/reader/relevance.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <string>

#include "absl/functional/function_ref.h"
#include "lib/documents/unicode.h"

namespace tiercel::reader {
namespace {

constexpr double kSaturation = 1.2;    // k1
constexpr double kLengthShare = 0.75;  // b
constexpr size_t kLettersOfWord = 6;

// Calls `take` with each word of the text, folded and cut.
void ForEachWord(std::string_view text,
                 absl::FunctionRef<void(std::string_view)> take) {
  const std::string folded = document::CaseFolded(std::string(text));
  const std::string_view whole = folded;
  size_t word = 0;  // its first byte
  size_t end = 0;   // behind its first letters
  size_t letters = 0;
  size_t neighbour = 0;  // the first byte of the ideograph before
  bool has_neighbour = false;
  const auto end_word = [&] {
    if (letters > 0) take(whole.substr(word, end - word));
    letters = 0;
  };
  for (size_t at = 0; at < whole.size();) {
    const size_t begin = at;
    const char32_t character = document::CharacterAt(whole, at, &at);
    if (document::IsIdeographic(character)) {
      end_word();
      if (has_neighbour) take(whole.substr(neighbour, at - neighbour));
      neighbour = begin;
      has_neighbour = true;
      continue;
    }
    has_neighbour = false;
    if (document::IsMark(character)) {
      if (end == begin) end = at;  // it belongs to the letter before
    } else if (!document::IsLetter(character) &&
               !document::IsDigit(character)) {
      end_word();
    } else if (letters < kLettersOfWord) {
      if (letters++ == 0) word = begin;
      end = at;
    }
  }
  end_word();
}

}  // namespace

std::vector<double> RelevanceOf(const std::vector<std::string_view>& parts,
                                std::string_view question) {
  std::map<std::string, std::vector<double>, std::less<>> counts;
  ForEachWord(question, [&](std::string_view word) {
    counts[std::string(word)].resize(parts.size());
  });
  std::vector<double> lengths(parts.size());
  double all = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    ForEachWord(parts[i], [&](std::string_view word) {
      ++lengths[i];
      const auto found = counts.find(word);
      if (found != counts.end()) ++found->second[i];
    });
    all += lengths[i];
  }
  std::vector<double> relevance(parts.size());
  const auto num_parts = static_cast<double>(parts.size());
  for (const auto& [word, of_part] : counts) {
    double having = 0;
    for (const double count : of_part) having += count > 0 ? 1 : 0;
    const double weight =
        std::log(1 + (num_parts - having + 0.5) / (having + 0.5));
    for (size_t i = 0; i < parts.size(); ++i) {
      if (of_part[i] == 0) continue;
      const double length = lengths[i] * num_parts / all;
      relevance[i] += weight * of_part[i] * (kSaturation + 1) /
                      (of_part[i] + kSaturation * (1 - kLengthShare +
                                                   kLengthShare * length));
    }
  }
  return relevance;
}

std::vector<size_t> MostRelevant(const std::vector<double>& relevance,
                                 const std::vector<size_t>& tokens,
                                 size_t most) {
  std::vector<size_t> order(relevance.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return relevance[a] > relevance[b];
  });
  std::vector<size_t> read;
  for (const size_t part : order) {
    if (tokens[part] > most) continue;
    most -= tokens[part];
    read.push_back(part);
  }
  std::sort(read.begin(), read.end());
  return read;
}

}  // namespace tiercel::reader
