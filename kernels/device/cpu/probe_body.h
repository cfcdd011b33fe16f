#ifndef TIERCEL_KERNELS_DEVICE_CPU_PROBE_BODY_H_
#define TIERCEL_KERNELS_DEVICE_CPU_PROBE_BODY_H_

#include <cstdint>

namespace tiercel {

// The number of independent chains, enough to fill the pipelines of a core.
inline constexpr int kProbeChains = 12;

// Each returns a value that depends on all its operations, so that no compiler
// removes them.
using ProbeReadFn = float(const float* data, int64_t count);  // count % 64 == 0
using ProbeFmaFn = float(int64_t steps);   // 16 * kProbeChains fma a step
using ProbeInt8Fn = float(int64_t steps);  // 64 * kProbeChains products a step

namespace portable {
ProbeReadFn ProbeRead;
ProbeFmaFn ProbeFma;
ProbeInt8Fn ProbeInt8;
}  // namespace portable
namespace avx2 {
ProbeReadFn ProbeRead;
ProbeFmaFn ProbeFma;
ProbeInt8Fn ProbeInt8;
}  // namespace avx2
namespace avxvnni {
ProbeReadFn ProbeRead;
ProbeFmaFn ProbeFma;
ProbeInt8Fn ProbeInt8;
}  // namespace avxvnni
namespace avx512 {
ProbeReadFn ProbeRead;
ProbeFmaFn ProbeFma;
ProbeInt8Fn ProbeInt8;
}  // namespace avx512
namespace avx512vnni {
ProbeReadFn ProbeRead;
ProbeFmaFn ProbeFma;
ProbeInt8Fn ProbeInt8;
}  // namespace avx512vnni

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_DEVICE_CPU_PROBE_BODY_H_
