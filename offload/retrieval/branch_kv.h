#ifndef TIERCEL_OFFLOAD_RETRIEVAL_BRANCH_KV_H_
#define TIERCEL_OFFLOAD_RETRIEVAL_BRANCH_KV_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/attention/head_view.h"
#include "offload/kv/layered_kv.h"
#include "offload/retrieval/compact_kv.h"

namespace tiercel {

// A place for the rows of a branch of a draft, in the cells of a compact KV:
// the row of position `at` and those after it have the cells from that of
// position `cells` on, where no other rows are.
struct BranchPlace {
  size_t index = 0;  // the branch's among those of the draft
  int64_t at = 0;
  int64_t cells = 0;
  int64_t rows = 0;  // rows that are there
};

// The KV of one branch of a draft: what the draft sees of the compact KV before
// the branch, and the branch's own rows.
//
//   cells   chunks | recent_begin ......... at ......... end | branch | branch
//   sees    ########################################           ######
class BranchKv final : public LayeredKv {
 public:
  // `whole` outlives it.
  explicit BranchKv(CompactKv& whole) : whole_(whole) {}

  // Its next step has rows at `place`.
  void MoveTo(const BranchPlace& place) { place_ = place; }

  // While a layer is under way `whole`, and other branches of it, may begin and
  // end that layer, too.
  absl::StatusOr<KvPages> BeginLayer(int layer, Cancelled cancelled) override;
  void EndLayer(int layer) override { whole_.EndLayer(layer); }

 private:
  CompactKv& whole_;
  BranchPlace place_;
  // KvPages of the current layer point to these.
  std::vector<std::vector<PositionRange>> ranges_;  // [head]
  std::vector<HeadView> views_;                     // [head]
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_RETRIEVAL_BRANCH_KV_H_
