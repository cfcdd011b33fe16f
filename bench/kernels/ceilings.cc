#include "bench/kernels/ceilings.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/kernels/device_work.h"
#include "bench/kernels/gpu_clock.h"
#include "kernels/device/cuda/cuda_driver.h"
#include "kernels/system/clock.h"
#include "kernels/system/resource_limits.h"
#include "kernels/system/thread_pool.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {
namespace {

constexpr int64_t kPiece = int64_t{16} << 20;

// Memory of the host that is mapped here and unmapped again: in large pages, or
// as a file in memory, whose pages are small.
class HostPiece {
 public:
  explicit HostPiece(int64_t bytes, bool of_file = false)
      : bytes_(static_cast<size_t>(bytes)) {
    const int file = of_file ? memfd_create("bench", MFD_CLOEXEC) : -1;
    if (of_file && (file < 0 || ftruncate(file, bytes) != 0)) return;
    const int kind = of_file ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
    void* const taken =
        mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, kind, file, 0);
    if (taken != MAP_FAILED) data_ = static_cast<std::byte*>(taken);
    if (file >= 0) close(file);
    if (data_ != nullptr) (void)madvise(data_, bytes_, MADV_HUGEPAGE);
  }
  ~HostPiece() {
    if (pinned_by_ != nullptr) pinned_by_->Unpin(data_);
    if (data_ != nullptr) munmap(data_, bytes_);
  }
  HostPiece(const HostPiece&) = delete;
  HostPiece& operator=(const HostPiece&) = delete;

  // Has the system populate all of it, by this many threads. Returns seconds.
  double Populate(int threads) {
    ThreadPool pool(threads);
    const Clock::Time begin = SteadyClock().Now();
    const auto all = static_cast<int64_t>(bytes_);
    pool.ParallelFor((all - 1) / kPiece + 1, 1,
                     [&](int64_t first, int64_t last, int) {
                       const int64_t end = std::min(last * kPiece, all);
                       (void)madvise(data_ + first * kPiece,
                                     static_cast<size_t>(end - first * kPiece),
                                     MADV_POPULATE_WRITE);
                     });
    return SecondsBetween(begin, SteadyClock().Now());
  }
  absl::Status Pin(DeviceQueue& stream) {
    const absl::Status status = stream.Pin(data_, bytes_);
    if (status.ok()) pinned_by_ = &stream;
    return status;
  }
  std::byte* data() const { return data_; }

 private:
  const size_t bytes_;
  std::byte* data_ = nullptr;
  DeviceQueue* pinned_by_ = nullptr;  // null: pageable
};

class Ceilings {
 public:
  Ceilings(
      Stream& stream, Inputs& inputs,
      absl::FunctionRef<void(const Ceiling&)> found,
      absl::FunctionRef<void(const std::string&, const absl::Status&)> refused)
      : stream_(stream), inputs_(inputs), found_(found), refused_(refused) {}

  void OfMemory() {
    const int64_t half = inputs_.halves() / 2 / 64 * 64;
    const DevicePtr<std::byte> data = inputs_.Room();
    Rate("device copy, read and written", 2 * half, [&] {
      return stream_.Copy(data + half, data, static_cast<size_t>(half));
    });
    const auto sums = inputs_.Out().As<uint32_t>();
    Rate("device read", 2 * half, [&] {
      return CudaStatus(
          "read", ReadPackets(stream_.queue().handle(),
                              data.As<uint32_t>().raw(), 2 * half / 16, sums));
    });
  }

  // Measures populating fresh memory, and pinning it once it is populated. The
  // former is the work of the system, and of a virtual machine's host.
  void OfPinning() {
    const int64_t bytes = std::min<int64_t>(32 * kPiece, inputs_.halves());
    const int all = AllowedCpus();
    for (const auto& [of_file, threads] :
         {std::pair(false, 1), std::pair(false, all), std::pair(true, all)}) {
      HostPiece piece(bytes, of_file);
      if (piece.data() == nullptr) return;
      const std::string what =
          absl::StrCat(of_file ? " in a file" : "", ", threads: ", threads);
      Tell(absl::StrCat("host memory found", what),
           static_cast<double>(bytes) / piece.Populate(threads) * 1e-9, "GB/s");
      const Clock::Time begin = SteadyClock().Now();
      if (const absl::Status s = piece.Pin(stream_.queue()); !s.ok()) {
        return refused_("pin", s);
      }
      Tell(absl::StrCat("pin, found before", what),
           static_cast<double>(bytes) /
               SecondsBetween(begin, SteadyClock().Now()) * 1e-9,
           "GB/s");
    }
  }

  void OfLink(int64_t large_bytes) {
    const auto other = OpenGpu();
    if (!other.ok()) return refused_("a second queue", other.status());
    for (const int64_t bytes : {kPiece, large_bytes}) {
      if (2 * bytes > inputs_.halves()) continue;
      const std::string size = absl::StrCat(bytes >> 20, " MiB");
      HostPiece up(bytes);
      HostPiece down(bytes);
      if (up.data() == nullptr || down.data() == nullptr) return;
      up.Populate(AllowedCpus());
      down.Populate(AllowedCpus());
      const DevicePtr<std::byte> device = inputs_.Room();
      const auto size_bytes = static_cast<size_t>(bytes);
      const int times = bytes == kPiece ? 16 : 1;
      const auto copy_up = [&] {
        absl::Status status;
        for (int i = 0; i < times; ++i) {
          status.Update(stream_.Copy(device, up.data(), size_bytes));
        }
        return status;
      };
      if (bytes == kPiece)
        Rate("up, pageable, " + size, times * bytes, copy_up);
      for (HostPiece* piece : {&up, &down}) {
        if (const absl::Status s = piece->Pin(stream_.queue()); !s.ok()) {
          return refused_("pinned copies", s);
        }
      }
      Rate("up, pinned, " + size, times * bytes, copy_up);
      Rate("down, pinned, " + size, times * bytes, [&] {
        absl::Status status;
        for (int i = 0; i < times; ++i) {
          status.Update(stream_.Copy(down.data(), device + bytes, size_bytes));
        }
        return status;
      });
      // Time counts until both queues have been waited for.
      const Clock::Time begin = SteadyClock().Now();
      absl::Status both = copy_up();
      for (int i = 0; i < times; ++i) {
        both.Update((*other)->Copy(down.data(), device + bytes, size_bytes));
      }
      both.Update(stream_.Synchronize());
      both.Update((*other)->Synchronize());
      if (both.ok()) {
        Tell("up and down at once, pinned, " + size,
             static_cast<double>(2 * times * bytes) /
                 SecondsBetween(begin, SteadyClock().Now()) * 1e-9,
             "GB/s");
      } else {
        refused_("up and down at once", both);
      }
      if (bytes != kPiece || !stream_.queue().KernelsSee(up.data())) continue;
      const auto sums = inputs_.Out().As<uint32_t>();
      Rate("a kernel reads pinned memory, " + size, bytes, [&] {
        return CudaStatus("read",
                          ReadPackets(stream_.queue().handle(),
                                      reinterpret_cast<uint32_t*>(up.data()),
                                      bytes / 16, sums));
      });
    }
  }

  void OfLaunches() {
    constexpr int kLaunches = 500;
    CUstream_st* const handle = stream_.queue().handle();
    const auto took = Best([&] {
      int error = 0;
      for (int i = 0; error == 0 && i < kLaunches; ++i) {
        error = DoNothing(handle);
      }
      return CudaStatus("launch", error);
    });
    if (took.ok()) {
      Tell("a launch, of 500 in a row", took->device_s / kLaunches * 1e6, "us");
      Tell("... that the host takes", took->host_s / kLaunches * 1e6, "us");
    } else {
      refused_("launches", took.status());
    }
    const auto graph = TimeOfGraph(stream_.queue(), kLaunches,
                                   [&] { return DoNothing(handle); });
    if (graph.ok() && graph->has_value()) {
      Tell("a launch, of 500 in a graph", (*graph)->device_s / kLaunches * 1e6,
           "us");
    } else if (!graph.ok()) {
      refused_("a graph", graph.status());
    }
  }

  // Measures the driver's blocks: the memory that an allocation takes.
  void OfAllocation() {
    for (const int64_t bytes :
         {int64_t{1}, int64_t{1}, int64_t{1} << 20, int64_t{3} << 20}) {
      const int64_t before = stream_.queue().FreeBytes();
      const auto some = DeviceArray<std::byte>::Create(
          stream_.queue().memory(), bytes, "bench: one block");
      if (!some.ok()) return refused_("allocation", some.status());
      kept_.push_back(*std::move(
          const_cast<absl::StatusOr<DeviceArray<std::byte>>&>(some)));
      Tell(absl::StrCat("taken for ", bytes, " bytes"),
           static_cast<double>(before - stream_.queue().FreeBytes()), "bytes");
    }
  }

 private:
  void Tell(const std::string& name, double value, const std::string& unit) {
    found_({name, value, unit});
  }

  absl::StatusOr<Took> Best(absl::FunctionRef<absl::Status()> queue) {
    Took best = {1e9, 1e9};
    for (int i = 0; i < 4; ++i) {  // the first warms up
      ASSIGN_OR_RETURN(const Took took, TimeOf(stream_.queue(), queue));
      if (i > 0 && took.device_s < best.device_s) best = took;
    }
    return best;
  }

  void Rate(const std::string& name, int64_t bytes,
            absl::FunctionRef<absl::Status()> queue) {
    const absl::StatusOr<Took> took = Best(queue);
    if (!took.ok()) return refused_(name, took.status());
    Tell(name, static_cast<double>(bytes) / took->device_s * 1e-9, "GB/s");
  }

  Stream& stream_;
  Inputs& inputs_;
  absl::FunctionRef<void(const Ceiling&)> found_;
  absl::FunctionRef<void(const std::string&, const absl::Status&)> refused_;
  std::vector<DeviceArray<std::byte>> kept_;
};

}  // namespace

absl::Status MeasureCeilings(
    Stream& stream, Inputs& inputs, int64_t large_bytes,
    absl::FunctionRef<void(const Ceiling&)> found,
    absl::FunctionRef<void(const std::string&, const absl::Status&)> refused) {
  Ceilings ceilings(stream, inputs, found, refused);
  ceilings.OfMemory();
  ceilings.OfLaunches();
  ceilings.OfAllocation();
  ceilings.OfPinning();
  ceilings.OfLink(large_bytes);
  return stream.queue().Check();
}

}  // namespace tiercel
