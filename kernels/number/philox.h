#ifndef TIERCEL_KERNELS_NUMBER_PHILOX_H_
#define TIERCEL_KERNELS_NUMBER_PHILOX_H_

#include <array>
#include <cstdint>

namespace tiercel {

// Philox4x32-10, a counter-based generator (Salmon et al. 2011, "Parallel
// random numbers: as easy as 1, 2, 3"): four random words are a pure function
// of key and counter, so a draw needs no state and can be repeated.
inline std::array<uint32_t, 4> Philox(std::array<uint32_t, 4> counter,
                                      uint64_t key) {
  uint32_t k0 = static_cast<uint32_t>(key);
  uint32_t k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * counter[0];
    const uint64_t p1 = uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<uint32_t>(p1 >> 32) ^ counter[1] ^ k0,
               static_cast<uint32_t>(p1),
               static_cast<uint32_t>(p0 >> 32) ^ counter[3] ^ k1,
               static_cast<uint32_t>(p0)};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return counter;
}

// A uniform double in (0, 1), never an end, from 32 random bits.
inline double OpenUniform(uint32_t bits) {
  return (static_cast<double>(bits) + 0.5) * 0x1p-32;
}
inline constexpr double kGreatestUniform = 1 - 0x1p-33;

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_NUMBER_PHILOX_H_
