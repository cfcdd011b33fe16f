#include "runtime/plan/disk_rate.h"

#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "kernels/system/clock.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"
#include "offload/disk/page_file.h"
#include "offload/move/disk_link.h"

namespace tiercel {
namespace {

constexpr size_t kBytes = size_t{64} << 20;
constexpr size_t kListBytes = size_t{8} << 20;  // about those of a layer
constexpr size_t kMostPasses = 12;
constexpr double kMostSeconds = 1.5;

double CpuSeconds() {
  timespec now = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) +
         1e-9 * static_cast<double>(now.tv_nsec);
}

// Reads all pages of the file once, a list at a time.
absl::StatusOr<DiskRate> ReadAll(DiskLink& link,
                                 const std::shared_ptr<PageFile>& pages,
                                 int64_t count, int64_t page_bytes,
                                 absl::FunctionRef<bool()> cancelled,
                                 Clock& clock) {
  const int64_t in_list =
      std::max(int64_t{1}, static_cast<int64_t>(kListBytes) / page_bytes);
  std::vector<std::byte> to(static_cast<size_t>(in_list * page_bytes));
  const std::atomic<bool> drop{false};
  const double cpu_before = CpuSeconds();
  const Clock::Time begin = clock.Now();
  for (int64_t first = 0; first < count; first += in_list) {
    if (cancelled()) return CancelledError();
    std::vector<Transfer> list;
    for (int64_t i = first; i < std::min(count, first + in_list); ++i) {
      list.push_back({.device = InPlace(to.data()) + (i - first) * page_bytes,
                      .bytes = page_bytes,
                      .file = pages,
                      .slot = i});
    }
    link.Begin(list);
    absl::Status status;
    for (const Transfer& transfer : list) {
      if (!status.ok()) break;
      status = link.Copy(transfer, begin, drop).status();
    }
    link.End(list);
    if (!status.ok()) return status;
  }
  const auto bytes = static_cast<double>(count * page_bytes);
  return DiskRate{
      .bytes_per_s = bytes / SecondsBetween(begin, clock.Now()),
      .bytes_per_cpu_s = bytes / std::max(1e-6, CpuSeconds() - cpu_before)};
}

}  // namespace

absl::StatusOr<DiskRate> MeasureDiskRate(DiskCalls& disk, int file,
                                         const KvLayout& layout,
                                         absl::FunctionRef<bool()> cancelled,
                                         Clock& clock) {
  const auto page_bytes = static_cast<size_t>(layout.PageBytes());
  const auto count = static_cast<int64_t>(kBytes / page_bytes + 1);
  const auto pages =
      std::make_shared<PageFile>(disk, file, "pages to measure the disk with",
                                 layout, /*layers=*/1, count);
  // Random bytes, so that no file system compresses them.
  std::vector<std::byte> page(page_bytes);
  std::minstd_rand random(1);
  for (std::byte& byte : page) byte = static_cast<std::byte>(random());
  for (int64_t i = 0; i < count; ++i) {
    if (cancelled()) return CancelledError();
    page[0] = static_cast<std::byte>(i);
    RETURN_IF_ERROR(pages->Write(/*layer=*/0, pages->Take(), page.data()));
  }
  disk.Sync(file);
  disk.Forget(file, 0, static_cast<uint64_t>(count) * page_bytes);
  ASSIGN_OR_RETURN(std::unique_ptr<DiskLink> link,
                   DiskLink::Create(std::make_unique<HostLink>(), disk,
                                    layout.PageBytes(), count));
  std::vector<DiskRate> rates;
  const Clock::Time begin = clock.Now();
  while (rates.size() < kMostPasses &&
         SecondsBetween(begin, clock.Now()) < kMostSeconds) {
    ASSIGN_OR_RETURN(
        const DiskRate rate,
        ReadAll(*link, pages, count, layout.PageBytes(), cancelled, clock));
    rates.push_back(rate);
  }
  if (rates.size() > 1) rates.erase(rates.begin());
  const auto middle =
      rates.begin() + static_cast<std::ptrdiff_t>(rates.size() / 2);
  std::nth_element(rates.begin(), middle, rates.end(),
                   [](const DiskRate& a, const DiskRate& b) {
                     return a.bytes_per_s < b.bytes_per_s;
                   });
  return *middle;
}

}  // namespace tiercel
