#include "models/tokenizer/tokenizer.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"
#include "models/tokenizer/gguf_pres.h"
#include "models/tokenizer/hf_json.h"

namespace tiercel {
namespace {

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

// A tokenizer is not made without a file of its own that is broken, but for
// special_tokens_map.json: other files list its tokens too.
absl::StatusOr<TokenizerSpec> SpecFromFolder(const Checkpoint& checkpoint) {
  const nlohmann::json& files = checkpoint.side_files();
  const bool lists_added =
      Member(Member(files, "tokenizer_config.json"), "added_tokens_decoder")
          .is_object();
  for (const auto& [name, why] : checkpoint.unread_files()) {
    const bool needed =
        name == "added_tokens.json"
            ? !lists_added
            : IsIn({"tokenizer.json", "tokenizer_config.json", "vocab.json",
                    "merges.txt", "tokenizer.model"},
                   name);
    if (needed) return why;
  }
  return SpecFromHuggingFace(files);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::Create(
    const Checkpoint& checkpoint) {
  ASSIGN_OR_RETURN(TokenizerSpec spec,
                   checkpoint.format() == Checkpoint::Format::kGguf
                       ? SpecFromGguf(checkpoint.metadata())
                       : SpecFromFolder(checkpoint));
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
  splitter_ = TokenSplitter(spec_);
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
  std::vector<Stretch> texts;
  texts.reserve(parts.size());
  for (const Part& part : parts) {
    total += part.text.size();
    texts.push_back({part.text, part.special == Special::kParse});
  }
  EncodeWatch watch(limits, total);
  std::vector<std::string_view> run;  // the texts since the last special token
  bool first_run = true;
  const auto end_run = [&]() -> absl::Status {
    if (run.empty()) return absl::OkStatus();
    absl::Status s = run.size() == 1
                         ? EncodeRun(run[0], first_run, &watch, ids)
                         : EncodeRun(Joined(run), first_run, &watch, ids);
    run.clear();
    first_run = false;
    return s;
  };
  const auto encode = [&]() -> absl::Status {
    for (const Stretch& stretch : splitter_.Split(spec_, texts)) {
      if (!stretch.token) {
        run.push_back(stretch.text);
        continue;
      }
      RETURN_IF_ERROR(end_run());
      ids->push_back(*stretch.token);
      first_run = false;
      RETURN_IF_ERROR(watch.Begin(stretch.text.size(), 0, ids->size()));
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

absl::StatusOr<std::string> Tokenizer::Pieces(const std::vector<int32_t>& ids,
                                              Special special) const {
  std::string text;
  for (const int32_t id : ids) {
    ASSIGN_OR_RETURN(std::string piece, Piece(id, special));
    text += piece;
  }
  return text;
}

absl::StatusOr<std::string> Tokenizer::Decode(const std::vector<int32_t>& ids,
                                              Special special) const {
  ASSIGN_OR_RETURN(std::string text, Pieces(ids, special));
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
  const std::optional<int32_t> id = splitter_.TokenOf(text);
  return id && IsControl(*id) ? id : std::nullopt;
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
