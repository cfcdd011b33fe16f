#include "runtime/machine/machine_json.h"

#include <string>

namespace tiercel {

nlohmann::json MachineJson(const Peaks& peaks, Isa isa, int threads) {
  return {{"cpu", CpuName()},
          {"isa", std::string(NameOf(isa))},
          {"threads", threads},
          {"read_bytes_per_s", peaks.read_bytes_per_s},
          {"read_spread", peaks.read_spread},
          {"steady", peaks.read_spread <= kMostSpread},
          {"f32_ops_per_s", peaks.f32_ops_per_s},
          {"int8_ops_per_s", peaks.int8_ops_per_s}};
}

}  // namespace tiercel
