#ifndef TIERCEL_KERNELS_ATTENTION_COVERAGE_BODY_H_
#define TIERCEL_KERNELS_ATTENTION_COVERAGE_BODY_H_

#include <cstdint>

struct CUstream_st;

namespace tiercel {

struct CoverageParams;
void CoverageReference(const CoverageParams& p);

// Scores of one head, which become weights; positions >= 1.
struct HeadSums {
  float all;     // NaN: a score is not finite
  float newest;  // of those from `newest` on
};
using WeighPositionsFn = HeadSums(float* scores, int64_t positions,
                                  int64_t newest);

// What one head's kept positions add to that.
constexpr float CoverageOf(const HeadSums& sums, const float* weights,
                           const int32_t* kept, int64_t num_kept) {
  auto seen = static_cast<double>(sums.newest);
  for (int64_t i = 0; i < num_kept; ++i) {
    seen += static_cast<double>(weights[kept[i]]);
  }
  return static_cast<float>(seen / static_cast<double>(sums.all));
}

namespace portable {
WeighPositionsFn WeighPositions;
}
namespace avx2 {
WeighPositionsFn WeighPositions;
}
namespace avx512 {
WeighPositionsFn WeighPositions;
}

// Queued on a GPU's stream, with the reference's bits; `kept` is [kv_heads,
// num_kept] in the GPU's memory, and stands for that of `p`. Returns a
// cudaError_t.
int CoverageCuda(CUstream_st* stream, const CoverageParams& p,
                 const int32_t* kept);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_ATTENTION_COVERAGE_BODY_H_
