#include "offload/disk/page_file.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"
#include "offload/disk/page_reader.h"
#include "offload/disk/page_sum.h"

namespace tiercel {

PageFile::PageFile(DiskCalls& disk, int file, std::string name,
                   const KvLayout& layout, int layers, uint64_t begin,
                   int64_t pages, std::vector<uint64_t> sums,
                   std::shared_ptr<const void> open)
    : disk_(disk),
      file_(file),
      name_(std::move(name)),
      page_bytes_(static_cast<size_t>(layout.PageBytes())),
      layers_(layers),
      begin_(begin),
      slots_per_segment_(pages),
      open_(std::move(open)),
      writer_(disk_, file_, name_),
      sums_(std::move(sums)) {}

PageFile::PageFile(DiskCalls& disk, int file, std::string name,
                   const KvLayout& layout, int layers,
                   int64_t slots_per_segment)
    : disk_(disk),
      file_(file),
      name_(std::move(name)),
      page_bytes_(static_cast<size_t>(layout.PageBytes())),
      layers_(layers),
      begin_(0),
      slots_per_segment_(slots_per_segment),
      writer_(disk_, file_, name_) {}

PageFile::~PageFile() {
  if (open_ == nullptr) disk_.Close(file_);
}

// ---- Slots ----

int64_t PageFile::Take() {
  int64_t slot = slots_.Take();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (slot < 0) {
    sums_.resize(
        static_cast<size_t>((slots_.count() + slots_per_segment_) * layers_));
    slots_.Grow(slots_per_segment_);
    slot = slots_.Take();
  }
  // A damaged page in this slot was that of an earlier owner.
  std::erase_if(damaged_, [&](int64_t index) { return SlotOf(index) == slot; });
  return slot;
}

void PageFile::AddReference(int64_t slot) {
  if (open_ == nullptr) slots_.AddReference(slot);
}

void PageFile::Release(int64_t slot) {
  if (open_ == nullptr) slots_.Release(slot);
}

bool PageFile::IsShared(int64_t slot) const {
  return open_ != nullptr || slots_.IsShared(slot);
}

// ---- Bytes ----

absl::Status PageFile::Write(int layer, int64_t slot, const std::byte* page) {
  const uint64_t sum = PageSum(page, page_bytes_);
  {
    const std::lock_guard<std::mutex> lock(writing_);
    RETURN_IF_ERROR(writer_.Write(page, page_bytes_, OffsetOf(layer, slot)));
  }
  written_ += page_bytes_;
  const std::lock_guard<std::mutex> lock(mutex_);
  sums_[static_cast<size_t>(IndexOf(layer, slot))] = sum;
  NoteWell(IndexOf(layer, slot));
  return absl::OkStatus();
}

absl::Status PageFile::Read(int layer, int64_t slot, std::byte* to) {
  if (absl::Status s = ReadRange(disk_, file_, name_, OffsetOf(layer, slot), to,
                                 page_bytes_);
      !s.ok()) {
    NoteDamage(layer, slot);
    return s;
  }
  return Check(layer, slot, to);
}

absl::Status PageFile::Check(int layer, int64_t slot, const std::byte* page) {
  disk_.Forget(file_, OffsetOf(layer, slot), page_bytes_);
  const uint64_t sum = PageSum(page, page_bytes_);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (sums_[static_cast<size_t>(IndexOf(layer, slot))] == sum) {
      NoteWell(IndexOf(layer, slot));
      return absl::OkStatus();
    }
  }
  NoteDamage(layer, slot);
  return IoError("page_damaged",
                 absl::StrCat(name_, ": page ", slot, " of layer ", layer,
                              " does not have its checksum"));
}

void PageFile::NoteDamage(int layer, int64_t slot) {
  const std::lock_guard<std::mutex> lock(mutex_);
  NoteWell(IndexOf(layer, slot));
  damaged_.push_back(IndexOf(layer, slot));
}

void PageFile::NoteWell(int64_t index) { std::erase(damaged_, index); }

bool PageFile::IsDamaged(int64_t slot) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::any_of(damaged_.begin(), damaged_.end(),
                     [&](int64_t index) { return SlotOf(index) == slot; });
}

bool PageFile::AnyDamaged() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return !damaged_.empty();
}

// ---- A place in the host tier or in a file ----

void PageSlot::AddReference(PagePool& pool) const {
  if (file != nullptr) return file->AddReference(slot);
  pool.AddReference(slot);
}

void PageSlot::Release(PagePool& pool) const {
  if (file != nullptr) return file->Release(slot);
  pool.Release(slot);
}

bool PageSlot::IsShared(const PagePool& pool) const {
  return file != nullptr ? file->IsShared(slot) : pool.IsShared(slot);
}

}  // namespace tiercel
