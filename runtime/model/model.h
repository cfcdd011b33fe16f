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

// Everything that is read from a checkpoint, once, and shared by sessions.
// Immutable and thread-safe once it is opened and its weights are loaded.
struct Model {
  struct Options {
    std::string path = {};
    bool weights = true;  // false: header, tokenizer and template only
    // Opens, without weights, also what cannot be run, to describe it.
    bool describes = false;
    bool check_tensors = false;
    // A machine that other models are on; null: a new one, as `machine` says.
    std::shared_ptr<Machine> beside = nullptr;
    Machine::Options machine = {};
    // The number of ranks, each on a machine of its own like `machine`; with
    // `beside` there is one rank, on that machine.
    int ranks = 1;
    // The number of layers whose weights lie in the host tier, and come to the
    // device as they are needed; one rank alone has such layers.
    int host_layers = 0;
    Compute compute = Compute::kQ8;
    // These replace the checkpoint's values.
    std::optional<RopeScaling::Type> rope_scaling = {};
    std::optional<double> rope_scale = {};
    std::optional<double> rope_freq_base = {};
    std::optional<int64_t> yarn_orig_ctx = {};
  };

  // `progress(done, total)` in bytes of tensors; false cancels.
  static absl::StatusOr<std::unique_ptr<Model>> Open(
      const Options& options,
      absl::FunctionRef<bool(uint64_t, uint64_t)> progress);

  // Opens the header of this model's checkpoint over `ranks` ranks, on new
  // machines and without a tokenizer: for plans. Errors: those of
  // Machine::FindDevice; cannot_split.
  absl::StatusOr<std::unique_ptr<Model>> Over(int ranks) const;

  // Reads the weights of a model that was opened without them; does nothing if
  // they are loaded. After an error the model is as before. Errors:
  // out_of_memory with the bytes needed and free, before any is read; those of
  // MeasureWeights and of LoadWeights; non_finite_weights.
  absl::Status Load(absl::FunctionRef<bool(uint64_t, uint64_t)> progress);

  // The name of its file or folder, without the path to it.
  std::string FileName() const;
  // The ids that the chat template ends a prompt with; none without one.
  std::vector<int32_t> AssistantHeader() const;

  // ContentHash of the checkpoint, computed on the first call. Errors: those of
  // ContentHash; an ISA that is not there.
  absl::StatusOr<std::string> Hash(absl::FunctionRef<bool()> cancelled) const;

  // The document that `tiercel inspect` shows.
  nlohmann::json Describe() const;

  Options options;
  std::shared_ptr<Machine> machine;  // rank 0's, with its weights
  std::shared_ptr<const Checkpoint> checkpoint;
  ModelConfig config;      // vocab 0: no tensors to run
  std::string cannot_run;  // the reason why it cannot; empty: it can
  std::unique_ptr<Tokenizer> tokenizer;         // null: ids only
  absl::Status tokenizer_status;                // the reason why there is none
  std::unique_ptr<ChatTemplate> chat_template;  // null: none
  std::unique_ptr<StreamedLayers> streamed;     // null: none; outlives weights
  std::unique_ptr<Weights> weights;             // rank 0's; null: header only
  // The parts of the model on ranks 1, 2, ...
  struct OtherRank {
    std::shared_ptr<Machine> machine;
    std::unique_ptr<Weights> weights;  // null: header only
  };
  std::vector<OtherRank> others;
  std::optional<ModelSplit> split;  // absent: no tensors to run
  std::vector<std::string> warnings;

  // The workspaces of its sessions; they live as long as any session does.
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
  // Bytes that the weights of all ranks take together, once they are loaded.
  int64_t WeightBytes() const;
  // Bytes of weights that a single rank would read to decode one token.
  int64_t BytesPerToken() const { return whole_.bytes_per_token; }
  // The bytes that it would read for a step of `rows` rows, in those.
  double MoreOfRows(int64_t rows) const {
    return whole_.MoreOfRows(config.experts, rows);
  }
  // The sizes of each rank's weights. Errors: those of MeasureShares;
  // invalid_host_layers.
  absl::StatusOr<std::vector<WeightSizes>> MeasureRanks() const;

 private:
  void MakeMachines(int ranks);
  absl::Status FindDevices();
  absl::Status ReadConfig();
  // Returns an error of a checkpoint that cannot be run, or notes it where the
  // model is opened to be described.
  absl::Status Allow(const absl::Status& status);
  void CannotRun(const absl::Status& status);
  // Every word of the vocabulary must have a row of the embedding; special and
  // unused tokens, which no text can name, need none.
  absl::Status CheckRows() const;
  // Adds the ends of a turn to those of config.
  void FindEnds();
  absl::Status CheckHostLayers() const;
  absl::StatusOr<std::unique_ptr<StreamedLayers>> MakeStreamed(
      const WeightSizes& size) const;
  // Adds the warnings that are not there yet.
  void Warn(const std::vector<std::string>& more);

  WeightSizes whole_;  // all weights, once they are loaded
  mutable std::mutex workspaces_mutex_;
  mutable std::weak_ptr<WorkspacePool> workspaces_;
  mutable std::mutex hash_mutex_;
  mutable std::string hash_;  // empty: not known yet
};

// The experts of a model as JSON: their count, those that a row uses, their ffn
// columns, whether shares are normed, the layers that have any. Null: none.
nlohmann::json DescribeExperts(const ModelConfig& config);

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_MODEL_MODEL_H_
