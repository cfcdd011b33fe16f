#ifndef TIERCEL_RUNTIME_MODEL_MODEL_H_
#define TIERCEL_RUNTIME_MODEL_MODEL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "kernels/layer/matmul.h"
#include "kernels/machine/clock.h"
#include "kernels/machine/stream.h"
#include "models/chat/chat_template.h"
#include "models/decoder/config.h"
#include "models/decoder/weights.h"
#include "models/format/checkpoint.h"
#include "models/tokenizer/tokenizer.h"
#include "nlohmann/json.hpp"
#include "offload/tier/device_arena.h"

namespace tiercel {

// Everything a checkpoint gives, read once and shared by sessions. Immutable
// and thread-safe once opened, and loaded where that comes later.
struct Model {
  // A small device behind a slow link, played by this machine: memory and
  // copies obey the numbers, arithmetic is the CPU's own.
  struct Simulation {
    int64_t device_bytes = 0;
    double link_bytes_per_s = 0;
    double latency_s = 0;  // per transfer
    std::shared_ptr<const Faults> faults = nullptr;
  };

  struct Options {
    std::string path = {};
    bool weights = true;  // false: header, tokenizer and template only
    bool check_tensors = false;
    Stream::Options stream = {};
    Compute compute = Compute::kQ8;
    std::optional<Simulation> simulation = {};
    int64_t memory_bytes = 0;  // most of the machine's to take; 0: all it has
    Clock* clock = &SteadyClock();  // of its sessions' times and played link
    // Replace what the checkpoint says.
    std::optional<RopeScaling::Type> rope_scaling = {};
    std::optional<double> rope_scale = {};
    std::optional<double> rope_freq_base = {};
    std::optional<int64_t> yarn_orig_ctx = {};
  };

  // `progress(done, total)` in bytes of tensors; false cancels.
  static absl::StatusOr<std::unique_ptr<Model>> Open(
      const Options& options,
      absl::FunctionRef<bool(uint64_t, uint64_t)> progress);

  // Reads the weights of a model that was opened without; nothing where it has
  // them. After an error it is as before.
  absl::Status Load(absl::FunctionRef<bool(uint64_t, uint64_t)> progress);

  // What `tiercel inspect` shows.
  nlohmann::json Describe() const;

  // Where this model's device keeps what it computes on.
  DeviceMemory& memory() const {
    return arena != nullptr ? static_cast<DeviceMemory&>(*arena) : *heap;
  }

  Options options;
  std::unique_ptr<HeapMemory> heap = std::make_unique<HeapMemory>();
  std::unique_ptr<DeviceArena> arena;  // null: all the memory there is
  std::unique_ptr<Checkpoint> checkpoint;
  ModelConfig config;                           // vocab 0: no tensors to run
  std::unique_ptr<Tokenizer> tokenizer;         // null: ids only
  std::unique_ptr<ChatTemplate> chat_template;  // null: none
  std::unique_ptr<Weights> weights;             // null: header only
  std::vector<std::string> warnings;

 private:
  absl::Status ReadConfig();
  // Adds those that are not there yet.
  void Warn(const std::vector<std::string>& more);
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_MODEL_MODEL_H_
