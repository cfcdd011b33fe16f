#ifndef TIERCEL_KERNELS_DEVICE_COPIES_H_
#define TIERCEL_KERNELS_DEVICE_COPIES_H_

#include <cstddef>
#include <cstdint>

#include "kernels/device/device_ptr.h"
#include "kernels/device/kernel_entry.h"

struct CUstream_st;

namespace tiercel {

// Copies words from pinned memory of the host, by a kernel. Returns a
// cudaError_t.
TIERCEL_KERNEL(CopyWordsCuda, CUstream_st* stream, const uint32_t* from,
               int64_t words, DevicePtr<uint32_t> to);

// A run of bytes that was packed with others, and its place. Both ends have the
// same address modulo 16.
struct PackedRun {
  DevicePtr<std::byte> to;
  uint32_t at;     // its offset in the packed bytes
  uint32_t bytes;  // at least one
};

// Copies `count` runs (at least one) from pinned memory of the host to their
// places, by one kernel. The list is in pinned memory too. Returns a
// cudaError_t.
TIERCEL_KERNEL(UnpackCuda, CUstream_st* stream, const std::byte* packed,
               const PackedRun* runs, int64_t count);

// A copy of columns of a matrix from one place to another: `bytes` bytes of
// each of `rows` rows. A stride is the bytes from one row to the next.
struct ColumnsCopy {
  DevicePtr<const std::byte> from;
  int64_t from_stride;
  DevicePtr<std::byte> to;
  int64_t to_stride;
  int64_t rows;
  int64_t bytes;
};

// Returns a cudaError_t.
TIERCEL_KERNEL(CopyColumnsCuda, CUstream_st* stream, const ColumnsCopy& p);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_DEVICE_COPIES_H_
