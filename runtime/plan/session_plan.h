#ifndef TIERCEL_RUNTIME_PLAN_SESSION_PLAN_H_
#define TIERCEL_RUNTIME_PLAN_SESSION_PLAN_H_

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/device/device.h"
#include "kernels/kv/kv_layout.h"
#include "kernels/number/dtype.h"
#include "models/decoder/config.h"
#include "models/decoder/model_split.h"
#include "models/decoder/weights.h"
#include "offload/disk/disk_calls.h"
#include "offload/kv/host_attention.h"
#include "offload/kv/kv_extent.h"
#include "offload/kv/layered_kv.h"
#include "offload/kv/view.h"
#include "offload/prompt_cache/kv_folder.h"
#include "offload/retrieval/attention_shares.h"
#include "offload/retrieval/retrieval.h"
#include "runtime/model/model.h"
#include "runtime/plan/tier_plan.h"

namespace tiercel {

// Bytes of memory in use.
struct MemoryUse {
  int64_t host = 0;  // KV in the host tier
  int64_t device = 0;
};

// The prompt cache of a session: a folder where it saves the KV of its prompts,
// and finds that of other sessions.
struct PromptCacheFolder {
  std::string path;
  uint64_t most_bytes = uint64_t{16} << 30;  // for all that is saved there
  // Identifies this build of the library, since other builds may compute other
  // bits; empty: it cannot be identified, and nothing is saved.
  std::string build;
  std::string name = {};     // names the text for people; empty: not known
  bool begins_anew = false;  // ignores unfinished prompts of others
  // Unfinished prompts alone are saved, until the generation after them has
  // ended.
  bool unfinished_alone = false;
  // The longest that a prompt waits for the disk, beside a tenth of its own
  // time.
  std::chrono::milliseconds waits = std::chrono::seconds(3);
  // Nanoseconds of the Unix clock. Parts of a text that were used since then do
  // not make room for its others (KvFolder).
  int64_t since_ns = std::numeric_limits<int64_t>::max();
  DiskCalls* disk = nullptr;  // null: this machine's

  DiskCalls& Disk() const { return disk != nullptr ? *disk : SystemDisk(); }
  KvFolder Folder() const { return {path, most_bytes, Disk(), since_ns}; }
};

// The distributions that a block of tokens is drawn from: one for each row of
// the target, and one for each token that a model drafts. Those of the rows
// that it drafts at once are made besides.
struct BlockDistributions {
  int64_t rows = 1;
  int64_t drafted = 0;
  int64_t draft_rows = 0;

  // The most bytes of the host's memory that they take for a vocabulary of
  // `vocab` tokens.
  int64_t Bytes(int64_t vocab) const;
};

// The settings of a session.
struct SessionOptions {
  int64_t context = 0;  // most tokens; 0: the checkpoint's, or what fits
  DType type_k = DType::kF16;
  DType type_v = DType::kF16;
  // The position of the first token: 0, but for tests of positions that only
  // long texts reach.
  int64_t first_position = 0;
  // The KV is on the device alone; all that the session will ever need is taken
  // when it is made.
  bool on_device = false;
  View prompt_view = View::Full();  // positions that prompt rows read
  BlockDistributions distributions = {};
  // The numbers of first and of newest positions that always stay on the
  // device.
  int64_t kept_first = 0;
  int64_t kept_newest = 0;
  // Forks that are used at once with the session, and the most tokens that each
  // of them adds: memory is planned for them, too.
  int64_t forks = 0;
  int64_t fork_tokens = 0;
  // Branches of a drafted block that are swept with it, over pages of their
  // own: memory is planned for these.
  int branches = 0;
  // Drafts pass the view while a sweep is on its way, in a workspace of their
  // own: memory is planned for it.
  bool draft_ahead = false;
  // Keeps a retrieval view for drafts.
  std::optional<RetrievalSize> retrieval = {};
  // The extent of the KV by layer; absent: every position exists in all layers.
  // With a retrieval view every position exists too, and the extent limits the
  // view.
  std::optional<KvExtent> extent = {};
  // The prompt cache; absent: none. It is not used by a session whose prompts
  // read less than everything or end below the last layer, that does not begin
  // at position 0, or whose KV is on the device alone. With a cache and a given
  // context, pages for which memory has no room are on its disk.
  std::optional<PromptCacheFolder> texts = {};

  // Returns true if these options allow the prompt cache.
  bool KeepsPrompts() const {
    return texts.has_value() && prompt_view.IsFull() && !EndsPrompts() &&
           first_position == 0;
  }
  bool EndsPrompts() const {
    return extent.has_value() && !retrieval.has_value();
  }
  // The context, where memory has room for the checkpoint's.
  int64_t Context(const ModelConfig& config) const {
    return context > 0 ? context : config.context;
  }
  KvLayout Layout(const ModelConfig& config) const {
    return {type_k,
            type_v,
            config.kv_heads,
            config.head_dim,
            config.head_elements,
            config.attention_scale.value_or(0)};
  }
};

// Errors: invalid_context, invalid_argument, invalid_kv_type.
// A view that is chosen by keys must be smaller than the context:
// view_too_large.
absl::Status CheckSessionOptions(const ModelConfig& config,
                                 const SessionOptions& options);

// The rows of logits that a session holds: one for the next token, and those of
// a step.
int64_t LogitRows();

// The place of one model's sessions: a device and the machine around it; of
// several ranks, the place of one.
struct SessionSite {
  const ModelConfig& config;
  WeightSizes weights;
  KvLayout layout;  // with the rank's KV heads
  int64_t first_position = 0;
  int64_t kept_first = 0;  // SessionOptions'
  int64_t kept_newest = 0;
  int64_t forks = 0;
  int64_t fork_tokens = 0;
  int branches = 0;
  bool draft_ahead = false;
  std::optional<RetrievalSize> retrieval = {};  // the view for drafts
  std::optional<KvExtent> extent = {};  // SessionOptions', if it ends prompts
  int64_t draft_bytes = 0;              // for a draft model's whole session
  int threads = 1;
  bool keeps_layers = false;  // saves prompts by layers, if there is one rank
  bool on_device = false;     // SessionOptions'
  DeviceTraits device = {};
  int64_t device_bytes = 0;  // weights included; in place: for both tiers
  // Bytes that other sessions of the machine may still take: of both tiers if
  // the device computes in place, else of the host tier.
  int64_t promised = 0;
  int64_t promised_kv = 0;  // the part of `promised` that is for KV
  bool loaded = false;      // the model's weights have their memory
  // The size of a workspace that is there already and may serve this session.
  WorkspaceSize there = {};
  // Bytes of the distributions that tokens are drawn from, on the rank that
  // draws them.
  int64_t distribution_bytes = 0;
  // Bytes of this machine's memory that both tiers may take, weights included;
  // with a GPU, the host tier.
  int64_t machine_bytes = std::numeric_limits<int64_t>::max();
  // The most bytes that the host tier may take behind a link, and the most that
  // the pages for which it has no room may take on disk.
  int64_t host_bytes = std::numeric_limits<int64_t>::max();
  int64_t disk_bytes = 0;
  bool can_spill = false;  // pages may go to disk if a folder is given
  // The stated rate of the link, and that at which the host attends to K and V,
  // in bytes a second; 0: it takes no share of sweeps.
  double link_bytes_per_s = 0;
  double host_bytes_per_s = 0;
  // The split of the model over the ranks, and this rank; null: a single rank.
  const ModelSplit* split = nullptr;
  int rank = 0;

  // The number of this rank's query heads, which choose what a view shows.
  int QueryHeads() const {
    return split == nullptr ? config.heads
                            : static_cast<int>(split->query_heads(rank).size());
  }
  // The number of rows of a prompt that pass through a layer at once after
  // `before` others, on every rank. RowsAtOnce(0) is the most.
  int64_t RowsAtOnce(int64_t before = 0) const;
  // The most rows of several sequences that pass through a layer at once, all
  // of whose logits the host keeps.
  int64_t RowsTogether() const {
    return std::clamp(RowsAtOnce(), kMaxStepRows, 4 * kMaxStepRows);
  }
  // The host's share of a sweep, and how it attends.
  HostShare Share() const;
  HostAttention::Options ShareOptions() const;
  int64_t StateBytes() const {  // for a row's hidden state
    return config.hidden * static_cast<int64_t>(sizeof(float));
  }
  // The most bytes of scratch memory that an op takes.
  int64_t OpScratch(int64_t context) const;
  // Bytes of scratch memory for ops, and for gathering on a GPU.
  int64_t Scratch(int64_t context) const;
  // The workspace of a call, without hidden states.
  WorkspaceSize WorkspaceOf(int64_t context) const;
  TierNeeds Needs(int64_t context) const;
  TierPlan PlanFor(int64_t context) const;
  int64_t MachineBytes(const TierPlan& plan) const {
    // The weights of a model that is loaded are promised.
    return plan.HostBytes() + (loaded ? 0 : plan.host_weights) +
           (device.in_place() ? 0 : promised) +
           (device.apart ? 0 : plan.DeviceBytes());
  }
  // Bytes that may still be taken of the host tier.
  int64_t HostRoom() const {
    return host_bytes - (device.in_place() ? 0 : promised_kv);
  }
  bool Fits(int64_t context) const { return Fits(PlanFor(context)); }
  // The largest context that fits, at most `most`; 0: none.
  int64_t LargestContext(int64_t most) const;
  // The smallest device memory that serves `context`.
  int64_t LeastDeviceBytes(int64_t context) const;

  // This site for a session that reads everything and does not draft.
  SessionSite WithoutPolicy() const;

  // The shape of the retrieval view of a session that keeps one.
  Retrieval::Shape RetrievalShape(int64_t context) const;
  // The shape of the arrays that collect an answer's attention.
  AttentionShares::Shape SharesShape(int64_t context) const;

  // The error does_not_fit, which names the memory that has no room for
  // `context`, and the largest context `most` that fits. With several ranks it
  // names this one.
  absl::Status DoesNotFit(int64_t context, int64_t most) const;

 private:
  bool Fits(const TierPlan& plan) const;
};

// The place of one rank of a session, and the plan of its memory there. The
// runner and the KV of a session share it with those of its forks.
struct RankPlan {
  const SessionSite site;
  const TierPlan plan;
};

// The place of sessions with `options`; `weights.bytes` of the machine's memory
// are taken, or will be. `threads` are one rank's. The model outlives the
// result.
SessionSite SiteOf(const Model& model, const WeightSizes& weights,
                   const SessionOptions& options, int threads, int rank = 0);
// The warning of the site's extent if a part of a text of `longest` tokens is
// missing in some layer; "": none.
std::string ExtentWarning(const SessionSite& site, int64_t longest);
// Returns true if a session with `options` that is made now would have pages on
// disk; false if the options are refused.
bool GoesToDisk(const Model& model, const SessionOptions& options);
// The largest context up to `most` that all ranks have room for; 0: none.
int64_t LargestContext(const std::vector<SessionSite>& sites, int64_t most);
// A warning if what a policy keeps on the device leaves less room at `sites`
// for a checkpoint's `context`; "": none.
std::string CrowdedBy(const std::vector<SessionSite>& sites, int64_t context);
// Checks that all ranks have room for `context`. Errors: does_not_fit, for the
// first rank that has none, with the largest context that all have room for.
absl::Status CheckRanksFit(const std::vector<SessionSite>& sites,
                           int64_t context);
// The plans of all ranks for `context`; for 0, the plans for as much of the
// checkpoint's context as fits. Errors: those of CheckRanksFit.
absl::StatusOr<std::vector<TierPlan>> PlanRanks(
    const std::vector<SessionSite>& sites, int64_t context);

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_PLAN_SESSION_PLAN_H_
