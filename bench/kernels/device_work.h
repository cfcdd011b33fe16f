#ifndef TIERCEL_BENCH_KERNELS_DEVICE_WORK_H_
#define TIERCEL_BENCH_KERNELS_DEVICE_WORK_H_

#include <cstdint>

#include "kernels/device/device_ptr.h"

struct CUstream_st;

namespace tiercel {

// Kernels that a bench needs besides those it measures. Each is queued and
// returns a cudaError_t.

// Fills words with random bits in which every two bytes are a finite f16 of a
// magnitude below 2, so that they serve as codes, scales and KV of every type.
int FillHalves(CUstream_st* stream, DevicePtr<uint32_t> to, int64_t words,
               uint32_t seed);
// Fills floats with random values from -1 to 1.
int FillFloats(CUstream_st* stream, DevicePtr<float> to, int64_t count,
               uint32_t seed);

// Reads packets of 16 bytes, of a GPU's memory or pinned, four at a time, and
// writes next to nothing: one word of sums[kReadSums] a thread.
inline constexpr int64_t kReadSums = int64_t{1} << 20;
int ReadPackets(CUstream_st* stream, const uint32_t* from, int64_t packets,
                DevicePtr<uint32_t> sums);

// Does nothing, so that the cost of a launch shows.
int DoNothing(CUstream_st* stream);

}  // namespace tiercel

#endif  // TIERCEL_BENCH_KERNELS_DEVICE_WORK_H_
