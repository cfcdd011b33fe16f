#ifndef TIERCEL_OFFLOAD_PAGE_KV_STORE_H_
#define TIERCEL_OFFLOAD_PAGE_KV_STORE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "offload/page/page_pool.h"

namespace tiercel {

// One layer's pages of a sequence, as ops take them. Valid until the next
// Reserve, Truncate or move of the store.
struct KvPages {
  std::byte* const* pages;
  int64_t first_page;  // the page index of pages[0]
  int64_t num_pages;
  int64_t begin;  // the first position that exists
};

// The full, append-only KV of one sequence: positions [begin, end).
//
// A step reserves room, ops write K and V of the new positions layer by layer,
// and Commit makes them exist; what was written and not committed is nothing.
// Absolute positions decide pages: page i holds positions from
// i * kPageTokens on, wherever the sequence begins.
class KvStore {
 public:
  KvStore(std::shared_ptr<PagePool> pool, int64_t begin);
  ~KvStore();
  KvStore(KvStore&& other) noexcept;
  KvStore& operator=(KvStore&& other) noexcept;

  int64_t begin() const { return begin_; }
  int64_t end() const { return end_; }
  int64_t length() const { return end_ - begin_; }
  const KvLayout& layout() const { return pool_->layout(); }

  // Makes positions [end, end + rows) writable: takes pages and copies the
  // open page where a fork shares it. Errors: out_of_memory; nothing changed.
  absl::Status Reserve(int64_t rows);
  // Positions written in every layer exist from now on; rows <= reserved.
  void Commit(int64_t rows) { end_ += rows; }
  // Forgets all but the first `length` positions, reserved ones included.
  void Truncate(int64_t length);
  // The same sequence, sharing every page until one of the two writes it.
  KvStore Fork() const;

  KvPages Pages(int layer) const;

  // What a sweep over one layer reads: K and V rows of every position.
  int64_t SweepBytesPerLayer() const;

 private:
  int64_t FirstPage() const { return begin_ / kPageTokens; }
  void DropPages(size_t keep);

  std::shared_ptr<PagePool> pool_;
  int64_t begin_;
  int64_t end_;
  std::vector<int64_t> slots_;                  // [page]
  std::vector<std::vector<std::byte*>> pages_;  // [layer][page]
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_PAGE_KV_STORE_H_
