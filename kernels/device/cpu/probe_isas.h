#ifndef TIERCEL_KERNELS_DEVICE_CPU_PROBE_ISAS_H_
#define TIERCEL_KERNELS_DEVICE_CPU_PROBE_ISAS_H_

#include "kernels/device/cpu/probe_body.h"
#include "kernels/system/isa.h"

namespace tiercel {

// The loops of the probe, per ISA.
inline constexpr PerIsa<ProbeReadFn*> kProbeRead = {
    portable::ProbeRead, avx2::ProbeRead, avx512::ProbeRead,
    avx512vnni::ProbeRead};
inline constexpr PerIsa<ProbeFmaFn*> kProbeFma = {
    portable::ProbeFma, avx2::ProbeFma, avx512::ProbeFma, avx512vnni::ProbeFma};
inline constexpr PerIsa<ProbeInt8Fn*> kProbeInt8 = {
    portable::ProbeInt8, avx2::ProbeInt8, avx512::ProbeInt8,
    avx512vnni::ProbeInt8, avxvnni::ProbeInt8};

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_DEVICE_CPU_PROBE_ISAS_H_
