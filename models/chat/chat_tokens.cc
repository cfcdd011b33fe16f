#include "models/chat/chat_tokens.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {
namespace {

absl::StatusOr<std::string> TextOf(const Tokenizer& tokenizer,
                                   std::optional<int32_t> id) {
  if (!id.has_value()) return std::string();
  return tokenizer.Piece(*id, Tokenizer::Special::kParse);
}

// Ends a thought that the template begins for the assistant.
void CloseThought(const ThoughtTags& tags, std::vector<ChatPiece>* pieces) {
  if (pieces->empty() || pieces->back().from_message) return;
  std::string& text = pieces->back().text;
  if (!EndsInThought(text, tags)) return;
  absl::StrAppend(&text, text.ends_with('\n') ? "\n" : "\n\n", tags.close,
                  "\n\n");
}

absl::StatusOr<std::vector<ChatPiece>> Render(const ChatTemplate& chat_template,
                                              const Tokenizer& tokenizer,
                                              std::vector<ChatMessage> messages,
                                              bool assistant_speaks,
                                              const ChatSettings& settings) {
  ASSIGN_OR_RETURN(std::string bos, TextOf(tokenizer, tokenizer.bos()));
  ASSIGN_OR_RETURN(std::string eos, TextOf(tokenizer, tokenizer.eos()));
  ASSIGN_OR_RETURN(
      std::vector<ChatPiece> pieces,
      chat_template.Render({.messages = std::move(messages),
                            .add_generation_prompt = assistant_speaks,
                            .bos_token = std::move(bos),
                            .eos_token = std::move(eos),
                            .settings = settings,
                            .named_tokens = tokenizer.named()}));
  if (settings.think == false && assistant_speaks) {
    CloseThought(ThoughtTagsOf(&chat_template, &tokenizer), &pieces);
  }
  return pieces;
}

// Cuts what the template writes behind `said`, the text of the last message.
// White space at the end of the text may be cut by the template.
absl::Status CutBehind(const std::string& said,
                       std::vector<ChatPiece>* pieces) {
  size_t kept = pieces->size();
  while (kept > 0 && !(*pieces)[kept - 1].from_message) --kept;
  pieces->resize(kept);
  const auto bare = [](const std::string& text) {
    return absl::StripTrailingAsciiWhitespace(text);
  };
  if (kept > 0 && absl::EndsWith(bare(pieces->back().text), bare(said))) {
    return absl::OkStatus();
  }
  return InputError("cannot_continue",
                    "the chat template does not show the end of the last "
                    "message as it is, so the message cannot be continued");
}

absl::Status Encode(const ChatTemplate& chat_template,
                    const Tokenizer& tokenizer,
                    std::vector<ChatMessage> messages, bool assistant_speaks,
                    const ChatSettings& settings, const EncodeLimits& limits,
                    std::vector<int32_t>* ids) {
  std::optional<std::string> said;  // the text that goes on
  if (!assistant_speaks && settings.continue_last) {
    const ChatMessage& last = messages.back();
    said = last.content.empty() ? last.reasoning : last.content;
  }
  ASSIGN_OR_RETURN(std::vector<ChatPiece> pieces,
                   Render(chat_template, tokenizer, std::move(messages),
                          assistant_speaks, settings));
  if (said.has_value()) RETURN_IF_ERROR(CutBehind(*said, &pieces));
  std::vector<Tokenizer::Part> parts;
  parts.reserve(pieces.size());
  for (const ChatPiece& piece : pieces) {
    parts.push_back({piece.text, piece.from_message
                                     ? Tokenizer::Special::kPlain
                                     : Tokenizer::Special::kParse});
  }
  return tokenizer.Encode(parts, ids, limits);
}

// Returns the text that the template writes behind the assistant's message
// `said`, the second of `messages`; empty if the message is not to be found.
std::string BehindMessage(const ChatTemplate& chat_template,
                          const Tokenizer& tokenizer, const std::string& said,
                          std::vector<ChatMessage> messages) {
  const absl::StatusOr<std::vector<ChatPiece>> pieces =
      Render(chat_template, tokenizer, std::move(messages),
             /*assistant_speaks=*/false, ChatSettings());
  if (!pieces.ok()) return std::string();
  for (size_t i = 0; i + 1 < pieces->size(); ++i) {
    const ChatPiece& piece = (*pieces)[i];
    if (piece.from_message && absl::EndsWith(piece.text, said)) {
      return (*pieces)[i + 1].text;
    }
  }
  return std::string();
}

// Returns the control or user-defined token that `text` begins with, white
// space aside. White space itself may be a user-defined token.
std::optional<int32_t> FirstSpecial(const Tokenizer& tokenizer,
                                    const std::string& text) {
  std::vector<int32_t> ids;
  if (!tokenizer.Encode(text, Tokenizer::Special::kParse, &ids).ok()) {
    return std::nullopt;
  }
  for (const int32_t id : ids) {
    const std::string piece =
        tokenizer.Piece(id, Tokenizer::Special::kParse).value_or("");
    if (absl::StripAsciiWhitespace(piece).empty()) continue;
    const bool special = tokenizer.IsControl(id) || tokenizer.IsUserDefined(id);
    return special ? std::optional<int32_t>(id) : std::nullopt;
  }
  return std::nullopt;
}

// Decodes the last `count` tokens of a text, or all, control tokens, too.
absl::StatusOr<std::string> EndOf(const std::vector<int32_t>& ids, size_t count,
                                  const Tokenizer& tokenizer) {
  const auto begin =
      ids.end() - static_cast<int64_t>(std::min(ids.size(), count));
  return tokenizer.Decode({begin, ids.end()}, Tokenizer::Special::kParse);
}

// Returns the text that the template writes behind the last message, up to the
// assistant's, as tokens spell it, without white space before it.
absl::StatusOr<std::string> Tail(const ChatTemplate& chat_template,
                                 const Tokenizer& tokenizer,
                                 std::optional<bool> think) {
  ASSIGN_OR_RETURN(const std::vector<ChatPiece> pieces,
                   Render(chat_template, tokenizer, {{"user", "?"}},
                          /*assistant_speaks=*/true, {.think = think}));
  if (pieces.empty() || pieces.back().from_message) return std::string();
  std::vector<int32_t> ids;
  RETURN_IF_ERROR(
      tokenizer.Encode(pieces.back().text, Tokenizer::Special::kParse, &ids));
  ASSIGN_OR_RETURN(const std::string text,
                   tokenizer.Decode(ids, Tokenizer::Special::kParse));
  return std::string(absl::StripLeadingAsciiWhitespace(text));
}

// Returns whether `prompt` ends in an opening tag, behind all other control
// tokens and before white space alone.
bool EndsInOpenTag(const std::vector<int32_t>& prompt,
                   const Tokenizer& tokenizer, const ThoughtTags& tags) {
  constexpr size_t kEnd = 32;  // tokens of a tag and of white space
  size_t count = 0;
  while (count < std::min(prompt.size(), kEnd)) {
    const int32_t id = prompt[prompt.size() - 1 - count];
    if (tokenizer.IsControl(id) && id != tags.open_id && id != tags.close_id) {
      break;
    }
    ++count;
  }
  const std::string text = EndOf(prompt, count, tokenizer).value_or("");
  return absl::EndsWith(absl::StripTrailingAsciiWhitespace(text), tags.open);
}

}  // namespace

bool BeginsThought(const ChatTemplate* chat_template,
                   const Tokenizer& tokenizer, const ThoughtTags& tags,
                   const std::vector<int32_t>& prompt) {
  std::optional<std::string> longest;
  for (const std::optional<bool> think :
       {std::optional<bool>(), std::optional(true), std::optional(false)}) {
    if (chat_template == nullptr) break;
    const absl::StatusOr<std::string> tail =
        Tail(*chat_template, tokenizer, think);
    if (!tail.ok() || (longest && tail->size() <= longest->size())) continue;
    // Each token spells a byte or more.
    const absl::StatusOr<std::string> end =
        EndOf(prompt, tail->size(), tokenizer);
    if (end.ok() && absl::EndsWith(*end, *tail)) longest = *tail;
  }
  return longest ? EndsInThought(*longest, tags)
                 : EndsInOpenTag(prompt, tokenizer, tags);
}

absl::Status EncodeChat(const ChatTemplate& chat_template,
                        const Tokenizer& tokenizer,
                        std::vector<ChatMessage> messages,
                        const ChatSettings& settings,
                        const EncodeLimits& limits, std::vector<int32_t>* ids) {
  bool begins = true;  // the assistant's message
  if (settings.continue_last) {
    if (messages.empty() || messages.back().role != "assistant") {
      return UsageError(
          "invalid_argument",
          absl::StrCat("continue_last: got ",
                       messages.empty()
                           ? "no message"
                           : absl::StrCat("a last message of \"",
                                          messages.back().role, "\""),
                       ", need one of \"assistant\""));
    }
    begins =
        messages.back().content.empty() && messages.back().reasoning.empty();
    if (begins) messages.pop_back();
  }
  return Encode(chat_template, tokenizer, std::move(messages),
                /*assistant_speaks=*/begins, settings, limits, ids);
}

absl::StatusOr<std::vector<int32_t>> AssistantHeader(
    const ChatTemplate& chat_template, const Tokenizer& tokenizer) {
  std::vector<int32_t> with;
  std::vector<int32_t> without;
  for (std::vector<int32_t>* const ids : {&with, &without}) {
    RETURN_IF_ERROR(Encode(chat_template, tokenizer, {{"user", "?"}},
                           /*assistant_speaks=*/ids == &with, ChatSettings(),
                           EncodeLimits(), ids));
  }
  const auto [header, rest] =
      std::mismatch(with.begin(), with.end(), without.begin(), without.end());
  return std::vector<int32_t>(header, with.end());
}

std::vector<int32_t> EndsOfTurn(const Tokenizer& tokenizer,
                                const ChatTemplate* chat_template) {
  std::vector<int32_t> ends = tokenizer.Ends();
  if (chat_template == nullptr) return ends;
  const std::string said = "The answer.";
  const ChatMessage user = {"user", "The question?"};
  const ChatMessage assistant = {"assistant", said};
  for (const std::vector<ChatMessage>& messages :
       {std::vector<ChatMessage>{user, assistant, user},
        std::vector<ChatMessage>{user, assistant}}) {
    const std::optional<int32_t> end = FirstSpecial(
        tokenizer, BehindMessage(*chat_template, tokenizer, said, messages));
    if (!end) continue;
    // Tokenizer::Ends has decided about control tokens with a known spelling.
    const bool decided =
        tokenizer.IsControl(*end) &&
        IsEndSpelling(
            tokenizer.Piece(*end, Tokenizer::Special::kParse).value());
    if (!decided) ends.push_back(*end);
  }
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  return ends;
}

}  // namespace tiercel
