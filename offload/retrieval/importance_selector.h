#ifndef TIERCEL_OFFLOAD_RETRIEVAL_IMPORTANCE_SELECTOR_H_
#define TIERCEL_OFFLOAD_RETRIEVAL_IMPORTANCE_SELECTOR_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/device/device_memory.h"
#include "offload/ranks/gather.h"
#include "offload/retrieval/scorer.h"
#include "offload/retrieval/selector.h"

namespace tiercel {

// The KV heads of all ranks, where one rank's choice depends on another's; they
// are empty where there is one rank. `gather` may be null to ask for sizes.
struct HeadsOfRanks {
  std::vector<Columns> kv_heads = {};  // [ranks]
  int rank = 0;
  Gather* gather = nullptr;
};

// The parameters of SFI's Selector (Slow-Fast Inference, arXiv 2603.12038);
// kernels/select/selector.h has the formulas.
struct Selection {
  int64_t evidence_rows = 16;  // the last rows of a prompt, which choose
  int64_t queries = 1;  // rows that choose in a later step, its own the last
  // At most so many of a sweep's rows after its first choose too, though they
  // may be rejected: a choice is for the rows that come after them.
  int64_t drafted = 0;
  float decay = 0;           // weight of earlier steps' importance, each step
  float most_prior = 0.25f;  // the prior's greatest weight in the mixture
  float suppression = 1;     // lowers candidates beside a greater one
  // If above 0, so many positions on each side of a greater one are chosen with
  // it, instead of suppressed.
  int64_t beside = 0;
  float exclusivity = 0.85f;  // lowers candidates that other KV heads want more
};

// The selection for drafts that are checked: by the attention of the newest
// rows alone. They gain nothing from a prior or from spreading the choice.
inline constexpr Selection kDraftSelection = {.evidence_rows = 16,
                                              .queries = 16,
                                              .most_prior = 0,
                                              .suppression = 0,
                                              .exclusivity = 0};

// Chooses by a scorer's scores of chunks for all query rows, and by the norms
// of the keys or means that it scores.
class ImportanceSelector final : public Selector {
 public:
  struct Shape {
    int layers = 0;
    int heads = 0;  // query heads
    int kv_heads = 0;
    int chunk = 1;       // positions
    int64_t begin = 0;   // the sequence's first position
    int64_t chunks = 0;  // at most
    int64_t sinks = 0;   // the first chunks, which are always chosen
    int64_t budget = 0;  // chunks that a head sees, the sinks among them
    Selection choice = {};
    HeadsOfRanks of_ranks = {};  // heads that exclude each other

    // Returns true if heads exclude each other across ranks.
    bool Gathers() const {
      return of_ranks.kv_heads.size() > 1 && choice.exclusivity > 0;
    }
    // The number of heads that exclude each other.
    int Rivals() const {
      return Gathers() ? static_cast<int>(of_ranks.kv_heads.back().end)
                       : kv_heads;
    }

    // Device memory that Create takes, without the scorer's.
    int64_t Bytes() const;
    // Floats from one head's scores to the next's.
    int64_t Stride() const { return (chunks + 15) / 16 * 16; }
    // The layers for whose importance there is memory. If it is remembered,
    // these are all layers, and one more with drafted rows added; otherwise one
    // that all layers use in turn.
    int64_t ImportanceLayers() const {
      if (choice.decay == 0) return 1;
      return layers + (choice.drafted > 0 ? 1 : 0);
    }
    int64_t Importance() const {
      return ImportanceLayers() * kv_heads * chunks;
    }
    // The neighbours of a chunk on each side. Where neighbours are suppressed,
    // they span 16 positions; where they are chosen too, `beside` positions,
    // rounded up.
    int64_t Reach() const {
      return choice.beside > 0 ? (choice.beside + chunk - 1) / chunk
                               : 16 / chunk;
    }
    // A neighbour that is chosen too counts almost as much as the greatest, so
    // that the greatest is chosen first.
    float Suppression() const {
      return choice.beside > 0 ? -0.999f : choice.suppression;
    }
    // The chunks that all heads choose together, besides the sinks.
    int64_t Picked() const {
      return budget > sinks ? Rivals() * (budget - sinks) : 0;
    }
  };
  // Errors: out_of_memory.
  static absl::StatusOr<std::unique_ptr<Selector>> Create(
      DeviceMemory& memory, const Shape& shape, std::unique_ptr<Scorer> scorer);

  absl::Status Update(Stream& stream, int layer, const KvPages& kv,
                      int64_t rows) override {
    return scorer_->Update(stream, layer, kv, rows);
  }
  absl::Status Choose(Stream& stream, int layer, const QueryRows& by,
                      const KvPages* kv, int64_t chunks,
                      std::vector<std::vector<int32_t>>* chosen) override;
  std::optional<double> coverage() const override { return coverage_; }
  void Truncate(int64_t end) override { scorer_->Truncate(end); }
  absl::StatusOr<std::unique_ptr<Selector>> Copy(
      DeviceMemory& memory) const override;

 private:
  // Arrays for the candidates of one layer. Each layer rewrites them, except
  // for importance that decays.
  struct Workspace {
    DeviceArray<float> scores;      // [heads, Stride()]
    DeviceArray<float> importance;  // [ImportanceLayers()][kv_heads, chunks]
    DeviceArray<int32_t> picked;    // [Rivals(), budget without the sinks]
    DeviceArray<float> shares;      // [heads]
    // Arrays over the KV heads of all ranks: [Rivals(), chunks], f16 [Rivals(),
    // stride of the norms]. They are empty where there is one rank.
    DeviceArray<float> all_importance;
    DeviceArray<uint16_t> all_norms;
  };
  ImportanceSelector(const Shape& shape, std::unique_ptr<Scorer> scorer,
                     Workspace work)
      : shape_(shape),
        scorer_(std::move(scorer)),
        work_(std::move(work)),
        said_by_(static_cast<size_t>(shape.layers), 0) {}

  bool Decays() const { return shape_.choice.decay > 0; }
  int64_t FirstChunk() const { return shape_.begin / shape_.chunk; }
  bool Measures(const QueryRows& by) const {
    return by.seen != nullptr && scorer_->OfPositions();
  }
  // A layer's importance: [kv_heads, chunks], of each head the candidates'.
  DevicePtr<float> ImportanceOf(int layer) {
    return work_.importance.data() +
           (Decays() ? layer : 0) * shape_.kv_heads * shape_.chunks;
  }
  // The importance in the layer that chooses now, with drafted rows added.
  DevicePtr<float> ImportanceWithDrafted() {
    return ImportanceOf(shape_.layers);
  }
  // Adds the importance by all query rows to `decay` times the layer's earlier
  // importance, and measures the coverage of the last row that was not drafted.
  // Returns the sum.
  absl::StatusOr<DevicePtr<const float>> UpdateImportance(
      Stream& stream, int layer, const QueryRows& by, const KvPages* kv,
      int64_t chunks, float decay);
  // The input of Select for all heads of a layer, including those of other
  // ranks, which gather theirs at the same time.
  struct Told {
    DevicePtr<const float> importance;
    Scorer::Norms norms;
    int first_head;  // the first of this rank's heads
  };
  absl::StatusOr<Told> Tell(Stream& stream, int layer,
                            DevicePtr<const float> importance);
  // Sets coverage_. work_.scores must have all `positions` that the row sees.
  absl::Status Measure(Stream& stream, const Seen& seen, int64_t positions);

  const Shape shape_;
  std::unique_ptr<Scorer> scorer_;
  Workspace work_;
  // [layer]: the rows of the last step whose importance is remembered, or 0
  std::vector<int64_t> said_by_;
  std::optional<double> coverage_;
  std::vector<int32_t> picked_;  // a copy of work_.picked
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_RETRIEVAL_IMPORTANCE_SELECTOR_H_
