#ifndef TIERCEL_OFFLOAD_TEXTS_PROMPT_FILE_H_
#define TIERCEL_OFFLOAD_TEXTS_PROMPT_FILE_H_

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

// A prompt on its way through the layers, and all that its K, V and hidden
// states follow from.
struct PromptInfo {
  std::string fingerprint;  // as KvFileInfo's
  KvLayout layout = {};
  int layers = 0;            // of the model, two at least
  int64_t begin = 0;         // positions before the prompt
  std::vector<int32_t> ids;  // of every position, the prompt's last
  int64_t row_bytes = 0;     // of a row's hidden state

  int64_t rows() const { return static_cast<int64_t>(ids.size()) - begin; }
  int64_t FirstPage() const { return begin / kPageTokens; }
  int64_t EndPage() const {
    return (static_cast<int64_t>(ids.size()) + kPageTokens - 1) / kPageTokens;
  }
  int64_t StateBytes() const { return rows() * row_bytes; }
  uint64_t FileBytes() const;
};

// What is finished of one prompt, as offload/KV_FORMAT.md has it under "An
// unfinished prompt": layer by layer its pages, and the hidden states behind
// the last layers. Who reads it knows all of the prompt, and compares: nothing
// is believed of it. The last layer is not kept: behind it the prompt is there.
//
// Used by one thread at a time.
class PromptFile {
 public:
  // Takes over `file`, which is open and locked for this caller. What an
  // earlier one has written of the same prompt stays, unless `anew`; anything
  // else goes. Errors: disk_full, io_error.
  static absl::StatusOr<std::unique_ptr<PromptFile>> Open(
      DiskCalls& disk, int file, std::string name, PromptInfo info, bool anew);
  // What a file that nobody need have locked says of itself.
  struct Finished {
    PromptInfo info;
    int layers = 0;  // that are finished, as its records say

    // Positions times layers that need not be computed where the prompt goes
    // on: all of those before it, and its own in the finished layers.
    int64_t Saves() const {
      return info.begin * info.layers + info.rows() * layers;
    }
    // Whether the KV of so many of its first positions saves as much. Fewer
    // than are before it do not: it may go on behind others.
    bool IsServedBy(int64_t positions) const {
      return positions * info.layers >= Saves();
    }
  };
  // Errors: text_damaged, of what is none; io_error.
  static absl::StatusOr<Finished> Look(DiskCalls& disk, int folder,
                                       const std::string& name);
  ~PromptFile();
  PromptFile(const PromptFile&) = delete;
  PromptFile& operator=(const PromptFile&) = delete;

  const std::string& name() const { return name_; }
  const PromptInfo& info() const { return info_; }
  int layers() const { return layers_; }  // finished, as its records say

  // Puts the hidden states behind the last finished layer, or the one before
  // where these are not whole, and all pages of the layers up to there, as
  // KvStore::TakeLayers wants them. How many layers these are: 0 where none has
  // its states. Errors: text_damaged, of a page; io_error, cancelled; put's.
  absl::StatusOr<int> Read(KvStore::PutPage put, KvStore::PutState put_state,
                           absl::FunctionRef<bool()> cancelled, DiskUse* use);
  // Nothing is finished. Errors: disk_full, io_error.
  absl::Status Clear();
  // Adds the layers behind those that are there, or writes some of them again:
  // one after the other, an odd number of them, and of these the last alone has
  // its hidden states. What comes back ok is on the disk. Errors: disk_full,
  // io_error; those of HeldLayer.
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
  // Each adds its sums to the layer's record.
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

#endif  // TIERCEL_OFFLOAD_TEXTS_PROMPT_FILE_H_
