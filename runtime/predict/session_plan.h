#ifndef TIERCEL_RUNTIME_PREDICT_SESSION_PLAN_H_
#define TIERCEL_RUNTIME_PREDICT_SESSION_PLAN_H_

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/kv/kv_layout.h"
#include "kernels/number/dtype.h"
#include "models/decoder/config.h"
#include "models/decoder/model_split.h"
#include "models/decoder/prompt_depth.h"
#include "models/decoder/weights.h"
#include "offload/disk/disk_calls.h"
#include "offload/kv/view.h"
#include "offload/plan/tier_plan.h"
#include "offload/texts/kv_folder.h"
#include "offload/view/attention_shares.h"
#include "offload/view/retrieval.h"
#include "runtime/model/model.h"

namespace tiercel {

// Bytes that are taken.
struct MemoryUse {
  int64_t host = 0;  // KV in the host tier
  int64_t device = 0;
};

// Where a session keeps what it has read, and finds what others have.
struct TextsFolder {
  std::string path;
  uint64_t most_bytes = uint64_t{16} << 30;  // of all that is kept there
  // What tells this build of the library from others, which may compute other
  // bits; empty: nothing does, and nothing is kept.
  std::string build;
  std::string name = {};     // of what is read, for people; empty: not known
  bool begins_anew = false;  // prompts that others have not finished
  // Prompts are kept until a generation behind them has ended, and texts never.
  bool unfinished_alone = false;
  // How long a prompt waits for the disk, beside a tenth of its own time.
  std::chrono::milliseconds waits = std::chrono::seconds(3);
  DiskCalls* disk = nullptr;  // null: this machine's

  DiskCalls& Disk() const { return disk != nullptr ? *disk : SystemDisk(); }
  KvFolder Folder() const { return {path, most_bytes, Disk()}; }
};

// What a block of tokens is drawn from: a distribution for each row of the
// target, and for each token that was drafted by a model; those of the rows
// that it drafts at once are made beside these.
struct BlockLaws {
  int64_t rows = 1;
  int64_t drafted = 0;
  int64_t draft_rows = 0;

  // Most bytes of the host's memory that they take, of so many tokens.
  int64_t Bytes(int64_t vocab) const;
};

// What a session is to be.
struct SessionOptions {
  int64_t context = 0;  // most tokens; 0: as many of the checkpoint's as fit
  DType type_k = DType::kF16;
  DType type_v = DType::kF16;
  int64_t first_position = 0;
  // The KV stays on the device, beside what it serves; all the session will
  // ever need is taken when it is made.
  bool on_device = false;
  View prompt_view = View::Full();  // what a prompt's rows read
  BlockLaws laws = {};
  // Positions that stay on the device at least, of the first and of the newest.
  int64_t kept_first = 0;
  int64_t kept_newest = 0;
  // Keeps a retrieval view for drafts.
  std::optional<RetrievalSize> retrieval = {};
  // Rows of prompts end below its cut; absent: they go through all layers.
  // Beside a retrieval view prompts do too, and drafts see above the cut no
  // more than it says.
  std::optional<PromptDepth> depth = {};
  // Absent: nothing is kept, and nothing found. A session whose prompts read
  // less than everything or end below the last layer, that begins elsewhere
  // than at position 0 or whose KV is on the device alone has none of it. With
  // a folder and a context that is asked for, pages for which memory has no
  // room are on disk.
  std::optional<TextsFolder> texts = {};

  // Whether what is read may be kept, as far as these say.
  bool KeepsTexts() const {
    return texts.has_value() && prompt_view.IsFull() && !EndsPrompts() &&
           first_position == 0;
  }
  bool EndsPrompts() const {
    return depth.has_value() && !retrieval.has_value();
  }
  KvLayout Layout(const ModelConfig& config) const {
    return {type_k, type_v, config.kv_heads, config.head_dim};
  }
};

// Errors: invalid_context, invalid_argument, invalid_kv_type.
// A view that is chosen by keys must be smaller than the context: does_not_fit.
absl::Status CheckSessionOptions(const ModelConfig& config,
                                 const SessionOptions& options);

// Rows of logits that a session holds: of the next token, and of a step.
int64_t LogitRows();

// Scratch memory that no op of this model exceeds, on a GPU or on so many
// threads of the CPU.
int64_t ScratchBytes(const ModelConfig& config, int64_t context, int threads,
                     bool on_gpu);

// Where sessions of one model go: a device and the machine around it; with
// several ranks, those of one of them.
struct SessionSite {
  const ModelConfig& config;
  WeightSizes weights;
  KvLayout layout;  // of the rank's KV heads
  int64_t first_position = 0;
  int64_t kept_first = 0;  // SessionOptions'
  int64_t kept_newest = 0;
  std::optional<RetrievalSize> retrieval = {};  // a view for drafts
  std::optional<PromptDepth> depth = {};        // SessionOptions'
  int64_t draft_bytes = 0;  // of a model that drafts, and all of its session
  int threads = 1;
  bool keeps_layers = false;    // of prompts, on disk, where one rank reads
  bool on_device = false;       // the KV is nowhere else
  bool prefers_device = false;  // ... where it fits there
  bool on_gpu = false;          // the device is one
  bool in_place = false;        // the device computes in the host tier
  int64_t device_bytes = 0;     // weights included; in place: of both tiers
  // What others of the machine may take yet, in place of both tiers, else of
  // the host tier, and for KV of that; and what a workspace may have that there
  // is.
  int64_t promised = 0;
  int64_t promised_kv = 0;
  WorkspaceSize there = {};
  // What tokens are drawn from, on the rank that draws them.
  int64_t law_bytes = 0;
  // What of this machine's memory both tiers may take, weights included; of a
  // GPU the host tier.
  int64_t machine_bytes = std::numeric_limits<int64_t>::max();
  // Most that the host tier may take, behind a link; and that pages may on disk
  // for which it has no room.
  int64_t host_bytes = std::numeric_limits<int64_t>::max();
  int64_t disk_bytes = 0;
  bool can_spill = false;  // nothing but a folder lacks for that
  // What the ranks compute, and which of them this is; null: one rank, all.
  const ModelSplit* split = nullptr;
  int rank = 0;

  // Whose queries choose what a view shows.
  int QueryHeads() const {
    return split == nullptr ? config.heads
                            : static_cast<int>(split->query_heads(rank).size());
  }
  // So many rows of a prompt pass through a layer at once after `before`
  // others, on every rank; never more than after none.
  int64_t RowsAtOnce(int64_t before = 0) const;
  int64_t StateBytes() const {  // of a row's hidden state
    return config.hidden * static_cast<int64_t>(sizeof(float));
  }
  // What ops take for themselves, and a GPU to gather, in bytes.
  int64_t Scratch(int64_t context) const;
  // What a call computes in, but for hidden states.
  WorkspaceSize WorkspaceOf(int64_t context) const;
  TierNeeds Needs(int64_t context) const;
  TierPlan PlanFor(int64_t context) const;
  int64_t MachineBytes(const TierPlan& plan) const {
    return plan.HostBytes() + (in_place ? 0 : promised) +
           (on_gpu ? 0 : plan.DeviceBytes());
  }
  // What of the host tier may be taken yet.
  int64_t HostRoom() const { return host_bytes - (in_place ? 0 : promised_kv); }
  bool Fits(int64_t context) const { return Fits(PlanFor(context)); }
  // The largest context that fits, at most `most`; 0: none.
  int64_t LargestContext(int64_t most) const;
  // The least device that serves `context`.
  int64_t LeastDeviceBytes(int64_t context) const;

  // The same place for a session that reads everything, and without drafts.
  SessionSite WithoutPolicy() const;

  // The view of a session that keeps one.
  Retrieval::Shape RetrievalShape(int64_t context) const;
  // What says where an answer looked has this shape.
  AttentionShares::Shape SharesShape(int64_t context) const;

  // What `context` has no room in, as an error does_not_fit; `most`: the
  // context that there is room for. Of several ranks it has this one's number.
  absl::Status DoesNotFit(int64_t context, int64_t most) const;

 private:
  bool Fits(const TierPlan& plan) const;
};

// Where sessions with `options` go; `weights.bytes` of the machine's memory are
// taken, or will be. `threads` are a rank's. The model outlives it.
SessionSite SiteOf(const Model& model, const WeightSizes& weights,
                   const SessionOptions& options, int threads, int rank = 0);
// What there is to say where prompts of up to `longest` tokens end below the
// last layer; "": nothing, or none of them does.
std::string UntrainedAt(const SessionSite& site, const Model& model,
                        int64_t longest);
// Whether a session with `options`, made now, would have pages on disk.
bool GoesToDisk(const Model& model, const SessionOptions& options);
// The largest context up to `most` that all ranks have room for; 0: none.
int64_t LargestContext(const std::vector<SessionSite>& sites, int64_t most);
// What there is to say where `sites` have room for less of a checkpoint's
// `context` than they would without what a policy keeps on the device; "":
// nothing.
std::string CrowdedBy(const std::vector<SessionSite>& sites, int64_t context);
// Errors: does_not_fit, of the first rank that has no room for `context`, with
// the largest that all have room for.
absl::Status CheckRanksFit(const std::vector<SessionSite>& sites,
                           int64_t context);
// The plans of all ranks for `context`, or for 0 for as much of the
// checkpoint's context as fits. Errors: those of CheckRanksFit.
absl::StatusOr<std::vector<TierPlan>> PlanRanks(
    const std::vector<SessionSite>& sites, int64_t context);

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_PREDICT_SESSION_PLAN_H_
