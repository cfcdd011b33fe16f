#include "lib/documents/pdf_right_to_left.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/documents/unicode.h"

namespace tiercel::document {
namespace {

// Counts the letters that are written from right to left, and others.
struct Letters {
  size_t right_to_left = 0;
  size_t others = 0;
  void Add(std::string_view text) {
    for (const char32_t c : ToUtf32(text)) {
      if (IsRightToLeft(c)) {
        ++right_to_left;
      } else if (IsLetter(c)) {
        ++others;
      }
    }
  }
  bool IsRight() const { return right_to_left > others; }
};

Letters LettersOf(const PdfPage& page) {
  Letters letters;
  for (const PdfBlock& block : page.blocks) {
    for (const PdfLine& line : block.lines) {
      for (const PdfWord& word : line.words) letters.Add(word.text);
    }
  }
  return letters;
}

// Mirrors a box within the room from `left` to `right`.
void MirrorBox(float left, float right, PdfBox* box) {
  const PdfBox old = *box;
  box->left = left + right - old.right;
  box->right = left + right - old.left;
}

bool HasRightToLeft(std::string_view text) {
  const std::u32string letters = ToUtf32(text);
  return std::any_of(letters.begin(), letters.end(), IsRightToLeft);
}

bool HasLetters(std::string_view text) {
  const std::u32string letters = ToUtf32(text);
  return std::any_of(letters.begin(), letters.end(), IsLetter);
}

bool IsNumber(std::string_view text) {
  const std::u32string signs = ToUtf32(text);
  return std::all_of(signs.begin(), signs.end(), IsDigit);
}

constexpr std::u32string_view kBrackets = U"()[]{}<>«»‹›";

std::u32string Mirrored(std::u32string text) {
  for (char32_t& c : text) {
    const size_t at = kBrackets.find(c);
    if (at != std::u32string_view::npos) c = kBrackets[at ^ 1];
  }
  return text;
}

// The number of brackets that are opened and closed again.
size_t BracketPairs(std::u32string_view brackets) {
  std::u32string open;
  size_t pairs = 0;
  for (const char32_t c : brackets) {
    const size_t at = kBrackets.find(c);
    if (at % 2 == 0) {
      open += kBrackets[at + 1];
    } else if (!open.empty() && open.back() == c) {
      open.pop_back();
      ++pairs;
    }
  }
  return pairs;
}

// The forms of alef (U+0622, U+0623, U+0625, U+0627).
constexpr std::u32string_view kAlefs = U"\u0622\u0623\u0625\u0627";
constexpr char32_t kAlef = U'\u0627';
constexpr char32_t kLam = U'\u0644';

// Lam and alef are one sign. Some programs give it the two letters in the order
// in which they are read, among others that are reversed: where all are
// reversed, the two are not. No word has an alef, another alef and a lam: there
// the two are put right, and `count` is raised.
std::u32string WithLamBeforeAlef(std::u32string word, size_t* count) {
  for (size_t i = 0; i + 2 < word.size(); ++i) {
    if (word[i] != kAlef || kAlefs.find(word[i + 1]) == kAlefs.npos ||
        word[i + 2] != kLam) {
      continue;
    }
    std::swap(word[i + 1], word[i + 2]);
    ++*count;
  }
  return word;
}

// Puts the words right that are "no" and "but", or "no" behind a letter that
// joins it, where lam and alef are given in the order in which they are read.
std::u32string WithNoPutRight(const std::u32string& word) {
  constexpr std::u32string_view kBefore =
      U"\u0648\u0641\u0628\u0643\u0625\u0623";  // waw, feh, beh, kaf, alefs
  std::u32string letters;
  for (const char32_t c : word) {
    if (IsRightToLeft(c)) letters += c;
  }
  const bool is_joined =
      letters.size() == 3 && kBefore.find(letters[0]) != kBefore.npos;
  if (letters.size() != 2 && !is_joined) return word;
  const size_t at = word.find(std::u32string{kAlef, kLam});
  if (at == word.npos || word.find(letters) == word.npos) return word;
  std::u32string put_right = word;
  std::swap(put_right[at], put_right[at + 1]);
  return put_right;
}

// Puts the lines of a page that have letters of Hebrew or Arabic into the order
// in which they are read.
class FromRight {
 public:
  // `mirrors`: brackets are given as they look, not as they are meant; which of
  // both depends on the program that made the file.
  explicit FromRight(bool mirrors) : mirrors_(mirrors) {}

  // `is_mirrored`: most letters of the page are read from right to left.
  void Read(bool is_mirrored, PdfPage* page) {
    if (is_mirrored) {
      ForEachBox(page, [&](PdfBox* box) { MirrorBox(0, page->width, box); });
      WidenColumns(page);
    }
    for (PdfBlock& block : page->blocks) {
      for (PdfLine& line : block.lines) {
        if (is_mirrored) {
          Reorder(&line.words);
        } else {
          ReorderRuns(&line.words);
        }
      }
    }
  }

  // The number of words whose lam and alef were put right.
  size_t num_lams() const { return num_lams_; }

  // The brackets of the words whose letters were reversed, in their order.
  const std::u32string& brackets() const { return brackets_; }

 private:
  using Word = std::vector<PdfWord>::iterator;

  // Returns a word in the order in which it is read. Numbers and words of other
  // scripts within it have that order already.
  std::string Reversed(std::string_view word) {
    std::u32string letters = ToUtf32(word);
    std::reverse(letters.begin(), letters.end());
    if (mirrors_) letters = Mirrored(std::move(letters));
    for (const char32_t c : letters) {
      if (kBrackets.find(c) != std::u32string_view::npos) brackets_ += c;
    }
    const auto is_other = [](char32_t c) {
      return IsDigit(c) || (IsLetter(c) && !IsRightToLeft(c));
    };
    // Signs of a number: U+00B0 is the degree, U+2030 per mille.
    const auto is_unit = [](char32_t c) {
      constexpr std::u32string_view kUnits = U"#$%£¥€\u00B0\u2030";
      return kUnits.find(c) != std::u32string_view::npos;
    };
    auto done = letters.begin();
    while (done != letters.end()) {
      auto begin = std::find_if(done, letters.end(), is_other);
      auto end = begin;
      // "1,990" and "a.b" are one run.
      while (end != letters.end() &&
             (is_other(*end) ||
              (end + 1 != letters.end() && !is_unit(*end) && !IsLetter(*end) &&
               is_other(*(end + 1)) && end != begin))) {
        ++end;
      }
      if (begin != end && IsDigit(*begin)) {
        while (begin != done && is_unit(*(begin - 1))) --begin;
      }
      if (begin != end && IsDigit(*(end - 1))) {
        while (end != letters.end() && is_unit(*end)) ++end;
      }
      std::reverse(begin, end);
      done = end;
    }
    return FromUtf32(
        WithLamBeforeAlef(WithoutPresentationForms(letters), &num_lams_));
  }

  // Puts words whose boxes were mirrored in the order in which they are read.
  // Words of other scripts side by side have theirs, with the numbers beside
  // them.
  void Reorder(std::vector<PdfWord>* words) {
    std::stable_sort(words->begin(), words->end(),
                     [](const PdfWord& a, const PdfWord& b) {
                       return a.box.left < b.box.left;
                     });
    for (auto word = words->begin(); word != words->end();) {
      const Word end = EndOfOthers(word, words->end());
      if (end == word) {
        word->text = Reversed(word->text);
        ++word;
        continue;
      }
      std::reverse(word, end);
      Mirror(word, end);
      MoveMarks(&*word, &*(end - 1));
      word = end;
    }
  }

  // A run of words of another script has its marks of the sentence, which are
  // read behind it, to its left.
  static void MoveMarks(PdfWord* first, PdfWord* last) {
    const size_t end = first->text.find_first_not_of(",.:;?!");
    if (end == 0 || end == std::string::npos) return;
    const std::string marks = first->text.substr(0, end);
    first->text.erase(0, end);
    last->text += marks;
  }

  // Reorders the words of a line that is read from right to left, or the runs
  // of such words in one that is not.
  void ReorderRuns(std::vector<PdfWord>* words) {
    Letters letters;
    for (const PdfWord& word : *words) letters.Add(word.text);
    if (letters.right_to_left == 0) return;
    std::vector<PdfWord> run;
    for (auto begin = words->begin(); begin != words->end();) {
      auto end =
          letters.IsRight() ? words->end() : EndOfRun(begin, words->end());
      if (end == begin) {
        ++begin;
        continue;
      }
      Mirror(begin, end);
      run.assign(begin, end);
      Reorder(&run);
      std::copy(run.begin(), run.end(), begin);
      begin = end;
    }
  }

  // The end of the run of words from right to left that begins with `begin`;
  // signs between them are a part of it. `begin`: none begins there.
  static Word EndOfRun(Word begin, Word end) {
    Word last = begin;
    for (Word word = begin; word != end; ++word) {
      if (HasRightToLeft(word->text)) {
        last = word + 1;
      } else if (word == begin || HasLetters(word->text)) {
        break;
      }
    }
    return last;
  }

  // The end of the run of words of other scripts, and of numbers beside them,
  // that begins with `begin`; `begin`: none begins there.
  static Word EndOfOthers(Word begin, Word end) {
    Word last = begin;
    bool has_letters = false;
    for (Word word = begin; word != end; ++word) {
      if (HasRightToLeft(word->text)) break;
      const bool letters = HasLetters(word->text);
      if (!letters && !IsNumber(word->text) && word == begin) break;
      has_letters = has_letters || letters;
      if (letters || IsNumber(word->text)) last = word + 1;
    }
    return has_letters ? last : begin;
  }

  // Mirrors the boxes of words within the room that they take.
  static void Mirror(Word begin, Word end) {
    if (begin == end) return;
    float left = begin->box.left;
    float right = begin->box.right;
    for (Word word = begin; word != end; ++word) {
      left = std::min(left, word->box.left);
      right = std::max(right, word->box.right);
    }
    for (Word word = begin; word != end; ++word) {
      MirrorBox(left, right, &word->box);
    }
  }

  const bool mirrors_;
  std::u32string brackets_;
  size_t num_lams_ = 0;
};

}  // namespace

void ReadFromRight(PdfPage* page) {
  const Letters letters = LettersOf(*page);
  if (letters.right_to_left == 0) return;
  PdfPage as_meant = *page;
  FromRight plain(/*mirrors=*/false);
  plain.Read(letters.IsRight(), &as_meant);
  if (BracketPairs(plain.brackets()) >
      BracketPairs(Mirrored(plain.brackets()))) {
    *page = std::move(as_meant);
  } else {
    FromRight(/*mirrors=*/true).Read(letters.IsRight(), page);
  }
  if (plain.num_lams() == 0) return;
  for (PdfBlock& block : page->blocks) {
    for (PdfLine& line : block.lines) {
      for (PdfWord& word : line.words) {
        word.text = FromUtf32(WithNoPutRight(ToUtf32(word.text)));
      }
    }
  }
}

}  // namespace tiercel::document
