// Bytes: those that are filled, or read.
// Operations: some integer instructions a word.
// Bound by: memory.

#include "bench/kernels/device_work.h"
#include "kernels/device/device_lang.h"

namespace tiercel {
namespace {

// Bits that look random, made from a number and a seed by a finaliser of two
// rounds.
TIERCEL_DEVICE uint32_t BitsOf(int64_t number, uint32_t seed) {
  auto x = static_cast<uint32_t>(number) * 0x9e3779b9u ^ seed ^
           static_cast<uint32_t>(number >> 32) * 0x85ebca6bu;
  x = (x ^ x >> 16) * 0x7feb352du;
  x = (x ^ x >> 15) * 0x846ca68bu;
  return x ^ x >> 16;
}

struct Fill {
  static constexpr int kMaxThreads = 256;
  struct Shared {};
  uint32_t* words;  // null: floats
  float* floats;
  int64_t count;
  uint32_t seed;

  TIERCEL_DEVICE void operator()(const Thread& t, Shared&) const {
    for (int64_t i = t.block * t.count + t.index; i < count;
         i += t.blocks * t.count) {
      const uint32_t bits = BitsOf(i, seed);
      if (words != nullptr) {
        words[i] = bits & 0xbfffbfffu;  // clears the exponents' highest bits
      } else {
        floats[i] = static_cast<float>(static_cast<int32_t>(bits)) * 0x1p-31f;
      }
    }
  }
};

struct Read {
  static constexpr int kMaxThreads = 256;
  static constexpr int kAtOnce = 4;
  struct Shared {};
  const uint32_t* from;
  int64_t packets;
  uint32_t* sums;

  TIERCEL_DEVICE void operator()(const Thread& t, Shared&) const {
    const int64_t threads = t.blocks * t.count;
    const int64_t own = t.block * t.count + t.index;
    uint32_t sum = 0;
    for (int64_t i = own; i < packets; i += kAtOnce * threads) {
      Packet<uint32_t> read[kAtOnce] = {};
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        if (i + j * threads < packets) {
          read[j] = Load16(from + 4 * (i + j * threads));
        }
      }
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        sum += read[j][0] ^ read[j][1] ^ read[j][2] ^ read[j][3];
      }
    }
    sums[own] = sum;
  }
};

struct Nothing {
  static constexpr int kMaxThreads = 32;
  struct Shared {};
  TIERCEL_DEVICE void operator()(const Thread&, Shared&) const {}
};

int LaunchFill(CUstream_st* stream, const Fill& fill) {
  return Launch(stream, TurnsFor(fill.count, 1024, Fill::kMaxThreads), fill);
}

}  // namespace

int FillHalves(CUstream_st* stream, DevicePtr<uint32_t> to, int64_t words,
               uint32_t seed) {
  return LaunchFill(stream, Fill{to.raw(), nullptr, words, seed});
}

int FillFloats(CUstream_st* stream, DevicePtr<float> to, int64_t count,
               uint32_t seed) {
  return LaunchFill(stream, Fill{nullptr, to.raw(), count, seed});
}

int ReadPackets(CUstream_st* stream, const uint32_t* from, int64_t packets,
                DevicePtr<uint32_t> sums) {
  const LaunchShape shape =
      TurnsFor(packets, Read::kAtOnce * Read::kMaxThreads, Read::kMaxThreads);
  static_assert((int64_t{1} << 12) * Read::kMaxThreads <= kReadSums);
  return Launch(stream, shape, Read{from, packets, sums.raw()});
}

int DoNothing(CUstream_st* stream) {
  return Launch(stream, {.blocks = 1, .threads = Nothing::kMaxThreads},
                Nothing{});
}

}  // namespace tiercel
