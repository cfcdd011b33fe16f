#ifndef TIERCEL_LIB_DOCUMENTS_LABELS_H_
#define TIERCEL_LIB_DOCUMENTS_LABELS_H_

#include <string>
#include <string_view>

namespace tiercel::document {

// The kind of a heading's label, the outermost first: chapters lie within a
// part, not parts within a chapter. The depth of a bare number follows from its
// points.
enum class Rank {
  kNone,  // no label
  kVolume,
  kBook,
  kPart,
  kChapter,
  kSection,
  kNumber,  // "IV", "2.1", "七"
};

// A heading in two: "CHAPTER 1. Loomings." is "CHAPTER 1" and "Loomings",
// "2.1. Packages" is "2.1" and "Packages", "第三章 風の音" is "第三章" and
// "風の音", "[Chapter 1]" is "Chapter 1" and "". Words and numerals of some
// forty languages are known (heading_words.h).
struct Label {
  std::string label;  // without punctuation at its end; may be empty
  std::string title;  // without a full stop at its end; may be empty
  Rank rank = Rank::kNone;
  int number = 0;     // the last one of it; 0: none
  int num_parts = 0;  // parts of a number: 2 in "2.1"
};

// `heading` is UTF-8 on one line. A number without punctuation or a word
// ("1984", "7 Habits") is taken for a part of the title.
Label SplitLabel(std::string_view heading);

// Returns a line without the marks around it: "_Chapter 1_", "- Chapter 1 -".
std::string_view WithoutMarks(std::string_view line);
// Returns a heading of a text without the reference to a note at its end:
// "Chapter 1[2]", "CHAPTER 1*".
std::string_view WithoutNote(std::string_view heading);

// Returns the value of an Arabic, Roman, Chinese or spelled number that is the
// whole of `text`, with or without a point at its end; 0 for any other text.
int NumberOf(std::string_view text);

// Returns a number in Roman digits, in lower case: "xiv".
std::string RomanOf(int value);

// "Preface", "Эпилог", "あとがき": parts that stand without a number.
bool IsUnnumberedPart(std::string_view title);
// "Contents", "Inhalt", "目次", "Contents of Volume I".
bool IsContentsTitle(std::string_view title);
// Returns "Volume I" for "Contents of Volume I"; "" for other titles.
std::string VolumeOfContents(std::string_view title);
// "Index", "Sachregister", "索引".
bool IsIndexTitle(std::string_view title);

// Returns the letters and digits of a heading in lower case and without
// accents, which two spellings of it have in common.
std::string HeadingKey(std::string_view heading);

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_LABELS_H_
