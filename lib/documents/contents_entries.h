#ifndef TIERCEL_LIB_DOCUMENTS_CONTENTS_ENTRIES_H_
#define TIERCEL_LIB_DOCUMENTS_CONTENTS_ENTRIES_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lib/documents/labels.h"
#include "lib/documents/text_lines.h"

namespace tiercel::document {

// Returns true if prose begins at line i: a block of full lines.
bool IsProse(const std::vector<TextLine>& lines, size_t i);

// The rank of a heading or an entry, where one without a word is a chapter.
Rank RankOf(std::string_view text);

// The lines from `first` on at which a heading may be, by each key that it may
// have in a table of contents.
using LineIndex = std::unordered_map<std::string, std::vector<size_t>>;
LineIndex LinesByKey(const std::vector<TextLine>& lines, size_t first);

// The keys by which an entry is matched to its heading: the whole text, or the
// title alone where the two differ in their labels ("1." and "Chapter 1") or
// one of them has none.
struct EntryKeys {
  std::string all;
  std::string title;
  bool has_label;
  int number;  // the one of the label; 0: none
  // Both without a number at either end, if that may be a page's.
  std::string unpaged;
  std::string unpaged_title;
};

// A table's entries, and the line of each.
struct Entries {
  std::vector<EntryKeys> keys;
  std::vector<size_t> lines;
  size_t end;  // line behind the last

  void Pop() {
    end = lines.back();
    keys.pop_back();
    lines.pop_back();
  }
};

// Returns the entries of the table behind a title, which is one of `titles`.
Entries EntriesAt(const std::vector<TextLine>& lines, const LineIndex& by_key,
                  const std::vector<size_t>& titles, size_t title);

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_CONTENTS_ENTRIES_H_
