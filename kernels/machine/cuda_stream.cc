#include "kernels/machine/cuda_stream.h"

#include "kernels/machine/copy_words_body.h"

namespace tiercel {

int CudaStream::Gpus() {
  const GpuFacts facts = Look(0);
  return facts.error == kCudaSuccess ? facts.gpus : 0;
}

absl::StatusOr<std::unique_ptr<CudaStream>> CudaStream::Create(int gpu) {
  GpuFacts facts = Look(gpu);
  if (absl::Status s = CheckGpu(facts); !s.ok()) return s;
  std::unique_ptr<CudaStream> stream;
  facts.error = Open(gpu, &stream);
  if (absl::Status s = CheckGpu(facts); !s.ok()) return s;
  // A kernel that has nothing to do shows whether there are any for the GPU.
  facts.error = CopyWordsCuda(stream->handle(), nullptr, 0, nullptr);
  if (absl::Status s = CheckGpu(facts); !s.ok()) return s;
  return stream;
}

}  // namespace tiercel
