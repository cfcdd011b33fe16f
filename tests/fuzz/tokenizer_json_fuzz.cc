// Makes a tokenizer from a tokenizer.json, the input up to its first NUL byte,
// and spells the rest. It checks these promises beside the sanitizers': no id
// is outside the vocabulary or a control token, and without a normaliser or
// SentencePiece's spaces decoding gives the text back.

#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/text/utf8.h"
#include "models/format/json.h"
#include "models/tokenizer/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using tiercel::Tokenizer;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = input.find('\0');
  const std::string_view text = end == std::string_view::npos
                                    ? "it's <t>1234</t>  \xff caf\u00e9 \u2581"
                                    : input.substr(end + 1);
  auto json = tiercel::ParseJson("tokenizer.json", input.substr(0, end));
  if (!json.ok()) return 0;
  auto spec = tiercel::SpecFromHuggingFace({{"tokenizer.json", *json}});
  if (!spec.ok()) return 0;
  const bool exact =
      spec->kind == tiercel::TokenizerSpec::Kind::kByteLevel && !spec->nfc;
  const auto tokenizer = Tokenizer::Create(*std::move(spec));
  if (!tokenizer.ok()) return 0;
  const Tokenizer& t = **tokenizer;

  std::vector<int32_t> ids;
  if (!t.Encode(text, Tokenizer::Special::kPlain, &ids).ok()) return 0;
  tiercel::StreamDecoder stream(&t);
  std::string streamed;
  for (const int32_t id : ids) {
    if (id < 0 || id >= t.vocab() || t.IsControl(id)) std::abort();
    streamed += *stream.Push(id);
  }
  streamed += tiercel::ReplaceInvalidUtf8(stream.held());
  const auto back = t.Decode(ids, Tokenizer::Special::kPlain);
  if (!back.ok() || streamed != tiercel::ReplaceInvalidUtf8(*back)) {
    std::abort();
  }
  if (exact && *back != text) std::abort();
  ids.clear();
  if (!t.Encode(text, Tokenizer::Special::kParse, &ids).ok()) std::abort();
  return 0;
}
