#include "lib/documents/mime.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "lib/documents/encoding.h"
#include "lib/documents/text_writer.h"

namespace tiercel::document {
namespace {

constexpr size_t kMaxHeaderBytes = size_t{64} << 10;

std::string_view WithoutBlanks(std::string_view text) {
  while (!text.empty() && IsSpace(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsSpace(text.back())) text.remove_suffix(1);
  return text;
}

bool IsFieldName(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
}

// Returns the value of a parameter of a field: the boundary in "a/b;
// boundary=x".
std::string Parameter(std::string_view field, std::string_view name) {
  for (size_t at = field.find(';'); at < field.size();) {
    const size_t equals = field.find('=', at);
    if (equals == std::string_view::npos) return {};
    const bool is_it =
        Lowercase(WithoutBlanks(field.substr(at + 1, equals - at - 1))) == name;
    size_t begin = field.find_first_not_of(" \t\r\n", equals + 1);
    if (begin == std::string_view::npos) return {};
    const bool is_quoted = field[begin] == '"';
    if (is_quoted) ++begin;
    const size_t end =
        std::min(field.find(is_quoted ? '"' : ';', begin), field.size());
    if (is_it) {
      const std::string_view value = field.substr(begin, end - begin);
      return std::string(is_quoted ? value : WithoutBlanks(value));
    }
    at = field.find(';', end);
  }
  return {};
}

std::string WithoutBrackets(std::string_view id) {
  if (id.substr(0, 1) == "<") id.remove_prefix(1);
  if (!id.empty() && id.back() == '>') id.remove_suffix(1);
  return std::string(id);
}

void TakeField(std::string_view name, std::string_view value, MimePart* part) {
  const std::string key = Lowercase(name);
  if (key == "mime-version") {
    part->has_version = true;
  } else if (key == "content-type") {
    part->type = Lowercase(WithoutBlanks(value.substr(0, value.find(';'))));
    part->charset = Parameter(value, "charset");
    part->boundary = Parameter(value, "boundary");
    part->start = WithoutBrackets(Parameter(value, "start"));
  } else if (key == "content-transfer-encoding") {
    part->encoding = Lowercase(value);
  } else if (key == "content-id") {
    part->id = WithoutBrackets(value);
  } else if (key == "content-location") {
    // An address may go over several lines.
    for (const char c : value) {
      if (!IsSpace(c)) part->location.push_back(c);
    }
  }
}

// Returns the next line without its end, and takes it off.
std::string_view TakeLine(std::string_view* text) {
  const size_t end = std::min(text->find('\n'), text->size());
  std::string_view line = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

std::string FromQuotedPrintable(std::string_view text) {
  std::string bytes;
  while (!text.empty()) {
    std::string_view line = TakeLine(&text);
    const size_t end = line.find_last_not_of(" \t");
    line = line.substr(0, end == std::string_view::npos ? 0 : end + 1);
    const bool goes_on = !line.empty() && line.back() == '=';
    if (goes_on) line.remove_suffix(1);
    for (size_t i = 0; i < line.size(); ++i) {
      const int byte = line[i] == '=' ? HexByte(line.substr(i + 1)) : -1;
      if (byte >= 0) {
        bytes.push_back(static_cast<char>(byte));
        i += 2;
      } else {
        bytes.push_back(line[i]);
      }
    }
    if (!goes_on) bytes.push_back('\n');
  }
  return bytes;
}

std::string FromBase64(std::string_view text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  uint32_t bits = 0;
  int num_bits = 0;
  for (const char c : text) {
    if (c == '=') break;
    const size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) continue;
    bits = bits << 6 | static_cast<uint32_t>(digit);
    num_bits += 6;
    if (num_bits >= 8) {
      num_bits -= 8;
      bytes.push_back(static_cast<char>(bits >> num_bits & 0xFF));
    }
  }
  return bytes;
}

}  // namespace

std::optional<MimePart> ParseMime(std::string_view mail) {
  MimePart part;
  std::string_view rest = mail;
  std::string name;
  std::string value;
  while (!rest.empty()) {
    if (mail.size() - rest.size() > kMaxHeaderBytes) return std::nullopt;
    const std::string_view line = TakeLine(&rest);
    if (!name.empty() && !line.empty() && IsSpace(line.front())) {
      value.append(" ").append(WithoutBlanks(line));
      continue;
    }
    TakeField(name, value, &part);
    name.clear();
    if (line.empty()) break;
    const size_t colon = line.find(':');
    name = line.substr(0, colon);
    if (colon == std::string_view::npos || !IsFieldName(name)) {
      return std::nullopt;
    }
    value = WithoutBlanks(line.substr(colon + 1));
  }
  TakeField(name, value, &part);
  part.body = rest;
  return part;
}

std::vector<MimePart> PartsOf(const MimePart& part, size_t most) {
  std::vector<MimePart> parts;
  if (part.boundary.empty()) return parts;
  const std::string delimiter = "--" + part.boundary;
  std::string_view rest = part.body;
  const char* begin = nullptr;  // the first byte of the open part
  while (!rest.empty() && parts.size() < most) {
    const char* const here = rest.data();
    const std::string_view line = TakeLine(&rest);
    std::string_view behind;
    if (line.substr(0, delimiter.size()) == delimiter) {
      behind = WithoutBlanks(line.substr(delimiter.size()));
    }
    const bool is_delimiter = line.substr(0, delimiter.size()) == delimiter &&
                              (behind.empty() || behind == "--");
    if (!is_delimiter && !rest.empty()) continue;
    if (begin != nullptr) {
      const char* const end = is_delimiter ? here : rest.data();
      // A part without a header begins with an empty line.
      auto inner = ParseMime({begin, static_cast<size_t>(end - begin)});
      if (inner.has_value()) parts.push_back(*std::move(inner));
    }
    begin = rest.data();
    if (behind == "--") break;
  }
  return parts;
}

std::string BodyOf(const MimePart& part) {
  if (part.encoding == "quoted-printable") {
    return FromQuotedPrintable(part.body);
  }
  if (part.encoding == "base64") return FromBase64(part.body);
  return std::string(part.body);
}

}  // namespace tiercel::document
