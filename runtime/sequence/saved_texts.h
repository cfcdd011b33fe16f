#ifndef TIERCEL_RUNTIME_SEQUENCE_SAVED_TEXTS_H_
#define TIERCEL_RUNTIME_SEQUENCE_SAVED_TEXTS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/kv/kv_layout.h"
#include "nlohmann/json.hpp"
#include "offload/disk/kv_folder.h"
#include "offload/kv/held_pages.h"
#include "runtime/model/model.h"
#include "runtime/predict/session_plan.h"

namespace tiercel {

// The texts in a folder: [{"file", "bytes", "used": seconds of the Unix clock,
// and of one that is whole "model", "tokens"}] by name. Errors: those of
// KvFolder::List.
absl::StatusOr<nlohmann::json> ListTexts(const std::string& folder);
// Removes them; how many files. Errors: those of KvFolder::Clear.
absl::StatusOr<int64_t> ClearTexts(const std::string& folder);

// What one session finds of its texts on disk, and keeps there: a thread writes
// what it is given beside what comes next. Nothing that goes wrong here is an
// error of the session's: a text that cannot be opened is read again, one that
// cannot be kept is not, and a warning says so.
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
  // at fault itself is removed.
  void Refuse(const KvFile& file, const absl::Status& why);

  // Writes `pages`, the KV of the first of `ids`, from now on; it waits until
  // what is being written is there, unless `cancelled`. Whether it began.
  bool Save(absl::Span<const int32_t> ids, std::unique_ptr<HeldPages> pages,
            Cancelled cancelled);
  // Ends the writing; nothing of the text is kept. Soon.
  void Stop();
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
    std::atomic<bool> stop{false};
    std::atomic<bool> over{false};
    absl::Status status;  // once it is over
    std::thread thread;   // the last member: it uses the others
  };

  absl::StatusOr<std::string> Fingerprint(Cancelled cancelled);
  void Join();

  const Model& model_;
  const KvLayout layout_;
  const std::string build_;
  const KvFolder folder_;
  std::string fingerprint_;           // empty: not known yet
  std::unique_ptr<Writing> writing_;  // null: none
  bool well_ = true;      // the last writing, as far as that is known
  bool gave_up_ = false;  // the folder cannot be written
  std::vector<std::string> warnings_;
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_SEQUENCE_SAVED_TEXTS_H_
