#include "lib/documents/pdf_labels.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <utility>

#include "lib/documents/encoding.h"
#include "lib/documents/inflate.h"
#include "lib/documents/labels.h"
#include "lib/documents/text_writer.h"

namespace tiercel::document {
namespace {

constexpr size_t kMaxUnpacked = size_t{64} << 20;
constexpr int kMaxDepth = 8;
constexpr size_t kMaxRanges = 10'000;
constexpr int kMaxNumber = 1'000'000;

bool IsDelimiter(char c) {
  return std::string_view("()<>[]{}/% \t\r\n\f").find(c) !=
             std::string_view::npos ||
         c == '\0';
}

// Splits the text of an object into its tokens: "<<", "/Nums", "12", "(A-)".
class Tokens {
 public:
  explicit Tokens(std::string_view text) : text_(text) {}

  // Returns "" at the end.
  std::string Next() {
    while (at_ < text_.size() && (IsSpace(text_[at_]) || text_[at_] == '\0')) {
      ++at_;
    }
    if (at_ >= text_.size()) return {};
    const size_t begin = at_;
    const std::string_view two = text_.substr(at_, 2);
    if (two == "<<" || two == ">>") {
      at_ += 2;
    } else if (text_[at_] == '(') {
      SkipString();
    } else if (text_[at_] == '<') {
      at_ = std::min(text_.find('>', at_), text_.size() - 1) + 1;
    } else {
      ++at_;
      const bool is_word = text_[begin] == '/' || !IsDelimiter(text_[begin]);
      while (is_word && at_ < text_.size() && !IsDelimiter(text_[at_])) ++at_;
    }
    return std::string(text_.substr(begin, at_ - begin));
  }

  size_t at() const { return at_; }
  void MoveTo(size_t at) { at_ = at; }

 private:
  void SkipString() {
    int depth = 0;
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\\') {
        ++at_;
      } else if (text_[at_] == '(') {
        ++depth;
      } else if (text_[at_] == ')' && --depth == 0) {
        ++at_;
        return;
      }
    }
    at_ = std::min(at_, text_.size());
  }

  const std::string_view text_;
  size_t at_ = 0;
};

// Returns a number of up to nine digits.
std::optional<int> IntOf(std::string_view token) {
  if (token.empty() || token.size() > 9) return std::nullopt;
  int value = 0;
  for (const char c : token) {
    if (std::isdigit(static_cast<unsigned char>(c)) == 0) return std::nullopt;
    value = value * 10 + (c - '0');
  }
  return value;
}

// The objects of a PDF by number, as text. They are found by their marks, not
// by the file's table, which damaged files have wrong; the last of two counts.
class Objects {
 public:
  explicit Objects(std::string_view pdf) : pdf_(pdf) {
    constexpr std::string_view kMark = " obj";
    for (size_t at = pdf.find(kMark); at != std::string_view::npos;
         at = pdf.find(kMark, at + 1)) {
      const auto number = NumberBefore(at);
      if (number.has_value()) {
        objects_[*number] = pdf.substr(at + kMark.size());
      }
    }
    AddPacked();
  }

  // Returns the text from an object's start on; nothing if there is none.
  std::optional<std::string_view> Find(int number) const {
    const auto object = objects_.find(number);
    if (object == objects_.end()) return std::nullopt;
    return object->second;
  }

  // Returns the text behind the first "/PageLabels".
  std::optional<std::string_view> Labels() const {
    constexpr std::string_view kName = "/PageLabels";
    std::optional<std::string_view> found = After(pdf_, kName);
    for (const std::string& text : unpacked_) {
      if (!found.has_value()) found = After(text, kName);
    }
    return found;
  }

 private:
  static std::optional<std::string_view> After(std::string_view text,
                                               std::string_view name) {
    const size_t at = text.find(name);
    if (at == std::string_view::npos) return std::nullopt;
    return text.substr(at + name.size());
  }

  // Reads "12 0" before " obj".
  std::optional<int> NumberBefore(size_t end) const {
    const auto is_digit = [&](size_t at) {
      return std::isdigit(static_cast<unsigned char>(pdf_[at])) != 0;
    };
    size_t at = end;
    while (at > 0 && is_digit(at - 1)) --at;
    if (at == end || at == 0 || pdf_[at - 1] != ' ') return std::nullopt;
    const size_t number_end = at - 1;
    size_t begin = number_end;
    while (begin > 0 && is_digit(begin - 1)) --begin;
    return IntOf(pdf_.substr(begin, number_end - begin));
  }

  // Adds the objects in object streams (ISO 32000-1, 7.5.7), which begin with
  // pairs of a number and an offset.
  void AddPacked() {
    size_t left = kMaxUnpacked;
    for (size_t at = pdf_.find("/ObjStm"); at != std::string_view::npos;
         at = pdf_.find("/ObjStm", at + 1)) {
      constexpr std::string_view kStream = "stream";
      size_t begin = pdf_.find(kStream, at);
      if (begin == std::string_view::npos) return;
      begin += kStream.size();
      if (pdf_.substr(begin, 1) == "\r") ++begin;
      if (pdf_.substr(begin, 1) == "\n") ++begin;
      const size_t end = std::min(pdf_.find("endstream", begin), pdf_.size());
      std::string_view packed = pdf_.substr(begin, end - begin);
      std::string text;  // a damaged stream gives what can be read of it
      (void)Inflate(Wrapping::kZlib, left, &packed, &text);
      left -= std::min(left, text.size());
      if (text.empty()) continue;
      unpacked_.push_back(std::move(text));
      if (left == 0) return;
    }
    for (const std::string& text : unpacked_) IndexPacked(text);
  }

  void IndexPacked(std::string_view text) {
    Tokens tokens(text);
    std::vector<std::pair<int, int>> index;
    size_t first = 0;  // the place at which the objects begin
    for (;;) {
      first = tokens.at();
      const std::optional<int> number = IntOf(tokens.Next());
      const std::optional<int> offset =
          number.has_value() ? IntOf(tokens.Next()) : std::nullopt;
      if (!offset.has_value()) break;
      index.emplace_back(*number, *offset);
    }
    while (first < text.size() && IsSpace(text[first])) ++first;
    for (const auto& [number, offset] : index) {
      const size_t begin = first + static_cast<size_t>(offset);
      if (begin < text.size()) objects_[number] = text.substr(begin);
    }
  }

  const std::string_view pdf_;
  std::vector<std::string> unpacked_;
  std::map<int, std::string_view> objects_;
};

struct Range {
  int first = 0;  // page, from 0
  char style = 0;
  std::string prefix;
  int start = 1;
};

// Returns the text of a string in PDF, without escapes; in UTF-16 if it has a
// mark.
std::string StringOf(const std::string& token) {
  std::string bytes;
  if (token[0] == '(') {
    for (size_t at = 1; at + 1 < token.size(); ++at) {
      if (token[at] == '\\' && at + 2 < token.size()) ++at;
      bytes.push_back(token[at]);
    }
  } else {
    std::string digits;
    for (const char c : token) {
      if (std::isxdigit(static_cast<unsigned char>(c)) != 0) digits += c;
    }
    for (size_t at = 0; at + 1 < digits.size(); at += 2) {
      bytes += static_cast<char>(std::stoi(digits.substr(at, 2), nullptr, 16));
    }
  }
  std::vector<std::string> unsaid;
  const bool has_mark = FindByteOrderMark(bytes).bytes > 0;
  return OneLine(has_mark ? DecodeText(bytes, &unsaid)
                          : ToUtf8(bytes, "WINDOWS-1252", &unsaid));
}

class LabelReader {
 public:
  explicit LabelReader(const Objects& objects) : objects_(objects) {}

  // Reads a node of the number tree, or a reference to one.
  void ReadNode(std::string_view text, int depth) {
    if (depth > kMaxDepth || ranges_.size() > kMaxRanges) return;
    Tokens tokens(text);
    std::string token = tokens.Next();
    if (const auto number = IntOf(token); number.has_value()) {
      const auto object = objects_.Find(*number);
      if (object.has_value()) ReadNode(*object, depth + 1);
      return;
    }
    if (token != "<<") return;
    for (token = tokens.Next(); !token.empty() && token != ">>";
         token = tokens.Next()) {
      if (token == "/Nums") ReadNums(&tokens);
      if (token == "/Kids") ReadKids(&tokens, depth);
    }
  }

  std::vector<Range> Take() {
    std::stable_sort(
        ranges_.begin(), ranges_.end(),
        [](const Range& a, const Range& b) { return a.first < b.first; });
    return std::move(ranges_);
  }

 private:
  void ReadKids(Tokens* tokens, int depth) {
    if (tokens->Next() != "[") return;
    for (auto number = IntOf(tokens->Next()); number.has_value();
         number = IntOf(tokens->Next())) {
      const auto object = objects_.Find(*number);
      if (object.has_value()) ReadNode(*object, depth + 1);
      tokens->Next();  // the generation
      tokens->Next();  // "R"
    }
  }

  void ReadNums(Tokens* tokens) {
    if (tokens->Next() != "[") return;
    for (auto first = IntOf(tokens->Next());
         first.has_value() && ranges_.size() <= kMaxRanges;
         first = IntOf(tokens->Next())) {
      Range range;
      range.first = *first;
      const size_t at = tokens->at();
      const std::optional<int> number = IntOf(tokens->Next());
      if (number.has_value()) {
        tokens->Next();
        tokens->Next();
        const auto object = objects_.Find(*number);
        if (object.has_value()) {
          Tokens inner(*object);
          ReadRange(&inner, &range);
        }
      } else {
        tokens->MoveTo(at);
        ReadRange(tokens, &range);
      }
      ranges_.push_back(std::move(range));
    }
  }

  static void ReadRange(Tokens* tokens, Range* range) {
    if (tokens->Next() != "<<") return;
    for (std::string token = tokens->Next(); !token.empty() && token != ">>";
         token = tokens->Next()) {
      if (token == "/S") {
        const std::string style = tokens->Next();
        range->style = style.size() == 2 ? style[1] : '\0';
      } else if (token == "/P") {
        const std::string prefix = tokens->Next();
        if (prefix[0] == '(' || prefix[0] == '<') {
          range->prefix = StringOf(prefix);
        }
      } else if (token == "/St") {
        range->start = std::min(IntOf(tokens->Next()).value_or(1), kMaxNumber);
      }
    }
  }

  const Objects& objects_;
  std::vector<Range> ranges_;
};

std::string InRoman(int value) {
  constexpr int kMost = 9999;
  return value > kMost ? std::to_string(value) : RomanOf(value);
}

// "a" to "z", then "aa" to "zz", and so on.
std::string InLetters(int value) {
  constexpr int kLetters = 26;
  if (value < 1 || value > 100 * kLetters) return std::to_string(value);
  return std::string(static_cast<size_t>((value - 1) / kLetters + 1),
                     static_cast<char>('a' + (value - 1) % kLetters));
}

std::string Uppercase(std::string text) {
  for (char& c : text) {
    c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return text;
}

std::string LabelOf(const Range& range, int number) {
  switch (range.style) {
    case 'D':
      return range.prefix + std::to_string(number);
    case 'r':
      return range.prefix + InRoman(number);
    case 'R':
      return range.prefix + Uppercase(InRoman(number));
    case 'a':
      return range.prefix + InLetters(number);
    case 'A':
      return range.prefix + Uppercase(InLetters(number));
    default:
      return range.prefix;
  }
}

}  // namespace

std::vector<std::string> PdfPageLabels(std::string_view pdf, size_t num_pages) {
  if (pdf.find("/Encrypt") != std::string_view::npos) return {};
  const Objects objects(pdf);
  const std::optional<std::string_view> labels = objects.Labels();
  if (!labels.has_value()) return {};
  LabelReader reader(objects);
  reader.ReadNode(*labels, 0);
  const std::vector<Range> ranges = reader.Take();
  if (ranges.empty() || ranges.front().first != 0) return {};
  std::vector<std::string> names;
  auto range = ranges.begin();
  for (size_t page = 0; page < num_pages; ++page) {
    while (range + 1 != ranges.end() &&
           static_cast<size_t>((range + 1)->first) <= page) {
      ++range;
    }
    const int number = range->start + static_cast<int>(page) - range->first;
    names.push_back(LabelOf(*range, number));
  }
  return names;
}

}  // namespace tiercel::document
