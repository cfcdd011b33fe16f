#include "lib/reader/chapter_pattern.h"

#include <re2/re2.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/documents/outline.h"
#include "lib/reader/text.h"

namespace tiercel::reader {
namespace {

// A pattern that would take more memory is refused.
constexpr int64_t kMaxPatternBytes = int64_t{8} << 20;

RE2::Options Quiet() {
  RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kMaxPatternBytes);
  return options;
}

}  // namespace

ChapterPattern::ChapterPattern(const std::string& pattern)
    : pattern_(std::make_unique<RE2>(pattern, Quiet())) {}

ChapterPattern::~ChapterPattern() = default;
ChapterPattern::ChapterPattern(ChapterPattern&&) noexcept = default;
ChapterPattern& ChapterPattern::operator=(ChapterPattern&&) noexcept = default;

std::string ChapterPattern::error() const {
  return pattern_->ok() ? std::string() : pattern_->error();
}

size_t ChapterPattern::Apply(document::Document* book) const {
  const std::string_view text = book->text;
  std::vector<document::Heading> headings;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const size_t first = text.find_first_not_of(kBlanks, begin);
    if (first < end) {
      const std::string_view line = text.substr(begin, end - begin);
      if (RE2::PartialMatch(re2::StringPiece(line.data(), line.size()),
                            *pattern_)) {
        headings.push_back(
            {1, OneLine(std::string(text.substr(first, end - first))), first,
             ""});
      }
    }
    begin = end + 1;
  }
  book->sections = document::SectionsOf(headings);
  return book->sections.size();
}

}  // namespace tiercel::reader
