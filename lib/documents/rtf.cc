#include "lib/documents/rtf.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lib/documents/encoding.h"
#include "lib/documents/error.h"
#include "lib/documents/html.h"
#include "lib/documents/rtf_words.h"
#include "lib/documents/text_writer.h"
#include "lib/documents/unicode.h"

namespace tiercel::document {
namespace {

// Writers nest some tens of groups.
constexpr size_t kMaxGroups = 1000;
constexpr size_t kMaxTableEntries = 65536;
constexpr size_t kMaxHeadingBytes = 2000;
constexpr int kMaxLevel = 9;
constexpr int kTitleLevel = -1;  // the style "Title" has it

// The place where text goes.
enum class Destination {
  kText,
  kNote,
  kShape,  // its properties, and perhaps a box
  kBox,    // the text in a shape
  kInfo,
  kTitle,
  kAuthor,
  kFonts,
  kStyles,
  kStyle,
  kNone
};

// The state that a group has, and that ends with it.
struct Group {
  Destination destination = Destination::kText;
  // The destination of "\ud", which has the same text in Unicode.
  Destination of_unicode = Destination::kText;
  int font = -1;
  int num_substitutes = 1;  // behind a Unicode character
  int language = 0;
  bool is_hidden = false;
  bool is_deleted = false;
  // The paragraph's.
  int style = 0;
  int outline_level = -1;
  bool is_in_table = false;
};

// A control word and its parameter.
struct Control {
  std::string_view word;
  int parameter;
  bool has_parameter;
  bool is_optional;  // "\*" is before it
};

class RtfReader {
 public:
  explicit RtfReader(std::string_view bytes) : bytes_(bytes) {}

  // Returns false if the groups are nested too deep.
  bool Read() {
    while (at_ < bytes_.size()) {
      const char c = bytes_[at_++];
      if (groups_.empty() && c != '{') continue;
      if (c == '{') {
        Flush();
        num_skipped_ = 0;
        if (groups_.size() == kMaxGroups) return false;
        groups_.push_back(groups_.empty() ? Group() : groups_.back());
        EnterStyle();
      } else if (c == '}') {
        Flush();
        num_skipped_ = 0;
        Close();
        if (groups_.empty()) break;
      } else if (c == '\\') {
        ReadControl();
      } else if (c != '\r' && c != '\n') {
        AddByte(c, /*is_escaped=*/false);
      }
    }
    is_cut_ = !groups_.empty();
    while (!groups_.empty()) {
      Flush();
      Close();
    }
    EndParagraph();
    return true;
  }

  HtmlPage Take() {
    HtmlPage page;
    page.num_controls = writer_.num_controls();
    page.text = writer_.Take();
    const std::vector<size_t> marks = writer_.Marks();
    for (const auto& [level, words, mark] : headings_) {
      page.headings.push_back({level, words, marks[mark], ""});
    }
    page.title = OneLine(title_);
    if (page.title.empty()) page.title = styled_title_;
    page.author = OneLine(author_);
    const auto most = std::max_element(
        language_bytes_.begin(), language_bytes_.end(),
        [](const auto& a, const auto& b) { return a.second < b.second; });
    page.language = most != language_bytes_.end()
                        ? most->first
                        : LanguageOf(default_language_);
    return page;
  }

  std::vector<std::string> Warnings() const {
    std::vector<std::string> warnings;
    if (num_invalid_ > 0) {
      warnings.push_back(std::to_string(num_invalid_) +
                         " runs of text had bytes that are invalid in their "
                         "charset; these became U+FFFD");
    }
    if (is_cut_) warnings.emplace_back("the file ends within a group");
    return warnings;
  }

 private:
  struct RtfHeading {
    int level;
    std::string words;
    size_t mark;
  };

  Group& group() { return groups_.back(); }

  void EnterStyle() {
    if (group().destination != Destination::kStyles) return;
    group().destination = Destination::kStyle;
    style_ = 0;
    style_level_ = std::nullopt;
    style_name_.clear();
  }

  void Close() {
    const Group closed = group();
    groups_.pop_back();
    const Destination outer =
        groups_.empty() ? Destination::kNone : group().destination;
    if (closed.destination == outer) return;
    if (closed.destination == Destination::kStyle) AddStyle();
    if (closed.destination == Destination::kNote) {
      if (std::string note = OneLine(note_); !note.empty()) {
        notes_.push_back(std::move(note));
      }
    }
    if (closed.destination == Destination::kBox) EndBoxParagraph();
  }

  // A box stands below the paragraph that it is fixed to.
  void EndBoxParagraph() {
    if (std::string words = OneLine(box_); !words.empty()) {
      notes_.push_back(std::move(words));
    }
    box_.clear();
  }

  void AddStyle() {
    std::string name = Lowercase(OneLine(style_name_));
    if (!name.empty() && name.back() == ';') name.pop_back();
    constexpr std::string_view kHeading = "heading ";
    if (name == "title") style_level_ = kTitleLevel;
    if (name.size() == kHeading.size() + 1 && name.rfind(kHeading, 0) == 0 &&
        name.back() >= '1' && name.back() <= '9') {
      style_level_ = name.back() - '0';
    }
    if (style_level_.value_or(0) != 0 && styles_.size() < kMaxTableEntries) {
      styles_[style_] = *style_level_;
    }
  }

  void ReadControl() {
    if (at_ == bytes_.size()) return;
    const char c = bytes_[at_];
    if (!IsLetter(c)) {
      ++at_;
      ReadSymbol(c);
      return;
    }
    const size_t begin = at_;
    while (at_ < bytes_.size() && IsLetter(bytes_[at_])) ++at_;
    Control control = {bytes_.substr(begin, at_ - begin), 1, false,
                       is_optional_};
    is_optional_ = false;
    const bool is_negative = at_ + 1 < bytes_.size() && bytes_[at_] == '-' &&
                             IsDigit(bytes_[at_ + 1]);
    if (is_negative) ++at_;
    int64_t value = 0;
    for (; at_ < bytes_.size() && IsDigit(bytes_[at_]); ++at_) {
      value = std::min<int64_t>(value * 10 + (bytes_[at_] - '0'), INT32_MAX);
      control.has_parameter = true;
    }
    if (control.has_parameter) {
      control.parameter = static_cast<int>(is_negative ? -value : value);
    }
    if (at_ < bytes_.size() && bytes_[at_] == ' ') ++at_;
    Obey(control);
  }

  static bool IsLetter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  }
  static bool IsDigit(char c) { return c >= '0' && c <= '9'; }

  void ReadSymbol(char c) {
    if (c == '\'') {
      const int byte = HexByte(bytes_.substr(at_));
      if (byte < 0) return;
      at_ += 2;
      AddByte(static_cast<char>(byte), /*is_escaped=*/true);
    } else if (c == '\\' || c == '{' || c == '}') {
      AddByte(c, /*is_escaped=*/false);
    } else if (c == '*') {
      is_optional_ = true;
    } else if (num_skipped_ > 0) {
      --num_skipped_;
    } else {
      Flush();
      if (c == '~') AddText("\u00A0");
      if (c == '_') AddText("\u2011");
      if (c == '\t') AddText("\t");
      if (c == '\r' || c == '\n') EndParagraphHere();
    }
  }

  // Adds a byte of text in the charset of the font.
  void AddByte(char c, bool is_escaped) {
    if (num_skipped_ > 0) {
      --num_skipped_;
      return;
    }
    pending_.push_back(c);
    has_escapes_ = has_escapes_ || is_escaped;
  }

  // Adds the bytes that are pending to their destination.
  void Flush() {
    if (pending_.empty()) return;
    const std::string bytes = std::move(pending_);
    pending_.clear();
    const bool is_utf8 = !has_escapes_ && IsUtf8(bytes);
    has_escapes_ = false;
    const Destination to = group().destination;
    if (to == Destination::kNone || to == Destination::kFonts) return;
    if (is_utf8 || std::all_of(bytes.begin(), bytes.end(), [](char c) {
          return static_cast<unsigned char>(c) < 0x80;
        })) {
      AddText(bytes);
      return;
    }
    const auto font = fonts_.find(group().font);
    const bool has_own = font != fonts_.end() && !font->second.empty();
    std::vector<std::string> warnings;
    const std::string text =
        ToUtf8(bytes, has_own ? font->second : charset_, &warnings);
    num_invalid_ += warnings.size();
    AddText(text);
  }

  // Adds text to its destination.
  void AddText(std::string_view text) {
    switch (group().destination) {
      case Destination::kText:
        if (!group().is_hidden && !group().is_deleted) WriteText(text);
        break;
      case Destination::kNote:
        if (!group().is_hidden && !group().is_deleted) note_ += text;
        break;
      case Destination::kBox:
        if (!group().is_hidden && !group().is_deleted) box_ += text;
        break;
      case Destination::kTitle:
        title_ += text;
        break;
      case Destination::kAuthor:
        author_ += text;
        break;
      case Destination::kStyle:
        style_name_ += text;
        break;
      case Destination::kShape:
      case Destination::kInfo:
      case Destination::kFonts:
      case Destination::kStyles:
      case Destination::kNone:
        break;
    }
  }

  void WriteText(std::string_view text, bool is_mark = false) {
    if (is_below_table_ && !group().is_in_table) writer_.Break(2);
    is_below_table_ = false;
    const bool is_blank = std::all_of(text.begin(), text.end(),
                                      [](char c) { return IsSpace(c); });
    if (!is_blank) {
      for (; num_cells_ > 0; --num_cells_) writer_.Words(" | ");
      if (!has_text_) mark_ = writer_.Mark();
      has_text_ = true;
      level_ = LevelHere();
      const std::string_view language = LanguageOf(group().language);
      if (!language.empty()) {
        language_bytes_[std::string(language)] += text.size();
      }
    }
    writer_.Words(text);
    if (level_ != 0 && !is_mark && heading_.size() < kMaxHeadingBytes) {
      heading_ += text;
    }
  }

  // Outline levels count from 0, and 9 is that of a paragraph in a chapter.
  static int LevelOf(int outline_level) {
    return outline_level >= 0 && outline_level < kMaxLevel ? outline_level + 1
                                                           : 0;
  }

  // The level of the paragraph as a heading; 0 if it is none.
  int LevelHere() {
    if (group().outline_level >= 0) return LevelOf(group().outline_level);
    const auto style = styles_.find(group().style);
    return style == styles_.end() ? 0 : style->second;
  }

  void EndParagraphHere() {
    if (group().destination == Destination::kText) EndParagraph();
    if (group().destination == Destination::kNote) note_ += ' ';
    if (group().destination == Destination::kBox) EndBoxParagraph();
  }

  void EndParagraph() {
    if (has_text_) {
      EndHeading();
      writer_.Break(2);
    } else {
      writer_.Line();
    }
    for (const std::string& note : notes_) {
      writer_.Words(note);
      writer_.Break(2);
    }
    notes_.clear();
    num_cells_ = 0;
  }

  void EndHeading() {
    if (level_ > 0) headings_.push_back({level_, OneLine(heading_), mark_});
    if (level_ == kTitleLevel && styled_title_.empty()) {
      styled_title_ = OneLine(heading_);
    }
    level_ = 0;
    heading_.clear();
    has_text_ = false;
  }

  void Obey(const Control& control) {
    if (control.word == "bin") {
      Flush();
      at_ += std::min(bytes_.size() - at_,
                      static_cast<size_t>(std::max(control.parameter, 0)));
      return;
    }
    // Some writers give no substitute.
    if (control.word == "u") num_skipped_ = 0;
    if (num_skipped_ > 0) {
      --num_skipped_;
      return;
    }
    Flush();
    Group& here = group();
    if (control.word == "ud" && control.is_optional) {
      here.destination = here.of_unicode;
      return;
    }
    if (here.destination == Destination::kNone) return;
    if (!EnterDestination(control) && !SetProperty(control)) Write(control);
  }

  // Returns false if the control begins no destination of its own.
  bool EnterDestination(const Control& control) {
    const std::string_view word = control.word;
    Group& here = group();
    if (word == "footnote") {
      if (here.destination != Destination::kText) return true;
      here.destination = Destination::kNote;
      note_.clear();
    } else if (word == "upr") {
      here.of_unicode = here.destination;
      here.destination = Destination::kNone;
    } else if (word == "shpinst" || word == "do") {
      here.destination = Destination::kShape;
    } else if (here.destination == Destination::kShape &&
               (word == "shptxt" || word == "dptxbxtext")) {
      here.destination = Destination::kBox;
    } else if (control.is_optional || IsNoText(word)) {
      here.destination = Destination::kNone;
    } else if (word == "fonttbl") {
      here.destination = Destination::kFonts;
    } else if (word == "stylesheet") {
      here.destination = Destination::kStyles;
    } else if (word == "info") {
      here.destination = Destination::kInfo;
    } else if (here.destination == Destination::kInfo && word == "title") {
      here.destination = Destination::kTitle;
      title_.clear();
    } else if (here.destination == Destination::kInfo && word == "author") {
      here.destination = Destination::kAuthor;
      author_.clear();
    } else {
      return false;
    }
    return true;
  }

  // Returns false if the control sets no property.
  bool SetProperty(const Control& control) {
    const std::string_view word = control.word;
    const int value = control.parameter;
    const bool is_on = value != 0;
    Group& here = group();
    const bool in_fonts = here.destination == Destination::kFonts;
    const bool in_style = here.destination == Destination::kStyle;
    if (word == "f") {
      here.font = value;
    } else if (word == "fcharset" || word == "cpg") {
      if (in_fonts && fonts_.size() < kMaxTableEntries) {
        fonts_[here.font] =
            word == "cpg" ? CharsetOfCodePage(value) : CharsetOfFont(value);
      }
    } else if (word == "deff") {
      default_font_ = here.font = value;
    } else if (word == "ansicpg") {
      charset_ = CharsetOfCodePage(value);
      if (charset_.empty()) charset_ = "WINDOWS-1252";
    } else if (word == "mac") {
      charset_ = CharsetOfCodePage(10000);
    } else if (word == "pc") {
      charset_ = CharsetOfCodePage(437);
    } else if (word == "pca") {
      charset_ = CharsetOfCodePage(850);
    } else if (word == "uc") {
      here.num_substitutes = std::max(value, 0);
    } else if (word == "plain") {
      here.is_hidden = here.is_deleted = false;
      here.font = default_font_;
    } else if (word == "pard") {
      here.style = 0;
      here.outline_level = -1;
      here.is_in_table = false;
    } else if (word == "s") {
      (in_style ? style_ : here.style) = value;
    } else if (word == "sbasedon" && in_style) {
      const auto base = styles_.find(value);
      if (!style_level_.has_value() && base != styles_.end()) {
        style_level_ = std::max(base->second, 0);
      }
    } else if (word == "outlinelevel") {
      if (in_style) {
        style_level_ = LevelOf(value);
      } else {
        here.outline_level = value;
      }
    } else if (word == "lang") {
      here.language = value;
    } else if (word == "deflang") {
      default_language_ = value;
    } else if (word == "v") {
      here.is_hidden = is_on;
    } else if (word == "deleted") {
      here.is_deleted = is_on;
    } else if (word == "intbl") {
      here.is_in_table = is_on;
    } else {
      return false;
    }
    return true;
  }

  // Writes what a control stands for in the text.
  void Write(const Control& control) {
    const std::string_view word = control.word;
    if (const std::string_view symbol = SymbolOf(word); !symbol.empty()) {
      AddText(symbol);
    } else if (word == "u" && control.has_parameter) {
      AddUnicode(static_cast<char32_t>(control.parameter & 0xFFFF));
    } else if (word == "par" || word == "sect") {
      EndParagraphHere();
    } else if (word == "page" || word == "column") {
      if (has_text_) EndParagraphHere();
    } else if (word == "line" || word == "lbr") {
      AddText(" ");
      if (group().destination == Destination::kText) writer_.Line();
    } else if (word == "chftn") {
      AddReference();
    } else if (group().destination == Destination::kBox) {
      if (word == "cell" || word == "row") EndBoxParagraph();
    } else if (word == "cell" || word == "nestcell") {
      ++num_cells_;
      EndHeading();
    } else if (word == "row" || word == "nestrow") {
      num_cells_ = 0;
      EndHeading();
      writer_.Break(1);
      is_below_table_ = true;
    }
  }

  // Two halves of a character stand in two controls.
  void AddUnicode(char32_t unit) {
    num_skipped_ = group().num_substitutes;
    const bool is_high = unit >= 0xD800 && unit < 0xDC00;
    const bool is_low = unit >= 0xDC00 && unit < 0xE000;
    if (is_high) {
      high_half_ = unit;
      return;
    }
    char32_t c = unit;
    if (is_low) {
      c = high_half_ == 0
              ? U'\uFFFD'
              : 0x10000 + ((high_half_ - 0xD800) << 10) + (unit - 0xDC00);
    }
    high_half_ = 0;
    // A font of signs has its bytes there.
    if (c >= 0xF000 && c < 0xF100) c -= 0xF000;
    AddText(FromUtf32(std::u32string_view(&c, 1)));
  }

  void AddReference() {
    if (group().destination == Destination::kNote) {
      note_ += "[" + std::to_string(num_references_) + "] ";
    } else if (group().destination == Destination::kText) {
      WriteText("[" + std::to_string(++num_references_) + "]",
                /*is_mark=*/true);
    }
  }

  const std::string_view bytes_;
  size_t at_ = 0;
  std::vector<Group> groups_;
  bool is_optional_ = false;
  bool is_cut_ = false;

  std::string pending_;       // bytes of text, not decoded yet
  bool has_escapes_ = false;  // some of them are written as "\'e9"
  int num_skipped_ = 0;       // characters to come that are substitutes
  char32_t high_half_ = 0;
  size_t num_invalid_ = 0;

  std::string charset_ = "WINDOWS-1252";
  int default_font_ = -1;
  int default_language_ = 0;
  std::unordered_map<int, std::string> fonts_;  // charsets
  std::unordered_map<int, int> styles_;         // levels
  int style_ = 0;                               // the one that is defined
  std::optional<int> style_level_;
  std::string style_name_;

  TextWriter writer_;
  bool has_text_ = false;  // the paragraph has some
  size_t mark_ = 0;        // the mark where it begins
  int level_ = 0;
  std::string heading_;
  int num_cells_ = 0;  // cells that ended before the next text
  bool is_below_table_ = false;
  std::string note_;
  std::string box_;
  std::vector<std::string> notes_;  // notes and boxes to show below it
  int num_references_ = 0;

  std::vector<RtfHeading> headings_;
  std::string title_;
  std::string styled_title_;
  std::string author_;
  std::map<std::string, size_t> language_bytes_;
};

}  // namespace

bool StartsLikeRtf(std::string_view bytes) {
  const size_t first = bytes.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && bytes.substr(first, 5) == "{\\rtf";
}

Result ReadRtf(const std::string& name, std::string_view bytes) {
  RtfReader reader(bytes);
  if (!reader.Read()) {
    return InputError(name, "rtf_too_complex",
                      "its groups are nested deeper than " +
                          std::to_string(kMaxGroups) +
                          "; convert it with LibreOffice (soffice --convert-to "
                          "epub)");
  }
  Document document;
  FillFrom(reader.Take(), &document);
  const std::vector<std::string> warnings = reader.Warnings();
  document.warnings.insert(document.warnings.begin(), warnings.begin(),
                           warnings.end());
  return document;
}

}  // namespace tiercel::document
