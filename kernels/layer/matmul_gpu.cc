#include "kernels/layer/matmul_gpu.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/device/cuda/blas_lt.h"
#include "kernels/device/cuda/cuda_driver.h"
#include "kernels/layer/fast_matmul.h"
#include "kernels/layer/matmul_body.h"
#include "kernels/layer/packed_layout.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {
namespace {

// The least number of rows that the library multiplies, which multiplies tiles
// of BlasLt::kRows at a time.
constexpr int64_t kLeastBlasRows = 64;

// One call on a GPU: its scratch memory, and the choice of a kernel or the
// library for each product.
class GpuMatmul {
 public:
  GpuMatmul(Stream& stream, const MatmulParams& p)
      : stream_(stream),
        queue_(stream.queue().handle()),
        p_(p),
        k_(p.outputs[0].weights->cols()),
        x_(p.x.raw()),
        x_stride_(p.x_stride),
        prologue_(p.prologue) {}

  // Outputs whose weights have the same type share a launch.
  absl::Status Run() {
    if (prologue_.op != MatmulPrologue::Op::kNone && !AllAreQ8()) {
      RETURN_IF_ERROR(RunPrologue(stream_, p_));
      x_ = prologue_.room.raw();
      x_stride_ = k_;
      prologue_ = {};
    }
    RETURN_IF_ERROR(TakeScratch());
    bool done[MatmulTargets::kMost] = {};
    for (int i = 0; i < p_.num_outputs; ++i) {
      if (done[i]) continue;
      MatmulTargets alike = {.of = {}, .scale = p_.scale};
      for (int j = i; j < p_.num_outputs; ++j) {
        if (p_.outputs[j].weights->type() != p_.outputs[i].weights->type()) {
          continue;
        }
        alike.of[alike.count++] = TargetOf(p_, p_.outputs[j], 0);
        done[j] = true;
      }
      RETURN_IF_ERROR(Multiply(i, alike));
    }
    return absl::OkStatus();
  }

 private:
  // The ways to a product: by int8 or float activations, with the reference's
  // bits; by the matrix unit's f16; by the library.
  enum class Way { kQ8, kF32, kF16, kBlas };

  Way WayOf(int i) const {
    const MatmulOutput& output = p_.outputs[i];
    const DType type = output.weights->type();
    if (stream_.blas() != nullptr && p_.rows >= kLeastBlasRows &&
        BlasLt::Takes(type, k_)) {
      return Way::kBlas;
    }
    const bool q8 = UsesQ8(p_, output);
    if (p_.fast && FastMatmulFits(type, k_) && (q8 || !IsQuantised(type))) {
      return Way::kF16;
    }
    return q8 ? Way::kQ8 : Way::kF32;
  }

  bool AllAreQ8() const {
    for (int i = 0; i < p_.num_outputs; ++i) {
      if (WayOf(i) != Way::kQ8) return false;
    }
    return true;
  }

  // The rows that are quantised, with the prologue that is still to be done.
  Activations Quantised() const {
    using Op = MatmulPrologue::Op;
    const float* const with = prologue_.with.raw();
    return {.x = x_,
            .x_stride = x_stride_,
            .rows = p_.rows,
            .k = k_,
            .norm = prologue_.op == Op::kNorm ? with : nullptr,
            .eps = prologue_.eps,
            .up = prologue_.op == Op::kGate ? with : nullptr};
  }

  // Scratch must be taken once per op, as queued kernels read it.
  absl::Status TakeScratch() {
    size_t q8_bytes = 0;
    size_t f16_bytes = 0;
    int64_t blas_n = 0;
    for (int i = 0; i < p_.num_outputs; ++i) {
      switch (WayOf(i)) {
        case Way::kQ8:
          q8_bytes = static_cast<size_t>(NumQ8Fragments(p_.rows, k_)) *
                     sizeof(Q8Fragments);
          break;
        case Way::kF16:
          f16_bytes = static_cast<size_t>(FastMatmulScratchBytes(p_.rows, k_));
          break;
        case Way::kBlas:
          blas_n = std::max(blas_n, p_.outputs[i].weights->rows());
          break;
        case Way::kF32:
          break;
      }
    }
    const size_t rounded_bytes =
        blas_n == 0 ? 0 : static_cast<size_t>(BlasLt::kRows * k_) * 2;
    const size_t products_bytes =
        static_cast<size_t>(BlasLt::kRows * blas_n) * sizeof(float);
    const size_t back_bytes = blas_n == 0 ? 0 : BlasLt::kRows * sizeof(float);
    const size_t bytes =
        q8_bytes + rounded_bytes + products_bytes + back_bytes + f16_bytes;
    if (bytes == 0) return absl::OkStatus();
    ASSIGN_OR_RETURN(const DevicePtr<std::byte> taken, stream_.Scratch(bytes));
    // All offsets stay aligned: fragments have 640 and 512 bytes, and the rows
    // for the library are 256, of 2 or 4 bytes an element.
    std::byte* at = taken.raw();
    const auto take = [&at]<typename T>(T** part, size_t size) {
      *part = reinterpret_cast<T*>(at);
      at += size;
    };
    take(&q8_, q8_bytes);
    take(&rounded_, rounded_bytes);
    take(&products_, products_bytes);
    take(&back_, back_bytes);
    take(&f16_, f16_bytes);
    if (f16_bytes > 0) {
      f16_back_ = reinterpret_cast<float*>(f16_ + NumF16Fragments(p_.rows, k_));
    }
    return absl::OkStatus();
  }

  absl::Status Multiply(int first, const MatmulTargets& alike) {
    switch (WayOf(first)) {
      case Way::kQ8:
        return MultiplyByQ8(alike);
      case Way::kF32:
        return CudaStatus(
            "Matmul", MultiplyF32Cuda(queue_, alike, x_, x_stride_, p_.rows));
      case Way::kF16:
        return MultiplyByF16(alike);
      case Way::kBlas:
        return MultiplyByBlas(alike);
    }
    return InternalError("internal", "Matmul: a product has no way");
  }

  absl::Status MultiplyByQ8(const MatmulTargets& alike) {
    if (!quantised_) {
      RETURN_IF_ERROR(
          CudaStatus("Matmul", QuantiseCuda(queue_, Quantised(), q8_)));
      quantised_ = true;
    }
    return CudaStatus("Matmul", MultiplyQ8Cuda(queue_, alike, q8_, p_.rows));
  }

  absl::Status MultiplyByF16(const MatmulTargets& alike) {
    if (!halved_) {
      RETURN_IF_ERROR(CudaStatus(
          "Matmul", RoundFragmentsCuda(queue_, x_, x_stride_, p_.rows, k_, f16_,
                                       f16_back_)));
      halved_ = true;
    }
    return CudaStatus("Matmul",
                      MultiplyF16Cuda(queue_, alike, f16_, f16_back_, p_.rows));
  }

  absl::Status MultiplyByBlas(const MatmulTargets& alike) {
    const DType type = alike.of[0].type;
    for (int64_t row = 0; row < p_.rows; row += BlasLt::kRows) {
      const int64_t rows = std::min(BlasLt::kRows, p_.rows - row);
      absl::Status s = CudaStatus(
          "Matmul", RoundRowsCuda(queue_, x_ + row * x_stride_, x_stride_, rows,
                                  BlasLt::kRows, k_, type, rounded_, back_));
      if (!s.ok()) return s;
      for (int i = 0; i < alike.count; ++i) {
        ScaledTarget target = {alike.of[i], alike.scale};
        target.out += row * target.out_stride;
        s = stream_.blas()->Multiply(
            queue_, {type, target.n, k_, target.panels, rounded_, products_});
        if (!s.ok()) return s;
        s = CudaStatus("Matmul",
                       StoreRowsCuda(queue_, products_, back_, rows, target));
        if (!s.ok()) return s;
      }
    }
    return absl::OkStatus();
  }

  Stream& stream_;
  CUstream_st* const queue_;
  const MatmulParams& p_;
  const int64_t k_;
  const float* x_;  // and its prologue, unless it is done
  int64_t x_stride_;
  MatmulPrologue prologue_;
  Q8Fragments* q8_ = nullptr;
  bool quantised_ = false;
  F16Fragments* f16_ = nullptr;
  bool halved_ = false;
  uint16_t* rounded_ = nullptr;
  float* products_ = nullptr;
  float* back_ = nullptr;      // factors that undo the scaling of rounded_
  float* f16_back_ = nullptr;  // ... and that of f16_
};

}  // namespace

absl::Status MultiplyOnGpu(Stream& stream, const MatmulParams& p) {
  return GpuMatmul(stream, p).Run();
}

}  // namespace tiercel
