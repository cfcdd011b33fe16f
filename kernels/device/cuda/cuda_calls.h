#ifndef TIERCEL_KERNELS_DEVICE_CUDA_CUDA_CALLS_H_
#define TIERCEL_KERNELS_DEVICE_CUDA_CUDA_CALLS_H_

#include <cstddef>

struct CUevent_st;   // a cudaEvent_t points to it
struct CUstream_st;  // a cudaStream_t points to it

namespace tiercel {

struct KernelBody;

// The functions of the CUDA runtime that this program uses, which the module
// contains. Those that return an int return a cudaError_t. GPUs are numbered as
// the process sees them. The GPU of UseGpu is the calling thread's; functions
// without one of their own in the parameters use it.
struct CudaCalls {
  int runtime;  // the version of the runtime, as 13010 for 13.1

  int (*driver_version)(int* version);  // the newest it supports; 0: no driver
  int (*count_gpus)(int* gpus);
  int (*capability)(int gpu, int* capability);  // 90 for 9.0
  int (*pci_bus)(int gpu, char* bus, int bytes);
  int (*use_gpu)(int gpu);
  int (*clear_error)();  // returns the last error, and forgets it
  const char* (*error_text)(int error);

  int (*allocate)(void** data, size_t bytes);
  int (*release)(void* data);  // waits for the GPU
  int (*memory)(size_t* free, size_t* total);
  // A copy within the GPU's memory, which may not be done when it returns.
  int (*copy)(void* to, const void* from, size_t bytes);
  int (*wait_for_gpu)();

  int (*create_stream)(CUstream_st** stream);
  int (*destroy_stream)(CUstream_st* stream);
  int (*wait_for_stream)(CUstream_st* stream);
  int (*query_stream)(CUstream_st* stream);
  int (*queue_copy)(CUstream_st* stream, void* to, const void* from,
                    size_t bytes);
  int (*queue_zero)(CUstream_st* stream, void* to, size_t bytes);
  int (*create_event)(CUevent_st** event);
  int (*destroy_event)(CUevent_st* event);
  int (*record)(CUevent_st* event, CUstream_st* stream);
  int (*wait_for_event)(CUevent_st* event);  // the thread sleeps

  int (*pin)(void* host, size_t bytes);
  int (*unpin)(void* host);
  int (*address_of_pinned)(void** seen, void* pinned);  // as kernels see it
};

// The contents of a module, libtiercel-cuda.so, which its function
// tiercel_cuda_module returns.
struct CudaModule {
  // A checksum of all sources from which kernels are compiled. A program and
  // its module have the same. It comes first, so that any program can read it.
  const char* kernels_sum;
  CudaCalls calls;
  const KernelBody* kernels;
};

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_DEVICE_CUDA_CUDA_CALLS_H_
