#include "offload/kv/held_pages.h"

#include <algorithm>
#include <utility>

#include "lib/status/status_macros.h"

namespace tiercel {

void ClearCells(int cells, const KvLayout& layout, std::byte* page) {
  const auto clear = [&](int64_t begin, int64_t end) {
    std::fill(page + begin, page + end, std::byte{0});
  };
  for (int head = 0; head < layout.kv_heads; ++head) {
    clear(layout.KOffset(head, cells), layout.KOffset(head + 1, 0));
    clear(layout.VOffset(head, cells), layout.VOffset(head + 1, 0));
  }
}

PoolPages::PoolPages(std::shared_ptr<PagePool> pool,
                     const std::vector<int64_t>& slots, int64_t end)
    : pool_(std::move(pool)),
      end_(end),
      whole_(pool_, SlotsOf({slots.begin(), slots.begin() + WholePages()}),
             /*first_layer=*/0, pool_->layers()) {
  if (pages() == WholePages()) return;
  for (int layer = 0; layer < layers(); ++layer) {
    const int64_t open = slots[static_cast<size_t>(WholePages())];
    const std::byte* const page = pool_->HostPage(layer, open);
    last_.emplace_back(page, page + layout().PageBytes());
    ClearCells(static_cast<int>(end_ % kPageTokens), layout(),
               last_.back().data());
  }
}

PoolPages::PoolPages(std::shared_ptr<PagePool> pool,
                     std::vector<PageSlot> slots)
    : pool_(std::move(pool)),
      end_(static_cast<int64_t>(slots.size()) * kPageTokens),
      whole_(pool_, std::move(slots), /*first_layer=*/0, pool_->layers()) {}

absl::Status PoolPages::Read(int layer, int64_t page, std::byte* to) const {
  if (page < WholePages()) return whole_.Read(layer, page, to);
  const auto& last = last_[static_cast<size_t>(layer)];
  std::copy(last.begin(), last.end(), to);
  return absl::OkStatus();
}

absl::Status JoinedPages::Read(int layer, int64_t page, std::byte* to) const {
  std::vector<std::byte> some;
  for (const Part& part : parts_) {
    const KvLayout& of = part.pages->layout();
    some.resize(static_cast<size_t>(of.PageBytes()));
    RETURN_IF_ERROR(part.pages->Read(layer, page, some.data()));
    PutHeads(of, some.data(), part.first_head, layout_, to);
  }
  return absl::OkStatus();
}

namespace {

// The bytes of neighbouring heads are one run of K and one run of V.
int64_t KBytes(const KvLayout& of) { return of.VOffset(0, 0); }
int64_t VBytes(const KvLayout& of) { return of.PageBytes() - KBytes(of); }

}  // namespace

void TakeHeads(const KvLayout& all, const std::byte* page, int first_head,
               const KvLayout& of, std::byte* some) {
  std::copy_n(page + all.KOffset(first_head, 0), KBytes(of), some);
  std::copy_n(page + all.VOffset(first_head, 0), VBytes(of), some + KBytes(of));
}

void PutHeads(const KvLayout& of, const std::byte* some, int first_head,
              const KvLayout& all, std::byte* page) {
  std::copy_n(some, KBytes(of), page + all.KOffset(first_head, 0));
  std::copy_n(some + KBytes(of), VBytes(of), page + all.VOffset(first_head, 0));
}

}  // namespace tiercel
