#ifndef TIERCEL_RUNTIME_SESSION_PROMPT_WRITER_H_
#define TIERCEL_RUNTIME_SESSION_PROMPT_WRITER_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "offload/kv/held_layer.h"
#include "offload/prompt_cache/prompt_file.h"
#include "runtime/session/background_call.h"

namespace tiercel {

// Writes the finished layers of a prompt to its file, each while the next one
// computes. Made, used and destroyed on the session's thread, but for Settle.
class PromptWriter {
 public:
  PromptWriter(std::unique_ptr<PromptFile> file,
               std::chrono::milliseconds waits);
  // Waits until the layers that are being written are written.
  ~PromptWriter() = default;
  PromptWriter(const PromptWriter&) = delete;
  PromptWriter& operator=(const PromptWriter&) = delete;

  const PromptInfo& info() const { return file_->info(); }
  // May be used only while nothing is being written.
  PromptFile& file() { return *file_; }
  bool writes() const { return writing_ != nullptr && !writing_->over(); }
  // Returns true if it holds pages: of layers that are being written, or that
  // were written last.
  bool holds() const { return !layers_.empty(); }

  // Returns true if the layers from the first that the file lacks up to `layer`
  // may be given. Waits until earlier ones are written, unless `cancelled`. The
  // prompt waits for the disk no longer than `waits` and a tenth of its own
  // time: it gets ahead of a slower disk, and its later layers are not written.
  // Errors: those of PromptFile::Write.
  absl::StatusOr<bool> TakesLayer(int layer,
                                  absl::FunctionRef<bool()> cancelled);
  // Begins to write `layers`: an odd number, of which only the last has its
  // hidden states.
  void Write(std::vector<std::unique_ptr<HeldLayer>> layers);
  // Waits for the layers that are being written; may be called from any thread.
  void Settle() {
    if (writing_ != nullptr) (void)writing_->Join();
  }

 private:
  using Clock = std::chrono::steady_clock;

  const std::unique_ptr<PromptFile> file_;
  const std::chrono::milliseconds waits_;
  const Clock::time_point begin_ = Clock::now();
  Clock::duration waited_ = {};
  bool ahead_ = false;  // ahead of the disk, for good
  std::vector<std::unique_ptr<HeldLayer>> layers_;  // being written
  std::unique_ptr<BackgroundCall>
      writing_;  // null: none; ends before the above
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_SESSION_PROMPT_WRITER_H_
