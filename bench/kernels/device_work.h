#ifndef TIERCEL_BENCH_KERNELS_DEVICE_WORK_H_
#define TIERCEL_BENCH_KERNELS_DEVICE_WORK_H_

#include <cstdint>

struct CUstream_st;

namespace tiercel {

// Kernels that a bench needs besides those it measures. Each returns a
// cudaError_t.

// Fills words with random bits, of which every two bytes are a finite f16 of a
// magnitude below 2: so they serve as codes, scales and KV of every type.
int FillHalves(CUstream_st* stream, uint32_t* to, int64_t words, uint32_t seed);
// Fills floats with random ones within -1 to 1.
int FillFloats(CUstream_st* stream, float* to, int64_t count, uint32_t seed);

// Reads packets of 16 bytes and writes next to nothing: [kReadSums] sums.
inline constexpr int64_t kReadSums = 1 << 12;
int ReadPackets(CUstream_st* stream, const uint32_t* from, int64_t packets,
                uint32_t* sums);

// Does nothing, so that what a launch costs shows.
int DoNothing(CUstream_st* stream);

// A fragment each of 32 lanes as the matrix unit has it: sums[lane] += a b.
struct MmaLane {
  int32_t sums[4];
  uint32_t a[4];
  uint32_t b[2];
};
int MultiplyLanes(CUstream_st* stream, MmaLane* lanes);

}  // namespace tiercel

#endif  // TIERCEL_BENCH_KERNELS_DEVICE_WORK_H_
