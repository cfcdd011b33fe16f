#include "kernels/machine/cuda_stream.h"

#include "kernels/machine/copy_words_body.h"

namespace tiercel {

absl::StatusOr<std::unique_ptr<CudaStream>> CudaStream::Create() {
  GpuFacts facts = Look();
  if (absl::Status s = CheckGpu(facts); !s.ok()) return s;
  std::unique_ptr<CudaStream> stream;
  facts.error = Open(&stream);
  if (absl::Status s = CheckGpu(facts); !s.ok()) return s;
  // A kernel that has nothing to do shows whether there are any for the GPU.
  facts.error = CopyWordsCuda(stream->handle(), nullptr, 0, nullptr);
  if (absl::Status s = CheckGpu(facts); !s.ok()) return s;
  return stream;
}

}  // namespace tiercel
