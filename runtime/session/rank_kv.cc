#include "runtime/session/rank_kv.h"

#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/status/status_macros.h"
#include "offload/kv/in_place_kv.h"
#include "offload/kv/tiered_kv.h"

namespace tiercel {

RankKv::RankKv(const Model& model, std::shared_ptr<const RankPlan> of)
    : planned(std::move(of)),
      site(planned->site),
      plan(planned->plan),
      model_(model) {}

absl::Status RankKv::Make(Gather& gather, const PromptCacheFolder* texts) {
  const int64_t first_position = site.first_position;
  DeviceMemory& memory = machine().memory();
  const std::shared_ptr<MemoryAccount>& account = machine().account();
  promise_ = std::make_shared<MemoryPromise>(account, 0);
  NotePromise();
  if (!plan.TakesAllAtFirst()) {
    in_place = std::make_shared<PagePool>(plan.shape.layout, plan.shape.layers,
                                          plan.context / kPageTokens + 2);
    in_place->Promise(MemoryPromise(machine().kv_account(), plan.host_kv),
                      plan.shape.PoolPages());
    store = std::make_unique<InPlaceKv>(in_place, first_position);
  } else {
    RETURN_IF_ERROR(ReserveShares());
    if (plan.on_device) {
      ASSIGN_OR_RETURN(PagePool pool,
                       PagePool::OnDevice(plan.shape.layout, plan.shape.layers,
                                          plan.shape.PoolPages(), memory));
      if (!site.device.apart) {
        pool.Promise(
            MemoryPromise(account, plan.resident, MemoryPromise::Kind::kTaken),
            plan.shape.PoolPages());
      }
      in_place = std::make_shared<PagePool>(std::move(pool));
      store = std::make_unique<InPlaceKv>(in_place, first_position);
    } else {
      placement = machine().NewPlacement();
      ASSIGN_OR_RETURN(std::unique_ptr<Link> link,
                       machine().NewLink(placement));
      std::shared_ptr<PageFile> spill;
      if (plan.shape.disk_pages > 0) {
        ASSIGN_OR_RETURN(const int file, texts->Folder().OpenNameless());
        spill = std::make_shared<PageFile>(
            texts->Disk(), file, texts->path + ": pages of a session",
            plan.shape.layout, plan.shape.layers, plan.shape.context_pages + 2);
      }
      ASSIGN_OR_RETURN(
          tier,
          KvTier::Create(plan.shape, memory, std::move(link), std::move(spill),
                         MemoryPromise(machine().kv_account(), plan.host_kv)));
      if (plan.shape.host.host_s > 0) RETURN_IF_ERROR(TakeShare());
      if (!site.device.apart) {
        tier->on_device = MemoryPromise(account, plan.resident + plan.staging,
                                        MemoryPromise::Kind::kTaken);
      }
      MakeTiles();
      store = std::make_unique<TieredKv>(tier, first_position);
    }
  }
  if (!site.retrieval.has_value()) return absl::OkStatus();
  Retrieval::Shape shape = site.RetrievalShape(plan.context);
  shape.of_ranks.gather = &gather;
  ASSIGN_OR_RETURN(retrieval, Retrieval::Create(memory, shape, *store));
  return absl::OkStatus();
}

// The host takes its share of sweeps.
absl::Status RankKv::TakeShare() {
  HostAttention::Options options = site.ShareOptions();
  ASSIGN_OR_RETURN(options.cpu, machine().NewHostStream());
  options.clock = &machine().clock();
  ASSIGN_OR_RETURN(tier->host, HostAttention::Create(machine().memory(),
                                                     std::move(options)));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<RankKv>> RankKv::Fork() const {
  ASSIGN_OR_RETURN(std::unique_ptr<RankKv> copy, ForkPages());
  if (retrieval != nullptr) {
    ASSIGN_OR_RETURN(copy->retrieval, retrieval->Fork(*copy->store));
  }
  return copy;
}

absl::StatusOr<std::unique_ptr<RankKv>> RankKv::ForkPages() const {
  auto copy = std::make_unique<RankKv>(model_, planned);
  ASSIGN_OR_RETURN(copy->store, store->Fork());
  copy->placement = placement;
  copy->tier = tier;
  copy->in_place = in_place;
  copy->shares = shares;
  copy->promise_ = promise_;
  copy->MakeTiles();
  return copy;
}

void RankKv::MakeTiles() {
  if (tier == nullptr || plan.state_rows == plan.context) return;
  tiles = std::make_shared<TiledStates>(tier, model_.config.hidden,
                                        plan.state_rows / TiledStates::kTiles);
}

absl::Status RankKv::ReserveShares() {
  if (shares != nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(shares,
                   AttentionShares::Create(machine().memory(),
                                           site.SharesShape(plan.context)));
  NotePromise();
  return absl::OkStatus();
}

void RankKv::NotePromise() {
  int64_t bytes = plan.host_states + plan.host_buffers;
  if (!plan.TakesAllAtFirst() && shares == nullptr) {
    bytes += site.SharesShape(plan.context).Bytes();
  }
  promise_->Resize(bytes);
}

int64_t RankKv::PlannedPages() const {
  if (tier == nullptr || tier->spill == nullptr) return pages().slots_left();
  return std::max<int64_t>(plan.shape.PoolPages() - pages().slots_in_use() -
                               tier->spill->slots_in_use(),
                           0);
}

KvMoves RankKv::moves() const {
  KvMoves moves = store->moves();
  if (tiles == nullptr) return moves;
  moves.states_up_bytes = tiles->up_bytes();
  moves.states_down_bytes = tiles->down_bytes();
  return moves;
}

}  // namespace tiercel
