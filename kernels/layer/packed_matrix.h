#ifndef TIERCEL_KERNELS_LAYER_PACKED_MATRIX_H_
#define TIERCEL_KERNELS_LAYER_PACKED_MATRIX_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/device/device_memory.h"
#include "kernels/device/stream.h"
#include "kernels/layer/packed_layout.h"
#include "kernels/number/dtype.h"

namespace tiercel {

// 32 quantised weights of one row: w[i] = scale * half_scales[i / 16] *
// codes[i] + min * half_mins[i / 16].
struct WeightBlock {
  int codes[32];       // without the type's offset
  int half_scales[2];  // scales of 16, if the type has any; otherwise 1
  int half_mins[2];    // Q2_K's; otherwise 1
  float scale;         // with the 6-bit scale of a K type multiplied in
  float min;           // 0 if the type has none
  bool has_min;
};

// A weight matrix [rows, cols], repacked for products into panels of 16
// interleaved rows, the last one padded with zero rows. packed_layout.h has the
// layout. Values are those of the file, bit for bit: repacking never rounds.
class PackedMatrix {
 public:
  static constexpr int kPanelRows = 16;

  PackedMatrix() = default;

  // An all-zero matrix in `memory`; cols is a multiple of the type's block.
  // Errors: invalid_shape, out_of_memory.
  static absl::StatusOr<PackedMatrix> Create(
      DType type, int64_t rows, int64_t cols,
      DeviceMemory& memory = SystemMemory(),
      PanelOrder order = PanelOrder::kLanes);
  // The order that the ops of `stream` read.
  static PanelOrder OrderFor(const Stream& stream) {
    return BodiesOf(stream.device()) == Bodies::kGpu ? PanelOrder::kFragments
                                                     : PanelOrder::kLanes;
  }
  // The bytes of such a matrix, in either order. Errors: invalid_shape,
  // out_of_memory if no memory is that large.
  static absl::StatusOr<int64_t> BytesOf(DType type, int64_t rows,
                                         int64_t cols);

  // A copy in memory that the ops of `stream` can read: the stream's, or
  // `memory` of its device. Only a matrix in the host's own memory can be
  // packed into, or unpacked. Errors: out_of_memory, device_failed.
  absl::StatusOr<PackedMatrix> CopyTo(Stream& stream) const;
  absl::StatusOr<PackedMatrix> CopyTo(Stream& stream,
                                      DeviceMemory& memory) const;

  // A matrix of rows [first, first + rows) that borrows their panels of this
  // one, which must outlive it. `first` is a multiple of kPanelRows.
  PackedMatrix Borrow(int64_t first, int64_t rows) const;

  // The matrix whose panels are at `data`, which outlives it. The shape is as
  // for Create.
  static PackedMatrix At(DevicePtr<const std::byte> data, DType type,
                         int64_t rows, int64_t cols, PanelOrder order);

  // Fills row `row` from RowBytes(type, cols) bytes in the file's layout
  // (GGUF blocks, little-endian, any alignment). Rows may come in any order
  // and, for different panels, from several threads.
  void PackRow(int64_t row, const std::byte* source);

  // Writes row `row` as floats to `out`, [cols].
  void UnpackRow(int64_t row, float* out) const;

  // Returns columns [32 block, 32 block + 32) of row `row` of a quantised
  // matrix.
  WeightBlock UnpackBlock(int64_t row, int64_t block) const;

  DType type() const { return type_; }
  PanelOrder order() const { return order_; }
  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }
  int64_t panels() const { return (rows_ + kPanelRows - 1) / kPanelRows; }
  int64_t panel_bytes() const { return panel_bytes_; }
  DevicePtr<const std::byte> data() const {  // 64-byte aligned
    return borrowed_ != nullptr ? borrowed_ : data_.data();
  }
  // The bytes that one pass over the matrix reads.
  int64_t bytes() const { return panels() * panel_bytes_; }

 private:
  DType type_ = DType::kF32;
  PanelOrder order_ = PanelOrder::kLanes;
  int64_t rows_ = 0;
  int64_t cols_ = 0;
  int64_t panel_bytes_ = 0;
  DeviceArray<std::byte> data_;
  DevicePtr<const std::byte> borrowed_;  // another's panels; null: its own
};

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_LAYER_PACKED_MATRIX_H_
