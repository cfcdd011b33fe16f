#ifndef TIERCEL_KERNELS_DEVICE_CUDA_CUDA_MODULE_FOR_TESTS_H_
#define TIERCEL_KERNELS_DEVICE_CUDA_CUDA_MODULE_FOR_TESTS_H_

#include <cstddef>

namespace tiercel {

// The state of a module without a GPU (cuda_module_for_tests.cc), whose memory
// is the host's and whose work is done at once. Its function
// tiercel_cuda_for_test returns it, for a test to set and to read.
struct CudaForTest {
  int driver = 13000;
  int gpus = 2;
  int capability = 89;
  size_t free = size_t{1} << 30;

  // The error of these calls; 0: none.
  int allocate = 0;
  int allocate_once = 0;  // the next call alone has it
  int record = 0;
  int query = 0;
  int wait = 0;
  int pin = 0;
  bool pins_elsewhere = false;  // kernels see pinned memory at another address

  // The calls so far.
  int cleared = 0;
  int records = 0;
  int waits_for_stream = 0;
  int waits_for_event = 0;
  int launches = 0;
  int gpu = -1;  // the last use_gpu named it
  // The streams and events that exist.
  int streams = 0;
  int events = 0;
};

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_DEVICE_CUDA_CUDA_MODULE_FOR_TESTS_H_
