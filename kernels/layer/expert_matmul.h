#ifndef TIERCEL_KERNELS_LAYER_EXPERT_MATMUL_H_
#define TIERCEL_KERNELS_LAYER_EXPERT_MATMUL_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/device/device_ptr.h"
#include "kernels/device/stream.h"
#include "kernels/layer/matmul.h"
#include "kernels/layer/packed_matrix.h"

namespace tiercel {

// The items that one expert multiplies: [begin, end).
struct ExpertGroup {
  int32_t expert;
  int64_t begin;
  int64_t end;
};

// The matrices [n, k] of several experts are one packed matrix, in which each
// begins with a panel: the rows from one expert to the next.
constexpr int64_t ExpertStride(int64_t n) {
  constexpr int64_t kPanel = PackedMatrix::kPanelRows;
  return (n + kPanel - 1) / kPanel * kPanel;
}

// out[i, m] = sum_k x[rows[i], k] w[e(i), m, k]
//
// for up to two matrices that read the same x, where e(i) is the expert of item
// i's group. An item's outputs are those of Matmul for its row alone, bit for
// bit, whatever items are beside it; the same holds among `fast` items. Weights
// of experts without a group are not read.
//
// No output may overlap x or another output. Errors: invalid_argument (null, a
// row or an expert that there is not, groups that do not cover the items one
// after the other, weights in the order of another kind of device),
// invalid_sizes, out_of_memory (no scratch; nothing was written),
// device_failed.
struct ExpertMatmulOutput {
  const PackedMatrix* weights;  // [experts * ExpertStride(n), k]
  DevicePtr<float> out;         // [items, out_stride]
  int64_t out_stride;           // floats, >= n
};
struct ExpertMatmulParams {
  DevicePtr<const float> x;  // [x_rows, x_stride], of which k columns are used
  int64_t x_stride;
  int64_t x_rows;
  const int32_t* rows;        // [items]; null: item i's row is i
  int64_t items;              // 0 is allowed
  const ExpertGroup* groups;  // [num_groups]
  int64_t num_groups;
  int64_t n;  // outputs of an expert
  Compute compute;
  int num_outputs;  // 1 or 2
  ExpertMatmulOutput outputs[2];
  bool fast = false;
  DevicePtr<float> room = {};  // [items, k], where rows may be gathered; may be
                               // null if `rows` is
};
absl::Status ExpertMatmul(Stream& stream, const ExpertMatmulParams& p);

// The most scratch memory that a call takes on the CPU with `threads` threads.
int64_t ExpertMatmulScratchBytes(int64_t x_rows, int64_t items, int64_t experts,
                                 int64_t k, int threads);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_LAYER_EXPERT_MATMUL_H_
