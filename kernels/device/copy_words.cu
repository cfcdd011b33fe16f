// Bytes: those that are copied, over the link and to memory.
// Operations: none.
// Bound by: the link, 25 GB/s on PCIe 4; for lists of under 50 KB the launch.

#include "kernels/device/device_lang.h"
#include "kernels/machine/copy_words_body.h"

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

// A block copies a run: packets of 16 bytes, and what lies before and after
// them byte by byte.
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
      const auto skew =
          static_cast<int>(reinterpret_cast<uintptr_t>(run.to) % kPacket);
      int64_t head = skew == 0 ? 0 : kPacket - skew;
      if (head > bytes) head = bytes;
      const int64_t packets = (bytes - head) / kPacket;
      const int64_t tail = head + packets * kPacket;
      for (int64_t p = t.index; p < packets; p += t.count) {
        Store16(Load16(from + head + p * kPacket), run.to + head + p * kPacket);
      }
      if (t.index < head) run.to[t.index] = from[t.index];
      if (t.index < bytes - tail) {
        run.to[tail + t.index] = from[tail + t.index];
      }
    }
  }
};

}  // namespace

int UnpackCuda(CUstream_st* stream, const std::byte* packed,
               const PackedRun* runs, int64_t count) {
  return Launch(stream, TurnsFor(count, 1, Unpack::kMaxThreads),
                Unpack{packed, runs, count});
}

int CopyWordsCuda(CUstream_st* stream, const uint32_t* from, int64_t words,
                  uint32_t* to) {
  constexpr int kThreads = CopyWords::kMaxThreads;
  return Launch(stream, TurnsFor(words, kThreads, kThreads),
                CopyWords{from, words, to});
}

}  // namespace tiercel
