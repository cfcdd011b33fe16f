#ifndef TIERCEL_KERNELS_SELECT_SELECTOR_BODY_H_
#define TIERCEL_KERNELS_SELECT_SELECTOR_BODY_H_

#include <cstdint>

#include "kernels/device/device_ptr.h"
#include "kernels/device/kernel_entry.h"

struct CUstream_st;

namespace tiercel {

struct SelectParams;
void SelectReference(const SelectParams& p);

// The constants of Select.
inline constexpr float kNormPower = -0.5f;
inline constexpr float kAgeWeight = 0.7f;
inline constexpr float kAgeSlope = 0.567584026f;  // -ln(0.6) / 0.9
inline constexpr float kAgePower = 1.8f;
inline constexpr float kEdgeWeight = 0.4f;
inline constexpr float kLeastShare = 1e-12f;  // least 1 - u and least pi
inline constexpr float kLnLeastShare = -27.6310211f;
inline constexpr double kLeastDistance = 1e-12;  // least sum (f - r)^2
inline constexpr float kLeastNorm = 0x1p-24f;
inline constexpr float kGreatestNorm = 65504.0f;
inline constexpr float kLeastMixture = 0x1p-126f;
inline constexpr float kTemperature = 2.0f;  // temperature of the softmax pi
inline constexpr int64_t kSumCandidates = 256;

// Computes the part of ln r that depends on a candidate's index alone, for
// candidates begin..end - 1. `begin` is a multiple of 16. Up to 15 elements
// after them are written too.
struct AgePrior {
  int64_t candidates;
  int64_t begin;
  int64_t end;
  float* prior;  // [candidates]
};
using AgePriorFn = void(const AgePrior& a);

// Computes t of one KV head from its importance and norms.
struct HeadChoice {
  const float* importance;  // [candidates]
  const uint16_t* norms;    // [candidates]
  const float* prior;       // as AgePrior leaves it
  int64_t candidates;       // at least 1
  float most_prior;
  int64_t reach;  // below `candidates`
  float suppression;
  float* t;  // [candidates up to a multiple of 16]
  // Scratch of [candidates + 4 * reach + 48]: candidates with neighbours on
  // both sides, and the lanes read beyond these.
  float* window;
};
using HeadChoiceFn = void(const HeadChoice& h);

// Turns t into v, for candidates begin..end - 1 of all heads. `begin` is a
// multiple of 16. Up to 15 elements after them are changed too.
struct HeadRivals {
  float* t;  // [kv_heads, stride]
  int64_t stride;
  int kv_heads;
  float exclusivity;
  int64_t begin;
  int64_t end;
};
using HeadRivalsFn = void(const HeadRivals& r);

namespace portable {
AgePriorFn ComputeAgePrior;
HeadChoiceFn ComputeHeadChoice;
HeadRivalsFn ComputeHeadRivals;
}  // namespace portable
namespace avx2 {
AgePriorFn ComputeAgePrior;
HeadChoiceFn ComputeHeadChoice;
HeadRivalsFn ComputeHeadRivals;
}  // namespace avx2
namespace avx512 {
AgePriorFn ComputeAgePrior;
HeadChoiceFn ComputeHeadChoice;
HeadRivalsFn ComputeHeadRivals;
}  // namespace avx512

// Queues the work on a GPU's stream, with the reference's bits. At least one
// candidate is kept. `scratch` is [2, kv_heads, stride]. Returns a cudaError_t.
TIERCEL_KERNEL(SelectCuda, CUstream_st* stream, const SelectParams& p,
               int64_t stride, DevicePtr<float> scratch);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_SELECT_SELECTOR_BODY_H_
