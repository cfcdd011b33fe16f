#ifndef TIERCEL_MODELS_DECODER_ROW_READER_H_
#define TIERCEL_MODELS_DECODER_ROW_READER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "kernels/layer/packed_matrix.h"
#include "kernels/system/thread_pool.h"
#include "models/decoder/config.h"
#include "models/decoder/model_split.h"
#include "models/decoder/tensor_finder.h"

namespace tiercel {

// The rows of a tensor that each rank has.
using Parts = std::vector<Columns>;

// Reads rows of a checkpoint's tensors to where matrices hold them: Q and K in
// the order of kernels that rotate halves, and heads with zeros at their ends
// where they are not multiples of ModelConfig::kHeadAlign.
class RowReader {
 public:
  // The order of a tensor's rows in the file.
  enum class Order { kAsTheyAre, kRotaryPairs };
  // The side of a matrix along which heads lie, whose ends may be padded.
  enum class Heads { kNone, kInRows, kInColumns };
  // The places of a tensor's rows.
  struct Places {
    Order order;
    Heads heads;
    const Parts& parts;  // [rank], of the padded rows
    int expert = 0;      // the one whose rows they are, below those before it
  };

  // Both outlive it.
  RowReader(const Checkpoint& checkpoint, const ModelConfig& config)
      : checkpoint_(checkpoint), config_(config) {}

  // The rows or columns that heads with `size` elements take.
  int64_t Padded(int64_t size) const {
    return size / config_.HeadElements() * config_.head_dim;
  }
  // The type in which rows are held. Columns cannot be moved within blocks, so
  // those become floats.
  DType StoredType(DType type, Heads heads) const;
  // The place of a row of the file.
  int64_t RowOf(int64_t file_row, Order order, Heads heads) const;

  // Reads `rows` rows and packs them, [rank], for the ranks that have a part of
  // them. `advance` is told the bytes of each run of rows; its error ends the
  // call. Errors: those of reading.
  absl::Status Read(const RowsOfTensor& from, int64_t rows,
                    const Places& places, ThreadPool& pool,
                    absl::FunctionRef<absl::Status(uint64_t)> advance,
                    std::vector<PackedMatrix>& packed);

 private:
  bool pads() const { return config_.HeadElements() != config_.head_dim; }
  // Reads rows begin..end - 1 of those in `from` into `buffer` and packs them.
  absl::Status ReadRange(const RowsOfTensor& from, int64_t begin, int64_t end,
                         const Places& places, std::vector<std::byte>& buffer,
                         std::vector<PackedMatrix>& packed) const;
  // Packs the rows of zeros at the ends of heads.
  void PackPadding(const TensorInfo& tensor, const Parts& parts,
                   std::vector<PackedMatrix>& packed) const;
  // Returns a row with zeros at the ends of its heads, as it is packed.
  std::vector<std::byte> WidenedRow(const TensorInfo& tensor,
                                    const std::byte* row) const;
  // Returns the unit of rows that threads may pack in parallel: no two may
  // write one panel, and in heads rows change places. 0: no unit, one thread
  // packs all.
  int64_t RowsApart(const Places& places) const;

  const Checkpoint& checkpoint_;
  const ModelConfig& config_;
  std::vector<std::vector<std::byte>> buffers_;  // [thread]
};

}  // namespace tiercel

#endif  // TIERCEL_MODELS_DECODER_ROW_READER_H_
