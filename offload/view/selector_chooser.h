#ifndef TIERCEL_OFFLOAD_VIEW_SELECTOR_CHOOSER_H_
#define TIERCEL_OFFLOAD_VIEW_SELECTOR_CHOOSER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/machine/device_memory.h"
#include "offload/ranks/gather.h"
#include "offload/view/chooser.h"
#include "offload/view/scorer.h"

namespace tiercel {

// The KV heads of all ranks, where one rank's choice depends on another's;
// empty: there is one rank. `gather` null: for sizes.
struct HeadsOfRanks {
  std::vector<Columns> kv_heads = {};  // [ranks]
  int rank = 0;
  Gather* gather = nullptr;
};

// How SFI's Selector chooses (Slow-Fast Inference, arXiv 2603.12038);
// kernels/attention/selector.h has what it means.
struct Selection {
  int64_t evidence = 16;  // rows of a prompt, its last, that choose
  int64_t queries = 1;    // rows that choose in a later step, up to its own
  // A sweep's rows after its first, at most so many, choose too, though they
  // may turn out not to hold: a choice is for what comes after them.
  int64_t drafted = 0;
  float decay = 0;           // of what earlier steps said, at each later one
  float most_prior = 0.25f;  // of the mixture of evidence and prior
  float suppression = 1;     // of what lies beside a greater one
  // So many positions on each side of a greater one come along instead.
  int64_t beside = 0;
  float exclusivity = 0.85f;  // of KV heads
};

// The selection for drafts that are checked, which gain nothing from a prior or
// from spreading what is chosen: by the attention of the newest rows alone.
inline constexpr Selection kDraftSelection = {.evidence = 16,
                                              .queries = 16,
                                              .most_prior = 0,
                                              .suppression = 0,
                                              .exclusivity = 0};

// Chooses by what a scorer makes of chunks for all the rows that ask, and by
// the lengths of what it scores.
class SelectorChooser final : public Chooser {
 public:
  struct Shape {
    int layers = 0;
    int heads = 0;  // query heads
    int kv_heads = 0;
    int chunk = 1;       // positions
    int64_t begin = 0;   // of the sequence
    int64_t chunks = 0;  // at most
    int64_t sinks = 0;   // chunks, the first
    int64_t budget = 0;  // chunks that a head sees, the sinks among them
    Selection choice = {};
    HeadsOfRanks of_ranks = {};  // whose heads exclude each other

    // Heads that are told from each other, of all ranks.
    bool Gathers() const {
      return of_ranks.kv_heads.size() > 1 && choice.exclusivity > 0;
    }
    int Rivals() const {
      return Gathers() ? static_cast<int>(of_ranks.kv_heads.back().end)
                       : kv_heads;
    }

    // The scorer's are not counted.
    int64_t Bytes() const;
    // Floats from one head's scores to the next's.
    int64_t Stride() const { return (chunks + 15) / 16 * 16; }
    // Layers whose evidence has a place: all, if it is remembered, and one more
    // for what drafted rows make of it; or one, where the next one's follows.
    int64_t EvidenceLayers() const {
      if (choice.decay == 0) return 1;
      return layers + (choice.drafted > 0 ? 1 : 0);
    }
    int64_t Evidence() const { return EvidenceLayers() * kv_heads * chunks; }
    // Chunks on each side that are neighbours: where they compete, as many as
    // 16 positions hold; where they come along, one at least.
    int64_t Reach() const {
      return choice.beside > 0 ? (choice.beside + chunk - 1) / chunk
                               : 16 / chunk;
    }
    // One that comes along counts almost as much as the greatest: that one is
    // chosen before what is beside it.
    float Suppression() const {
      return choice.beside > 0 ? -0.999f : choice.suppression;
    }
    // Positions that all heads choose besides the sinks.
    int64_t Picked() const {
      return budget > sinks ? Rivals() * (budget - sinks) : 0;
    }
  };
  // Errors: out_of_memory.
  static absl::StatusOr<std::unique_ptr<Chooser>> Create(
      DeviceMemory& memory, const Shape& shape, std::unique_ptr<Scorer> scorer);

  absl::Status Update(Stream& stream, int layer, const KvPages& kv,
                      int64_t rows) override {
    return scorer_->Update(stream, layer, kv, rows);
  }
  absl::Status Choose(Stream& stream, int layer, const Asking& by,
                      const KvPages* kv, int64_t chunks,
                      std::vector<std::vector<int32_t>>* chosen) override;
  std::optional<double> coverage() const override { return coverage_; }
  void Truncate(int64_t end) override { scorer_->Truncate(end); }
  absl::StatusOr<std::unique_ptr<Chooser>> Copy(
      DeviceMemory& memory) const override;

 private:
  // What is said of one layer's candidates; it is written anew for each layer,
  // but for evidence that decays.
  struct Workspace {
    DeviceArray<float> scores;    // [heads, Stride()]
    DeviceArray<float> evidence;  // [EvidenceLayers()][kv_heads, chunks]
    DeviceArray<int32_t> picked;  // [Rivals(), budget without the sinks]
    DeviceArray<float> shares;    // [heads]
    // They have the KV heads of all ranks: [Rivals(), chunks], f16 [Rivals(),
    // stride of the norms]; empty where there is one rank.
    DeviceArray<float> all_evidence;
    DeviceArray<uint16_t> all_norms;
  };
  SelectorChooser(const Shape& shape, std::unique_ptr<Scorer> scorer,
                  Workspace work)
      : shape_(shape),
        scorer_(std::move(scorer)),
        work_(std::move(work)),
        said_by_(static_cast<size_t>(shape.layers), 0) {}

  bool Decays() const { return shape_.choice.decay > 0; }
  int64_t FirstChunk() const { return shape_.begin / shape_.chunk; }
  bool Measures(const Asking& by) const {
    return by.seen != nullptr && scorer_->OfPositions();
  }
  // [kv_heads, chunks], of each the candidates: what is remembered of a layer.
  float* EvidenceOf(int layer) {
    return work_.evidence.data() +
           (Decays() ? layer : 0) * shape_.kv_heads * shape_.chunks;
  }
  // The evidence of the layer that chooses now, with what drafted rows add.
  float* EvidenceWithDrafted() { return EvidenceOf(shape_.layers); }
  // Adds what all rows that ask say to so much of the evidence that is there,
  // and measures what the last of them that was not drafted had in view.
  // Returns the evidence of all.
  absl::StatusOr<const float*> Weigh(Stream& stream, int layer,
                                     const Asking& by, const KvPages* kv,
                                     int64_t chunks, float decay);
  // What Select is told of all heads of a layer: those of other ranks too,
  // which gather theirs at the same time.
  struct Told {
    const float* evidence;
    Scorer::Norms norms;
    int first_head;  // of this rank
  };
  absl::StatusOr<Told> Tell(Stream& stream, int layer, const float* evidence);
  // Needs the scores of all `positions` that the row sees.
  absl::Status Measure(Stream& stream, const Seen& seen, int64_t positions);

  const Shape shape_;
  std::unique_ptr<Scorer> scorer_;
  Workspace work_;
  // [layer]: the rows of the last step that are remembered; 0: there are none
  std::vector<int64_t> said_by_;
  std::optional<double> coverage_;
  std::vector<int32_t> picked_;  // work_.picked, on the host
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_VIEW_SELECTOR_CHOOSER_H_
