#include "lib/documents/pdf_text.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "lib/documents/labels.h"
#include "lib/documents/pdf_notes.h"
#include "lib/documents/text_lines.h"
#include "lib/documents/text_writer.h"
#include "lib/documents/unicode.h"

namespace tiercel::document {
namespace {

// The constants below are shares of the height of a line or a word.
constexpr float kSpace = 0.1F;   // the smallest gap between words
constexpr float kIndent = 0.8F;  // indent of a paragraph's first line
constexpr float kLargeType =
    1.15F;  // letters of a heading, to those of the body

// Returns a word without the punctuation at its beginning and its end.
std::string Bare(std::string_view word) {
  const std::u32string all = ToUtf32(word);
  size_t begin = 0;
  size_t end = all.size();
  const auto counts = [&](size_t i) {
    return IsLetter(all[i]) || IsDigit(all[i]);
  };
  while (begin < end && !counts(begin)) ++begin;
  while (end > begin && !counts(end - 1)) --end;
  std::u32string bare = all.substr(begin, end - begin);
  std::transform(bare.begin(), bare.end(), bare.begin(), LowerCase);
  return FromUtf32(bare);
}

// Returns true for a line of a table of contents: it ends in a leader (dots)
// and a number.
bool EndsInLeader(const PdfLine& line) {
  constexpr size_t kLeastDots = 3;
  std::string text;
  for (const PdfWord& word : line.words) text += word.text + " ";
  const std::u32string all = ToUtf32(OneLine(text));
  size_t at = all.size();
  const auto is_number = [](char32_t c) {
    return IsDigit(c) || c == U'i' || c == U'v' || c == U'x' || c == U'l';
  };
  while (at > 0 && is_number(all[at - 1])) --at;
  if (at == all.size()) return false;
  size_t num_dots = 0;
  for (; at > 0; --at) {
    const char32_t c = all[at - 1];
    if (c == U'.' || c == U'·') ++num_dots;
    if (c == U'…') num_dots += kLeastDots;
    if (c != U'.' && c != U'·' && c != U'…' && c != U' ') break;
  }
  return num_dots >= kLeastDots;
}

// Returns true for words within compounds: "jack-of-all-trades", "va-t-il".
bool IsLinkWord(const std::string& word) {
  constexpr std::string_view kWords[] = {
      "of", "in", "the", "to", "and", "a",  "by", "on", "at",
      "de", "la", "le",  "du", "des", "en", "t",  "au", "und"};
  return std::find(std::begin(kWords), std::end(kWords), word) !=
         std::end(kWords);
}

class PdfWriter {
 public:
  PdfWriter(const std::vector<PdfPage>& pages, const std::set<size_t>& chapters)
      : pages_(pages),
        chapters_(chapters),
        body_(BodyHeight(pages)),
        notes_(body_) {}

  std::vector<PdfLargeLine> Write(const std::vector<std::string>& numbers,
                                  Document* document) {
    CollectWords();
    std::vector<size_t> marks;
    for (size_t p = 0; p < pages_.size(); ++p) {
      if (chapters_.count(p) > 0) {
        WriteNotes();
        last_ = nullptr;
      }
      marks.push_back(writer_.Mark());
      page_ = p;
      WritePage(pages_[p]);
    }
    WriteNotes();
    document->text = writer_.Take();
    const std::vector<size_t> places = writer_.Marks();
    for (size_t p = 0; p < pages_.size(); ++p) {
      document->pages.push_back({places[marks[p]], numbers[p]});
    }
    for (PdfLargeLine& line : large_) {
      line.begin = places[line.begin];
      line.page_end = line.page + 1 < pages_.size()
                          ? places[marks[line.page + 1]]
                          : document->text.size();
    }
    return std::move(large_);
  }

 private:
  // Collects the words of the document, which show how a broken word is
  // spelled.
  void CollectWords() {
    for (const PdfPage& page : pages_) {
      for (const PdfBlock& block : page.blocks) {
        for (const PdfLine& line : block.lines) {
          for (size_t w = 0; w < line.words.size(); ++w) {
            const std::string& text = line.words[w].text;
            if (w + 1 == line.words.size() && text.back() == '-') continue;
            words_.insert(Bare(text));
          }
        }
      }
    }
  }

  void WritePage(const PdfPage& page) {
    notes_.AddPage(page);
    for (const PdfBlock& block : page.blocks) {
      if (!notes_.Has(block)) WriteBlock(block);
    }
  }

  void WriteNotes() {
    FinishHyphen();
    writer_.Break(2);
    for (const PdfNote& note : notes_.Take()) {
      FinishHyphen();
      writer_.Break(2);
      if (IsNoteNumber(note.number)) {
        writer_.Words("[" + note.number + "] ");
      } else if (!note.number.empty()) {
        writer_.Words(note.number + " ");
      }
      for (size_t l = 0; l < note.lines.size(); ++l) {
        const PdfNote::Line& line = note.lines[l];
        if (l > 0 && line.index > 0) {
          JoinLines(note.lines[l - 1].line(), line.line());
        } else if (l > 0) {
          writer_.Words(" ");
        }
        WriteLine(line.line(), line.first_word);
      }
    }
    FinishHyphen();
    writer_.Break(2);
  }

  void WriteBlock(const PdfBlock& block) {
    if (last_ != nullptr && GoesOn(block)) {
      JoinLines(*last_, block.lines.front());
    } else {
      FinishHyphen();
      writer_.Break(2);
    }
    const bool is_verse = IsVerse(block);
    for (size_t l = 0; l < block.lines.size(); ++l) {
      const PdfLine& line = block.lines[l];
      if (l > 0) {
        const PdfLine& before = block.lines[l - 1];
        const float indent = line.box.left - block.box.left;
        const float indent_before = before.box.left - block.box.left;
        const float size = LetterHeight(line);
        const bool is_indented =
            indent > kIndent * size && indent_before < kIndent * size && l > 1;
        if (is_indented || AreApartBySize(before, line)) {
          FinishHyphen();
          writer_.Break(2);
        } else if (is_verse || IsMeant(before, line, block.column_right)) {
          FinishHyphen();
          writer_.Break(1);
        } else {
          JoinLines(before, line);
        }
      }
      AddLarge(line);
      WriteLine(line, 0);
    }
    last_ = &block.lines.back();
    last_right_ = block.column_right;
  }

  bool IsLarge(const PdfLine& line) const {
    return LetterHeight(line) > kLargeType * body_ && !EndsInLeader(line);
  }

  // Returns true if one of two lines is large, and the other of another size.
  bool AreApartBySize(const PdfLine& a, const PdfLine& b) const {
    return (IsLarge(a) || IsLarge(b)) &&
           std::abs(LetterHeight(a) - LetterHeight(b)) > 0.5F;
  }

  // Notes a line in large letters, which is about to be written.
  void AddLarge(const PdfLine& line) {
    constexpr float kNextRow = 2;  // letters' heights
    const bool is_joined = std::exchange(was_large_, IsLarge(line));
    if (!was_large_) return;
    const float height = LetterHeight(line);
    const float step = line.box.top - large_top_;
    large_top_ = line.box.top;
    large_.push_back({page_, 0, writer_.Mark(), height, WordsOf(line),
                      is_joined,
                      step > height / 2 && step < kNextRow * height});
  }

  // Returns the words of a line, those whose letters stand apart in one.
  static std::string WordsOf(const PdfLine& line) {
    constexpr float kWordGap = 1.5F;  // to the gap between letters
    float least = std::numeric_limits<float>::max();
    const auto gap_behind = [&](size_t w) {
      return line.words[w + 1].box.left - line.words[w].box.right;
    };
    for (size_t w = 0; w + 1 < line.words.size(); ++w) {
      least = std::min(least, gap_behind(w));
    }
    std::string text;
    for (size_t w = 0; w < line.words.size(); ++w) {
      if (w > 0) text += gap_behind(w - 1) > kWordGap * least ? "   " : " ";
      text += line.words[w].text;
    }
    const std::string closed = Closed(text);
    return closed.empty() ? OneLine(text) : closed;
  }

  // Returns true if a block continues the sentence that the last block broke
  // off at the end of its column.
  bool GoesOn(const PdfBlock& block) const {
    const PdfLine& line = block.lines.front();
    if (line.box.top > last_->box.top) return false;  // in the same column
    if (std::abs(LetterHeight(line) - LetterHeight(*last_)) > 0.5F)
      return false;
    const std::string& end = last_->words.back().text;
    size_t next = 0;
    const char32_t begin = CharacterAt(line.words.front().text, 0, &next);
    if (EndsSentence(*last_) || IsMeant(*last_, line, last_right_))
      return false;
    return IsLowerCase(begin) || IsIdeographic(begin) || end.back() == '-';
  }

  // Returns true for lines of verse: nearly each begins with a capital.
  static bool IsVerse(const PdfBlock& block) {
    constexpr size_t kFewLines = 4;
    const auto has_capital = [](const PdfLine& line) {
      const std::u32string word = ToUtf32(line.words.front().text);
      const size_t first = static_cast<size_t>(
          std::find_if(word.begin(), word.end(), IsLetter) - word.begin());
      if (first == word.size() || !IsUpperCase(word[first])) return false;
      return first + 1 == word.size() || !IsUpperCase(word[first + 1]);
    };
    const auto num_capitals =
        std::count_if(block.lines.begin(), block.lines.end(), has_capital);
    return block.lines.size() >= kFewLines &&
           static_cast<size_t>(num_capitals) * 5 >= block.lines.size() * 4;
  }

  // Returns true if the break after `line` is meant: it is a line of a table of
  // contents, or the first word of the next line would have found room on it.
  static bool IsMeant(const PdfLine& line, const PdfLine& next, float right) {
    return EndsInLeader(line) || HasRoomFor(next, line, right);
  }

  void WriteLine(const PdfLine& line, size_t first_word) {
    for (size_t w = first_word; w < line.words.size(); ++w) {
      const PdfWord& word = line.words[w];
      const bool is_note = notes_.IsReference(line, w);
      if (w > first_word) {
        if (is_note || IsApart(line, w) || IsVerseNumber(line, w - 1)) {
          writer_.Words(" ");
        }
      }
      const bool is_last = w + 1 == line.words.size();
      if (is_note) {
        writer_.Words("[" + word.text + "]");
        if (!is_last) writer_.Words(" ");
      } else if (is_last && EndsInHyphen(word.text)) {
        hyphened_ = word.text;
        writer_.Words(word.text.substr(0, word.text.size() - 1));
      } else {
        writer_.Words(word.text);
      }
    }
  }

  // Returns true if there is a gap between a word and the one before it.
  static bool IsApart(const PdfLine& line, size_t word) {
    const PdfBox& box = line.words[word].box;
    const PdfBox& before = line.words[word - 1].box;
    return box.left - before.right >
           kSpace * std::min(box.height(), before.height());
  }

  // Returns true for a raised number that stands apart from the word before it:
  // it is that of a verse, and no part of the word behind it.
  static bool IsVerseNumber(const PdfLine& line, size_t word) {
    return IsRaisedNumber(line.words[word], line) &&
           (word == 0 || IsApart(line, word));
  }

  // Returns true for a hyphen between letters and the end of a line.
  static bool EndsInHyphen(std::string_view word) {
    return word.size() > 2 && word.back() == '-' &&
           IsLetter(CharacterBefore(word, word.size() - 1));
  }

  // Writes the hyphen that is owed, if no other line was joined to it.
  void FinishHyphen() {
    if (!hyphened_.empty()) writer_.Words("-");
    hyphened_.clear();
  }

  void JoinLines(const PdfLine& before, const PdfLine& line) {
    const std::string& next = line.words.front().text;
    if (!hyphened_.empty()) {
      if (KeepsHyphen(next)) writer_.Words("-");
      hyphened_.clear();
      return;
    }
    const std::string& last = before.words.back().text;
    size_t unused = 0;
    const bool is_ideographic =
        IsIdeographic(CharacterBefore(last, last.size())) &&
        IsIdeographic(CharacterAt(next, 0, &unused));
    // Paths and addresses are broken behind a slash.
    const bool is_path = last.size() > 2 && last.back() == '/' &&
                         last.find('/') + 1 < last.size();
    if (!is_ideographic && !is_path) writer_.Words(" ");
  }

  bool KeepsHyphen(const std::string& next) const {
    const std::string first = Bare(hyphened_);
    const std::string second = Bare(next);
    if (words_.count(first + second) > 0) return false;
    if (words_.count(first + "-" + second) > 0) return true;
    const size_t hyphen = first.rfind('-');
    if (hyphen != std::string::npos && IsLinkWord(first.substr(hyphen + 1))) {
      return true;
    }
    size_t unused = 0;
    return !IsLowerCase(CharacterAt(next, 0, &unused));
  }

  const std::vector<PdfPage>& pages_;
  const std::set<size_t>& chapters_;
  const float body_;                 // height of the body's letters
  size_t page_ = 0;                  // the page that is written
  std::vector<PdfLargeLine> large_;  // `begin` is the number of a mark
  float large_top_ = 0;              // the last large line's
  bool was_large_ = false;           // the last line of the body was
  std::unordered_set<std::string> words_;
  TextWriter writer_;
  PdfNotes notes_;
  const PdfLine* last_ = nullptr;  // the last line of the body that was written
  float last_right_ = 0;           // right edge of its column
  std::string hyphened_;           // a word whose hyphen is owed
};

}  // namespace

std::vector<PdfLargeLine> WritePdfText(const std::vector<PdfPage>& pages,
                                       const std::vector<std::string>& numbers,
                                       const std::set<size_t>& chapters,
                                       Document* document) {
  return PdfWriter(pages, chapters).Write(numbers, document);
}

}  // namespace tiercel::document
