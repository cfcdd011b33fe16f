#include "kernels/system/system_pages.h"

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <memory>

#include "gtest/gtest.h"

namespace tiercel {
namespace {

// The address space of the process, in pages of the system.
int64_t ProcessPages() {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(
      std::fopen("/proc/self/statm", "r"), &std::fclose);
  long pages = 0;
  return file != nullptr && std::fscanf(file.get(), "%ld", &pages) == 1 ? pages
                                                                        : -1;
}

// The system maps exactly the requested bytes, also if they begin at a huge
// page, and none after they are given back.
TEST(SystemPagesTest, ExactlyThatIsTakenAndGivenBack) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  (void)ProcessPages();  // the memory of the first call stays
  for (const size_t bytes : {size_t{1}, size_t{64} << 10, size_t{3} << 20,
                             (size_t{5} << 20) + 12345}) {
    for (const Mapping mapping : {Mapping::kPromised, Mapping::kHoped}) {
      const int64_t before = ProcessPages();
      ASSERT_GT(before, 0);
      std::byte* blocks[8];
      for (std::byte*& block : blocks) {
        block = MapPages(bytes, mapping);
        ASSERT_NE(block, nullptr);
        block[bytes - 1] = std::byte{1};
      }
      const auto each = static_cast<int64_t>((bytes + page - 1) / page);
      EXPECT_EQ(ProcessPages() - before, 8 * each) << bytes;
      for (std::byte* block : blocks) UnmapPages(block, bytes);
      EXPECT_EQ(ProcessPages(), before) << bytes;
    }
  }
}

}  // namespace
}  // namespace tiercel
