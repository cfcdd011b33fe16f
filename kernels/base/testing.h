#ifndef TIERCEL_KERNELS_BASE_TESTING_H_
#define TIERCEL_KERNELS_BASE_TESTING_H_

// For tests of ops only.

#include <stdlib.h>

#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/base/isa.h"
#include "kernels/base/stream.h"

namespace tiercel {

// Outputs start as this, so that an element that was not written shows.
inline constexpr float kPoison = std::numeric_limits<float>::quiet_NaN();

inline std::unique_ptr<Stream> MakeStream(Device device, int threads = 1,
                                          Isa isa = SupportedIsas().back()) {
  const char* forced = getenv("TIERCEL_ISA");
  const std::string before = forced == nullptr ? "" : forced;
  setenv("TIERCEL_ISA", std::string(NameOf(isa)).c_str(), /*overwrite=*/1);
  absl::StatusOr<std::unique_ptr<Stream>> stream =
      Stream::Create({device, threads});
  setenv("TIERCEL_ISA", before.c_str(), /*overwrite=*/1);
  EXPECT_TRUE(stream.ok()) << stream.status();
  return std::move(stream).value();
}

// A sanitizer makes a test ten times slower: there it tries less, unless
// TIERCEL_ALL_SHAPES is set.
inline bool TriesLess() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return getenv("TIERCEL_ALL_SHAPES") == nullptr;
#else
  return false;
#endif
}

// The values to try: all, or these few where a test tries less.
inline std::vector<int64_t> Some(std::vector<int64_t> all,
                                 std::vector<int64_t> few) {
  return TriesLess() ? few : all;
}
// The same; the few are the first, the middle and the last.
inline std::vector<int64_t> Some(std::vector<int64_t> all) {
  if (!TriesLess() || all.size() <= 3) return all;
  return {all.front(), all[all.size() / 2], all.back()};
}

inline bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         (a.empty() ||
          std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

// For INSTANTIATE_TEST_SUITE_P over SupportedIsas().
inline std::string NameOfLevel(const testing::TestParamInfo<Isa>& level) {
  return std::string(NameOf(level.param));
}

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_BASE_TESTING_H_
