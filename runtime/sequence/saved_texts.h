#ifndef TIERCEL_RUNTIME_SEQUENCE_SAVED_TEXTS_H_
#define TIERCEL_RUNTIME_SEQUENCE_SAVED_TEXTS_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/kv/kv_layout.h"
#include "nlohmann/json.hpp"
#include "offload/kv/held_pages.h"
#include "offload/texts/kv_folder.h"
#include "runtime/model/model.h"
#include "runtime/predict/session_plan.h"
#include "runtime/sequence/beside_call.h"
#include "runtime/sequence/prompt_writer.h"

namespace tiercel {

// The texts in a folder: [{"file", "bytes", "used": seconds of the Unix clock,
// and of one that is whole "model", "tokens", and "name" where it has one}] by
// the files' names. Errors: those of KvFolder::List.
absl::StatusOr<nlohmann::json> ListTexts(const std::string& folder);
// Removes them; how many files. Errors: those of KvFolder::Clear.
absl::StatusOr<int64_t> ClearTexts(const std::string& folder);

// What one session finds of its texts on disk, and keeps there: a thread writes
// what it is given beside what comes next: a text that was read, and before, as
// far as it is finished, the prompt that reads it. Nothing that goes wrong here
// is an error of the session's: a text that cannot be opened is read again, one
// that cannot be kept is not, and a warning says so.
//
// Used from the session's thread.
class SavedTexts {
 public:
  using Cancelled = absl::FunctionRef<bool()>;

  // The model outlives it.
  SavedTexts(const Model& model, const KvLayout& layout,
             const TextsFolder& folder);
  ~SavedTexts();  // what is being written is written first
  SavedTexts(const SavedTexts&) = delete;
  SavedTexts& operator=(const SavedTexts&) = delete;

  // The KV of the longest text that `ids` begin with; absent: none is kept.
  // Errors: cancelled.
  absl::StatusOr<std::optional<KvFolder::Found>> Find(
      absl::Span<const int32_t> ids, Cancelled cancelled);
  // What Find gave could not be loaded, and a warning says so. A file that is
  // damaged or cannot be read is removed, unless it is not `at_fault`: what its
  // pages were loaded into has failed.
  void Refuse(const KvFile& file, const absl::Status& why, bool at_fault);

  // A prompt begins, of the last of `ids`, behind `begin` positions, with so
  // many bytes in a row's hidden state: its file, with what an earlier session
  // has finished of it; null: it has none. It goes when the text is kept.
  PromptFile* BeginPrompt(absl::Span<const int32_t> ids, int64_t begin,
                          int64_t row_bytes, Cancelled cancelled);
  // What is finished of the prompt of all `ids`; absent: BeginPrompt would find
  // nothing.
  std::optional<PromptFile::Finished> FindPrompt(absl::Span<const int32_t> ids);
  // What the prompt's file has is of no use, and a warning says so. The file
  // begins anew where it is `at_fault` itself, as in Refuse.
  void RefusePrompt(const absl::Status& why, bool at_fault);
  // The prompt that began is no longer read; its file stays.
  void LeavePrompt() { prompt_.reset(); }
  // It has served its purpose; its file goes.
  void DropPrompt();
  // Whether `layer` of such a prompt may be given now: PromptWriter's.
  bool TakesLayer(absl::Span<const int32_t> ids, int64_t begin, int layer,
                  Cancelled cancelled);
  // Returns the first layer that is not there yet; it and those up to the one
  // that may be given are given together.
  int FirstLayer() const { return prompt_->file().layers(); }
  void WriteLayers(std::vector<std::unique_ptr<HeldLayer>> layers) {
    prompt_->Write(std::move(layers));
  }

  // Layers of the prompt that is read, or was last, which others find on disk;
  // all where they find its text.
  int kept_layers() const {
    return prompt_ != nullptr && !prompt_->writes() ? prompt_->file().layers()
                                                    : kept_layers_;
  }
  void NoteKept(int layers) { kept_layers_ = layers; }

  // Writes `pages`, the KV of the first of `ids`, from now on; it waits until
  // what is being written is there, unless `cancelled`. Whether it began.
  bool Save(absl::Span<const int32_t> ids, std::unique_ptr<HeldPages> pages,
            Cancelled cancelled);
  // Ends the writing; nothing of the text is kept. Soon.
  void Stop();
  // Whether a text or a prompt has pages, to be written or written last.
  bool HoldsPages() const {
    return writing_ != nullptr || (prompt_ != nullptr && prompt_->holds());
  }
  // Gives them back. The text that is being written is not kept, nor are later
  // layers of the prompt.
  void GiveBack() {
    Stop();
    LeavePrompt();
  }
  // Gives back what a writing that is over has held. Whether the last one that
  // was begun has ended well, or may.
  bool Settle();
  void Warn(const absl::Status& why, const char* consequence);

  // What a session's user should know.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  // One text that is being written.
  struct Writing {
    KvFileInfo info;
    std::unique_ptr<HeldPages> pages;
    std::unique_ptr<PromptWriter> prompt;  // null: the text had no file of one
    std::string prompt_name;               // empty: there is none
    std::atomic<bool> stop{false};
    std::unique_ptr<BesideCall> call;  // the last member: it uses the others
  };

  absl::StatusOr<std::string> Fingerprint(Cancelled cancelled);
  void Join();
  // Nothing more is kept: the folder cannot be written.
  void GiveUp(const absl::Status& why);

  const Model& model_;
  const KvLayout layout_;
  const std::string build_;
  const std::string name_;
  const bool begins_anew_;
  const std::chrono::milliseconds waits_;
  const KvFolder folder_;
  std::string fingerprint_;               // empty: not known yet
  std::unique_ptr<PromptWriter> prompt_;  // that is being read; null: none
  std::unique_ptr<Writing> writing_;      // null: none
  int kept_layers_ = 0;
  bool well_ = true;      // the last writing, as far as that is known
  bool gave_up_ = false;  // the folder cannot be written
  std::vector<std::string> warnings_;
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_SEQUENCE_SAVED_TEXTS_H_
