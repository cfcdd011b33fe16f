#include "offload/page/kv_store.h"

#include <cstring>
#include <utility>

namespace tiercel {

KvStore::KvStore(std::shared_ptr<PagePool> pool, int64_t begin)
    : pool_(std::move(pool)),
      begin_(begin),
      end_(begin),
      pages_(static_cast<size_t>(pool_->layers())) {}

KvStore::~KvStore() { DropPages(0); }

KvStore::KvStore(KvStore&& other) noexcept
    : pool_(std::move(other.pool_)),
      begin_(other.begin_),
      end_(std::exchange(other.end_, other.begin_)),
      slots_(std::exchange(other.slots_, {})),
      pages_(std::exchange(other.pages_, {})) {}

KvStore& KvStore::operator=(KvStore&& other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(begin_, other.begin_);
  std::swap(end_, other.end_);
  std::swap(slots_, other.slots_);
  std::swap(pages_, other.pages_);
  return *this;
}

absl::Status KvStore::Reserve(int64_t rows) {
  // The open page is the only one that both exists and will be written.
  const size_t open = static_cast<size_t>(end_ / kPageTokens - FirstPage());
  if (rows > 0 && open < slots_.size() && pool_->IsShared(slots_[open])) {
    const absl::StatusOr<int64_t> copy = pool_->Take();
    if (!copy.ok()) return copy.status();
    for (int layer = 0; layer < pool_->layers(); ++layer) {
      std::byte*& page = pages_[static_cast<size_t>(layer)][open];
      std::byte* const own = pool_->Page(layer, *copy);
      std::memcpy(own, page, static_cast<size_t>(pool_->layout().PageBytes()));
      page = own;
    }
    pool_->Release(std::exchange(slots_[open], *copy));
  }
  const size_t before = slots_.size();
  const int64_t last_page = (end_ + rows + kPageTokens - 1) / kPageTokens;
  while (static_cast<int64_t>(slots_.size()) < last_page - FirstPage()) {
    const absl::StatusOr<int64_t> slot = pool_->Take();
    if (!slot.ok()) {
      DropPages(before);
      return slot.status();
    }
    slots_.push_back(*slot);
    for (int layer = 0; layer < pool_->layers(); ++layer) {
      pages_[static_cast<size_t>(layer)].push_back(pool_->Page(layer, *slot));
    }
  }
  return absl::OkStatus();
}

void KvStore::Truncate(int64_t length) {
  end_ = begin_ + length;
  const int64_t pages = (end_ + kPageTokens - 1) / kPageTokens - FirstPage();
  DropPages(length == 0 ? 0 : static_cast<size_t>(pages));
}

KvStore KvStore::Fork() const {
  KvStore fork(pool_, begin_);
  fork.end_ = end_;
  fork.slots_ = slots_;
  fork.pages_ = pages_;
  for (int64_t slot : slots_) pool_->AddReference(slot);
  return fork;
}

KvPages KvStore::Pages(int layer) const {
  const std::vector<std::byte*>& pages = pages_[static_cast<size_t>(layer)];
  return {pages.data(), FirstPage(), static_cast<int64_t>(pages.size()),
          begin_};
}

int64_t KvStore::SweepBytesPerLayer() const {
  const KvLayout& layout = pool_->layout();
  return length() * layout.kv_heads * (layout.KRowBytes() + layout.VRowBytes());
}

void KvStore::DropPages(size_t keep) {
  while (slots_.size() > keep) {
    pool_->Release(slots_.back());
    slots_.pop_back();
    for (std::vector<std::byte*>& pages : pages_) pages.pop_back();
  }
}

}  // namespace tiercel
