#ifndef TIERCEL_OFFLOAD_KV_HELD_PAGES_H_
#define TIERCEL_OFFLOAD_KV_HELD_PAGES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "offload/kv/held_slots.h"
#include "offload/tier/page_pool.h"

namespace tiercel {

// Sets the cells of a page from number `cells` on to 0.
void ClearCells(int cells, const KvLayout& layout, std::byte* page);

// Pages of a sequence below the device, which stay as they are when this is
// made, whatever becomes of the sequence. Made and destroyed on the sequence's
// thread; Read may be called from any thread.
class HeldPages {
 public:
  virtual ~HeldPages() = default;

  virtual const KvLayout& layout() const = 0;
  virtual int layers() const = 0;
  virtual int64_t positions() const = 0;
  int64_t pages() const {
    return (positions() + kPageTokens - 1) / kPageTokens;
  }
  // Copies one layer of a page; cells after the last position become 0.
  // Errors: out_of_memory.
  virtual absl::Status Read(int layer, int64_t page, std::byte* to) const = 0;
};

// Pages of a pool. Whole pages are shared, as with a fork; if the last is not
// whole it is copied.
class PoolPages final : public HeldPages {
 public:
  // `slots` are those of the pages of positions [0, end); it may have more. The
  // pool is in host memory.
  PoolPages(std::shared_ptr<PagePool> pool, const std::vector<int64_t>& slots,
            int64_t end);
  // All pages are whole; some may be on disk.
  PoolPages(std::shared_ptr<PagePool> pool, std::vector<PageSlot> slots);

  const KvLayout& layout() const override { return pool_->layout(); }
  int layers() const override { return pool_->layers(); }
  int64_t positions() const override { return end_; }
  absl::Status Read(int layer, int64_t page, std::byte* to) const override;

 private:
  int64_t WholePages() const { return end_ / kPageTokens; }

  const std::shared_ptr<PagePool> pool_;
  const int64_t end_;
  const HeldSlots whole_;
  std::vector<std::vector<std::byte>> last_;  // [layer], or none
};

// The pages of a sequence whose KV heads are spread over several ranks, joined
// to pages that have all heads.
class JoinedPages final : public HeldPages {
 public:
  // The pages with some of the heads; `first_head` is the first of these.
  struct Part {
    std::unique_ptr<HeldPages> pages;
    int first_head;
  };
  // Every head of `layout` is in at least one part, and all parts have the same
  // number of positions.
  JoinedPages(const KvLayout& layout, std::vector<Part> parts)
      : layout_(layout), parts_(std::move(parts)) {}

  const KvLayout& layout() const override { return layout_; }
  int layers() const override { return parts_.front().pages->layers(); }
  int64_t positions() const override {
    return parts_.front().pages->positions();
  }
  absl::Status Read(int layer, int64_t page, std::byte* to) const override;

 private:
  const KvLayout layout_;
  const std::vector<Part> parts_;
};

// Copy heads [first_head, first_head + of.kv_heads) between a page that has all
// heads and a page that has these alone. Both have the same types.
void TakeHeads(const KvLayout& all, const std::byte* page, int first_head,
               const KvLayout& of, std::byte* some);
void PutHeads(const KvLayout& of, const std::byte* some, int first_head,
              const KvLayout& all, std::byte* page);

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_KV_HELD_PAGES_H_
