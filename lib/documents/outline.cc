#include "lib/documents/outline.h"

#include <algorithm>
#include <utility>

#include "lib/documents/labels.h"
#include "lib/documents/text_writer.h"
#include "lib/documents/unicode.h"

namespace tiercel::document {
namespace {

// Splits off a number that SplitLabel leaves in the title, since alone it may
// belong there ("7 Habits"), as if it had a point.
Label SplitBareNumber(const Section& section) {
  const size_t end = section.title.find(' ');
  if (!section.label.empty() || end == std::string::npos) return {};
  return SplitLabel(section.title.substr(0, end) + "." +
                    section.title.substr(end));
}

// "1 Scope" and "2 Terms" on one level are numbered.
void SplitBareNumbers(std::vector<Section>* sections) {
  std::vector<Label> labels;
  for (const Section& section : *sections) {
    labels.push_back(SplitBareNumber(section));
  }
  std::vector<bool> is_numbered(labels.size());
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i].rank != Rank::kNumber) continue;
    for (size_t next = i + 1; next < labels.size(); ++next) {
      const int level = (*sections)[next].level - (*sections)[i].level;
      if (level < 0) break;
      if (level > 0) continue;
      if (labels[next].rank == Rank::kNumber &&
          labels[next].number == labels[i].number + 1) {
        is_numbered[i] = is_numbered[next] = true;
      }
      break;
    }
  }
  for (size_t i = 0; i < labels.size(); ++i) {
    if (!is_numbered[i]) continue;
    (*sections)[i].label = std::move(labels[i].label);
    (*sections)[i].title = std::move(labels[i].title);
  }
}

bool IsTitle(const Document& document) {
  const Section& first = document.sections.front();
  if (document.sections.size() < 2 || !first.label.empty()) return false;
  if (HeadingKey(first.title) == HeadingKey(document.title)) return true;
  const auto next = std::find_if(
      document.sections.begin() + 1, document.sections.end(),
      [&](const Section& section) { return section.level <= first.level; });
  return next == document.sections.end() ||
         (document.title.empty() && !next->label.empty() &&
          !IsUnnumberedPart(first.title) &&
          document.text.find_first_not_of(" \t\r\n\f\v") == first.begin);
}

void DropTitle(Document* document) {
  std::vector<Section>& sections = document->sections;
  if (sections.empty() || !IsTitle(*document)) return;
  const int level = sections.front().level;
  if (document->title.empty()) document->title = sections.front().title;
  const auto next =
      std::find_if(sections.begin() + 1, sections.end(),
                   [&](const Section& s) { return s.level <= level; });
  if (next != sections.end()) {
    // Sections within the title are parts of the title page, and go with it.
    sections.erase(sections.begin(), next);
    return;
  }
  // Sections within the title become sections of the document.
  sections.erase(sections.begin());
  for (Section& section : sections) --section.level;
}

// Drops "by A. Writer" in a heading of its own, on the title page.
void DropByline(Document* document) {
  std::vector<Section>& sections = document->sections;
  if (sections.size() < 2 || document->author.empty()) return;
  const std::string author = HeadingKey(document->author);
  const std::string key = HeadingKey(sections.front().title);
  if (key == author || key == "by" + author) sections.erase(sections.begin());
}

void DropContents(std::vector<Section>* sections) {
  std::vector<Section> kept;
  for (size_t i = 0; i < sections->size(); ++i) {
    Section& section = (*sections)[i];
    const bool has_children =
        i + 1 < sections->size() && (*sections)[i + 1].level > section.level;
    const bool is_contents = section.label.empty() && !has_children &&
                             IsContentsTitle(section.title);
    if (!is_contents) kept.push_back(std::move(section));
  }
  *sections = std::move(kept);
}

void LeaveOutIndex(Document* document) {
  const auto last =
      std::find_if(document->sections.rbegin(), document->sections.rend(),
                   [](const Section& section) { return section.level == 1; });
  if (last == document->sections.rend() || !IsIndexTitle(last->title) ||
      last->begin == 0) {
    return;
  }
  document->warnings.push_back("the index at the end was left out (" +
                               last->title + ")");
  document->text.resize(last->begin);
  const size_t end =
      document->text.find_last_not_of(" \t\n\f\v");  // npos: nothing before
  document->text.resize(end == std::string::npos ? 0 : end + 1);
  if (!document->text.empty()) document->text.push_back('\n');
  document->sections.erase(std::prev(last.base()), document->sections.end());
}

// Warns of an outline that divides a long text hardly or into crumbs: its true
// chapters may not have been found.
void WarnOfSizes(Document* document) {
  constexpr size_t kLong = 200'000;  // bytes; a short story has 40,000
  constexpr size_t kMany = 300;
  constexpr size_t kCrumb = 500;
  const std::vector<Section>& sections = document->sections;
  const size_t bytes = document->text.size();
  if (bytes < kLong || sections.size() < 2) return;
  const Section* largest = nullptr;
  size_t most = 0;
  for (size_t i = 0; i < sections.size(); ++i) {
    const size_t end = i + 1 < sections.size() ? sections[i + 1].begin : bytes;
    const size_t size = end - std::min(end, sections[i].begin);
    if (size <= most) continue;
    most = size;
    largest = &sections[i];
  }
  if (2 * most > bytes) {
    document->warnings.push_back(
        "'" + (largest->title.empty() ? largest->label : largest->title) +
        "' is " + std::to_string(100 * most / bytes) +
        " % of the text and has no parts: some headings may not have been "
        "found");
  }
  if (sections.size() > kMany && bytes / sections.size() < kCrumb) {
    document->warnings.push_back(std::to_string(sections.size()) +
                                 " sections have " +
                                 std::to_string(bytes / sections.size()) +
                                 " bytes each: some may be no headings");
  }
}

template <typename Part>
void DropBeyond(size_t bytes, std::vector<Part>* parts) {
  parts->erase(
      std::remove_if(parts->begin(), parts->end(),
                     [&](const Part& part) { return part.begin >= bytes; }),
      parts->end());
}

// A book has some thousand sections. Each takes more memory than its heading.
constexpr size_t kMaxSections = 100'000;

}  // namespace

std::vector<Section> SectionsOf(const std::vector<Heading>& headings) {
  std::vector<Section> sections;
  std::vector<int> open;  // levels of the headings that a new one may lie in
  for (const Heading& heading : headings) {
    if (HeadingKey(heading.text).empty()) continue;
    while (!open.empty() && open.back() >= heading.level) open.pop_back();
    open.push_back(heading.level);
    Label label = SplitLabel(heading.text);
    sections.push_back({static_cast<int>(open.size()), std::move(label.label),
                        std::move(label.title), heading.begin, heading.anchor});
  }
  SplitBareNumbers(&sections);
  return sections;
}

bool AreGlued(std::string_view label, std::string_view title) {
  if (label.empty() || IsSpace(label.back())) return false;
  const Label split = SplitLabel(OneLine(label));
  if (split.rank == Rank::kNone || !split.title.empty()) return false;
  size_t next = 0;
  const char32_t first = CharacterAt(title, 0, &next);
  if (!IsUpperCase(first)) return false;
  const bool is_word =
      next < title.size() && IsLowerCase(CharacterAt(title, next, &next));
  if (is_word) return true;
  // Capitals may go on with a Roman number.
  const bool has_digit =
      label.find_first_of("0123456789") != std::string_view::npos;
  const bool is_named = split.rank != Rank::kNumber;
  return has_digit ||
         (is_named && NumberOf(title.substr(0, title.find(' '))) == 0);
}

void FinishOutline(Document* document) {
  if (document->sections.size() > kMaxSections) {
    document->warnings.push_back(
        std::to_string(document->sections.size()) +
        " headings are more than any book has: they are taken for none");
    document->sections = {};
  }
  DropTitle(document);
  DropByline(document);
  DropContents(&document->sections);
  LeaveOutIndex(document);
  DropBeyond(document->text.size(), &document->sections);
  DropBeyond(document->text.size(), &document->pages);
  WarnOfSizes(document);
}

}  // namespace tiercel::document
