#include "kernels/layer/matmul.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/device/op.h"
#include "kernels/layer/matmul_body.h"
#include "kernels/layer/matmul_gpu.h"
#include "kernels/layer/packed_layout.h"
#include "kernels/layer/rms_norm.h"
#include "kernels/layer/swiglu.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {
namespace {

constexpr PerIsa<const MatmulBodies*> kBodies = {
    &portable::kMatmulBodies, &avx2::kMatmulBodies, &avx512::kMatmulBodies,
    &avx512vnni::kMatmulBodies, &avxvnni::kMatmulBodies};

// Rows are multiplied in groups, whose activations stay in the L2 cache of a
// core while all panels pass by.
constexpr int64_t kGroupBytes = 512 << 10;
// The least number of activations that are prepared by several threads.
constexpr int64_t kParallelActivations = 16 << 10;
// The least number of multiply-adds that are worth a thread.
constexpr int64_t kMinRangeWork = 64 << 10;
constexpr size_t kAlignment = 64;

absl::Status Missing(const std::string& what) {
  return UsageError("invalid_argument", "Matmul: " + what + " is null");
}

absl::Status Mismatch(const std::string& message) {
  return UsageError("invalid_sizes", "Matmul: " + message);
}

absl::Status ValidateOutput(const MatmulParams& p, PanelOrder order, int i) {
  const MatmulOutput& output = p.outputs[i];
  const std::string name = absl::StrCat("outputs[", i, "]");
  if (output.weights == nullptr || output.weights->data() == nullptr) {
    return Missing(name + ".weights");
  }
  if (output.weights->order() != order) {
    return UsageError("invalid_argument",
                      absl::StrCat("Matmul: ", name, ".weights are packed ",
                                   "for another kind of device"));
  }
  const int64_t k = p.outputs[0].weights->cols();
  if (output.weights->cols() != k) {
    return Mismatch(absl::StrCat(name,
                                 ".weights has k=", output.weights->cols(),
                                 "; need k=", k, " like outputs[0]"));
  }
  if (p.rows > 0 && output.out == nullptr) return Missing(name + ".out");
  if (output.out_stride < output.weights->rows()) {
    return Mismatch(absl::StrCat(name, ".out_stride=", output.out_stride,
                                 "; need at least n=", output.weights->rows()));
  }
  return absl::OkStatus();
}

absl::Status ValidatePrologue(const MatmulParams& p, int64_t k) {
  using Op = MatmulPrologue::Op;
  const MatmulPrologue& prologue = p.prologue;
  if (prologue.op == Op::kNone) return absl::OkStatus();
  if (prologue.op == Op::kGate && p.x_stride != k) {
    return Mismatch(
        absl::StrCat("x_stride=", p.x_stride, "; a gate needs k=", k));
  }
  if (prologue.op == Op::kNorm && !(prologue.eps > 0.0f)) {
    return Mismatch(
        absl::StrCat("prologue.eps=", prologue.eps, "; need eps > 0"));
  }
  if (p.rows == 0) return absl::OkStatus();
  if (prologue.with == nullptr) return Missing("prologue.with");
  if (prologue.room == nullptr) return Missing("prologue.room");
  return absl::OkStatus();
}

absl::Status Validate(const MatmulParams& p, PanelOrder order) {
  if (p.num_outputs < 1 || p.num_outputs > 3) {
    return Mismatch(
        absl::StrCat("num_outputs=", p.num_outputs, "; need 1 to 3"));
  }
  if (p.rows < 0) {
    return Mismatch(absl::StrCat("rows=", p.rows, "; need 0 or more"));
  }
  for (int i = 0; i < p.num_outputs; ++i) {
    RETURN_IF_ERROR(ValidateOutput(p, order, i));
  }
  const int64_t k = p.outputs[0].weights->cols();
  if (p.rows > 0 && p.x == nullptr) return Missing("x");
  if (p.x_stride < k) {
    return Mismatch(
        absl::StrCat("x_stride=", p.x_stride, "; need at least k=", k));
  }
  return ValidatePrologue(p, k);
}

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// One call on the CPU: scratch memory, and the rows of the current group.
class CpuMatmul {
 public:
  CpuMatmul(Stream& stream, const MatmulParams& p)
      : pool_(stream.pool()),
        bodies_(MatmulBodiesOf(stream)),
        p_(p),
        k_(p.outputs[0].weights->cols()) {
    for (int i = 0; i < p.num_outputs; ++i) {
      const bool q8 = UsesQ8(p, p.outputs[i]);
      any_q8_ = any_q8_ || q8;
      any_f32_ = any_f32_ || !q8;
      any_expanded_ =
          any_expanded_ || (!q8 && p.outputs[i].weights->type() != DType::kF32);
      panels_ += p.outputs[i].weights->panels();
    }
    // A group has whole tiles of either kind.
    const int64_t tile_rows =
        std::lcm(bodies_.q8_tile_rows, bodies_.f32_tile_rows);
    const int64_t row_bytes =
        any_f32_ ? k_ * 4 : k_ / 32 * static_cast<int64_t>(sizeof(Q8Block));
    group_rows_ = CeilDiv(kGroupBytes / row_bytes + 1, tile_rows) * tile_rows;
    group_rows_ = std::min(group_rows_, p.rows);
  }

  absl::Status Run(Stream& stream) {
    RETURN_IF_ERROR(TakeScratch(stream));
    for (row_ = 0; row_ < p_.rows; row_ += rows_) {
      rows_ = std::min(group_rows_, p_.rows - row_);
      if (any_q8_) {
        ForEachTile(bodies_.q8_tile_rows, [&](int64_t row, int rows) {
          bodies_.quantise(Row(row), p_.x_stride, rows, k_,
                           q8_ + row * (k_ / 32));
        });
      }
      if (any_f32_ && rows_ > 1) {
        ForEachTile(bodies_.f32_tile_rows, [&](int64_t row, int rows) {
          bodies_.transpose(Row(row), p_.x_stride, rows, k_, f32_ + row * k_);
        });
      }
      Multiply();
    }
    return absl::OkStatus();
  }

 private:
  const float* Row(int64_t row) const {
    return p_.x.raw() + (row_ + row) * p_.x_stride;
  }

  absl::Status TakeScratch(Stream& stream) {
    const auto aligned = [](size_t bytes) {
      return (bytes + kAlignment - 1) / kAlignment * kAlignment;
    };
    const size_t values = static_cast<size_t>(group_rows_ * k_);
    const size_t q8_bytes =
        any_q8_ ? aligned(values / 32 * sizeof(Q8Block)) : 0;
    const size_t f32_bytes =
        any_f32_ && group_rows_ > 1 ? aligned(values * sizeof(float)) : 0;
    expanded_floats_ = any_expanded_ && group_rows_ > 1
                           ? k_ * 16 * bodies_.expanded_panels
                           : 0;
    ASSIGN_OR_RETURN(
        const DevicePtr<std::byte> taken,
        stream.Scratch(q8_bytes + f32_bytes +
                       static_cast<size_t>(expanded_floats_) * sizeof(float) *
                           static_cast<size_t>(pool_.num_threads())));
    std::byte* const scratch = taken.raw();
    q8_ = reinterpret_cast<Q8Block*>(scratch);
    f32_ = reinterpret_cast<float*>(scratch + q8_bytes);
    expanded_ = reinterpret_cast<float*>(scratch + q8_bytes + f32_bytes);
    return absl::OkStatus();
  }

  // Calls body(first row of the tile within the group, number of its rows).
  template <typename Body>
  void ForEachTile(int tile_rows, Body body) {
    const auto tiles = [&](int64_t begin, int64_t end, int) {
      for (int64_t tile = begin; tile < end; ++tile) {
        const int64_t row = tile * tile_rows;
        body(row, static_cast<int>(std::min<int64_t>(tile_rows, rows_ - row)));
      }
    };
    const int64_t num_tiles = CeilDiv(rows_, tile_rows);
    if (rows_ * k_ < kParallelActivations) {
      tiles(0, num_tiles, 0);
    } else {
      pool_.ParallelFor(num_tiles, CeilDiv(num_tiles, 4 * pool_.num_threads()),
                        tiles);
    }
  }

  // An item is (part of the group's rows, panel of any output), parts
  // outermost. Rows are split only if panels alone do not keep all threads
  // busy.
  void Multiply() {
    const int64_t threads = pool_.num_threads();
    const int64_t tile_rows =
        std::lcm(bodies_.q8_tile_rows, bodies_.f32_tile_rows);
    const int64_t wanted_parts =
        threads == 1 ? 1 : CeilDiv(4 * threads, panels_);
    const int64_t part_rows =
        CeilDiv(CeilDiv(rows_, wanted_parts), tile_rows) * tile_rows;
    const int64_t parts = CeilDiv(rows_, part_rows);
    const int64_t units = parts * panels_;
    int64_t grain = threads == 1 ? units : CeilDiv(units, 4 * threads);
    const int64_t unit_work = 16 * k_ * std::min(rows_, part_rows);
    grain = std::max(grain, CeilDiv(kMinRangeWork, unit_work));
    if (grain > 4) grain = (grain + 3) / 4 * 4;
    pool_.ParallelFor(
        units, grain, [&](int64_t begin, int64_t end, int thread) {
          while (begin < end) {
            const int64_t part = begin / panels_;
            const int64_t part_end = std::min(end, (part + 1) * panels_);
            MultiplyPanels(
                {begin - part * panels_, part_end - part * panels_,
                 part * part_rows, std::min(rows_, (part + 1) * part_rows)},
                thread);
            begin = part_end;
          }
        });
  }

  // Multiplies a range of panels, which are counted through all outputs.
  void MultiplyPanels(const MatmulRange& range, int thread) {
    int64_t first = 0;
    for (int i = 0; i < p_.num_outputs; ++i) {
      const MatmulOutput& output = p_.outputs[i];
      const int64_t panels = output.weights->panels();
      MatmulRange own = range;
      own.panel_begin = std::max<int64_t>(range.panel_begin - first, 0);
      own.panel_end = std::min(range.panel_end - first, panels);
      first += panels;
      if (own.panel_begin >= own.panel_end) continue;
      const ScaledTarget target = TargetOf(p_, output, row_);
      if (UsesQ8(p_, output)) {
        bodies_.q8(target, own, q8_);
      } else {
        bodies_.f32(target, own, rows_ > 1 ? f32_ : Row(0),
                    expanded_ + thread * expanded_floats_);
      }
    }
  }

  ThreadPool& pool_;
  const MatmulBodies& bodies_;
  const MatmulParams& p_;
  const int64_t k_;
  bool any_q8_ = false;
  bool any_f32_ = false;
  bool any_expanded_ = false;
  int64_t panels_ = 0;  // panels of all outputs
  int64_t group_rows_ = 0;
  int64_t expanded_floats_ = 0;  // per thread

  Q8Block* q8_ = nullptr;      // tiles of the group
  float* f32_ = nullptr;       // tiles of the group, if it has several rows
  float* expanded_ = nullptr;  // [threads][expanded_floats_]
  int64_t row_ = 0;            // first row of the group
  int64_t rows_ = 0;           // rows of the group
};

// The parameters once the prologue is done.
MatmulParams AfterPrologue(const MatmulParams& p) {
  MatmulParams after = p;
  if (p.prologue.op == MatmulPrologue::Op::kNone) return after;
  after.x = p.prologue.room;
  after.x_stride = p.outputs[0].weights->cols();
  after.prologue = {};
  return after;
}

absl::Status OnReference(Stream& stream, const MatmulParams& params) {
  RETURN_IF_ERROR(RunPrologue(stream, params));
  const MatmulParams p = AfterPrologue(params);
  for (int i = 0; i < p.num_outputs; ++i) {
    const int64_t n = p.outputs[i].weights->rows();
    stream.pool().ParallelFor(n, CeilDiv(n, 4 * stream.pool().num_threads()),
                              [&](int64_t begin, int64_t end, int) {
                                MatmulReference(p, p.outputs[i], begin, end);
                              });
  }
  return absl::OkStatus();
}

absl::Status OnCpu(Stream& stream, const MatmulParams& p) {
  RETURN_IF_ERROR(RunPrologue(stream, p));
  const MatmulParams after = AfterPrologue(p);
  return CpuMatmul(stream, after).Run(stream);
}

constexpr OpBodies<MatmulParams> kMatmul = {
    .reference = OnReference, .cpu = OnCpu, .gpu = MultiplyOnGpu};

}  // namespace

const MatmulBodies& MatmulBodiesOf(const Stream& stream) {
  return *kBodies[stream.isa()];
}

bool UsesQ8(const MatmulParams& p, const MatmulOutput& output) {
  return p.compute == Compute::kQ8 && IsQuantised(output.weights->type());
}

absl::Status RunPrologue(Stream& stream, const MatmulParams& p) {
  const MatmulPrologue& prologue = p.prologue;
  const int64_t k = p.outputs[0].weights->cols();
  switch (prologue.op) {
    case MatmulPrologue::Op::kNone:
      return absl::OkStatus();
    case MatmulPrologue::Op::kNorm:
      return RmsNorm(stream, {.x = p.x,
                              .x_stride = p.x_stride,
                              .weight = prologue.with,
                              .eps = prologue.eps,
                              .rows = p.rows,
                              .groups = 1,
                              .dim = static_cast<int>(k),
                              .out = prologue.room,
                              .out_stride = k});
    case MatmulPrologue::Op::kGate:
      return Swiglu(stream, {.gate = p.x,
                             .up = prologue.with,
                             .rows = p.rows,
                             .dim = k,
                             .out = prologue.room});
  }
  return InternalError("internal", "Matmul: a prologue has no op");
}

ScaledTarget TargetOf(const MatmulParams& p, const MatmulOutput& output,
                      int64_t row) {
  const PackedMatrix& weights = *output.weights;
  return {{weights.data().As<const uint8_t>().raw(), weights.panel_bytes(),
           weights.type(), weights.cols(), weights.rows(), output.bias.raw(),
           output.out.raw() + row * output.out_stride, output.out_stride,
           output.store == StoreMode::kAdd},
          p.scale};
}

absl::Status Matmul(Stream& stream, const MatmulParams& p) {
  const PanelOrder order = PackedMatrix::OrderFor(stream);
  RETURN_IF_ERROR(Validate(p, order));
  if (p.rows == 0) return absl::OkStatus();
  return Run(kMatmul, stream, p);
}

}  // namespace tiercel
