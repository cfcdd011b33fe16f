#include "kernels/device/sim/sim_blocks.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/device/device_memory.h"

namespace tiercel {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr bool kGuards = false;
#else
constexpr bool kGuards = true;
#endif

constexpr size_t kSmallPage = 4096;
constexpr size_t kLargePage = size_t{2} << 20;
constexpr size_t kMostBytes = PTRDIFF_MAX;

size_t Aligned(size_t bytes) {
  return static_cast<size_t>(AlignedBytes(static_cast<int64_t>(bytes)));
}

size_t WholePages(size_t bytes) {
  return (bytes + kSmallPage - 1) / kSmallPage * kSmallPage;
}

void Fill(std::byte* data, size_t bytes) {
  if (kGuards) {
    std::memset(data, static_cast<int>(SimBlocks::kUntouched), bytes);
  }
}

class GuardedBlocks final : public SimBlocks {
 public:
  std::byte* Take(size_t bytes) override {
    if (bytes > kMostBytes) return nullptr;
    const size_t room = WholePages(bytes);
    std::byte* const start = Map(room + kSmallPage);
    if (start == nullptr) return nullptr;
    Fill(start, room);
    if (kGuards) mprotect(start, room, PROT_NONE);
    mprotect(start + room, kSmallPage, PROT_NONE);
    // The guard gets another attribute than the block. Else the system would
    // merge both mappings each time that the block is closed, and split them
    // again.
    (void)madvise(start + room, kSmallPage, MADV_DONTFORK);
    std::byte* const data = start + room - Aligned(bytes);
    ranges_.Add(data, bytes);
    return data;
  }

  void Free(std::byte* data) override {
    const auto [start, bytes] = MappingOf(data);
    ranges_.Remove(data);
    munmap(start, bytes + kSmallPage);
  }

  void Open() override { Protect(PROT_READ | PROT_WRITE); }
  void Close() override { Protect(PROT_NONE); }

 private:
  struct Mapping {
    std::byte* start;
    size_t bytes;  // without the guard
  };

  // Maps new memory; null: there is none. Its pages are protected again and
  // again, so it has large ones, which are fewer, if possible.
  static std::byte* Map(size_t bytes) {
    const size_t spare = bytes < kLargePage ? 0 : kLargePage;
    void* const mapped = mmap(nullptr, bytes + spare, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) return nullptr;
    auto* const first = static_cast<std::byte*>(mapped);
    const size_t before =
        spare == 0 ? 0 : -reinterpret_cast<uintptr_t>(first) % kLargePage;
    if (before > 0) munmap(first, before);
    if (before < spare) munmap(first + before + bytes, spare - before);
    (void)madvise(first + before, bytes, MADV_HUGEPAGE);
    return first + before;
  }

  Mapping MappingOf(std::byte* data) const {
    const size_t bytes = ranges_.SizeAt(data);
    const size_t room = WholePages(bytes);
    return {data + Aligned(bytes) - room, room};
  }

  void Protect(int access) {
    for (const auto& [data, size] : ranges_) {
      const auto [start, bytes] = MappingOf(data);
      mprotect(start, bytes, access);
    }
  }

  size_t RoomOf(size_t bytes) const override { return Aligned(bytes); }
};

class DenseBlocks final : public SimBlocks {
 public:
  std::byte* Take(size_t bytes) override {
    if (base_ == nullptr && !Reserve()) return nullptr;
    if (bytes > kAddresses) return nullptr;
    const size_t room = RoomOf(bytes);
    std::byte* const data = Place(room);
    if (data == nullptr) return nullptr;
    ranges_.Add(data, bytes);
    const size_t end = static_cast<size_t>(data - base_) + room;
    end_ = std::max(end_, (end + kLargePage - 1) / kLargePage * kLargePage);
    Open();
    Fill(data, room);
    Close();
    return data;
  }

  void Free(std::byte* data) override {
    const size_t bytes = ranges_.SizeAt(data);
    ranges_.Remove(data);
    if (bytes < kLargePage) {
      Open();
      Fill(data, bytes);
      Close();
      return;
    }
    // The large pages of the block go back to the system.
    const auto first = reinterpret_cast<uintptr_t>(data);
    const uintptr_t begin = (first + kLargePage - 1) / kLargePage * kLargePage;
    const uintptr_t end = (first + bytes) / kLargePage * kLargePage;
    if (begin < end) {
      (void)madvise(data + (begin - first), end - begin, MADV_DONTNEED);
    }
  }

  void Open() override { Protect(PROT_READ | PROT_WRITE); }
  void Close() override {
    if (kGuards) Protect(PROT_NONE);
  }

 private:
  // The addresses of a device: more than a machine has memory.
  static constexpr size_t kAddresses = size_t{1} << 38;
  // The least number of bytes between blocks.
  static constexpr size_t kBetween = 64;

  bool Reserve() {
    void* const mapped =
        mmap(nullptr, kAddresses, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) return false;
    auto* const first = static_cast<std::byte*>(mapped);
    base_ = first + -reinterpret_cast<uintptr_t>(first) % kLargePage;
    // Large pages are fewer, and are opened and closed again and again.
    (void)madvise(base_, kAddresses - kLargePage, MADV_HUGEPAGE);
    return true;
  }

  // The first gap of `room` bytes; null: there is none.
  std::byte* Place(size_t room) const {
    std::byte* at = base_;
    for (const auto& [data, bytes] : ranges_) {
      if (static_cast<size_t>(data - at) >= room) return at;
      at = data + RoomOf(bytes);
    }
    const std::byte* const end = base_ + kAddresses - kLargePage;
    return static_cast<size_t>(end - at) >= room ? at : nullptr;
  }

  void Protect(int access) { mprotect(base_, end_, access); }

  size_t RoomOf(size_t bytes) const override {
    return Aligned(bytes) + kBetween;
  }

  std::byte* base_ = nullptr;  // null: nothing was taken yet
  size_t end_ = 0;             // large pages up to here have had blocks
};

}  // namespace

std::unique_ptr<SimBlocks> SimBlocks::Guarded() {
  return std::make_unique<GuardedBlocks>();
}

std::unique_ptr<SimBlocks> SimBlocks::Dense() {
  return std::make_unique<DenseBlocks>();
}

const std::byte* SimBlocks::WrittenAfter(const std::byte* data) const {
  if (!kGuards) return nullptr;  // nothing was filled
  const size_t bytes = ranges_.SizeAt(data);
  const std::byte* const end = data + RoomOf(bytes);
  const std::byte* const written = std::find_if(
      data + bytes, end, [](std::byte b) { return b != kUntouched; });
  return written == end ? nullptr : written;
}

}  // namespace tiercel
