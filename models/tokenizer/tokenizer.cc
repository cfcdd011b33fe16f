#include "models/tokenizer/tokenizer.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"
#include "lib/text/utf8.h"
#include "models/tokenizer/gguf_pres.h"
#include "models/tokenizer/nfc.h"
#include "models/tokenizer/unicode_classes.h"

namespace tiercel {
namespace {

bool IsControlType(TokenType type) {
  return type == TokenType::kControl || type == TokenType::kUnknown;
}

// The texts of tokens that end a text or a turn. A file may call a token with a
// text of the first list a word, although no document means it so; those of the
// second are control tokens only where the file says so.
constexpr std::string_view kEndSpellings[] = {
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<end_of_turn>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|calls|>",
    "<|flush|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|end_of_turn|>",
    "<turn|>",
    "<|eos|>",
    "<\uff5cend\u2581of\u2581sentence\uff5c>",
    "<|END_OF_TURN_TOKEN|>",
    "<end_of_utterance>",
    "<|endofturn|>",
};
constexpr std::string_view kControlEndSpellings[] = {
    "</s>", "<eos>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]", "[e~[",
};

template <size_t kCount>
bool IsIn(const std::string_view (&texts)[kCount], std::string_view text) {
  return std::find(std::begin(texts), std::end(texts), text) != std::end(texts);
}

absl::Status CheckEnds(const TokenizerSpec& spec) {
  for (const std::optional<int32_t>& id : {spec.bos, spec.eos}) {
    if (id && (*id < 0 || static_cast<size_t>(*id) >= spec.tokens.size())) {
      return InputError("invalid_vocab",
                        absl::StrCat("tokenizer: BOS or EOS is token ", *id,
                                     " of ", spec.tokens.size()));
    }
  }
  if (spec.adds_bos && !spec.bos) {
    return InputError("invalid_vocab",
                      "tokenizer: texts begin with BOS, but no token is BOS");
  }
  return absl::OkStatus();
}

std::string Joined(const std::vector<std::string_view>& parts) {
  std::string text;
  for (const std::string_view part : parts) text += part;
  return text;
}

bool IsAscii(char c) { return static_cast<uint8_t>(c) < 0x80; }

bool IsSpaceAt(std::string_view text, size_t begin) {
  return ClassOf(Utf8At(text, begin).code_point) == CharClass::kSpace;
}

// Returns whether the ASCII character at `at` and marks behind it are another
// character once they are composed.
bool ComposesAt(std::string_view text, size_t at) {
  constexpr size_t kMarks = 64;  // bytes
  if (at + 1 == text.size() || IsAscii(text[at + 1])) return false;
  return ComposeNfc(text.substr(at, kMarks)).front() != text[at];
}

// The text since the last special token, which may come in parts.
class Run {
 public:
  // Leaves out the spaces with which the text begins.
  void StripBegin() { strips_ = true; }

  void Add(std::string_view text) {
    while (strips_ && !text.empty()) {
      strips_ = IsSpaceAt(text, 0);
      if (strips_) text.remove_prefix(Utf8At(text, 0).bytes);
    }
    if (!text.empty()) texts_.push_back(text);
  }

  // Drops the spaces with which the text ends so far.
  void StripEnd() {
    while (!texts_.empty()) {
      std::string_view& last = texts_.back();
      size_t end = 0;
      for (size_t at = 0; at < last.size(); at += Utf8At(last, at).bytes) {
        if (!IsSpaceAt(last, at)) end = at + Utf8At(last, at).bytes;
      }
      last = last.substr(0, end);
      if (!last.empty()) return;
      texts_.pop_back();
    }
  }

  // Ends the text and returns it.
  std::vector<std::string_view> Take() {
    strips_ = false;
    return std::exchange(texts_, {});
  }

 private:
  std::vector<std::string_view> texts_;
  bool strips_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::Create(
    const Checkpoint& checkpoint) {
  ASSIGN_OR_RETURN(TokenizerSpec spec,
                   checkpoint.format() == Checkpoint::Format::kGguf
                       ? SpecFromGguf(checkpoint.metadata())
                       : SpecFromHuggingFace(checkpoint.side_files()));
  return Create(std::move(spec));
}

absl::StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::Create(
    TokenizerSpec spec) {
  RETURN_IF_ERROR(CheckEnds(spec));
  // Some files declare the end-of-turn token a word of the vocabulary. Then
  // text that contains it would end its own turn.
  for (const std::optional<int32_t>& id : {spec.bos, spec.eos}) {
    if (id && spec.tokens[*id].type == TokenType::kUserDefined) {
      spec.tokens[*id].type = TokenType::kControl;
    }
  }
  for (TokenEntry& token : spec.tokens) {
    if ((token.type == TokenType::kUserDefined ||
         token.type == TokenType::kNormal) &&
        IsIn(kEndSpellings, token.text)) {
      token.type = TokenType::kControl;
    }
  }
  ASSIGN_OR_RETURN(std::unique_ptr<TextModel> model,
                   spec.kind == TokenizerSpec::Kind::kByteLevel
                       ? MakeByteBpe(spec)
                       : MakeSentencePiece(spec));
  for (TokenEntry& token : spec.tokens) {
    if (token.type == TokenType::kUnused) {
      token.text.clear();
    } else if (!IsControlType(token.type)) {
      token.text = model->BytesOf(token);
    }
  }
  std::unique_ptr<Tokenizer> tokenizer(new Tokenizer(std::move(spec)));
  tokenizer->model_ = std::move(model);
  return tokenizer;
}

Tokenizer::Tokenizer(TokenizerSpec spec) : spec_(std::move(spec)) {
  spec_.merges.clear();
  spec_.merges.shrink_to_fit();
  std::vector<std::pair<std::string, int32_t>> user_defined, special;
  for (size_t i = 0; i < spec_.tokens.size(); ++i) {
    const TokenEntry& token = spec_.tokens[i];
    const int32_t id = static_cast<int32_t>(i);
    if (token.type == TokenType::kUserDefined) {
      user_defined.emplace_back(token.text, id);
    } else if (!IsControlType(token.type)) {
      continue;
    }
    special.emplace_back(token.text, id);
  }
  user_defined_ = SpecialMatcher(std::move(user_defined));
  special_ = SpecialMatcher(std::move(special));
}

absl::Status Tokenizer::Encode(std::string_view text, Special special,
                               std::vector<int32_t>* ids,
                               const EncodeLimits& limits) const {
  return Encode({{text, special}}, ids, limits);
}

absl::Status Tokenizer::Encode(const std::vector<Part>& parts,
                               std::vector<int32_t>* ids,
                               const EncodeLimits& limits) const {
  const size_t before = ids->size();
  uint64_t total = 0;
  for (const Part& part : parts) total += part.text.size();
  EncodeWatch watch(limits, total);
  Run run;
  bool first_run = true;
  const auto end_run = [&]() -> absl::Status {
    const std::vector<std::string_view> texts = run.Take();
    if (texts.empty()) return absl::OkStatus();
    absl::Status s = texts.size() == 1
                         ? EncodeRun(texts[0], first_run, &watch, ids)
                         : EncodeRun(Joined(texts), first_run, &watch, ids);
    first_run = false;
    return s;
  };
  const auto encode = [&]() -> absl::Status {
    for (const Part& part : parts) {
      const SpecialMatcher& matcher =
          part.special == Special::kParse ? special_ : user_defined_;
      size_t begin = 0;
      size_t from = 0;
      while (const auto match = matcher.Find(part.text, from)) {
        const TokenEntry& token = spec_.tokens[match->id];
        if (token.in_composed && ComposesAt(part.text, match->end - 1)) {
          from = match->begin + 1;
          continue;
        }
        run.Add(part.text.substr(begin, match->begin - begin));
        if (token.strips_left) run.StripEnd();
        RETURN_IF_ERROR(end_run());
        ids->push_back(match->id);
        if (token.strips_right) run.StripBegin();
        first_run = false;
        RETURN_IF_ERROR(watch.Begin(match->end - match->begin, 0, ids->size()));
        begin = from = match->end;
      }
      run.Add(part.text.substr(begin));
    }
    return end_run();
  };
  absl::Status status = encode();
  if (!status.ok()) ids->resize(before);
  return status;
}

absl::Status Tokenizer::EncodeRun(std::string_view run, bool first_run,
                                  EncodeWatch* watch,
                                  std::vector<int32_t>* ids) const {
  // Offsets in a run have 32 bits, and a run may grow threefold (a space
  // becomes U+2581).
  if (run.size() > std::numeric_limits<uint32_t>::max() / 3 - 1) {
    return InputError("too_long",
                      absl::StrCat("tokenizer: ", run.size(),
                                   " bytes without a special token"));
  }
  return model_->Encode(run, first_run, watch, ids);
}

absl::StatusOr<std::string> Tokenizer::Piece(int32_t id,
                                             Special special) const {
  if (id < 0 || id >= vocab()) {
    return InputError("invalid_token",
                      absl::StrCat("tokenizer: token ", id,
                                   "; the vocabulary has ", vocab()));
  }
  const TokenEntry& token = spec_.tokens[id];
  if (special == Special::kPlain && IsControlType(token.type)) {
    return std::string();
  }
  return token.text;
}

absl::StatusOr<std::string> Tokenizer::Decode(const std::vector<int32_t>& ids,
                                              Special special) const {
  std::string text;
  for (const int32_t id : ids) {
    ASSIGN_OR_RETURN(std::string piece, Piece(id, special));
    text += piece;
  }
  if (spec_.strips_prefix && !text.empty() && text.front() == ' ') {
    text.erase(0, 1);
  }
  return text;
}

bool Tokenizer::IsControl(int32_t id) const {
  return id >= 0 && id < vocab() && IsControlType(spec_.tokens[id].type);
}

bool Tokenizer::IsUsed(int32_t id) const {
  return id >= 0 && id < vocab() && spec_.tokens[id].type != TokenType::kUnused;
}

bool Tokenizer::IsUserDefined(int32_t id) const {
  return id >= 0 && id < vocab() &&
         spec_.tokens[id].type == TokenType::kUserDefined;
}

std::optional<int32_t> Tokenizer::FirstWordFrom(int64_t id) const {
  for (; id < vocab(); ++id) {
    const TokenType type = spec_.tokens[static_cast<size_t>(id)].type;
    if (type == TokenType::kNormal || type == TokenType::kByte) {
      return static_cast<int32_t>(id);
    }
  }
  return std::nullopt;
}

std::optional<int32_t> Tokenizer::ControlNamed(std::string_view text) const {
  const std::optional<SpecialMatcher::Match> match = special_.Find(text, 0);
  if (!match || match->begin != 0 || match->end != text.size() ||
      !IsControl(match->id)) {
    return std::nullopt;
  }
  return match->id;
}

std::vector<int32_t> Tokenizer::Ends() const {
  // A turn of these two makers has parts: <|end|> closes one, others the turn.
  const auto has = [this](std::string_view text) {
    return ControlNamed(text).has_value();
  };
  const bool has_parts = (has("<|return|>") && has("<|call|>")) ||
                         (has("<|flush|>") && has("<|calls|>"));
  std::vector<int32_t> ends;
  for (size_t i = 0; i < spec_.tokens.size(); ++i) {
    const TokenEntry& token = spec_.tokens[i];
    const auto id = static_cast<int32_t>(i);
    const bool ends_part = has_parts && token.text == "<|end|>";
    if (id == spec_.eos || (IsControlType(token.type) && !ends_part &&
                            IsEndSpelling(token.text))) {
      ends.push_back(id);
    }
  }
  return ends;
}

bool IsEndSpelling(std::string_view text) {
  return IsIn(kEndSpellings, text) || IsIn(kControlEndSpellings, text);
}

nlohmann::json Tokenizer::Describe() const {
  const auto special = [this](const std::optional<int32_t>& id) {
    if (!id) return nlohmann::json();
    return nlohmann::json{{"id", *id}, {"text", spec_.tokens[*id].text}};
  };
  int64_t control = 0;
  int64_t user_defined = 0;
  for (const TokenEntry& token : spec_.tokens) {
    control += IsControlType(token.type);
    user_defined += token.type == TokenType::kUserDefined;
  }
  nlohmann::json json = {{"vocab", vocab()},
                         {"control", control},
                         {"user_defined", user_defined},
                         {"bos", special(spec_.bos)},
                         {"eos", special(spec_.eos)},
                         {"adds_bos", spec_.adds_bos}};
  if (spec_.kind == TokenizerSpec::Kind::kByteLevel) {
    json["kind"] = "byte-level BPE";
    json["pretokenizer"] = std::string(NameOfCuts(spec_.cuts));
    json["normalizer"] = spec_.nfc ? "NFC" : "none";
  } else {
    json["kind"] = "SentencePiece BPE";
  }
  return json;
}

}  // namespace tiercel
