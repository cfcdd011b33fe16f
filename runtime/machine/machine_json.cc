#include "runtime/machine/machine_json.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/device/cuda/cuda_driver.h"
#include "kernels/system/resource_limits.h"

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

nlohmann::json DevicesJson(Isa isa) {
  nlohmann::json devices = {{{"device", "cpu"},
                             {"name", CpuName()},
                             {"isa", std::string(NameOf(isa))},
                             {"threads", AllowedCpus()}}};
  int gpus = 1;
  for (int gpu = 0; gpu < gpus; ++gpu) {
    const absl::StatusOr<GpuFacts> facts = CudaDriver::FindGpu(gpu);
    const absl::Status status = facts.ok() ? CheckGpu(*facts) : facts.status();
    nlohmann::json device = {{"device", "cuda"}, {"usable", status.ok()}};
    if (!status.ok()) device["why"] = std::string(status.message());
    if (facts.ok() && facts->gpus > 0) {
      gpus = facts->gpus;
      device["index"] = gpu;
      const int capability = facts->capability;
      device["capability"] =
          absl::StrCat(capability / 10, ".", capability % 10);
    }
    devices.push_back(std::move(device));
  }
  return devices;
}

}  // namespace tiercel
