#include "runtime/policies/speed/speed_params.h"

#include "models/decoder/config.h"
#include "runtime/policies/settings.h"

namespace tiercel {

absl::Status SpeedParams::Set(const std::string& settings) {
  constexpr int64_t kMost = int64_t{1} << 40;
  Settings read("speed", settings);
  read.TakeNumber("cut", "1 to the model's layers", &cut);
  if (cut.has_value() && *cut >= 1 && *cut <= ConfigLimits::kLayers) {
    depth.cut = static_cast<int>(*cut);
  }
  read.TakeCount("anchor", 0, kMost, &depth.anchor);
  read.TakeCountOr("tail", "auto", 1, kMost, &depth.tail);
  read.TakeChoice<bool>("past", {{"drop", false}, {"keep", true}},
                        &depth.keeps_past);
  plain_keys = read.Given({"past"});
  return read.Finish();
}

}  // namespace tiercel
