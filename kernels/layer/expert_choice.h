#ifndef TIERCEL_KERNELS_LAYER_EXPERT_CHOICE_H_
#define TIERCEL_KERNELS_LAYER_EXPERT_CHOICE_H_

#include <bit>
#include <cstdint>

#include "kernels/device/device_ptr.h"
#include "kernels/device/kernel_entry.h"
#include "lib/status/status_forward.h"

struct CUstream_st;

namespace tiercel {

class Stream;

// The experts to which each row of a mixture of experts goes, and their shares
// in its result (Shazeer et al. 2017), by the logits of a router:
//
//   p[r, e]      = exp(logits[r, e] - max) / (the sum of exp over all experts)
//   chosen[r]    = the `used` experts of the greatest logits, in ascending
//                  order of their indices; of equal logits the lower indices
//   shares[r, i] = p[r, chosen[r, i]], if `normed` over the sum of those of r
//
// The sum over all has sixteen chains, e % 16, which are added as ReduceAdd of
// simd.h does; the sum over the chosen ones is one chain. A NaN or an infinity
// among a row's logits makes all of its shares NaN, and its choice any.
struct ExpertChoiceParams {
  static constexpr int kMostExperts = 1024;

  DevicePtr<const float> logits;  // [rows, experts]
  int64_t rows;                   // 0 is allowed
  int experts;                    // 1 to kMostExperts
  int used;                       // 1 to experts
  bool normed;
  DevicePtr<int32_t> chosen;  // [rows, used]
  DevicePtr<float> shares;    // [rows, used]
};
absl::Status ExpertChoice(Stream& stream, const ExpertChoiceParams& p);

// ---- Its bodies ----

// Maps logits to integers so that their order is kept; the two zeros are equal,
// and a NaN has a place as well.
constexpr uint32_t ExpertOrder(float logit) {
  const auto bits = std::bit_cast<uint32_t>(logit + 0.0f);
  return bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
}

// Sets powers[e] = exp(logits[e] - max) for one row and returns their sum.
using ExpertPowersFn = float(const float* logits, int experts, float* powers);

ExpertPowersFn ExpertPowersReference;
namespace portable {
ExpertPowersFn ExpertPowers;
}
namespace avx2 {
ExpertPowersFn ExpertPowers;
}
namespace avx512 {
ExpertPowersFn ExpertPowers;
}

// Queues the work on a GPU's stream, with the same bits. Returns a cudaError_t.
TIERCEL_KERNEL(ExpertChoiceCuda, CUstream_st* stream,
               const ExpertChoiceParams& p);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_LAYER_EXPERT_CHOICE_H_
