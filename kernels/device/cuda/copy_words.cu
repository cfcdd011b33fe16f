// Bytes: the copied ones, over the link and to memory.
// Operations: none.
// Bound by: the link, 25 GB/s on PCIe 4; for lists of under 50 KB the launch.

#include "kernels/device/copies.h"
#include "kernels/device/device_lang.h"

namespace tiercel {
namespace {

struct CopyWords {
  static constexpr int kMaxThreads = 256;
  struct Shared {};
  const uint32_t* from;
  int64_t words;
  uint32_t* to;

  TIERCEL_DEVICE void operator()(const Thread& t, Shared&) const {
    for (int64_t i = t.block * t.count + t.index; i < words;
         i += t.blocks * t.count) {
      to[i] = from[i];
    }
  }
};

// A block copies a run in packets of 16 bytes, and the bytes before the first
// and after the last packet one by one.
struct Unpack {
  static constexpr int kMaxThreads = 128;
  struct Shared {};
  const std::byte* packed;
  const PackedRun* runs;
  int64_t count;

  TIERCEL_DEVICE void operator()(const Thread& t, Shared&) const {
    constexpr int kPacket = 16;
    for (int64_t i = t.block; i < count; i += t.blocks) {
      const PackedRun run = runs[i];
      const auto bytes = static_cast<int64_t>(run.bytes);
      const std::byte* const from = packed + run.at;
      std::byte* const to = run.to.raw();
      const auto skew =
          static_cast<int>(reinterpret_cast<uintptr_t>(to) % kPacket);
      int64_t head = skew == 0 ? 0 : kPacket - skew;
      if (head > bytes) head = bytes;
      const int64_t packets = (bytes - head) / kPacket;
      const int64_t tail = head + packets * kPacket;
      for (int64_t p = t.index; p < packets; p += t.count) {
        Store16(Load16(from + head + p * kPacket), to + head + p * kPacket);
      }
      if (t.index < head) to[t.index] = from[t.index];
      if (t.index < bytes - tail) {
        to[tail + t.index] = from[tail + t.index];
      }
    }
  }
};

// Copies in units of 16, 4, 2 or 1 bytes, such that all sizes are multiples.
template <typename Unit>
struct CopyColumns {
  static constexpr int kMaxThreads = 256;
  struct Shared {};
  const Unit* from;
  int64_t from_stride;
  Unit* to;
  int64_t to_stride;
  int64_t rows;
  int64_t width;

  TIERCEL_DEVICE void operator()(const Thread& t, Shared&) const {
    for (int64_t i = t.block * t.count + t.index; i < rows * width;
         i += t.blocks * t.count) {
      const int64_t row = i / width;
      const int64_t column = i - row * width;
      to[row * to_stride + column] = from[row * from_stride + column];
    }
  }
};

template <typename Unit>
bool IsWhole(const ColumnsCopy& p) {
  constexpr auto kUnit = static_cast<int64_t>(sizeof(Unit));
  return p.from.IsAligned(sizeof(Unit)) && p.to.IsAligned(sizeof(Unit)) &&
         p.from_stride % kUnit == 0 && p.to_stride % kUnit == 0 &&
         p.bytes % kUnit == 0;
}

template <typename Unit>
int LaunchCopyColumns(CUstream_st* stream, const ColumnsCopy& p) {
  constexpr int kThreads = CopyColumns<Unit>::kMaxThreads;
  constexpr auto kUnit = static_cast<int64_t>(sizeof(Unit));
  return Launch(
      stream, TurnsFor(p.rows * p.bytes / kUnit, kThreads, kThreads),
      CopyColumns<Unit>{p.from.As<const Unit>().raw(), p.from_stride / kUnit,
                        p.to.As<Unit>().raw(), p.to_stride / kUnit, p.rows,
                        p.bytes / kUnit});
}

}  // namespace

TIERCEL_KERNEL_BODY(CopyColumnsCuda, CUstream_st* stream,
                    const ColumnsCopy& p) {
  using Packet16 = Packet<uint32_t>;
  return IsWhole<Packet16>(p)   ? LaunchCopyColumns<Packet16>(stream, p)
         : IsWhole<uint32_t>(p) ? LaunchCopyColumns<uint32_t>(stream, p)
         : IsWhole<uint16_t>(p) ? LaunchCopyColumns<uint16_t>(stream, p)
                                : LaunchCopyColumns<std::byte>(stream, p);
}

TIERCEL_KERNEL_BODY(UnpackCuda, CUstream_st* stream, const std::byte* packed,
                    const PackedRun* runs, int64_t count) {
  return Launch(stream, TurnsFor(count, 1, Unpack::kMaxThreads),
                Unpack{packed, runs, count});
}

TIERCEL_KERNEL_BODY(CopyWordsCuda, CUstream_st* stream, const uint32_t* from,
                    int64_t words, DevicePtr<uint32_t> to) {
  constexpr int kThreads = CopyWords::kMaxThreads;
  return Launch(stream, TurnsFor(words, kThreads, kThreads),
                CopyWords{from, words, to.raw()});
}

}  // namespace tiercel
