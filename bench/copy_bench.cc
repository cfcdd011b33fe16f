// The copy engine alone: what share of a simulated link's rate arrives, by the
// size of a transfer, both ways.
//
//   copy_bench --benchmark_filter='up.*25GB'
//
// A submission is 64 MiB in transfers of one size; two are always queued, as a
// sweep does it. Above what one core copies the share falls: that is the
// machine's limit, not the engine's.
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "offload/move/copy_engine.h"

namespace tiercel {
namespace {

constexpr int64_t kBytes = 64 << 20;

void Run(benchmark::State& state, Direction direction, double rate,
         int64_t transfer_bytes) {
  const absl::StatusOr<HostRegion> host = HostRegion::ReserveUnmapped(kBytes);
  if (!host.ok()) std::exit(1);
  std::vector<std::byte> device(kBytes, std::byte{1});
  const absl::StatusOr<std::unique_ptr<CopyEngine>> engine =
      CopyEngine::Create(std::make_unique<SimulatedLink>(
          rate, /*latency=*/0,
          std::make_unique<HostLink>(std::make_shared<Placement>())));
  if (!engine.ok()) std::exit(1);
  std::vector<Transfer> transfers;
  for (int64_t at = 0; at < kBytes; at += transfer_bytes) {
    transfers.push_back({.direction = direction,
                         .host = &*host,
                         .offset = at,
                         .device = device.data() + at,
                         .bytes = transfer_bytes});
  }
  const auto submit = [&] {
    return (*engine)->Submit(Station::kVerify, transfers);
  };
  // Both memories are there before time counts.
  CopyEngine::Ticket last = submit();
  if (!(*engine)->Wait(last).ok()) std::exit(1);
  last = submit();
  const auto start = std::chrono::steady_clock::now();
  int64_t bytes = 0;
  for (auto _ : state) {
    const CopyEngine::Ticket next = submit();
    if (!(*engine)->Wait(last).ok()) std::exit(1);
    last = next;
    bytes += kBytes;
  }
  const std::chrono::duration<double> took =
      std::chrono::steady_clock::now() - start;
  state.counters["share"] = static_cast<double>(bytes) / took.count() / rate;
  state.SetBytesProcessed(bytes);
}

}  // namespace
}  // namespace tiercel

int main(int argc, char** argv) {
  using tiercel::Direction;
  for (const auto& [way, direction] :
       {std::pair("up", Direction::kHostToDevice),
        std::pair("down", Direction::kDeviceToHost)}) {
    for (const int rate : {2, 10, 25}) {
      for (int64_t size = 16 << 10; size <= tiercel::kBytes; size *= 8) {
        const std::string name = std::string(way) + "/" + std::to_string(rate) +
                                 "GB/" + std::to_string(size >> 10) + "KiB";
        benchmark::RegisterBenchmark(
            name.c_str(),
            [to = direction, rate, size](benchmark::State& state) {
              tiercel::Run(state, to, rate * 1e9, size);
            })
            ->UseRealTime()
            ->Unit(benchmark::kMillisecond);
      }
    }
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
