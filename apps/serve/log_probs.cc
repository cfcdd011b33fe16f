#include "apps/serve/log_probs.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "lib/status/status_macros.h"
#include "lib/text/utf8.h"

namespace tiercel::serve {
namespace {

bool IsContinuation(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0) == 0x80;
}

size_t CharactersIn(std::string_view text) {
  return text.size() - static_cast<size_t>(std::count_if(
                           text.begin(), text.end(), IsContinuation));
}

// The token's text. Bytes that are no whole character are written \xNN, so that
// different tokens have different texts, as OpenAI writes them: its completions
// put `mark` before.
std::string TextOf(const std::string& bytes, std::string_view mark) {
  std::string text;
  bool whole = true;
  size_t at = 0;
  while (at < bytes.size()) {
    const Utf8Char next = Utf8At(bytes, at);
    if (next.code_point == kNoCodePoint) {
      whole = false;
      absl::StrAppendFormat(&text, "\\x%02x",
                            static_cast<unsigned char>(bytes[at]));
    } else {
      text.append(bytes, at, next.bytes);
    }
    at += next.bytes;
  }
  return whole ? text : std::string(mark) + text;
}

// A control token has no bytes, since its text stands for no characters.
Json BytesOf(const Spelling& spelling) {
  if (spelling.is_control) return nullptr;
  Json bytes = Json::array();
  for (const char byte : spelling.bytes) {
    bytes.push_back(static_cast<unsigned char>(byte));
  }
  return bytes;
}

Json ChatToken(const Spelling& spelling, double log_prob) {
  return {{"token", TextOf(spelling.bytes, "")},
          {"logprob", log_prob},
          {"bytes", BytesOf(spelling)}};
}

std::string CompletionToken(const Spelling& spelling) {
  return TextOf(spelling.bytes, "bytes:");
}

}  // namespace

absl::StatusOr<Spelling> SpellingOf(const cli::Model& model, int32_t id) {
  ASSIGN_OR_RETURN(
      std::string bytes,
      model.Detokenize({id}, TIERCEL_PARSE_SPECIAL | TIERCEL_WITHIN_TEXT));
  ASSIGN_OR_RETURN(const std::string plain,
                   model.Detokenize({id}, TIERCEL_WITHIN_TEXT));
  return Spelling{std::move(bytes), plain.empty()};
}

Speller SpellerOf(const cli::Model& model) {
  return [&model](int32_t id) {
    return SpellingOf(model, id).value_or(Spelling{"", true});
  };
}

void LogProbs::Add(const Token& token) {
  if (!wanted_) return;
  const std::string_view text = token.text;
  if (text.empty() && !token.thought.empty()) {
    rest_.clear();
    return;
  }
  Scored scored = {spell_(token.id), token.log_prob, {}, characters_};
  for (const LogProb& other : token.top) {
    scored.top.emplace_back(spell_(other.id), other.log_prob);
  }
  if (!text.empty()) BeginAnswer(scored.spelling);
  characters_ += CharactersIn(text);
  rest_.push_back(std::move(scored));
}

void LogProbs::BeginAnswer(const Spelling& first) {
  if (std::exchange(answers_, true) || !chat_) return;
  const Spelling* next = &first;
  auto kept = rest_.end();
  while (kept != rest_.begin() && !next->bytes.empty() &&
         IsContinuation(next->bytes.front())) {
    next = &(--kept)->spelling;
  }
  rest_.erase(rest_.begin(), kept);
}

Json LogProbs::Rest() {
  // Before an answer, tokens without text may be those of a thought.
  if (rest_.empty() || (chat_ && !answers_)) return nullptr;
  return Whole();
}

Json LogProbs::Whole() {
  if (!wanted_) return nullptr;
  if (chat_ && !answers_) rest_.clear();
  Json document = chat_ ? ChatDocument() : CompletionDocument();
  rest_.clear();
  return document;
}

Json LogProbs::ChatDocument() const {
  Json content = Json::array();
  for (const Scored& scored : rest_) {
    Json token = ChatToken(scored.spelling, scored.log_prob);
    token["top_logprobs"] = Json::array();
    for (const auto& [spelling, log_prob] : scored.top) {
      token["top_logprobs"].push_back(ChatToken(spelling, log_prob));
    }
    content.push_back(std::move(token));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

Json LogProbs::CompletionDocument() const {
  Json document = {{"tokens", Json::array()},
                   {"token_logprobs", Json::array()},
                   {"top_logprobs", Json::array()},
                   {"text_offset", Json::array()}};
  for (const Scored& scored : rest_) {
    const std::string text = CompletionToken(scored.spelling);
    document["tokens"].push_back(text);
    document["token_logprobs"].push_back(scored.log_prob);
    document["text_offset"].push_back(scored.offset);
    Json top = Json::object();
    for (const auto& [spelling, log_prob] : scored.top) {
      // Two tokens with one text share a member: the likelier stays.
      top.emplace(CompletionToken(spelling), log_prob);
    }
    top.emplace(text, scored.log_prob);
    document["top_logprobs"].push_back(std::move(top));
  }
  return document;
}

}  // namespace tiercel::serve
