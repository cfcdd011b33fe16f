#ifndef TIERCEL_OFFLOAD_PROMPT_CACHE_PROMPT_FILE_H_
#define TIERCEL_OFFLOAD_PROMPT_CACHE_PROMPT_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "kernels/kv/kv_layout.h"
#include "offload/disk/disk_calls.h"
#include "offload/kv/held_layer.h"
#include "offload/kv/kv_store.h"
#include "offload/tier/ledger.h"

namespace tiercel {

// A prompt that is computed layer by layer: all inputs of its K, V and hidden
// states.
struct PromptInfo {
  std::string fingerprint;  // as KvFileInfo's
  KvLayout layout = {};
  int layers = 0;            // the model's, two at least
  int64_t begin = 0;         // positions before the prompt
  std::vector<int32_t> ids;  // token ids of all positions, the prompt's last
  int64_t row_bytes = 0;     // bytes in a row's hidden state

  int64_t rows() const { return static_cast<int64_t>(ids.size()) - begin; }
  int64_t FirstPage() const { return begin / kPageTokens; }
  int64_t EndPage() const {
    return (static_cast<int64_t>(ids.size()) + kPageTokens - 1) / kPageTokens;
  }
  int64_t StateBytes() const { return rows() * row_bytes; }
  uint64_t FileBytes() const;
};

// The file of an unfinished prompt, as offload/KV_FORMAT.md has it under "An
// unfinished prompt": the pages of each finished layer, and the hidden states
// after the last of them. A reader knows the whole prompt, and compares: the
// file is not trusted. The model's last layer is not kept: after it the prompt
// is finished.
//
// One thread at a time may use it.
class PromptFile {
 public:
  // Takes over `file`, which is open and locked for this caller. The finished
  // layers of the same prompt in it stay, unless `anew`; other contents are
  // dropped. Errors: disk_full, io_error.
  static absl::StatusOr<std::unique_ptr<PromptFile>> Open(
      DiskCalls& disk, int file, std::string name, PromptInfo info, bool anew);
  // The prompt and its finished layers, as a file has them.
  struct Finished {
    PromptInfo info;
    int layers = 0;  // finished layers, by the file's records

    // The work that is saved if the prompt goes on from here, in positions
    // times layers: all layers of the positions before it, and the finished
    // layers of its own.
    int64_t Saves() const {
      return info.begin * info.layers + info.rows() * layers;
    }
    // Returns true if the KV of this many of its first positions saves as much.
    // Fewer than `begin` never do.
    bool IsServedBy(int64_t positions) const {
      return positions * info.layers >= Saves();
    }
  };
  // Reads a file, which need not be locked. Errors: text_damaged, if it is no
  // unfinished prompt; io_error.
  static absl::StatusOr<Finished> ReadFinished(DiskCalls& disk, int folder,
                                               const std::string& name);
  ~PromptFile();
  PromptFile(const PromptFile&) = delete;
  PromptFile& operator=(const PromptFile&) = delete;

  const std::string& name() const { return name_; }
  const PromptInfo& info() const { return info_; }
  int layers() const { return layers_; }  // finished, by the file's records

  // Puts the hidden states after the last finished layer, or after the one
  // before if these are damaged, and all pages of the layers up to there, as
  // KvStore::TakeLayers wants them. Returns the number of these layers, 0 if
  // none has its states. Errors: text_damaged, for a page; io_error, cancelled;
  // those of `put`.
  absl::StatusOr<int> Read(KvStore::PutPage put, KvStore::PutState put_state,
                           absl::FunctionRef<bool()> cancelled, DiskUse* use);
  // Drops all finished layers. Errors: disk_full, io_error.
  absl::Status Clear();
  // Writes an odd number of consecutive layers, which may replace finished ones
  // and leave no gap after them. Only the last one has its hidden states. If it
  // returns OK they are on the disk. Errors: disk_full, io_error; those of
  // HeldLayer.
  absl::Status Write(absl::Span<const HeldLayer* const> layers);
  absl::Status Write(const HeldLayer& layer) {
    const HeldLayer* const one = &layer;
    return Write({&one, 1});
  }

 private:
  PromptFile(DiskCalls& disk, int file, std::string name, PromptInfo info)
      : disk_(disk),
        file_(file),
        name_(std::move(name)),
        info_(std::move(info)) {}
  bool HasHead(const std::vector<std::byte>& head) const;
  absl::Status Check(const HeldLayer& layer, size_t index, bool last) const;
  // Both add their sums to the layer's record.
  absl::Status WritePages(const HeldLayer& layer,
                          std::vector<uint64_t>* record) const;
  absl::Status WriteState(const HeldLayer& layer,
                          std::vector<uint64_t>* record) const;
  absl::Status ReadRecords();
  absl::StatusOr<bool> ReadState(int layer, KvStore::PutState put,
                                 absl::FunctionRef<bool()> cancelled,
                                 DiskUse* use) const;
  absl::Status ReadLayers(int layers, KvStore::PutPage put,
                          absl::FunctionRef<bool()> cancelled,
                          DiskUse* use) const;

  DiskCalls& disk_;
  const int file_;
  const std::string name_;
  const PromptInfo info_;
  uint64_t head_sum_ = 0;
  int layers_ = 0;
  std::vector<std::vector<uint64_t>> records_;  // [finished layer]
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_PROMPT_CACHE_PROMPT_FILE_H_
