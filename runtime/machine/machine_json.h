#ifndef TIERCEL_RUNTIME_MACHINE_MACHINE_JSON_H_
#define TIERCEL_RUNTIME_MACHINE_MACHINE_JSON_H_

#include "kernels/device/cpu/probe.h"
#include "kernels/system/isa.h"
#include "nlohmann/json.hpp"

namespace tiercel {

// The document of tiercel_machine about a machine with these peaks.
nlohmann::json MachineJson(const Peaks& peaks, Isa isa, int threads);

// The document of tiercel_devices.
nlohmann::json DevicesJson(Isa isa);

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_MACHINE_MACHINE_JSON_H_
