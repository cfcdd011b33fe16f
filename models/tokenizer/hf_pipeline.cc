#include "models/tokenizer/hf_pipeline.h"

#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/status/status_macros.h"
#include "models/tokenizer/hf_json.h"

namespace tiercel {
namespace {

using Json = nlohmann::json;

// The parser bounds the depth of JSON.
void Flatten(const Json& value, const char* key,
             std::vector<const Json*>* stages) {
  if (value.is_null()) return;
  if (!IsType(value, "Sequence")) {
    stages->push_back(&value);
    return;
  }
  for (const Json& stage : Member(value, key)) Flatten(stage, key, stages);
}

// Returns the regular expression that matches `text` alone.
std::string Escaped(std::string_view text) {
  std::string pattern;
  for (const char c : text) {
    if (std::string_view(R"(\^$.|?*+()[]{}-#/&)").find(c) !=
        std::string_view::npos) {
      pattern.push_back('\\');
    }
    pattern.push_back(c);
  }
  return pattern;
}

// Cuts at what `pattern` matches. Matches are pieces of their own, or those
// that follow each other are one.
absl::Status AddCut(const Json& stage, std::string pattern,
                    TokenizerSpec* spec) {
  const Json& behavior = Member(stage, "behavior");
  const bool inverted = IsTrue(Member(stage, "invert"));
  if (inverted && IsString(behavior, "Removed")) {
    spec->cuts.push_back({std::move(pattern), /*is_all=*/true});
  } else if (IsString(behavior, "Isolated")) {
    spec->cuts.push_back({std::move(pattern)});
  } else if (IsString(behavior, "Contiguous") && !inverted) {
    spec->cuts.push_back({absl::StrCat("(?:", pattern, ")+")});
  } else {
    return UnsupportedJson(
        absl::StrCat("pre_tokenizer ", TypeOf(stage), " with behavior ",
                     behavior.dump(), inverted ? ", inverted" : "",
                     "; need Isolated, Contiguous, or Removed and inverted"));
  }
  return absl::OkStatus();
}

absl::Status ReadSplit(const Json& stage, TokenizerSpec* spec) {
  const Json& pattern = Member(stage, "pattern");
  const Json& regex = Member(pattern, "Regex");
  const Json& text = Member(pattern, "String");
  if (regex.is_string()) return AddCut(stage, regex.get<std::string>(), spec);
  if (text.is_string() && !text.get_ref<const std::string&>().empty()) {
    return AddCut(stage, Escaped(text.get_ref<const std::string&>()), spec);
  }
  return UnsupportedJson("Split without a pattern, \"Regex\" or \"String\"");
}

// Runs of marks are those of another family, which has its own name.
absl::Status ReadPunctuation(const Json& stage, TokenizerSpec* spec) {
  const Json& behavior = Member(stage, "behavior");
  if (IsString(behavior, "Contiguous")) {
    spec->cuts.push_back({std::string(kMarksPattern)});
    return absl::OkStatus();
  }
  std::string one(kMarksPattern);
  one.pop_back();  // the last +
  if (behavior.is_null()) {
    spec->cuts.push_back({std::move(one)});
    return absl::OkStatus();
  }
  return AddCut(stage, std::move(one), spec);
}

// One stage of a pre_tokenizer before ByteLevel.
absl::Status ReadCut(const Json& stage, TokenizerSpec* spec) {
  if (IsType(stage, "Split")) return ReadSplit(stage, spec);
  if (IsType(stage, "Punctuation")) return ReadPunctuation(stage, spec);
  if (IsType(stage, "Digits")) {
    std::string pattern(kNumberPattern);
    if (!IsTrue(Member(stage, "individual_digits"))) pattern += "+";
    spec->cuts.push_back({std::move(pattern)});
    return absl::OkStatus();
  }
  return UnsupportedJson(
      absl::StrCat("pre_tokenizer ", TypeOf(stage),
                   "; need Split, Digits or Punctuation, then one ByteLevel"));
}

// Cuts the text by the stages up to ByteLevel, which spells bytes as
// characters. One behind it would read that spelling; it may cut at ASCII's
// digits, which are spelled as they are.
absl::Status ReadCuts(const Json& file, TokenizerSpec* spec) {
  bool is_spelled = false;
  for (const Json* stage :
       StagesOf(Member(file, "pre_tokenizer"), "pretokenizers")) {
    if (is_spelled) {
      if (!IsString(Member(Member(*stage, "pattern"), "Regex"),
                    kThreeDigitsPattern)) {
        return UnsupportedJson(absl::StrCat("pre_tokenizer ", TypeOf(*stage),
                                            " behind ByteLevel"));
      }
    }
    if (!IsType(*stage, "ByteLevel")) {
      RETURN_IF_ERROR(ReadCut(*stage, spec));
      continue;
    }
    if (IsTrue(Member(*stage, "add_prefix_space"))) {
      // Each piece of the stages before it would begin with a space.
      if (!spec->cuts.empty()) {
        return UnsupportedJson(
            "ByteLevel with add_prefix_space behind another pre_tokenizer");
      }
      spec->space_prefix = TokenizerSpec::SpacePrefix::kEachRun;
    }
    const Json& use_regex = Member(*stage, "use_regex");
    if (use_regex.is_null() || IsTrue(use_regex)) {
      spec->cuts.push_back({std::string(kGpt2Pattern)});
    }
    is_spelled = true;
  }
  if (is_spelled) return absl::OkStatus();
  return UnsupportedJson("pre_tokenizer has no ByteLevel");
}

absl::Status ReadByteLevelStages(const Json& file, TokenizerSpec* spec) {
  for (const Json* stage :
       StagesOf(Member(file, "normalizer"), "normalizers")) {
    if (!IsType(*stage, "NFC")) {
      return UnsupportedJson(absl::StrCat("normalizer ", TypeOf(*stage),
                                          "; need none or \"NFC\""));
    }
    spec->nfc = true;
  }
  // The bytes of the tokens are the text, whether the file says so or not; to
  // fuse them changes nothing.
  for (const Json* stage : StagesOf(Member(file, "decoder"), "decoders")) {
    if (!IsType(*stage, "ByteLevel") && !IsType(*stage, "Fuse")) {
      return UnsupportedJson(absl::StrCat("decoder ", TypeOf(*stage),
                                          "; need none or \"ByteLevel\""));
    }
  }
  return ReadCuts(file, spec);
}

absl::Status ReadPrefixScheme(const Json& stage, TokenizerSpec* spec) {
  const Json& scheme = Member(stage, "prepend_scheme");
  const Json& old_scheme = Member(stage, "add_prefix_space");
  if (IsString(scheme, "first")) {
    spec->space_prefix = TokenizerSpec::SpacePrefix::kText;
  } else if (IsString(scheme, "always") ||
             (scheme.is_null() &&
              (old_scheme.is_null() || IsTrue(old_scheme)))) {
    spec->space_prefix = TokenizerSpec::SpacePrefix::kEachRun;
  } else if (!IsString(scheme, "never") && !scheme.is_null()) {
    return UnsupportedJson("Metaspace with an unknown prepend_scheme");
  }
  spec->prefixes_spaces = false;
  const Json& split = Member(stage, "split");
  spec->splits_words = split.is_null() || IsTrue(split);
  return absl::OkStatus();
}

// Spaces become U+2581 either in the normaliser (Prepend, Replace) or in the
// pre-tokeniser (Metaspace).
absl::Status ReadSentencePieceStages(const Json& file, TokenizerSpec* spec) {
  constexpr std::string_view kSpace = "\u2581";
  bool replaced = false;
  for (const Json* stage :
       StagesOf(Member(file, "normalizer"), "normalizers")) {
    if (IsType(*stage, "Prepend") && !replaced &&
        IsString(Member(*stage, "prepend"), kSpace)) {
      spec->space_prefix = TokenizerSpec::SpacePrefix::kEachRun;
    } else if (IsType(*stage, "Replace") && !replaced &&
               IsString(Member(Member(*stage, "pattern"), "String"), " ") &&
               IsString(Member(*stage, "content"), kSpace)) {
      replaced = true;
    } else {
      return UnsupportedJson(absl::StrCat(
          "normalizer ", TypeOf(*stage),
          "; need Prepend and Replace of spaces by U+2581, or none"));
    }
  }
  std::vector<const Json*> stages =
      StagesOf(Member(file, "pre_tokenizer"), "pretokenizers");
  if (replaced) {
    // No space is left at which a Split could cut (Gemma has one).
    std::erase_if(stages, [](const Json* stage) {
      return IsType(*stage, "Split") &&
             IsString(Member(Member(*stage, "pattern"), "String"), " ");
    });
  }
  if (replaced ? !stages.empty()
               : stages.size() != 1 || !IsType(*stages[0], "Metaspace") ||
                     !IsString(Member(*stages[0], "replacement"), kSpace)) {
    return UnsupportedJson(
        "spaces must become U+2581 once, in the normalizer (Replace) or in the "
        "pre_tokenizer (Metaspace)");
  }
  if (!replaced) {
    RETURN_IF_ERROR(ReadPrefixScheme(*stages[0], spec));
  }
  for (const Json* stage : StagesOf(Member(file, "decoder"), "decoders")) {
    const Json& strips = Member(*stage, "start");
    if (IsType(*stage, "Strip") && strips.is_number_integer() && strips == 1 &&
        IsString(Member(*stage, "content"), " ")) {
      spec->strips_prefix = true;
    } else if (IsType(*stage, "Metaspace")) {
      TokenizerSpec decoder;
      RETURN_IF_ERROR(ReadPrefixScheme(*stage, &decoder));
      spec->strips_prefix =
          decoder.space_prefix != TokenizerSpec::SpacePrefix::kNone;
    } else if (!IsType(*stage, "Replace") && !IsType(*stage, "ByteFallback") &&
               !IsType(*stage, "Fuse")) {
      return UnsupportedJson(absl::StrCat("decoder ", TypeOf(*stage)));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<const Json*> StagesOf(const Json& value, const char* key) {
  std::vector<const Json*> stages;
  Flatten(value, key, &stages);
  return stages;
}

absl::Status ReadHfPipeline(const Json& file, TokenizerSpec* spec) {
  return spec->kind == TokenizerSpec::Kind::kByteLevel
             ? ReadByteLevelStages(file, spec)
             : ReadSentencePieceStages(file, spec);
}

}  // namespace tiercel
