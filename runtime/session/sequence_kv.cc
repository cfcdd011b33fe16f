#include "runtime/session/sequence_kv.h"

#include <algorithm>
#include <utility>

#include "lib/status/status_macros.h"

namespace tiercel {

absl::StatusOr<std::unique_ptr<SequenceKv>> SequenceKv::Create(
    const Model& model, absl::Span<const std::shared_ptr<const RankPlan>> plans,
    Gather& gather, const PromptCacheFolder* texts) {
  std::unique_ptr<SequenceKv> kv(new SequenceKv(model));
  for (const auto& planned : plans) {
    kv->ranks_.push_back(std::make_unique<RankKv>(model, planned));
    RETURN_IF_ERROR(kv->ranks_.back()->Make(gather, texts));
  }
  return kv;
}

absl::StatusOr<std::unique_ptr<SequenceKv>> SequenceKv::Fork(
    Copies copies) const {
  std::unique_ptr<SequenceKv> copy(new SequenceKv(model_));
  for (const auto& rank : ranks_) {
    ASSIGN_OR_RETURN(std::unique_ptr<RankKv> forked,
                     copies == Copies::kAll ? rank->Fork() : rank->ForkPages());
    copy->ranks_.push_back(std::move(forked));
  }
  return copy;
}

std::vector<SessionSite> SequenceKv::sites() const {
  std::vector<SessionSite> sites;
  for (const auto& rank : ranks_) sites.push_back(rank->site);
  return sites;
}

std::vector<TierPlan> SequenceKv::plans() const {
  std::vector<TierPlan> plans;
  for (const auto& rank : ranks_) plans.push_back(rank->plan);
  return plans;
}

// ---- After a step ----

absl::Status SequenceKv::Commit(int64_t rows, Cancelled cancelled) {
  for (const auto& rank : ranks_) {
    RETURN_IF_ERROR(
        rank->store->Commit(rows, [&] { return IsAlone() && cancelled(); }));
  }
  return absl::OkStatus();
}

void SequenceKv::Abandon(int64_t length) {
  DropInterrupted();
  DropViews();
  for (const auto& rank : ranks_) {
    rank->store->Abandon();
    // Another rank may have failed after this one had committed.
    if (rank->store->length() > length) rank->store->Truncate(length);
  }
}

void SequenceKv::Truncate(int64_t length) {
  DropInterrupted();
  for (const auto& rank : ranks_) rank->store->Truncate(length);
}

int64_t SequenceKv::Align() {
  int64_t length = store().length();
  for (const auto& rank : ranks_) {
    length = std::min(length, rank->store->length());
  }
  for (const auto& rank : ranks_) {
    if (rank->store->length() > length) rank->store->Truncate(length);
  }
  return length;
}

int64_t SequenceKv::IntactLength() const {
  int64_t length = store().length();
  for (const auto& rank : ranks_) {
    length = std::min(length, rank->store->IntactLength());
  }
  return length;
}

void SequenceKv::DropInterrupted() {
  interrupted_.Take();
  for (const auto& rank : ranks_) rank->DropParked();
}

void SequenceKv::DropViews() {
  if (IsAlone()) return;
  for (const auto& rank : ranks_) {
    if (rank->retrieval != nullptr) rank->retrieval->Drop();
  }
}

// ---- Pages of all heads ----

KvLayout SequenceKv::WholeLayout() const {
  KvLayout layout = site().layout;
  layout.kv_heads = model_.config.kv_heads;
  return layout;
}

absl::Status SequenceKv::Load(int64_t rows, KvStore::GivePages give,
                              Cancelled cancelled,
                              const std::shared_ptr<PageFile>& text) {
  return LoadFrom(/*rank=*/0, rows, give, cancelled, text);
}

// Loads the pages that `give` puts into every rank from `rank` on.
absl::Status SequenceKv::LoadFrom(size_t rank, int64_t rows,
                                  KvStore::GivePages give, Cancelled cancelled,
                                  const std::shared_ptr<PageFile>& text) {
  RankKv& own = *ranks_[rank];
  const auto stop = [&] { return IsAlone() && cancelled(); };
  if (IsAlone()) return own.store->Load(rows, give, stop, text);
  const KvLayout whole = WholeLayout();
  std::vector<std::byte> some(static_cast<size_t>(own.site.layout.PageBytes()));
  return own.store->Load(
      rows,
      [&](KvStore::PutPage put, KvStore::PlacePage) {
        const auto both = [&](KvStore::PutPage others, KvStore::PlacePage) {
          return give(
              [&](int layer, int64_t page, const std::byte* bytes) {
                TakeHeads(whole, bytes, own.first_head(), own.site.layout,
                          some.data());
                RETURN_IF_ERROR(put(layer, page, some.data()));
                return others(layer, page, bytes);
              },
              KvStore::Nowhere);
        };
        if (rank + 1 < ranks_.size()) {
          return LoadFrom(rank + 1, rows, both, cancelled, text);
        }
        return both(
            [](int, int64_t, const std::byte*) {  //
              return absl::OkStatus();
            },
            KvStore::Nowhere);
      },
      stop);
}

absl::StatusOr<std::unique_ptr<HeldPages>> SequenceKv::Hold(
    int64_t length, Cancelled cancelled) {
  if (IsAlone()) return store().Hold(length, cancelled);
  std::vector<JoinedPages::Part> parts;
  for (const auto& rank : ranks_) {
    if (!rank->IsFirstOfHeads()) continue;
    ASSIGN_OR_RETURN(std::unique_ptr<HeldPages> held,
                     rank->store->Hold(length, cancelled));
    parts.push_back({std::move(held), rank->first_head()});
  }
  return std::make_unique<JoinedPages>(WholeLayout(), std::move(parts));
}

// ---- Its use of memory and links ----

int64_t SequenceKv::RowBytes() const {
  int64_t bytes = 0;
  for (const auto& rank : ranks_) {
    const KvLayout& layout = rank->site.layout;
    bytes += layout.kv_heads * (layout.KRowBytes() + layout.VRowBytes());
  }
  return bytes;
}

MemoryUse SequenceKv::memory() const {
  MemoryUse use;
  for (const auto& rank : ranks_) {
    use.host += rank->store->HostBytes();
    use.device += rank->machine().memory().used();
  }
  return use;
}

double SequenceKv::LinkSeconds() const {
  double busiest = 0;  // links work in parallel
  for (const auto& rank : ranks_) {
    if (rank->tier == nullptr) continue;
    double seconds = 0;
    for (const LinkUse& use : rank->tier->engine->ledger()) {
      seconds += use.busy_seconds;
    }
    busiest = std::max(busiest, seconds);
  }
  return busiest;
}

void Trim(SequenceKv& kv) {
  kv.DropInterrupted();
  for (const auto& rank : kv.ranks()) rank->Trim();
}

}  // namespace tiercel
