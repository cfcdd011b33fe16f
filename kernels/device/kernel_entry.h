#ifndef TIERCEL_KERNELS_DEVICE_KERNEL_ENTRY_H_
#define TIERCEL_KERNELS_DEVICE_KERNEL_ENTRY_H_

// Declares a function that launches a kernel. In a build without CUDA it has no
// address unless the host executor is linked, and no stream is on a GPU then.
#ifdef TIERCEL_CUDA
#define TIERCEL_KERNEL
#else
#define TIERCEL_KERNEL [[gnu::weak]]
#endif

#endif  // TIERCEL_KERNELS_DEVICE_KERNEL_ENTRY_H_
