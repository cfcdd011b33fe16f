#ifndef TIERCEL_MODELS_DECODER_TENSOR_FINDER_H_
#define TIERCEL_MODELS_DECODER_TENSOR_FINDER_H_

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "models/format/checkpoint.h"

namespace tiercel {

// The two spellings of a tensor's name; `layer` is < 0 for tensors outside
// layers.
struct TensorName {
  std::string_view gguf;
  std::string_view hf;  // behind the prefix of the folder's names
};

inline constexpr TensorName kEmbedding = {"token_embd", "embed_tokens"};
inline constexpr TensorName kOutput = {"output", "lm_head"};

// A tensor that holds the rows of several matrices, one below the other.
struct FusedTensor {
  TensorName name = {};  // empty: there is none
  int64_t rows = 0;      // all of them
  int64_t first = 0;     // the first of the matrix in question
};

// The names of a matrix that every expert has.
struct ExpertTensor {
  std::string_view gguf;    // a tensor of all experts
  std::string_view hf;      // a tensor of one, behind its number
  std::string_view hf_all;  // a tensor of all, behind the prefix
  int64_t halves = 1;       // matrices of an expert in that one
  int64_t half = 0;         // this one's place among them
};

// Some rows of a tensor; null: it is absent.
struct RowsOfTensor {
  const TensorInfo* tensor = nullptr;
  int64_t first = 0;
};

// Finds the tensors of a model in its checkpoint, by the names that files give
// them.
class TensorFinder {
 public:
  // The checkpoint outlives it.
  explicit TensorFinder(const Checkpoint& checkpoint);

  std::string NameOf(TensorName name, int layer, std::string_view suffix) const;
  // Returns true if the checkpoint has a tensor of this name, of a type that
  // may not be read.
  bool Has(const std::string& name) const;
  // Finds a tensor of `shape`, or its rows in a fused one; null if it is absent
  // and not required. Errors: missing_tensor, unsupported_type, invalid_shape.
  absl::StatusOr<RowsOfTensor> FindRows(TensorName name,
                                        const FusedTensor& fused, int layer,
                                        std::string_view suffix,
                                        std::vector<int64_t> shape,
                                        bool required);
  // Finds the matrix [rows, cols] of one of `experts` experts: its own tensor,
  // or its rows in the one of all, which may hold each expert's gate and then
  // its other half. Errors: as FindRows.
  absl::StatusOr<RowsOfTensor> FindExpert(const ExpertTensor& of, int layer,
                                          int expert, int experts, int64_t rows,
                                          int64_t cols);
  // The names of those that were found.
  const std::set<std::string, std::less<>>& used() const { return used_; }

 private:
  // `fused` names a tensor that might have held this one.
  absl::StatusOr<const TensorInfo*> Find(const std::string& name,
                                         const std::vector<int64_t>& shape,
                                         bool required,
                                         std::string_view fused = {});

  const Checkpoint& checkpoint_;
  const std::string_view prefix_;  // begins a folder's names
  std::set<std::string, std::less<>> used_;
};

}  // namespace tiercel

#endif  // TIERCEL_MODELS_DECODER_TENSOR_FINDER_H_
