#ifndef TIERCEL_KERNELS_MACHINE_COPY_WORDS_BODY_H_
#define TIERCEL_KERNELS_MACHINE_COPY_WORDS_BODY_H_

#include <cstddef>
#include <cstdint>

struct CUstream_st;

namespace tiercel {

// Words of pinned memory of the host to the GPU's, by a kernel. Returns a
// cudaError_t.
int CopyWordsCuda(CUstream_st* stream, const uint32_t* from, int64_t words,
                  uint32_t* to);

// A run of bytes that was packed with others, and its place on the GPU. Both
// ends have the same address modulo 16.
struct PackedRun {
  std::byte* to;
  uint32_t at;     // where it begins in what is packed, in bytes
  uint32_t bytes;  // at least one
};

// `count` runs of pinned memory of the host, one or more, to their places, by
// one kernel; the list is in pinned memory, too. Returns a cudaError_t.
int UnpackCuda(CUstream_st* stream, const std::byte* packed,
               const PackedRun* runs, int64_t count);

// Columns of a matrix from one place of the GPU to another: `rows` times
// `bytes` bytes, which lie so many bytes from each other.
struct ColumnsCopy {
  const std::byte* from;
  int64_t from_stride;
  std::byte* to;
  int64_t to_stride;
  int64_t rows;
  int64_t bytes;
};

// Returns a cudaError_t.
int CopyColumnsCuda(CUstream_st* stream, const ColumnsCopy& p);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_MACHINE_COPY_WORDS_BODY_H_
