#ifndef TIERCEL_RUNTIME_MODEL_MODEL_H_
#define TIERCEL_RUNTIME_MODEL_MODEL_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "kernels/layer/matmul.h"
#include "models/chat/chat_template.h"
#include "models/decoder/config.h"
#include "models/decoder/model_split.h"
#include "models/decoder/weights.h"
#include "models/format/checkpoint.h"
#include "models/tokenizer/tokenizer.h"
#include "nlohmann/json.hpp"
#include "runtime/machine/machine.h"
#include "runtime/model/workspace_pool.h"

namespace tiercel {

// Everything a checkpoint gives, read once and shared by sessions. Immutable
// and thread-safe once opened, and loaded where that comes later.
struct Model {
  struct Options {
    std::string path = {};
    bool weights = true;  // false: header, tokenizer and template only
    bool check_tensors = false;
    // The machine that other models are on; null: one of its own, `machine`.
    std::shared_ptr<Machine> beside = nullptr;
    Machine::Options machine = {};
    // Over so many ranks, each on a machine of its own like `machine`; with
    // `beside` one, on that machine alone.
    int ranks = 1;
    Compute compute = Compute::kQ8;
    // These replace what the checkpoint says.
    std::optional<RopeScaling::Type> rope_scaling = {};
    std::optional<double> rope_scale = {};
    std::optional<double> rope_freq_base = {};
    std::optional<int64_t> yarn_orig_ctx = {};
  };

  // `progress(done, total)` in bytes of tensors; false cancels.
  static absl::StatusOr<std::unique_ptr<Model>> Open(
      const Options& options,
      absl::FunctionRef<bool(uint64_t, uint64_t)> progress);

  // A model of this one's checkpoint by its header, over so many ranks, on
  // machines of its own and without a tokenizer: for plans. Errors: those of
  // Machine::FindDevice; cannot_split.
  absl::StatusOr<std::unique_ptr<Model>> Over(int ranks) const;

  // Reads the weights of a model that was opened without; nothing where it has
  // them. After an error it is as before. Errors: out_of_memory with the bytes
  // needed and free, before any is read; those of MeasureWeights and of
  // LoadWeights; non_finite_weights.
  absl::Status Load(absl::FunctionRef<bool(uint64_t, uint64_t)> progress);

  // Its file or folder, without the way there.
  std::string FileName() const;
  // The ids that the chat template ends a prompt with; none without one.
  std::vector<int32_t> AssistantHeader() const;

  // ContentHash of the checkpoint, found when it is first asked for. Errors:
  // those of ContentHash; an ISA that is not there.
  absl::StatusOr<std::string> Hash(absl::FunctionRef<bool()> cancelled) const;

  // What `tiercel inspect` shows.
  nlohmann::json Describe() const;

  Options options;
  std::shared_ptr<Machine> machine;  // that holds the weights, of rank 0
  std::shared_ptr<const Checkpoint> checkpoint;
  ModelConfig config;                           // vocab 0: no tensors to run
  std::unique_ptr<Tokenizer> tokenizer;         // null: ids only
  std::unique_ptr<ChatTemplate> chat_template;  // null: none
  std::unique_ptr<Weights> weights;             // of rank 0; null: header only
  // Ranks 1, 2, ...: what they have of the model.
  struct OtherRank {
    std::shared_ptr<Machine> machine;
    std::unique_ptr<Weights> weights;  // null: header only
  };
  std::vector<OtherRank> others;
  std::optional<ModelSplit> split;  // absent: no tensors to run
  std::vector<std::string> warnings;

  // What its sessions compute in, as long as there is one.
  std::shared_ptr<WorkspacePool> Workspaces() const;

  int ranks() const { return 1 + static_cast<int>(others.size()); }
  Machine& machine_of(int rank) const {
    return rank == 0 ? *machine
                     : *others[static_cast<size_t>(rank - 1)].machine;
  }
  const Weights& weights_of(int rank) const {
    return rank == 0 ? *weights
                     : *others[static_cast<size_t>(rank - 1)].weights;
  }
  // What the ranks' weights take together, where they are loaded.
  int64_t WeightBytes() const;
  // What one rank alone would read to decode one token.
  int64_t BytesPerToken() const { return bytes_per_token_; }
  // What the weights of each rank take. Errors: those of MeasureShares.
  absl::StatusOr<std::vector<WeightSizes>> MeasureRanks() const {
    return MeasureShares(*checkpoint, config, *split);
  }

 private:
  void MakeMachines(int ranks);
  absl::Status FindDevices();
  absl::Status ReadConfig();
  // Adds those that are not there yet.
  void Warn(const std::vector<std::string>& more);

  int64_t bytes_per_token_ = 0;
  mutable std::mutex workspaces_mutex_;
  mutable std::weak_ptr<WorkspacePool> workspaces_;
  mutable std::mutex hash_mutex_;
  mutable std::string hash_;  // empty: not known yet
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_MODEL_MODEL_H_
