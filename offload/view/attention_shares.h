#ifndef TIERCEL_OFFLOAD_VIEW_ATTENTION_SHARES_H_
#define TIERCEL_OFFLOAD_VIEW_ATTENTION_SHARES_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/machine/device_memory.h"
#include "kernels/machine/stream.h"
#include "offload/kv/layered_kv.h"
#include "offload/view/digests.h"

namespace tiercel {

// Where in a text the rows of an answer look, as an observer of their steps,
// and rows before the question did not. Each row of each query head divides one
// among the chunks of the text, by the mean of each chunk's keys: e^score over
// the sum of these. With a the most that a row of the answer gave a run of
// chunks, and b the most that a row before the question gave it, the run has
//
//   the sum over layers and heads of a * log((a + 0.001) / (b + 0.001))
//
// where that is above 0; its share is that over the sum of all runs. Most heads
// look at the newest tokens, or at the first, whatever is asked: the logarithm
// leaves these out.
//
// Steps have at most kMaxStepRows rows, and come after the text.
class AttentionShares final : public StepObserver {
 public:
  static constexpr int kRun = 32;  // positions
  struct Shape {
    KvLayout layout = {};
    int layers = 0;
    int heads = 0;        // query heads
    int64_t begin = 0;    // of the sequence
    int64_t context = 0;  // positions

    // Means of few keys tell more. Of very long texts they would take more
    // memory than there is to spare.
    int Chunk() const { return context <= 32768 ? 8 : kRun; }
    int64_t Bytes() const;  // of device memory
  };
  // Errors: out_of_memory.
  static absl::StatusOr<std::unique_ptr<AttentionShares>> Create(
      DeviceMemory& memory, const Shape& shape);

  // The text has the runs [first, last), all whole: run i has the positions
  // from i * kRun on. No row was seen. Takes memory of the host for two floats
  // for each run of each query head of each layer.
  void Begin(int64_t first, int64_t last);

  // What the rows of the steps that follow are.
  enum class Rows { kBeforeTheQuestion, kOfTheAnswer, kOther };
  void Count(Rows rows) { counted_ = rows; }

  absl::Status BeginStep(int64_t end, int64_t rows, bool certain,
                         Cancelled cancelled) override;
  absl::Status KeepQueries(Stream& stream, int layer, int64_t first_row,
                           int64_t rows, const float* q) override;
  absl::Status AfterLayer(Stream& stream, int layer,
                          const KvPages& kv) override;
  void Commit(int64_t /*end*/) override {}
  void Abandon() override {}
  void Truncate(int64_t /*end*/) override {}

  // The share of each run of the text; all are 1 together, or each is 0.
  std::vector<double> Shares() const;
  // Where `parts` have seen the same rows, each its heads of every layer, those
  // of one after those of the other.
  static std::vector<double> SharesOf(
      std::span<const AttentionShares* const> parts);

 private:
  AttentionShares(const Shape& shape, Digests digests,
                  DeviceArray<float> queries, DeviceArray<float> scores);
  // Divides one among the chunks by `scores`, one of each, and keeps in `peaks`
  // what is more than what a run had.
  void Divide(std::span<const float> scores, float* peaks);

  const Shape shape_;
  Digests digests_;             // of the layer at hand
  DeviceArray<float> queries_;  // [kMaxStepRows, heads * head_dim]
  DeviceArray<float> scores_;   // [heads, stride]
  std::vector<float> read_;     // scores_ as the host reads them

  int64_t first_ = 0;  // of the text's runs
  int64_t runs_ = 0;
  std::vector<double> weights_;  // [chunks]: e^score of the row at hand
  // [layers, heads, runs]: the most that a row gave
  std::vector<float> before_;
  std::vector<float> answer_;
  Rows counted_ = Rows::kOther;
  int64_t step_rows_ = 0;
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_VIEW_ATTENTION_SHARES_H_
