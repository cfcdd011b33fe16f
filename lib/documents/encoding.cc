#include "lib/documents/encoding.h"

#include <errno.h>
#include <iconv.h>
#include <uchardet/uchardet.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "lib/documents/unicode.h"

namespace tiercel::document {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD
constexpr std::string_view kWestern = "WINDOWS-1252";
// With fewer non-ASCII bytes than this the guess of uchardet is random.
constexpr size_t kFewBytes = 4;
constexpr size_t kGuessedBytes = size_t{256} << 10;

// Labels that browsers map to another charset than iconv does, or that iconv
// does not know.
struct CharsetLabel {
  std::string_view label;
  std::string_view charset;
};
constexpr CharsetLabel kLabels[] = {
    {"ascii", kWestern},
    {"us-ascii", kWestern},
    {"ansi_x3.4-1968", kWestern},
    {"latin1", kWestern},
    {"l1", kWestern},
    {"iso-8859-1", kWestern},
    {"iso8859-1", kWestern},
    {"iso_8859-1", kWestern},
    {"iso88591", kWestern},
    {"cp1252", kWestern},
    {"x-cp1252", kWestern},
    {"utf8", "UTF-8"},
    {"unicode-1-1-utf-8", "UTF-8"},
    // A page whose label could be read as ASCII is not in UTF-16.
    {"utf-16", "UTF-8"},
    {"utf-16le", "UTF-8"},
    {"utf-16be", "UTF-8"},
    {"shift_jis", "CP932"},
    {"shift-jis", "CP932"},
    {"sjis", "CP932"},
    {"x-sjis", "CP932"},
    {"gb2312", "GB18030"},
    {"gbk", "GB18030"},
    {"x-gbk", "GB18030"},
    {"big5", "BIG5-HKSCS"},
    {"x-x-big5", "BIG5-HKSCS"},
    {"euc-kr", "CP949"},
    {"ks_c_5601-1987", "CP949"},
};

uint8_t Byte(std::string_view bytes, size_t at) {
  return static_cast<uint8_t>(bytes[at]);
}

// Returns the length of the valid UTF-8 character at `at`; 0 if there is none.
size_t Utf8Length(std::string_view bytes, size_t at) {
  const uint8_t lead = Byte(bytes, at);
  if (lead < 0x80) return 1;
  size_t length = 0;
  uint8_t least = 0x80;  // bounds of the second byte
  uint8_t most = 0xBF;
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3;
    if (lead == 0xE0) least = 0xA0;  // overlong below
    if (lead == 0xED) most = 0x9F;   // surrogates above
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    if (lead == 0xF0) least = 0x90;
    if (lead == 0xF4) most = 0x8F;  // beyond U+10FFFF above
  }
  if (length == 0 || bytes.size() - at < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    const uint8_t next = Byte(bytes, at + i);
    if (next < least || next > most) return 0;
    least = 0x80;
    most = 0xBF;
  }
  return length;
}

std::string FromUtf8(std::string_view bytes, size_t* num_invalid) {
  std::string text;
  text.reserve(bytes.size());
  for (size_t at = 0; at < bytes.size();) {
    const size_t length = Utf8Length(bytes, at);
    if (length == 0) {
      text += kReplacement;
      ++*num_invalid;
      ++at;
    } else {
      text.append(bytes, at, length);
      at += length;
    }
  }
  return text;
}

class Converter {
 public:
  explicit Converter(const std::string& charset)
      : converter_(iconv_open("UTF-8", charset.c_str())) {
    // In these charsets invalid input is skipped by whole units.
    if (charset.rfind("UTF-16", 0) == 0) unit_ = 2;
    if (charset.rfind("UTF-32", 0) == 0) unit_ = 4;
  }
  ~Converter() {
    if (known()) iconv_close(converter_);
  }
  Converter(const Converter&) = delete;
  Converter& operator=(const Converter&) = delete;

  bool known() const {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the error of iconv_open
    return converter_ != reinterpret_cast<iconv_t>(intptr_t{-1});
  }

  std::string Convert(std::string_view bytes, size_t* num_invalid) {
    std::string text;
    text.reserve(bytes.size() + bytes.size() / 2);
    // iconv takes a pointer to non-const bytes, but does not write them.
    char* in = const_cast<char*>(bytes.data());
    size_t in_left = bytes.size();
    while (in_left > 0) {
      const int error = Step(&in, &in_left, &text);
      if (error == 0 || error == E2BIG) continue;
      text += kReplacement;
      ++*num_invalid;
      const size_t skipped = std::min(unit_, in_left);
      in += skipped;
      in_left -= skipped;
    }
    Step(nullptr, nullptr, &text);  // flush the state of a stateful charset
    return text;
  }

 private:
  int Step(char** in, size_t* in_left, std::string* text) {
    std::array<char, 4096> buffer;
    char* out = buffer.data();
    size_t out_left = buffer.size();
    const bool failed =
        iconv(converter_, in, in_left, &out, &out_left) == size_t(-1);
    const int error = failed ? errno : 0;
    text->append(buffer.data(), buffer.size() - out_left);
    return error;
  }

  const iconv_t converter_;
  size_t unit_ = 1;
};

// The parts of `bytes` that are not ASCII, with some bytes around them.
std::string TellingBytes(std::string_view bytes) {
  constexpr size_t kAround = 64;
  std::string telling;
  for (size_t at = 0; at < bytes.size() && telling.size() < kGuessedBytes;) {
    if (Byte(bytes, at) < 0x80) {
      ++at;
      continue;
    }
    const size_t end = std::min(bytes.size(), at + kAround);
    telling.append(bytes, at, end - at);
    at = end;
  }
  return telling;
}

// Seven-bit Japanese (ISO-2022-JP) is valid UTF-8, too.
bool HasJapaneseEscapes(std::string_view bytes) {
  return bytes.find("\x1B$B") != std::string_view::npos ||
         bytes.find("\x1B$@") != std::string_view::npos;
}

// Charsets of a byte a character that a guess takes for each other.
constexpr std::pair<std::string_view, std::string_view> kAlike[] = {
    {"ISO-8859-2", "WINDOWS-1250"},  {"WINDOWS-1250", "ISO-8859-2"},
    {"ISO-8859-7", "WINDOWS-1253"},  {"ISO-8859-8", "WINDOWS-1255"},
    {"ISO-8859-9", "WINDOWS-1254"},  {"ISO-8859-13", "WINDOWS-1257"},
    {"ISO-8859-15", "WINDOWS-1252"}, {"KOI8-R", "KOI8-U"},
};

// Returns how much speaks against a charset: controls that no text has (C1) and
// signs within words.
size_t NumUnlikely(std::string_view bytes, std::string_view charset) {
  Converter converter{std::string(charset)};
  size_t num_unlikely = 0;
  if (!converter.known()) return bytes.size();
  const std::u32string text = ToUtf32(converter.Convert(bytes, &num_unlikely));
  for (size_t i = 0; i < text.size(); ++i) {
    const char32_t c = text[i];
    if (c < 0x80) continue;
    const bool is_control = c < 0xA0;
    const bool is_in_word = i > 0 && i + 1 < text.size() &&
                            IsLetter(text[i - 1]) && IsLetter(text[i + 1]);
    const bool is_of_word = IsLetter(c) || IsMark(c) || IsDigit(c) ||
                            c == U'\u00AD' || c == U'\u2019' || c == U'·';
    if (is_control || (is_in_word && !is_of_word)) ++num_unlikely;
  }
  return num_unlikely;
}

// Returns a charset, or one like it against which less speaks.
std::string Likelier(std::string_view bytes, std::string charset) {
  for (const auto& [guessed, other] : kAlike) {
    if (charset != guessed) continue;
    if (NumUnlikely(bytes, other) < NumUnlikely(bytes, charset)) {
      return std::string(other);
    }
  }
  return charset;
}

std::string Detect(std::string_view bytes) {
  const uchardet_t detector = uchardet_new();
  if (detector == nullptr) return {};
  std::string charset;
  if (uchardet_handle_data(detector, bytes.data(), bytes.size()) == 0) {
    uchardet_data_end(detector);
    charset = uchardet_get_charset(detector);
  }
  uchardet_delete(detector);
  return CharsetOfLabel(charset);
}

// Returns true if all characters whose lower byte is zero are such as texts
// have.
bool HasTextAtNuls(std::string_view text) {
  const std::u32string all = ToUtf32(text);
  return std::all_of(all.begin(), all.end(), [](char32_t c) {
    return (c & 0xFF) != 0 || IsLetter(c) || IsIdeographic(c) ||
           c == U'\u3000' || c == U'\u2000' || c == U'\u2500' || c > 0xFFFF;
  });
}

}  // namespace

ByteOrderMark FindByteOrderMark(std::string_view bytes) {
  if (bytes.substr(0, 3) == "\xEF\xBB\xBF") return {"UTF-8", 3};
  if (bytes.substr(0, 4) == std::string_view("\xFF\xFE\0\0", 4)) {
    return {"UTF-32LE", 4};
  }
  if (bytes.substr(0, 4) == std::string_view("\0\0\xFE\xFF", 4)) {
    return {"UTF-32BE", 4};
  }
  if (bytes.substr(0, 2) == "\xFF\xFE") return {"UTF-16LE", 2};
  if (bytes.substr(0, 2) == "\xFE\xFF") return {"UTF-16BE", 2};
  return {"", 0};
}

std::string CharsetOfLabel(std::string_view label) {
  const std::string name = Lowercase(label);
  for (const CharsetLabel& known : kLabels) {
    if (name == known.label) return std::string(known.charset);
  }
  // iconv gives a meaning to a suffix of the name ("//TRANSLIT").
  const bool is_name = !name.empty() && name.size() <= 40 &&
                       std::all_of(name.begin(), name.end(), [](char c) {
                         return (c >= 'a' && c <= 'z') ||
                                (c >= '0' && c <= '9') || c == '-' ||
                                c == '_' || c == '.' || c == ':';
                       });
  if (!is_name || !Converter(name).known()) return {};
  std::string charset = name;
  std::transform(charset.begin(), charset.end(), charset.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  return charset;
}

std::string DeclaredCharset(std::string_view bytes) {
  const std::string start = Lowercase(bytes.substr(0, 1024));
  const auto is_space = [](char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
  };
  const auto value_after = [&](size_t at) -> std::string {
    while (at < start.size() && is_space(start[at])) ++at;
    if (at == start.size() || start[at] != '=') return {};
    ++at;
    while (at < start.size() &&
           (is_space(start[at]) || start[at] == '"' || start[at] == '\'')) {
      ++at;
    }
    const size_t end = start.find_first_of("\"'; \t\r\n/?>", at);
    return start.substr(at, end == std::string::npos ? end : end - at);
  };
  for (size_t at = start.find("<meta"); at != std::string::npos;
       at = start.find("<meta", at + 1)) {
    const size_t end = std::min(start.find('>', at), start.size());
    const size_t charset = start.find("charset", at);
    if (charset < end) return value_after(charset + std::strlen("charset"));
  }
  if (start.rfind("<?xml", 0) == 0) {
    const size_t end = std::min(start.find("?>"), start.size());
    const size_t encoding = start.find("encoding");
    if (encoding < end) return value_after(encoding + std::strlen("encoding"));
  }
  return {};
}

std::string GuessCharset(std::string_view bytes) {
  if (IsUtf8(bytes)) {
    return HasJapaneseEscapes(bytes) ? "ISO-2022-JP" : "UTF-8";
  }
  size_t num_valid = 0;  // characters of more than one byte
  size_t num_invalid = 0;
  for (size_t at = 0; at < bytes.size();) {
    const size_t length = Utf8Length(bytes, at);
    if (length > 1) ++num_valid;
    if (length == 0) ++num_invalid;
    at += std::max(length, size_t{1});
  }
  // Text in other charsets hardly ever forms valid multi-byte UTF-8 characters.
  if (num_valid / 20 > num_invalid) return "UTF-8";
  if (num_valid + num_invalid < kFewBytes) return std::string(kWestern);
  const std::string telling = TellingBytes(bytes);
  std::string charset = Detect(telling);
  return charset.empty() ? std::string(kWestern)
                         : Likelier(telling, std::move(charset));
}

std::string_view GuessUtf16(std::string_view bytes) {
  constexpr size_t kSeen = size_t{64} << 10;
  constexpr size_t kLeastGuessed = 16;
  const std::string_view seen = bytes.substr(0, kSeen);
  if (bytes.size() < kLeastGuessed || bytes.size() % 2 != 0) return {};
  size_t num_nuls[2] = {0, 0};  // at even and at odd places
  for (size_t at = 0; at < seen.size(); ++at) {
    if (seen[at] == '\0') ++num_nuls[at % 2];
  }
  // Text without a space in so many characters is in no script.
  constexpr size_t kCharactersPerSpace = 200;
  const size_t least = seen.size() / 2 / kCharactersPerSpace + 1;
  size_t num_blanks[2] = {0, 0};  // blanks and line ends, by the NUL's place
  for (size_t at = 0; at + 1 < seen.size(); at += 2) {
    for (const size_t nul : {0, 1}) {
      const char c = seen[at + 1 - nul];
      const bool is_blank = c == ' ' || (c >= '\t' && c <= '\r');
      if (seen[at + nul] == '\0' && is_blank) ++num_blanks[nul];
    }
  }
  // Some letters have a NUL in their other half, as U+4E00.
  std::string_view charset;
  for (const size_t nul : {0, 1}) {
    const bool is_only = num_nuls[1 - nul] == 0;
    if (num_nuls[nul] >= least &&
        (is_only || (num_blanks[nul] >= least &&
                     num_blanks[nul] > 8 * num_blanks[1 - nul]))) {
      charset = nul == 1 ? "UTF-16LE" : "UTF-16BE";
    }
  }
  if (charset.empty()) return {};
  // With few NULs it is Chinese or the like, or a text of bytes with a NUL in
  // it.
  const auto num_ascii = static_cast<size_t>(std::count_if(
      seen.begin(), seen.end(), [](char c) { return c >= ' ' && c <= '~'; }));
  const bool is_latin = (num_nuls[0] + num_nuls[1]) * 8 >= seen.size();
  if (!is_latin && num_ascii * 4 >= seen.size() * 3) return {};
  size_t num_invalid = 0;
  std::string text =
      Converter(std::string(charset)).Convert(seen, &num_invalid);
  // The last character may be cut in two.
  const bool is_text =
      num_invalid <= 1 && ReplaceControls(&text) == 0 && HasTextAtNuls(text);
  return is_text ? charset : std::string_view();
}

bool IsUtf8(std::string_view bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const size_t length = Utf8Length(bytes, at);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

std::string ValidUtf8(std::string_view bytes) {
  size_t num_invalid = 0;
  return FromUtf8(bytes, &num_invalid);
}

std::string ToUtf8(std::string_view bytes, std::string_view charset,
                   std::vector<std::string>* warnings) {
  std::string from(charset);
  if (from.empty()) {
    from = GuessCharset(bytes);
    if (from != "UTF-8") {
      warnings->push_back("not UTF-8 and not declared; read as " + from);
    }
  }
  size_t num_invalid = 0;
  std::string text;
  if (from == "UTF-8") {
    text = FromUtf8(bytes, &num_invalid);
  } else {
    Converter converter(from);
    text = converter.known() ? converter.Convert(bytes, &num_invalid)
                             : FromUtf8(bytes, &num_invalid);
  }
  if (num_invalid > 0) {
    warnings->push_back(std::to_string(num_invalid) +
                        " invalid byte sequences became U+FFFD");
  }
  return text;
}

std::string DecodeText(std::string_view bytes,
                       std::vector<std::string>* warnings) {
  const ByteOrderMark mark = FindByteOrderMark(bytes);
  if (mark.bytes == 0) {
    if (const std::string_view wide = GuessUtf16(bytes); !wide.empty()) {
      warnings->push_back("without a byte order mark; read as " +
                          std::string(wide));
      return ToUtf8(bytes, wide, warnings);
    }
  }
  return ToUtf8(bytes.substr(mark.bytes), mark.charset, warnings);
}

std::string DecodePage(std::string_view bytes,
                       std::vector<std::string>* warnings,
                       std::string_view given) {
  if (FindByteOrderMark(bytes).bytes > 0 || !GuessUtf16(bytes).empty() ||
      GuessCharset(bytes) == "UTF-8") {
    return DecodeText(bytes, warnings);
  }
  const std::string label =
      given.empty() ? DeclaredCharset(bytes) : Lowercase(given);
  const std::string charset = CharsetOfLabel(label);
  if (charset.empty() && !label.empty()) {
    warnings->push_back("unknown charset '" + label + "'");
  }
  return ToUtf8(bytes, charset, warnings);
}

bool IsControl(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && (byte < '\t' || byte > '\r')) || byte == 0x7F;
}

size_t ReplaceControls(std::string* text) {
  size_t replaced = 0;
  for (char& c : *text) {
    if (IsControl(c)) {
      c = ' ';
      ++replaced;
    }
  }
  return replaced;
}

std::string WithUnixLineEnds(std::string text) {
  size_t end = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\r') {
      if (at + 1 < text.size() && text[at + 1] == '\n') continue;
      text[end++] = '\n';
    } else {
      text[end++] = text[at];
    }
  }
  text.resize(end);
  return text;
}

std::string Lowercase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

int HexByte(std::string_view text) {
  if (text.size() < 2) return -1;
  int value = 0;
  for (const char c : text.substr(0, 2)) {
    const char lower = static_cast<char>(c | 0x20);
    const bool is_letter = lower >= 'a' && lower <= 'f';
    if (!is_letter && (c < '0' || c > '9')) return -1;
    value = value * 16 + (is_letter ? lower - 'a' + 10 : c - '0');
  }
  return value;
}

}  // namespace tiercel::document
