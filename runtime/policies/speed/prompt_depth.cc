#include "runtime/policies/speed/prompt_depth.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "lib/status/error.h"

namespace tiercel {

PromptDepth PromptDepth::Of(const ModelConfig& config) const {
  PromptDepth depth = *this;
  if (depth.cut == 0) depth.cut = std::max(1, config.layers * 3 / 4);
  return depth;
}

absl::Status CheckCut(const ModelConfig& config, int64_t cut) {
  if (cut >= 1 && cut <= config.layers) return absl::OkStatus();
  return UsageError(
      "invalid_argument",
      absl::StrCat("settings of speed: cut: got ", cut,
                   ", need 1 to the model's ", config.layers, " layers"));
}

absl::Status CheckPromptDepth(const ModelConfig& config,
                              const PromptDepth& depth) {
  return depth.cut == 0 ? absl::OkStatus() : CheckCut(config, depth.cut);
}

namespace {

struct Declared {
  std::optional<int64_t> cut;
  int64_t anchor = 1;
  bool keeps_past = false;
};

Declared DeclaredBy(const Checkpoint& checkpoint) {
  Declared declared;
  std::optional<std::string> past;
  constexpr int64_t kMost = int64_t{1} << 30;
  const Metadata& metadata = checkpoint.metadata();
  if (const auto cut = metadata.FindInt("tiercel.speed.cut", 1, kMost);
      cut.ok()) {
    declared.cut = *cut;
  }
  if (const auto anchor = metadata.FindInt("tiercel.speed.anchor", 0, kMost);
      anchor.ok()) {
    declared.anchor = anchor->value_or(1);
  }
  if (const auto text = metadata.FindString("tiercel.speed.past"); text.ok()) {
    past = *text;
  }
  const nlohmann::json& files = checkpoint.side_files();
  const auto config = files.find("config.json");
  if (config != files.end() && config->is_object() &&
      config->contains("speed") && (*config)["speed"].is_object()) {
    const nlohmann::json& speed = (*config)["speed"];
    const auto number = [&](const char* key) -> std::optional<int64_t> {
      const auto value = speed.find(key);
      if (value == speed.end() || !value->is_number_integer()) return {};
      return value->get<int64_t>();
    };
    declared.cut = number("cut");
    declared.anchor = number("anchor").value_or(1);
    const auto text = speed.find("past");
    if (text != speed.end() && text->is_string()) {
      past = text->get<std::string>();
    }
  }
  declared.keeps_past = past == "keep";
  return declared;
}

}  // namespace

KvExtent PromptDepth::ExtentIn(const Checkpoint& checkpoint) const {
  return {.full_layers = cut,
          .sinks = anchor,
          .tail = tail,
          .keeps_answers = keeps_past,
          .warning = UntrainedFor(checkpoint, *this)};
}

std::string UntrainedFor(const Checkpoint& checkpoint,
                         const PromptDepth& depth) {
  const Declared declared = DeclaredBy(checkpoint);
  const char* const past[] = {"drop", "keep"};
  if (!declared.cut.has_value()) {
    return absl::StrCat(
        "speed: the checkpoint does not say that it was trained for prompts "
        "that end at layer ",
        depth.cut, "; its text will be worse than the model's");
  }
  if (*declared.cut == depth.cut && declared.anchor == depth.anchor &&
      declared.keeps_past == depth.keeps_past) {
    return "";
  }
  return absl::StrCat("speed: got cut=", depth.cut, ", anchor=", depth.anchor,
                      ", past=", past[depth.keeps_past],
                      ", the checkpoint was trained for cut=", *declared.cut,
                      ", anchor=", declared.anchor,
                      ", past=", past[declared.keeps_past]);
}

}  // namespace tiercel
