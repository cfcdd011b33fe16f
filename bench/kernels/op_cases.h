#ifndef TIERCEL_BENCH_KERNELS_OP_CASES_H_
#define TIERCEL_BENCH_KERNELS_OP_CASES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "bench/kernels/inputs.h"
#include "kernels/device/stream.h"

namespace tiercel {

// One call of an op, at a model's shape.
struct OpCase {
  std::string op;
  std::string_view model;
  std::string part = {};  // e.g. the matrix, if the op has several cases
  std::string type;       // the type of weights, or of K and V
  int64_t rows = 0;
  int64_t positions = 0;  // 0: they do not matter
  double bytes = 0;       // the fewest that must move through memory
  double operations = 0;  // 2 a multiply-add
  std::function<absl::Status(Stream&, int64_t turn)> call = nullptr;
};

// The rows and positions of cases.
struct CaseSizes {
  std::vector<int64_t> rows;
  std::vector<int64_t> positions;
};

// The ops of layers: products, and the ops between them. `inputs` must outlive
// the cases.
std::vector<OpCase> LayerCases(Inputs& inputs, const ModelShape& model,
                               const CaseSizes& sizes);
// The ops over KV: attention, scores, selection, pages.
std::vector<OpCase> KvCases(Inputs& inputs, const ModelShape& model,
                            const CaseSizes& sizes);

}  // namespace tiercel

#endif  // TIERCEL_BENCH_KERNELS_OP_CASES_H_
