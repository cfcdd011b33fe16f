#include "apps/notes/journal.h"

#include "nlohmann/json.hpp"

namespace tiercel::reader {
namespace {

using Json = nlohmann::ordered_json;

// The version rises with every change of the format: a journal of another
// version is not read.
constexpr std::string_view kFirstWords = "tiercel reading 2 ";
constexpr size_t kHexDigits = 16;

// Returns the document of a whole file, which is a line with a fingerprint of
// the rest, and the rest. Any damage shows, so a file that is read was written
// here.
std::optional<Json> DocumentOf(std::string_view bytes) {
  const size_t head = kFirstWords.size() + kHexDigits;
  if (bytes.size() <= head ||
      bytes.substr(0, kFirstWords.size()) != kFirstWords ||
      bytes[head] != '\n') {
    return std::nullopt;
  }
  const std::string_view body = bytes.substr(head + 1);
  if (bytes.substr(kFirstWords.size(), kHexDigits) != Hex(Fingerprint(body))) {
    return std::nullopt;
  }
  Json document = Json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (!document.is_object() || !document.contains("key") ||
      !document.contains("parts") || !document["parts"].is_array()) {
    return std::nullopt;
  }
  return document;
}

std::string ValidUtf8(const std::string& text) {
  const std::string quoted = Json(text).dump(-1, ' ', /*ensure_ascii=*/false,
                                             Json::error_handler_t::replace);
  return Json::parse(quoted).get<std::string>();
}

std::string NameIn(const Json& document) {
  const Json name = document.value("name", Json());
  return name.is_string() ? name.get<std::string>() : "";
}

}  // namespace

Journal::Journal(std::string key, const std::string& name)
    : key_(std::move(key)), name_(ValidUtf8(name)) {}

uint64_t Fingerprint(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : bytes) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  }
  return hash;
}

std::string Hex(uint64_t number) {
  std::string digits(kHexDigits, '0');
  for (size_t i = kHexDigits; i-- > 0; number >>= 4) {
    digits[i] = "0123456789abcdef"[number & 15];
  }
  return digits;
}

std::string Journal::Serialize() const {
  Json parts = Json::array();
  for (const auto& [place, node] : nodes_) {
    Json pieces = Json::array();
    for (const Writing::Piece& piece : node.writing.pieces) {
      pieces.push_back(Json::array({piece.text, piece.thought}));
    }
    parts.push_back({{"level", place.first},
                     {"index", place.second},
                     {"prompt", node.prompt},
                     {"text", node.writing.text},
                     {"tokens", node.writing.tokens},
                     {"cut", node.writing.cut},
                     {"pieces", std::move(pieces)}});
  }
  const Json document = {
      {"key", key_}, {"name", name_}, {"parts", std::move(parts)}};
  const std::string body = document.dump() + "\n";
  return std::string(kFirstWords) + Hex(Fingerprint(body)) + "\n" + body;
}

std::optional<Journal> Journal::Parse(std::string_view bytes,
                                      const std::string& key) {
  const std::optional<Json> document = DocumentOf(bytes);
  if (!document.has_value() || document->at("key") != key) return std::nullopt;
  Journal journal(key, NameIn(*document));
  try {
    for (const Json& part : document->at("parts")) {
      std::vector<Writing::Piece> pieces;
      for (const Json& piece : part.at("pieces")) {
        pieces.push_back(
            {piece.at(0).get<std::string>(), piece.at(1).get<std::string>()});
      }
      journal.Add(part.at("level").get<int>(), part.at("index").get<size_t>(),
                  part.at("prompt").get<uint64_t>(),
                  {part.at("text").get<std::string>(),
                   part.at("tokens").get<std::vector<int32_t>>(),
                   part.at("cut").get<bool>(), std::move(pieces)});
    }
  } catch (const Json::exception&) {
    return std::nullopt;
  }
  return journal;
}

void Journal::Add(int level, size_t index, uint64_t prompt, Writing writing) {
  writing.text = ValidUtf8(writing.text);
  for (Writing::Piece& piece : writing.pieces) {
    piece = {ValidUtf8(piece.text), ValidUtf8(piece.thought)};
  }
  nodes_.insert_or_assign({level, index}, Node{prompt, std::move(writing)});
}

void Journal::Merge(Journal other) { nodes_.merge(other.nodes_); }

size_t Journal::CountAt(int level) const {
  const auto begin = nodes_.lower_bound({level, 0});
  return static_cast<size_t>(
      std::distance(begin, nodes_.lower_bound({level + 1, 0})));
}

const Writing* Journal::Find(int level, size_t index, uint64_t prompt) const {
  const auto node = nodes_.find({level, index});
  if (node == nodes_.end() || node->second.prompt != prompt) return nullptr;
  return &node->second.writing;
}

std::optional<JournalHead> HeadOf(std::string_view bytes) {
  const std::optional<Json> document = DocumentOf(bytes);
  if (!document.has_value()) return std::nullopt;
  return JournalHead{NameIn(*document), document->at("parts").size()};
}

}  // namespace tiercel::reader
