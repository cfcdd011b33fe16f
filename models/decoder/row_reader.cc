#include "models/decoder/row_reader.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <numeric>

#include "kernels/layer/expert_matmul.h"
#include "kernels/number/dequantize.h"
#include "lib/status/status_macros.h"

namespace tiercel {
namespace {

// Each thread reads about this much of a tensor at a time, in whole rows.
constexpr int64_t kReadBytes = int64_t{1} << 20;

}  // namespace

DType RowReader::StoredType(DType type, Heads heads) const {
  const bool moves = heads == Heads::kInColumns && pads();
  return moves && InfoOf(type).block_elements != 1 ? DType::kF32 : type;
}

int64_t RowReader::RowOf(int64_t file_row, Order order, Heads heads) const {
  if (heads != Heads::kInRows) return file_row;
  const int64_t head = file_row / config_.HeadElements();
  int64_t in_head = file_row % config_.HeadElements();
  const int64_t rotated = config_.rope_dims;
  if (order == Order::kRotaryPairs && in_head < rotated) {
    in_head = in_head % 2 * (rotated / 2) + in_head / 2;
  }
  return head * config_.head_dim + in_head;
}

absl::Status RowReader::Read(const RowsOfTensor& from, int64_t rows,
                             const Places& places, ThreadPool& pool,
                             absl::FunctionRef<absl::Status(uint64_t)> advance,
                             std::vector<PackedMatrix>& packed) {
  const TensorInfo& tensor = *from.tensor;
  if (places.heads == Heads::kInRows && pads()) {
    PackPadding(tensor, places.parts, packed);
  }
  const int64_t row_bytes = RowBytes(tensor.type, tensor.shape.back());
  const int64_t apart = RowsApart(places);
  const int64_t unit = std::max<int64_t>(1, apart);
  const int threads = apart > 0 ? pool.num_threads() : 1;
  // A small matrix is divided among the threads.
  const int64_t units = std::min(kReadBytes / (row_bytes * unit),
                                 (rows / threads + unit - 1) / unit);
  const int64_t grain = std::max<int64_t>(1, units) * unit;
  buffers_.resize(static_cast<size_t>(threads));
  for (std::vector<std::byte>& buffer : buffers_) {
    buffer.resize(static_cast<size_t>(std::min(rows, grain) * row_bytes));
  }
  // The caller may cancel after each run of this many rows.
  const int64_t rows_at_once = grain * threads;
  for (int64_t first = 0; first < rows; first += rows_at_once) {
    const int64_t count = std::min(rows_at_once, rows - first);
    std::vector<absl::Status> read(buffers_.size());  // [range]
    std::atomic<bool> threw = false;
    const auto read_rows = [&](int64_t begin, int64_t end, int thread) {
      try {
        read[static_cast<size_t>(begin / grain)] =
            ReadRange(from, first + begin, first + end, places,
                      buffers_[static_cast<size_t>(thread)], packed);
      } catch (...) {  // there is no memory for what an error says
        threw = true;
      }
    };
    if (threads > 1) {
      pool.ParallelFor(count, grain, read_rows);
    } else {
      read_rows(0, count, 0);
    }
    if (threw) throw std::bad_alloc();
    for (const absl::Status& s : read) {
      if (!s.ok()) return s;
    }
    RETURN_IF_ERROR(advance(static_cast<uint64_t>(count * row_bytes)));
  }
  return absl::OkStatus();
}

int64_t RowReader::RowsApart(const Places& places) const {
  constexpr int64_t kApart = PackedMatrix::kPanelRows;
  for (const Columns& part : places.parts) {
    if (part.begin % kApart != 0) return 0;
  }
  const bool moves = places.order == Order::kRotaryPairs ||
                     (places.heads == Heads::kInRows && pads());
  if (!moves) return kApart;
  return std::lcm<int64_t>(kApart, config_.head_dim) / config_.head_dim *
         config_.HeadElements();
}

void RowReader::PackPadding(const TensorInfo& tensor, const Parts& parts,
                            std::vector<PackedMatrix>& packed) const {
  // In every type these bytes are the values of zeros.
  const std::vector<std::byte> zeros(
      static_cast<size_t>(RowBytes(tensor.type, tensor.shape.back())));
  for (size_t rank = 0; rank < parts.size(); ++rank) {
    const Columns& part = parts[rank];
    for (int64_t row = part.begin; row < part.end; ++row) {
      if (row % config_.head_dim < config_.HeadElements()) continue;
      packed[rank].PackRow(row - part.begin, zeros.data());
    }
  }
}

std::vector<std::byte> RowReader::WidenedRow(const TensorInfo& tensor,
                                             const std::byte* row) const {
  const DType type = StoredType(tensor.type, Heads::kInColumns);
  const int64_t cols = tensor.shape.back();
  std::vector<float> values;
  if (type != tensor.type) {
    values.resize(static_cast<size_t>(cols));
    Dequantize(tensor.type, row, cols, values.data());
    row = reinterpret_cast<const std::byte*>(values.data());
  }
  std::vector<std::byte> wide(
      static_cast<size_t>(RowBytes(type, Padded(cols))));
  const auto from = static_cast<size_t>(RowBytes(type, config_.HeadElements()));
  const auto to = static_cast<size_t>(RowBytes(type, config_.head_dim));
  for (size_t head = 0; head < wide.size() / to; ++head) {
    std::memcpy(wide.data() + head * to, row + head * from, from);
  }
  return wide;
}

absl::Status RowReader::ReadRange(const RowsOfTensor& from, int64_t begin,
                                  int64_t end, const Places& places,
                                  std::vector<std::byte>& buffer,
                                  std::vector<PackedMatrix>& packed) const {
  const TensorInfo& tensor = *from.tensor;
  const int64_t row_bytes = RowBytes(tensor.type, tensor.shape.back());
  const auto bytes = static_cast<size_t>((end - begin) * row_bytes);
  RETURN_IF_ERROR(checkpoint_.Read(tensor,
                                   static_cast<uint64_t>(from.first + begin) *
                                       static_cast<uint64_t>(row_bytes),
                                   {buffer.data(), bytes}));
  const bool widens = places.heads == Heads::kInColumns && pads();
  std::vector<std::byte> wide;
  for (int64_t file_row = begin; file_row < end; ++file_row) {
    const int64_t row = RowOf(file_row, places.order, places.heads);
    const std::byte* source = buffer.data() + (file_row - begin) * row_bytes;
    if (widens) {
      wide = WidenedRow(tensor, source);
      source = wide.data();
    }
    for (size_t rank = 0; rank < places.parts.size(); ++rank) {
      const Columns& part = places.parts[rank];
      if (row < part.begin || row >= part.end) continue;
      packed[rank].PackRow(
          places.expert * ExpertStride(part.size()) + row - part.begin, source);
    }
  }
  return absl::OkStatus();
}

}  // namespace tiercel
