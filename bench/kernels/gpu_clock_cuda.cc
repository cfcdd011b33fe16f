#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <memory>

#include "bench/kernels/gpu_clock.h"
#include "kernels/system/clock.h"
#include "lib/status/status_macros.h"

namespace tiercel {
namespace {

class Event {
 public:
  Event() { cudaEventCreate(&event_); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace

absl::StatusOr<Took> TimeOf(DeviceQueue& stream,
                            absl::FunctionRef<absl::Status()> queue) {
  CUstream_st* const handle = stream.handle();
  const Event begin;
  const Event end;
  const Clock::Time start = SteadyClock().Now();
  RETURN_IF_ERROR(CudaStatus("event", cudaEventRecord(begin.get(), handle)));
  RETURN_IF_ERROR(queue());
  RETURN_IF_ERROR(CudaStatus("event", cudaEventRecord(end.get(), handle)));
  const double host_s = SecondsBetween(start, SteadyClock().Now());
  RETURN_IF_ERROR(stream.Synchronize());
  float ms = 0.0f;
  const int error = cudaEventElapsedTime(&ms, begin.get(), end.get());
  RETURN_IF_ERROR(CudaStatus("event", error));
  return Took{static_cast<double>(ms) * 1e-3, host_s};
}

absl::StatusOr<std::optional<Took>> TimeOfGraph(
    DeviceQueue& stream, int launches, absl::FunctionRef<int()> launch) {
  CUstream_st* const handle = stream.handle();
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  cudaError_t error =
      cudaStreamBeginCapture(handle, cudaStreamCaptureModeThreadLocal);
  for (int i = 0; error == cudaSuccess && i < launches; ++i) {
    error = static_cast<cudaError_t>(launch());
  }
  const cudaError_t ended = cudaStreamEndCapture(handle, &graph);
  if (error == cudaSuccess) error = ended;
  if (error == cudaSuccess) error = cudaGraphInstantiate(&ready, graph, 0);
  if (graph != nullptr) cudaGraphDestroy(graph);
  RETURN_IF_ERROR(CudaStatus("graph", error));
  std::array<Took, 5> times = {};
  absl::Status status;
  for (size_t i = 0; status.ok() && i < times.size() + 1; ++i) {
    const absl::StatusOr<Took> took = TimeOf(stream, [&] {
      return CudaStatus("graph", cudaGraphLaunch(ready, handle));
    });
    status = took.status();
    if (status.ok() && i > 0) times[i - 1] = *took;
  }
  cudaGraphExecDestroy(ready);
  if (!status.ok()) return status;
  std::nth_element(
      times.begin(), times.begin() + times.size() / 2, times.end(),
      [](const Took& a, const Took& b) { return a.device_s < b.device_s; });
  return times[times.size() / 2];
}

}  // namespace tiercel
