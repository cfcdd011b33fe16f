#include "runtime/policies/sadas/sadas_params.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"
#include "runtime/policies/settings.h"

namespace tiercel {

absl::Status SadasParams::Set(const std::string& settings) {
  constexpr int64_t kMost = int64_t{1} << 40;
  Settings read("sadas", settings);
  read.TakeChoice<ThinkGate>("gate",
                             {{"state", ThinkGate::kState},
                              {"literal", ThinkGate::kLiteral},
                              {"always", ThinkGate::kAlways}},
                             &gate);
  read.TakeText("open", &open);
  read.TakeText("close", &close);
  read.TakeChoice<bool>("think", {{"off", false}, {"on", true}}, &begins_open);
  read.TakeCount("most", 0, kMost, &most);
  read.TakeChoice<bool>("latch", {{"on", true}, {"off", false}}, &latch);
  read.TakeChoice<bool>("pin", {{"none", false}, {"prompt", true}},
                        &pins_prompt);
  read.TakeChoice<bool>("answer", {{"all", false}, {"kept", true}},
                        &keeps_window);
  plain_keys = read.Given({"answer"});
  RETURN_IF_ERROR(read.Finish());
  if (open.empty() || close.empty() || open == close) {
    return UsageError(
        "invalid_argument",
        absl::StrCat("settings of sadas: got open=", open, ", close=", close,
                     ", need two texts that differ"));
  }
  return absl::OkStatus();
}

ThoughtTags TagsOf(const Model& model, const SadasParams& params) {
  const SadasParams unset;
  if (params.open != unset.open || params.close != unset.close) {
    return {params.open, params.close};
  }
  return ThoughtTagsOf(model.chat_template.get(), model.tokenizer.get());
}

absl::StatusOr<ThinkSchedule::Options> ThinkOptionsOf(
    const Model& model, const SadasParams& params) {
  ThinkSchedule::Options options = {.gate = params.gate,
                                    .latch = params.latch,
                                    .begins_open = params.begins_open,
                                    .most = params.most};
  if (model.tokenizer == nullptr) {
    if (params.begins_open || params.gate == ThinkGate::kAlways) return options;
    return UsageError(
        "invalid_argument",
        "settings of sadas: the checkpoint has no tokenizer to find tags with; "
        "need gate=always or think=on");
  }
  const ThoughtTags tags = TagsOf(model, params);
  for (const auto& [text, ids] : {std::pair(&tags.open, &options.open),
                                  std::pair(&tags.close, &options.close)}) {
    if (absl::Status s =
            model.tokenizer->Encode(*text, Tokenizer::Special::kParse, ids);
        !s.ok()) {
      return UsageError("invalid_argument",
                        absl::StrCat("settings of sadas: tag \"", *text,
                                     "\": ", s.message()));
    }
  }
  return options;
}

View WindowOf(const SadasParams& params, int64_t begin, int64_t prompt) {
  View view = View::Window(params.sink, params.window);
  if (params.pins_prompt) view.pinned.push_back({begin, begin + prompt});
  return view;
}

View ViewOf(const SadasParams& params, const ThinkSchedule& schedule,
            int64_t begin, int64_t prompt, int64_t context) {
  View view = WindowOf(params, begin, prompt).Within(context);
  if (schedule.windowed() || view.IsFull()) return view;
  if (!params.keeps_window || !schedule.closed_at().has_value()) {
    return View::Full();
  }
  // The answer keeps the window of the row that read the closing tag, and all
  // positions since.
  const int64_t kept = *schedule.closed_at() + 1 - params.window;
  view.pinned.push_back({begin + std::max<int64_t>(kept, 0), kAllPositions});
  view.recent = 1;
  return view;
}

View PromptViewOf(const SadasParams& params) {
  return params.gate == ThinkGate::kLiteral
             ? View::Window(params.sink, params.window)
             : View::Full();
}

}  // namespace tiercel
