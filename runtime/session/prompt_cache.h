#ifndef TIERCEL_RUNTIME_SESSION_PROMPT_CACHE_H_
#define TIERCEL_RUNTIME_SESSION_PROMPT_CACHE_H_

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
#include "offload/prompt_cache/kv_folder.h"
#include "runtime/model/model.h"
#include "runtime/plan/session_plan.h"
#include "runtime/session/background_call.h"
#include "runtime/session/prompt_writer.h"

namespace tiercel {

// The entries of the prompt cache in `folder`: [{"file", "bytes", "used":
// seconds of the Unix clock, and for an entry that is whole "model", "tokens",
// and "name" if it has one}] by the files' names. Errors: those of
// KvFolder::List.
absl::StatusOr<nlohmann::json> ListPromptCache(const std::string& folder);
// The number of the first of `ids` whose KV a session with `options` would open
// from its prompt cache, if it has one; 0, or PromptCache::least_tokens() and
// more.
// Errors: cancelled; those of Model::Hash and KvFolder::Find.
absl::StatusOr<int64_t> CachedTokens(const Model& model,
                                     const SessionOptions& options,
                                     absl::Span<const int32_t> ids,
                                     absl::FunctionRef<bool()> cancelled);
// Removes the cache's files and returns their number. Errors: those of
// KvFolder::Clear.
absl::StatusOr<int64_t> ClearPromptCache(const std::string& folder);

// A session's use of the prompt cache. It finds saved KV of the session's
// tokens, and saves KV on a thread of its own: the finished layers of a prompt
// that is being computed, then the whole. No failure here is an error of the
// session: KV that cannot be loaded is computed again, KV that cannot be saved
// is not, and a warning says so.
//
// Used from the session's thread.
class PromptCache {
 public:
  using Cancelled = absl::FunctionRef<bool()>;

  // The model outlives it. `rope_length`: the sessions'.
  PromptCache(const Model& model, const KvLayout& layout, int64_t rope_length,
              const PromptCacheFolder& folder);
  // Waits for the writing to end. If this session has used the folder, files
  // make room until they take no more than it may have.
  ~PromptCache();
  PromptCache(const PromptCache&) = delete;
  PromptCache& operator=(const PromptCache&) = delete;

  // The least number of tokens that is worth a file. A text with a name will be
  // asked again, part by part; one without may be a question that is asked
  // once.
  int64_t least_tokens() const {
    constexpr int64_t kLeastUnnamed = 1024;
    return name_.empty() ? kLeastUnnamed : KvFolder::kLeastTokens;
  }

  // Finds the saved KV of the longest beginning of `ids`; absent: none is
  // saved. Errors: cancelled.
  absl::StatusOr<std::optional<KvFolder::Found>> Find(
      absl::Span<const int32_t> ids, Cancelled cancelled);
  // Notes that a file from Find is loaded.
  void NoteLoaded(const KvFile& file);
  // Notes, with a warning, that one could not be loaded. A file that is damaged
  // or cannot be read is removed, unless it is not `at_fault`: then the memory
  // that its pages were loaded into has failed.
  void Refuse(const KvFile& file, const absl::Status& why, bool at_fault);

  // Begins a prompt of the last of `ids`, after `begin` positions, with
  // `row_bytes` in a row's hidden state. Returns its file, with the layers that
  // an earlier session has finished; null: it has none. The file goes when the
  // whole is saved.
  PromptFile* BeginPrompt(absl::Span<const int32_t> ids, int64_t begin,
                          int64_t row_bytes, Cancelled cancelled);
  // The saved layers of the unfinished prompt of all `ids`; absent: BeginPrompt
  // would find none.
  std::optional<PromptFile::Finished> FindPrompt(absl::Span<const int32_t> ids);
  // Notes, with a warning, that the prompt's file could not be loaded. If the
  // file itself is `at_fault`, as in Refuse, it begins anew.
  void RefusePrompt(const absl::Status& why, bool at_fault);
  // Lets go of the prompt that began; its file stays.
  void LeavePrompt() { prompt_.reset(); }
  // Lets go of the prompt, and removes its file.
  void DropPrompt();
  // Returns true if the layers of such a prompt up to `layer` may be given now,
  // as PromptWriter::TakesLayer.
  bool TakesLayer(absl::Span<const int32_t> ids, int64_t begin, int layer,
                  Cancelled cancelled);
  // The first layer that the file lacks. The layers from there up to the one
  // that may be given are given together.
  int FirstLayer() const { return prompt_->file().layers(); }
  void WriteLayers(std::vector<std::unique_ptr<HeldLayer>> layers) {
    prompt_->Write(std::move(layers));
  }

  // The number of layers of the current or last prompt that other sessions find
  // on disk; all if the whole is saved.
  int kept_layers() const {
    return prompt_ != nullptr && !prompt_->writes() ? prompt_->file().layers()
                                                    : kept_layers_;
  }
  void NoteKept(int layers) { kept_layers_ = layers; }

  // Begins to write `pages`, the KV of the first of `ids`, after waiting for an
  // earlier writing to end, unless `cancelled`. Returns true if it began.
  bool Save(absl::Span<const int32_t> ids, std::unique_ptr<HeldPages> pages,
            Cancelled cancelled);
  // Stops the writing soon; nothing that it wrote is kept.
  void Stop();
  // Returns true if pages are held here, to be written or written last.
  bool HoldsPages() const {
    return writing_ != nullptr || (prompt_ != nullptr && prompt_->holds());
  }
  // Gives the held pages back. The KV that is being written is not saved, nor
  // are later layers of the prompt.
  void GiveBack() {
    Stop();
    LeavePrompt();
  }
  // Frees the pages of a writing that is over. Returns true if the last writing
  // has succeeded, or is still under way.
  bool Settle();
  void Warn(const absl::Status& why, const char* consequence);

  // Warnings for the session's user.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  // One writing of a sequence's KV.
  struct Writing {
    KvFileInfo info;
    std::unique_ptr<HeldPages> pages;
    std::unique_ptr<PromptWriter> prompt;  // null: no unfinished prompt
    std::string prompt_name;               // its file; empty: none
    std::atomic<bool> stop{false};
    std::unique_ptr<BackgroundCall>
        call;  // the last member: it uses the others
  };

  absl::StatusOr<std::string> Fingerprint(Cancelled cancelled);
  void Join();
  // Saves nothing more, since the folder cannot be written.
  void GiveUp(const absl::Status& why);

  const Model& model_;
  const KvLayout layout_;
  const int64_t rope_length_;
  const std::string build_;
  const std::string name_;
  const bool begins_anew_;
  const std::chrono::milliseconds waits_;
  const KvFolder folder_;
  std::string fingerprint_;               // empty: not known yet
  std::unique_ptr<PromptWriter> prompt_;  // the current prompt's; null: none
  std::unique_ptr<Writing> writing_;      // null: none
  int kept_layers_ = 0;
  bool well_ = true;      // false: the last writing has failed
  bool gave_up_ = false;  // the folder cannot be written
  bool used_ = false;     // a file was loaded, or a text given to be saved
  std::vector<std::string> warnings_;
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_SESSION_PROMPT_CACHE_H_
