#include "lib/documents/page_numbers.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "lib/documents/unicode.h"

namespace tiercel::document {
namespace {

constexpr size_t kFewNumbers = 4;
constexpr size_t kManyNumbers = 10;
constexpr size_t kMinPageBytes = 1000;  // a sonnet has fewer
constexpr size_t kMaxPageBytes = 5000;

// Returns true if a sentence goes on over line i.
bool IsWithin(const std::vector<TextLine>& lines, size_t i) {
  if (i == 0 || i + 1 >= lines.size()) return false;
  const std::string_view before = lines[i - 1].text;
  const char32_t end = CharacterBefore(before, before.size());
  size_t next = 0;
  return (IsLowerCase(end) || end == U',' || end == U'-') &&
         IsLowerCase(CharacterAt(lines[i + 1].text, 0, &next));
}

// Returns true if four of five distances are within a quarter of the median.
bool AreAlike(std::vector<size_t> distances) {
  std::sort(distances.begin(), distances.end());
  const size_t median = distances[distances.size() / 2];
  const auto num_alike = static_cast<size_t>(std::count_if(
      distances.begin(), distances.end(), [median](size_t distance) {
        return distance * 4 >= median * 3 && distance * 4 <= median * 5;
      }));
  return num_alike * 5 >= distances.size() * 4;
}

}  // namespace

bool ArePageNumbers(const std::vector<TextLine>& lines,
                    const std::vector<size_t>& numbers) {
  if (numbers.size() < kFewNumbers) return false;
  const auto num_within = static_cast<size_t>(
      std::count_if(numbers.begin(), numbers.end(),
                    [&](size_t i) { return IsWithin(lines, i); }));
  if (num_within * 4 > numbers.size()) return true;
  if (numbers.size() < kManyNumbers) return false;
  std::vector<size_t> bytes;
  std::vector<size_t> num_lines;
  for (size_t i = 1; i < numbers.size(); ++i) {
    bytes.push_back(lines[numbers[i]].begin - lines[numbers[i - 1]].begin);
    num_lines.push_back(numbers[i] - numbers[i - 1]);
  }
  const size_t all = lines[numbers.back()].begin - lines[numbers[0]].begin;
  const size_t mean = all / bytes.size();
  return mean >= kMinPageBytes && mean <= kMaxPageBytes &&
         (AreAlike(std::move(bytes)) || AreAlike(std::move(num_lines)));
}

}  // namespace tiercel::document
