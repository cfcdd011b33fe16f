#include "lib/documents/undeclared_headings.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <utility>

#include "lib/documents/labels.h"
#include "lib/documents/plain_text.h"

namespace tiercel::document {
namespace {

constexpr size_t kMaxLabelBytes = 200;
constexpr int kLevelWithin = 1000;  // below them

// Returns the place of the line that has `place`.
size_t LineWith(std::string_view text, size_t place) {
  if (place == 0) return 0;
  const size_t end = text.rfind('\n', place - 1);
  const size_t begin = end == std::string_view::npos ? 0 : end + 1;
  return std::min(text.find_first_not_of(" \t", begin), place);
}

class Merger {
 public:
  Merger(std::string_view text, std::vector<Heading> declared,
         std::vector<Heading> found)
      : text_(text), declared_(std::move(declared)), found_(std::move(found)) {}

  std::vector<Heading> Merged() {
    if (found_.empty()) return std::move(declared_);
    Sort();
    if (!IsWorthIt()) return std::move(declared_);
    for (size_t i = 0; i < declared_.size(); ++i) Place(i);
    for (Heading& heading : found_) merged_.push_back(std::move(heading));
    std::stable_sort(
        merged_.begin(), merged_.end(),
        [](const Heading& a, const Heading& b) { return a.begin < b.begin; });
    return std::move(merged_);
  }

 private:
  // The role of a declared heading among those that were found.
  enum class Kind { kFound, kTitleOfFound, kFront, kBetween, kBack };

  // Gives each declared heading its kind. One that was found as well hands its
  // anchor on.
  void Sort() {
    for (const Heading& heading : declared_) {
      const size_t line = LineWith(text_, heading.begin);
      const auto next = FirstFoundAt(line);
      const Rank rank = SplitLabel(heading.text).rank;
      if (rank != Rank::kNone) declared_ranks_.insert(rank);
      if (next != found_.end() && next->begin <= heading.begin) {
        kinds_.push_back(Kind::kFound);
        next->anchor = heading.anchor;
        are_declared_.insert(next->begin);
        continue;
      }
      if (next == found_.begin()) {
        kinds_.push_back(Kind::kFront);
        continue;
      }
      const Label label = SplitLabel(std::prev(next)->text);
      const std::string_view between = text_.substr(
          std::prev(next)->begin, heading.begin - std::prev(next)->begin);
      const bool is_title = label.rank != Rank::kNone &&
                            between.size() <= kMaxLabelBytes &&
                            HeadingKey(between) == HeadingKey(label.label);
      kinds_.push_back(is_title               ? Kind::kTitleOfFound
                       : next == found_.end() ? Kind::kBack
                                              : Kind::kBetween);
      if (kinds_.back() == Kind::kBetween) levels_within_.insert(heading.level);
    }
  }

  // Returns the first found heading at a place or behind it.
  std::vector<Heading>::iterator FirstFoundAt(size_t place) {
    return std::lower_bound(
        found_.begin(), found_.end(), place,
        [](const Heading& heading, size_t at) { return heading.begin < at; });
  }

  // Returns true if enough speaks for what was found and is not declared.
  bool IsWorthIt() const {
    size_t num_undeclared = 0;
    bool has_bare = false;
    for (const Heading& heading : found_) {
      const Rank rank = SplitLabel(heading.text).rank;
      if (rank == Rank::kNone || are_declared_.count(heading.begin) > 0) {
        continue;
      }
      if (declared_ranks_.count(rank) > 0) return false;
      ++num_undeclared;
      has_bare = has_bare || rank == Rank::kNumber;
    }
    const auto num_between =
        std::count(kinds_.begin(), kinds_.end(), Kind::kBetween);
    const auto num_back = std::count(kinds_.begin(), kinds_.end(), Kind::kBack);
    if (has_bare && num_between > 0) return false;
    return num_undeclared > 1 &&
           num_undeclared > static_cast<size_t>(num_between + num_back);
  }

  void Place(size_t i) {
    Heading& heading = declared_[i];
    switch (kinds_[i]) {
      case Kind::kFound:
        return;
      case Kind::kTitleOfFound:
        GiveTitle(heading);
        return;
      case Kind::kFront: {
        const size_t next =
            i + 1 < declared_.size()
                ? std::min(declared_[i + 1].begin, found_.front().begin)
                : found_.front().begin;
        const bool is_short =
            next - heading.begin < heading.text.size() + kMinTextBytes;
        const bool is_named = IsUnnumberedPart(heading.text);
        if (is_short && !is_named && i > 0) return;
        heading.level = is_short && !is_named ? kLevelOfTitle : TopLevel();
        break;
      }
      case Kind::kBetween:
        heading.level += kLevelWithin;
        break;
      case Kind::kBack:
        heading.level = levels_within_.count(heading.level) > 0
                            ? heading.level + kLevelWithin
                            : TopLevel();
        break;
    }
    merged_.push_back(std::move(heading));
  }

  // Gives the label before a declared heading that heading's words.
  void GiveTitle(const Heading& title) {
    const auto found = std::prev(FirstFoundAt(title.begin));
    found->anchor = title.anchor;
    const Label label = SplitLabel(found->text);
    if (label.title.empty()) found->text = label.label + ": " + title.text;
  }

  int TopLevel() const {
    return std::min_element(found_.begin(), found_.end(),
                            [](const Heading& a, const Heading& b) {
                              return a.level < b.level;
                            })
        ->level;
  }

  const std::string_view text_;
  std::vector<Heading> declared_;
  std::vector<Heading> found_;
  std::vector<Kind> kinds_;        // one for each declared heading
  std::set<size_t> are_declared_;  // places of those found that are declared
  std::set<Rank> declared_ranks_;
  std::set<int> levels_within_;  // declared levels between those found
  std::vector<Heading> merged_;
};

}  // namespace

std::vector<Heading> WithUndeclared(std::string_view text,
                                    std::vector<Heading> declared) {
  return WithUndeclared(text, std::move(declared), FindHeadings(text));
}

std::vector<Heading> WithUndeclared(std::string_view text,
                                    std::vector<Heading> declared,
                                    std::vector<Heading> found) {
  if (declared.empty()) return found;
  return Merger(text, std::move(declared), std::move(found)).Merged();
}

}  // namespace tiercel::document
