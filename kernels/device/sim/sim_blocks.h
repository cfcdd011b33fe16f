#ifndef TIERCEL_KERNELS_DEVICE_SIM_SIM_BLOCKS_H_
#define TIERCEL_KERNELS_DEVICE_SIM_SIM_BLOCKS_H_

#include <cstddef>
#include <iterator>
#include <map>
#include <memory>

namespace tiercel {

// Runs of bytes that do not overlap, by their starts.
class AddressRanges {
 public:
  void Add(std::byte* start, size_t bytes) { ranges_[start] = bytes; }
  // Returns true if the range overlaps one of these.
  bool Meet(std::byte* start, size_t bytes) const {
    const auto after = ranges_.lower_bound(start);
    return Hold(start) ||
           (after != ranges_.end() && after->first < start + bytes);
  }
  void Remove(std::byte* start) { ranges_.erase(start); }
  bool Hold(const void* address) const {
    const auto* const at = static_cast<const std::byte*>(address);
    const auto after = ranges_.upper_bound(const_cast<std::byte*>(at));
    if (after == ranges_.begin()) return false;
    const auto& [start, bytes] = *std::prev(after);
    return at < start + bytes;
  }
  size_t SizeAt(const std::byte* start) const {
    return ranges_.at(const_cast<std::byte*>(start));
  }
  auto begin() const { return ranges_.begin(); }
  auto end() const { return ranges_.end(); }

 private:
  std::map<std::byte*, size_t> ranges_;
};

// The blocks of a simulated device's memory, which fault unless they are open.
// The bytes of a new block, and those between blocks, are kUntouched. (For TSan
// all memory is open, and nothing is filled, which would take hours.)
class SimBlocks {
 public:
  static constexpr std::byte kUntouched{0xff};  // NaN, in every type

  // Blocks that each end at a page that faults even when they are open. Opening
  // and closing them takes a call of the system for each.
  static std::unique_ptr<SimBlocks> Guarded();
  // Blocks in one run of addresses, which is opened and closed by one call. An
  // access after a block's end does not fault; Untouched finds it if it writes.
  static std::unique_ptr<SimBlocks> Dense();

  virtual ~SimBlocks() = default;

  // Returns a block at a multiple of kDeviceAlignment, closed; null: there is
  // no memory.
  virtual std::byte* Take(size_t bytes) = 0;
  virtual void Free(std::byte* data) = 0;
  virtual void Open() = 0;
  virtual void Close() = 0;

  // Returns the first byte after the block at `data` that was written, or null.
  // The memory is open.
  const std::byte* WrittenAfter(const std::byte* data) const;

  const AddressRanges& ranges() const { return ranges_; }

 protected:
  // The bytes that a block takes with those after it, which nothing writes.
  virtual size_t RoomOf(size_t bytes) const = 0;

  AddressRanges ranges_;
};

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_DEVICE_SIM_SIM_BLOCKS_H_
