#ifndef TIERCEL_OFFLOAD_RETRIEVAL_ATTENTION_SHARES_H_
#define TIERCEL_OFFLOAD_RETRIEVAL_ATTENTION_SHARES_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/device/device_memory.h"
#include "kernels/device/stream.h"
#include "offload/kv/layered_kv.h"
#include "offload/retrieval/digests.h"

namespace tiercel {

// It observes steps, and finds the parts of a text to which the rows of a
// question attend more than rows that cannot know it: those before the
// question, and those of other questions in its place. Each row of each query
// head gives the chunks of the text weights that sum to 1: the softmax of its
// scores of the means of the chunks' keys. With a the most that a row of the
// question gave a run of chunks, and b the greater of the most that a row
// before it gave and of the mean over the other questions of the most that a
// row of each gave, the run has the weight
//
//   the sum over layers and heads of a * log((a + 0.001) / (b + 0.001))
//
// or 0 where that is negative; its share is its weight over the sum of all.
// Most heads attend to the newest tokens, to the first, or to a passage that
// draws every question: the logarithm leaves these out. Rankers by attention
// compare with a query without content (In-Context Re-ranking, Chen et al.
// 2024, section 3).
//
// Steps have at most kMaxStepRows rows, and come after the text.
class AttentionShares final : public StepObserver {
 public:
  static constexpr int kRun = 32;  // positions
  struct Shape {
    KvLayout layout = {};
    int layers = 0;
    int heads = 0;        // query heads
    int64_t begin = 0;    // the sequence's first position
    int64_t context = 0;  // positions

    // Means of few keys tell more, but those of very long texts would take more
    // memory than there is to spare.
    int Chunk() const { return context <= 32768 ? 8 : kRun; }
    int64_t Bytes() const;  // device memory that Create takes
  };
  // Errors: out_of_memory.
  static absl::StatusOr<std::unique_ptr<AttentionShares>> Create(
      DeviceMemory& memory, const Shape& shape);

  // Starts anew on a text of the runs [first, last), all whole: run i has the
  // positions from i * kRun on. Takes five floats of host memory for each run
  // of each query head of each layer.
  void Begin(int64_t first, int64_t last);

  // Says what the rows of the following steps are. Each call with kOfAnother
  // begins another question.
  enum class Rows { kBeforeTheQuestion, kOfTheQuestion, kOfAnother, kNone };
  void Count(Rows rows);

  absl::Status BeginStep(int64_t end, int64_t rows, bool certain,
                         Cancelled cancelled) override;
  absl::Status KeepQueries(Stream& stream, int layer, int64_t first_row,
                           int64_t rows, DevicePtr<const float> q) override;
  absl::Status AfterLayer(Stream& stream, int layer,
                          const KvPages& kv) override;
  void Commit(int64_t /*end*/) override {}
  void Abandon() override {}
  void Truncate(int64_t /*end*/) override {}

  struct Found {
    // One for each run; they sum to 1, or each is 0.
    std::vector<double> shares;
    // The sum of the weights if only the first of the other questions counts,
    // over the logarithm of the number of runs for each head: 1 if each looked
    // at one run alone, where the others look at all alike.
    double excess = 0;
  };
  Found Shares() const;
  // Returns what one instance with the heads of all `parts` would find. Each
  // observed these rows for its own heads of every layer; they come in the
  // order of the heads.
  static Found SharesOf(std::span<const AttentionShares* const> parts);

 private:
  AttentionShares(const Shape& shape, Digests digests,
                  DeviceArray<float> queries, DeviceArray<float> scores);
  // The peaks that the rows of a step belong to.
  std::vector<float>& Peaks();
  // Computes the share of each run by `scores`, one of each chunk, and keeps it
  // in `peaks` where it is more than that of earlier rows.
  void Divide(std::span<const float> scores, float* peaks);

  const Shape shape_;
  Digests digests_;             // the current layer's
  DeviceArray<float> queries_;  // [kMaxStepRows, heads * head_dim]
  DeviceArray<float> scores_;   // [heads, stride]
  std::vector<float> read_;     // a copy of scores_

  int64_t first_ = 0;  // the text's first run
  int64_t runs_ = 0;
  std::vector<double> weights_;  // [chunks]: e^score for the current row
  // [layers, heads, runs]: the most that a row gave
  std::vector<float> before_;
  std::vector<float> question_;
  std::vector<float> another_;  // by the other question that is being read
  std::vector<float> first_other_;
  std::vector<float> others_;  // the sums over those that were read
  int others_read_ = 0;
  Rows counted_ = Rows::kNone;
  int64_t step_rows_ = 0;
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_RETRIEVAL_ATTENTION_SHARES_H_
