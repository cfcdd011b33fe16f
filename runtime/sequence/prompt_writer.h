#ifndef TIERCEL_RUNTIME_SEQUENCE_PROMPT_WRITER_H_
#define TIERCEL_RUNTIME_SEQUENCE_PROMPT_WRITER_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "offload/kv/held_layer.h"
#include "offload/texts/prompt_file.h"
#include "runtime/sequence/beside_call.h"

namespace tiercel {

// Writes what is finished of a prompt to its file, a layer while the next one
// computes. Made, used and destroyed on the session's thread, but for Settle.
class PromptWriter {
 public:
  PromptWriter(std::unique_ptr<PromptFile> file,
               std::chrono::milliseconds waits);
  // The layer that is being written is written first.
  ~PromptWriter() = default;
  PromptWriter(const PromptWriter&) = delete;
  PromptWriter& operator=(const PromptWriter&) = delete;

  const PromptInfo& info() const { return file_->info(); }
  // While nothing is written.
  PromptFile& file() { return *file_; }
  bool writes() const { return writing_ != nullptr && !writing_->over(); }
  // Whether it has pages, to be written or written last.
  bool holds() const { return !layers_.empty(); }

  // Whether layers up to `layer` may be given, from those in the file on: waits
  // until the last ones are written, unless `cancelled`. The prompt waits for
  // the disk no longer than `waits` and a tenth of its own time: it gets ahead
  // of a disk that is slower, and its later layers are not written. Errors:
  // those of PromptFile::Write.
  absl::StatusOr<bool> TakesLayer(int layer,
                                  absl::FunctionRef<bool()> cancelled);
  // Of these the last alone has its hidden states; an odd number.
  void Write(std::vector<std::unique_ptr<HeldLayer>> layers);
  // Waits for the layer that is being written; from any thread.
  void Settle() {
    if (writing_ != nullptr) (void)writing_->Join();
  }

 private:
  using Clock = std::chrono::steady_clock;

  const std::unique_ptr<PromptFile> file_;
  const std::chrono::milliseconds waits_;
  const Clock::time_point begin_ = Clock::now();
  Clock::duration waited_ = {};
  bool ahead_ = false;                              // of the disk, for good
  std::vector<std::unique_ptr<HeldLayer>> layers_;  // that are being written
  std::unique_ptr<BesideCall> writing_;  // null: nothing; ends before the above
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_SEQUENCE_PROMPT_WRITER_H_
