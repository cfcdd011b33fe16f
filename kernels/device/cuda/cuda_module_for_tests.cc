#include "kernels/device/cuda/cuda_module_for_tests.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "kernels/device/copies.h"
#include "kernels/device/cuda/cuda_calls.h"
#include "kernels/device/kernel_entry.h"
#include "kernels/device/kernels_sum.h"

// This file makes two modules: one of this build, and one that says that it is
// of another.
#ifndef TIERCEL_SUM_FOR_TEST
#define TIERCEL_SUM_FOR_TEST tiercel::kKernelsSum
#endif

namespace tiercel {
namespace {

CudaForTest state;

// A stream or an event.
template <typename T>
int Make(T** made, int& number) {
  *made = static_cast<T*>(std::malloc(1));
  ++number;
  return 0;
}
template <typename T>
int Destroy(T* made, int& number) {
  std::free(made);
  --number;
  return 0;
}

constexpr CudaCalls kCalls = {
    .runtime = 13000,
    .driver_version =
        [](int* version) {
          *version = state.driver;
          return 0;
        },
    .count_gpus =
        [](int* gpus) {
          *gpus = state.gpus;
          return 0;
        },
    .capability =
        [](int /*gpu*/, int* capability) {
          *capability = state.capability;
          return 0;
        },
    .pci_bus =
        [](int gpu, char* bus, int bytes) {
          std::snprintf(bus, static_cast<size_t>(bytes), "0000:0%d:00.0", gpu);
          return 0;
        },
    .use_gpu =
        [](int gpu) {
          state.gpu = gpu;
          return 0;
        },
    .clear_error = []() { return ++state.cleared, 0; },
    .error_text = [](int /*error*/) { return "an error of a test"; },

    .allocate =
        [](void** data, size_t bytes) {
          const int once = std::exchange(state.allocate_once, 0);
          const int error = once != 0 ? once : state.allocate;
          if (error == 0) *data = std::malloc(bytes);
          return error;
        },
    .release =
        [](void* data) {
          std::free(data);
          return 0;
        },
    .memory =
        [](size_t* free, size_t* total) {
          *free = *total = state.free;
          return 0;
        },
    .copy =
        [](void* to, const void* from, size_t bytes) {
          std::memcpy(to, from, bytes);
          return 0;
        },
    .wait_for_gpu = []() { return 0; },

    .create_stream = [](CUstream_st** s) { return Make(s, state.streams); },
    .destroy_stream = [](CUstream_st* s) { return Destroy(s, state.streams); },
    .wait_for_stream =
        [](CUstream_st* /*stream*/) {
          ++state.waits_for_stream;
          return state.wait;
        },
    .query_stream = [](CUstream_st* /*stream*/) { return state.query; },
    .queue_copy =
        [](CUstream_st* /*stream*/, void* to, const void* from, size_t bytes) {
          std::memcpy(to, from, bytes);
          return 0;
        },
    .queue_zero =
        [](CUstream_st* /*stream*/, void* to, size_t bytes) {
          std::memset(to, 0, bytes);
          return 0;
        },
    .create_event = [](CUevent_st** e) { return Make(e, state.events); },
    .destroy_event = [](CUevent_st* e) { return Destroy(e, state.events); },
    .record =
        [](CUevent_st* /*event*/, CUstream_st* /*stream*/) {
          ++state.records;
          return state.record;
        },
    .wait_for_event =
        [](CUevent_st* /*event*/) {
          ++state.waits_for_event;
          return state.wait;
        },

    .pin = [](void* /*host*/, size_t /*bytes*/) { return state.pin; },
    .unpin = [](void* /*host*/) { return 0; },
    .address_of_pinned =
        [](void** seen, void* pinned) {
          *seen = state.pins_elsewhere ? &state : pinned;
          return 0;
        },
};

// The only kernel.
TIERCEL_KERNEL_BODY(CopyWordsCuda, CUstream_st* /*stream*/,
                    const uint32_t* from, int64_t words,
                    DevicePtr<uint32_t> to) {
  ++state.launches;
  if (words > 0) {
    std::memcpy(to.raw(), from, static_cast<size_t>(words) * sizeof(*from));
  }
  return 0;
}

}  // namespace
}  // namespace tiercel

extern "C" __attribute__((visibility("default"))) const tiercel::CudaModule*
tiercel_cuda_module() {
  static const tiercel::CudaModule module = {
      TIERCEL_SUM_FOR_TEST, tiercel::kCalls, tiercel::KernelBody::first};
  return &module;
}

extern "C" __attribute__((visibility("default"))) tiercel::CudaForTest*
tiercel_cuda_for_test() {
  return &tiercel::state;
}
