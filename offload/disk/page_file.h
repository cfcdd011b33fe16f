#ifndef TIERCEL_OFFLOAD_DISK_PAGE_FILE_H_
#define TIERCEL_OFFLOAD_DISK_PAGE_FILE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "kernels/kv/kv_layout.h"
#include "offload/disk/disk_calls.h"
#include "offload/disk/file_writer.h"
#include "offload/tier/page_pool.h"
#include "offload/tier/slot_counter.h"

namespace tiercel {

// Pages of KV in an open file, for which the host tier is too small. A slot is
// one page in every layer, as in a PagePool. The file is either one of the
// prompt cache, whose slots are its pages and never change, or one without a
// name, which sequences write and which vanishes with the last of them. A page
// is read whole, and checked against the checksum that it was written with.
//
//   segment s, layer l:  [slots_per_segment][layout.PageBytes()]
//
// Slots are taken and released on the thread of their sequences; all else may
// be called from any thread.
class PageFile {
 public:
  // Takes `pages` pages of the prompt cache, which begin at byte `begin` of
  // `file`. `sums` are their checksums, [layer][page]. `open` keeps the file
  // open.
  PageFile(DiskCalls& disk, int file, std::string name, const KvLayout& layout,
           int layers, uint64_t begin, int64_t pages,
           std::vector<uint64_t> sums, std::shared_ptr<const void> open);
  // Takes an empty file, which is closed with this.
  PageFile(DiskCalls& disk, int file, std::string name, const KvLayout& layout,
           int layers, int64_t slots_per_segment);
  ~PageFile();
  PageFile(const PageFile&) = delete;
  PageFile& operator=(const PageFile&) = delete;

  // Returns a slot with one reference; only for a file that sequences write.
  int64_t Take();
  void AddReference(int64_t slot);
  void Release(int64_t slot);
  // Returns true if a writer must take another slot: slots of the prompt cache
  // are never written.
  bool IsShared(int64_t slot) const;
  int64_t slots_in_use() const { return slots_.in_use(); }

  DiskCalls& disk() const { return disk_; }
  int file() const { return file_; }
  const std::string& name() const { return name_; }
  size_t page_bytes() const { return page_bytes_; }
  uint64_t OffsetOf(int layer, int64_t slot) const {
    return begin_ + static_cast<uint64_t>(IndexOf(layer, slot)) * page_bytes_;
  }

  // Errors: disk_full, io_error.
  absl::Status Write(int layer, int64_t slot, const std::byte* page);
  // Reads and checks a page; one that cannot be read is noted as damaged.
  // Errors: page_damaged; io_error.
  absl::Status Read(int layer, int64_t slot, std::byte* to);
  // Checks that `page`, which was read from the slot, has the bytes that were
  // written there, and lets the system drop them from its cache. Errors:
  // page_damaged.
  absl::Status Check(int layer, int64_t slot, const std::byte* page);
  // Notes that the page cannot be read.
  void NoteDamage(int layer, int64_t slot);
  // Returns true if in some layer the last read of the slot's page failed, and
  // the page has not been written since.
  bool IsDamaged(int64_t slot) const;
  bool AnyDamaged() const;

  uint64_t written_bytes() const { return written_.load(); }

 private:
  void NoteWell(int64_t index);
  int64_t SlotOf(int64_t index) const {
    return index / slots_per_segment_ / layers_ * slots_per_segment_ +
           index % slots_per_segment_;
  }
  int64_t IndexOf(int layer, int64_t slot) const {
    return (slot / slots_per_segment_ * layers_ + layer) * slots_per_segment_ +
           slot % slots_per_segment_;
  }

  DiskCalls& disk_;
  const int file_;
  const std::string name_;
  const size_t page_bytes_;
  const int layers_;
  const uint64_t begin_;
  const int64_t slots_per_segment_;
  const std::shared_ptr<const void> open_;  // null: this closes the file
  SlotCounter slots_;
  std::atomic<uint64_t> written_{0};

  std::mutex writing_;  // guards writer_
  FileWriter writer_;
  mutable std::mutex mutex_;      // guards sums_ and damaged_
  std::vector<uint64_t> sums_;    // [IndexOf]
  std::vector<int64_t> damaged_;  // IndexOf of damaged pages
};

// The place of a page below the device: a slot of the host tier or of a file.
struct PageSlot {
  int64_t slot = -1;
  std::shared_ptr<PageFile> file = nullptr;  // null: it is in the host tier

  // Each calls the function of its name of the file, or of the host tier's
  // `pool`.
  void AddReference(PagePool& pool) const;
  void Release(PagePool& pool) const;
  bool IsShared(const PagePool& pool) const;
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_DISK_PAGE_FILE_H_
