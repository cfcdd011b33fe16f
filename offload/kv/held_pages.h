#ifndef TIERCEL_OFFLOAD_KV_HELD_PAGES_H_
#define TIERCEL_OFFLOAD_KV_HELD_PAGES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "offload/tier/page_pool.h"

namespace tiercel {

// Pages of a sequence in the host tier as they are when it is made, whatever
// becomes of the sequence: whole pages are shared, as with a fork, and the last
// one, if it is not whole, is copied. Made and destroyed on the thread of the
// pool's sequences; Read from any.
class HeldPages {
 public:
  // `slots` of the pages of positions [0, end), and maybe more. The pool is in
  // host memory.
  HeldPages(std::shared_ptr<PagePool> pool, const std::vector<int64_t>& slots,
            int64_t end);
  ~HeldPages();
  HeldPages(const HeldPages&) = delete;
  HeldPages& operator=(const HeldPages&) = delete;

  const KvLayout& layout() const { return pool_->layout(); }
  int layers() const { return pool_->layers(); }
  int64_t positions() const { return end_; }
  int64_t pages() const { return (end_ + kPageTokens - 1) / kPageTokens; }
  // Copies one layer of a page; cells behind the last position become 0.
  // Errors: out_of_memory.
  absl::Status Read(int layer, int64_t page, std::byte* to) const;

 private:
  int64_t WholePages() const { return end_ / kPageTokens; }

  const std::shared_ptr<PagePool> pool_;
  const int64_t end_;
  std::vector<int64_t> slots_;  // of whole pages
  // [layer][whole page]: the pool's own lists may change beside Read.
  std::vector<std::vector<PagePool::Location>> places_;
  std::vector<std::vector<std::byte>> last_;  // [layer], or none
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_KV_HELD_PAGES_H_
