#include "kernels/machine/cuda_stream.h"

#include "kernels/machine/copy_words_body.h"
#include "kernels/machine/no_signals.h"
#include "lib/status/status_macros.h"

namespace tiercel {

// A driver starts threads of its own at its first call, hence NoSignals here.

int CudaStream::Gpus() {
  const NoSignals no_signals;
  const GpuFacts facts = FindGpu(0);
  return facts.error == kCudaSuccess ? facts.gpus : 0;
}

absl::StatusOr<std::unique_ptr<CudaStream>> CudaStream::Create(int gpu) {
  const NoSignals no_signals;
  GpuFacts facts = FindGpu(gpu);
  RETURN_IF_ERROR(CheckGpu(facts));
  std::unique_ptr<CudaStream> stream;
  facts.error = Open(gpu, &stream);
  RETURN_IF_ERROR(CheckGpu(facts));
  // A kernel that does nothing shows whether the build has any for the GPU.
  facts.error = CopyWordsCuda(stream->handle(), nullptr, 0, nullptr);
  RETURN_IF_ERROR(CheckGpu(facts));
  return stream;
}

}  // namespace tiercel
