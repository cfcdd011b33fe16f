// Measures the copy engine alone, both ways, by the size of a transfer: the
// share of a simulated link's rate that it reaches, and if there is a GPU the
// rate of its link.
//
//   copy_bench --benchmark_filter='up.*25GB'
//   copy_bench --benchmark_filter=gpu
//
// A submission is 64 MiB in transfers of one size; two are always queued, as in
// a sweep. Beyond the rate at which one core copies the share falls: that is
// the machine's limit, not the engine's. A GPU copies from pinned memory by
// itself; from memory that cannot be pinned through two pinned buffers
// (buffered); and if these cannot be pinned either, by the driver (pageable).
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "benchmark/benchmark.h"
#include "kernels/device/cuda/cuda_driver.h"
#include "kernels/system/faults.h"
#include "offload/move/copy_engine.h"
#include "offload/move/gpu_link.h"

namespace tiercel {
namespace {

constexpr int64_t kBytes = 64 << 20;

template <typename T>
T OrExit(absl::StatusOr<T> made) {
  if (made.ok()) return *std::move(made);
  std::cerr << made.status() << std::endl;
  std::exit(1);
}

// Returns the rate, in bytes per second.
double Run(benchmark::State& state, std::unique_ptr<Link> link,
           DevicePtr<std::byte> device, Direction direction,
           int64_t transfer_bytes) {
  const HostRegion host = OrExit(HostRegion::Reserve(kBytes));
  const auto engine = OrExit(CopyEngine::Create(std::move(link)));
  std::vector<Transfer> transfers;
  for (int64_t at = 0; at < kBytes; at += transfer_bytes) {
    transfers.push_back({.direction = direction,
                         .host = &host,
                         .offset = at,
                         .device = device + at,
                         .bytes = transfer_bytes});
  }
  const auto submit = [&] { return engine->Submit(Phase::kVerify, transfers); };
  // The first submission populates and pins the memories, and is not timed.
  CopyEngine::Ticket last = submit();
  if (!engine->Wait(last).ok()) std::exit(1);
  last = submit();
  const auto start = std::chrono::steady_clock::now();
  int64_t bytes = 0;
  for (auto _ : state) {
    const CopyEngine::Ticket next = submit();
    if (!engine->Wait(last).ok()) std::exit(1);
    last = next;
    bytes += kBytes;
  }
  const std::chrono::duration<double> took =
      std::chrono::steady_clock::now() - start;
  if (!engine->Wait(last).ok()) std::exit(1);
  engine->Forget(host);
  state.SetBytesProcessed(bytes);
  return static_cast<double>(bytes) / took.count();
}

void RunSimulated(benchmark::State& state, Direction direction, double rate,
                  int64_t transfer_bytes) {
  std::vector<std::byte> device(kBytes, std::byte{1});
  auto link = std::make_unique<SimulatedLink>(
      rate, /*latency=*/0,
      std::make_unique<HostLink>(std::make_shared<Placement>()));
  state.counters["share"] = Run(state, std::move(link), InPlace(device.data()),
                                direction, transfer_bytes) /
                            rate;
}

// Copies on the GPU, where the first `refused` calls that pin memory fail.
void RunOnGpu(benchmark::State& state, Direction direction, int refused,
              int64_t transfer_bytes) {
  const auto gpu = OrExit(OpenGpu());
  auto device = OrExit(
      DeviceArray<std::byte>::Create(gpu->memory(), kBytes, "copy_bench"));
  FailingCall pin(Callee::kHost, "pin");
  if (refused > 0) pin.Arm(1, refused);
  auto link = std::make_unique<GpuLink>(*gpu, OrExit(OpenGpu()),
                                        std::make_shared<Placement>(gpu.get()));
  Run(state, std::move(link), device.data(), direction, transfer_bytes);
}

}  // namespace
}  // namespace tiercel

int main(int argc, char** argv) {
  using tiercel::Direction;
  const auto add = [](const std::string& name, const auto& run) {
    for (int64_t size = 16 << 10; size <= tiercel::kBytes; size *= 8) {
      benchmark::RegisterBenchmark(
          (name + "/" + std::to_string(size >> 10) + "KiB").c_str(),
          [run, size](benchmark::State& state) { run(state, size); })
          ->UseRealTime()
          ->Unit(benchmark::kMillisecond);
    }
  };
  const bool has_gpu = tiercel::OpenGpu().ok();
  // The host's memory is pinned in this many blocks. If so many pins fail, only
  // the buffers are pinned.
  constexpr int kBlocks = tiercel::kBytes / tiercel::GpuLink::kGroupBytes;
  for (const auto& [way, to] : {std::pair("up", Direction::kHostToDevice),
                                std::pair("down", Direction::kDeviceToHost)}) {
    for (const int rate : {2, 10, 25}) {
      add(std::string(way) + "/" + std::to_string(rate) + "GB",
          [to = to, rate](benchmark::State& state, int64_t size) {
            tiercel::RunSimulated(state, to, rate * 1e9, size);
          });
    }
    if (!has_gpu) continue;
    for (const auto& [kind, refused] :
         {std::pair("pinned", 0), std::pair("buffered", kBlocks),
          std::pair("pageable", 1 << 30)}) {
      add(std::string(way) + "/gpu/" + kind,
          [to = to, refused = refused](benchmark::State& state, int64_t size) {
            tiercel::RunOnGpu(state, to, refused, size);
          });
    }
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
