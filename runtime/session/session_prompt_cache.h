#ifndef TIERCEL_RUNTIME_SESSION_SESSION_PROMPT_CACHE_H_
#define TIERCEL_RUNTIME_SESSION_SESSION_PROMPT_CACHE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "offload/disk/page_file.h"
#include "offload/kv/view.h"
#include "offload/prompt_cache/kv_folder.h"
#include "runtime/pass/pass.h"
#include "runtime/session/cancellation.h"
#include "runtime/session/prompt_cache.h"
#include "runtime/session/runner.h"
#include "runtime/session/sequence.h"
#include "runtime/session/sequence_kv.h"

namespace tiercel {

// The prompt cache as one session uses it: it loads KV of the session's tokens
// that need not be computed, and saves KV that was (PromptCache). No failure
// here is an error of the session: what cannot be loaded is computed, what
// cannot be saved is not, and a warning says so.
class SessionPromptCache {
 public:
  // The parts of the session, which outlive this.
  struct Parts {
    const View& prompt_view;  // the view of prompts
    const Cancellation& cancellation;
    Sequence& sequence;
    Runner& runner;
    SequenceKv& kv;
  };

  SessionPromptCache(const PromptCacheFolder& folder, const Parts& parts);
  // The cache of a fork, which has `parts`.
  std::unique_ptr<SessionPromptCache> Fork(const Parts& parts) const;

  // ---- A prompt ----

  void BeginPrompt() { cache_.NoteKept(0); }
  // Loads the KV of the beginning of an appended prompt, if another session has
  // saved it and that saves computing PromptCache::least_tokens() or more. It
  // has the bits that Session::Forward would have made. `progress` is called
  // between pages, always with nothing done. Errors: cancelled.
  absl::Status Open(PassProgress progress);
  // Returns true for a pass of `rows` rows whose layers depend on the tokens
  // alone, so that they can be saved and taken.
  bool KeepsLayers(int64_t rows, Phase phase, const View& view) const;
  // Takes the layers of such a pass that an earlier session has finished, and
  // moves `*point` behind them. Errors: cancelled; device_failed and its like.
  absl::Status TakeLayers(int64_t rows, absl::FunctionRef<bool()> goes_on,
                          PassPoint* point);
  // Saves the layers of such a pass up to `layer`, if that is due.
  void KeepLayer(int layer, int64_t rows, absl::FunctionRef<bool()> goes_on);
  // Called once a prompt is computed: a thread begins to write the KV of all
  // tokens, if that is worth a file. It waits for an earlier writing to end,
  // unless cancelled.
  void Save();
  // Stops the writing soon; the next prompt begins it anew.
  void Stop() { cache_.Stop(); }
  // Removes the prompt's file once a generation after it has ended, if the
  // cache saves unfinished prompts alone (PromptCacheFolder).
  void DropPrompt();
  // The number of layers of the last prompt that other sessions find on disk.
  int kept_layers() const { return cache_.kept_layers(); }

  // ---- The session's KV ----

  // Notes that only the first `length` tokens still have their KV.
  void Truncate(int64_t length);
  // Removes the file whose pages are read in place, if one of them cannot be.
  void RefuseDamaged();
  // Gives pages back that are held to be saved. Returns true if there were any.
  bool GiveBack();

  std::vector<std::string> warnings();
  const DiskUse& disk() const { return disk_; }

 private:
  // If the finished layers of the prompt save more work than the KV of the
  // first `end` positions would: the number of positions that must precede the
  // prompt; else absent.
  std::optional<int64_t> PromptSavesMoreThan(int64_t end);
  void TruncateKv(int64_t length);
  // The number of layers that KeepLayer gives at once, which is odd.
  int LayersTogether() const;
  bool cancelled() const { return cancellation_.cancelled(); }
  const ModelConfig& config() const { return runner_.model().config; }
  Clock& clock() const { return runner_.model().machine->clock(); }

  const View& prompt_view_;
  const Cancellation& cancellation_;
  Sequence& sequence_;
  Runner& runner_;
  SequenceKv& kv_;
  const PromptCacheFolder folder_;
  int64_t saved_ = 0;  // leading tokens that are in a file
  // The cache file whose pages are read in place; null: none.
  std::shared_ptr<const KvFile> opened_file_;
  std::shared_ptr<PageFile> opened_pages_;
  DiskUse disk_;
  PromptCache cache_;  // the last member: it is destroyed first
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_SESSION_SESSION_PROMPT_CACHE_H_
