#include "kernels/layer/expert_matmul.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/device/op.h"
#include "kernels/layer/gather_rows.h"
#include "kernels/layer/matmul_body.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {
namespace {

// The activations of a part of a group's items stay in the L2 cache of a core
// while an expert's panels pass by.
constexpr int64_t kPartBytes = 512 << 10;
// The least numbers of activations that are prepared, and of multiply-adds that
// are done, by several threads.
constexpr int64_t kParallelActivations = 16 << 10;
constexpr int64_t kMinRangeWork = 64 << 10;
constexpr int64_t kAlignment = 64;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t Aligned(int64_t bytes) {
  return CeilDiv(bytes, kAlignment) * kAlignment;
}

absl::Status Wrong(std::string_view code, const std::string& message) {
  return UsageError(code, "ExpertMatmul: " + message);
}

absl::Status ValidateOutput(const ExpertMatmulParams& p, PanelOrder order,
                            int i) {
  const ExpertMatmulOutput& output = p.outputs[i];
  const std::string name = absl::StrCat("outputs[", i, "]");
  if (output.weights == nullptr || output.weights->data() == nullptr) {
    return Wrong("invalid_argument", name + ".weights is null");
  }
  if (output.weights->order() != order) {
    return Wrong("invalid_argument",
                 name + ".weights are packed for another kind of device");
  }
  const int64_t k = p.outputs[0].weights->cols();
  if (output.weights->cols() != k) {
    return Wrong("invalid_sizes",
                 absl::StrCat(name, ".weights has k=", output.weights->cols(),
                              "; need k=", k, " like outputs[0]"));
  }
  if (p.items > 0 && output.out == nullptr) {
    return Wrong("invalid_argument", name + ".out is null");
  }
  if (output.out_stride < p.n) {
    return Wrong("invalid_sizes",
                 absl::StrCat(name, ".out_stride=", output.out_stride,
                              "; need at least n=", p.n));
  }
  return absl::OkStatus();
}

absl::Status ValidateGroups(const ExpertMatmulParams& p) {
  int64_t experts = p.outputs[0].weights->rows() / ExpertStride(p.n);
  for (int i = 1; i < p.num_outputs; ++i) {
    experts =
        std::min(experts, p.outputs[i].weights->rows() / ExpertStride(p.n));
  }
  int64_t end = 0;
  for (int64_t i = 0; i < p.num_groups; ++i) {
    const ExpertGroup& group = p.groups[i];
    if (group.expert < 0 || group.expert >= experts || group.begin != end ||
        group.end <= end || group.end > p.items) {
      return Wrong("invalid_argument",
                   absl::StrCat("groups[", i, "] has items ", group.begin,
                                " to ", group.end, " for expert ", group.expert,
                                "; need items from ", end, " on, ", p.items,
                                " in all, and an expert below ", experts));
    }
    end = group.end;
  }
  if (end == p.items) return absl::OkStatus();
  return Wrong("invalid_argument",
               absl::StrCat("groups cover ", end, " items; need ", p.items));
}

absl::Status Validate(const ExpertMatmulParams& p, PanelOrder order) {
  if (p.num_outputs < 1 || p.num_outputs > 2 || p.items < 0 || p.n < 1) {
    return Wrong(
        "invalid_sizes",
        absl::StrCat("num_outputs=", p.num_outputs, ", items=", p.items,
                     ", n=", p.n, "; need 1 or 2, 0 or more, 1 or more"));
  }
  for (int i = 0; i < p.num_outputs; ++i) {
    RETURN_IF_ERROR(ValidateOutput(p, order, i));
  }
  const int64_t k = p.outputs[0].weights->cols();
  if (p.x_stride < k) {
    return Wrong("invalid_sizes", absl::StrCat("x_stride=", p.x_stride,
                                               "; need at least k=", k));
  }
  if (p.items == 0) return absl::OkStatus();
  const char* const missing = p.x == nullptr        ? "x"
                              : p.groups == nullptr ? "groups"
                              : p.rows != nullptr && p.room == nullptr
                                  ? "room"
                                  : nullptr;
  if (missing != nullptr) {
    return Wrong("invalid_argument", absl::StrCat(missing, " is null"));
  }
  if (p.rows == nullptr && p.x_rows < p.items) {
    return Wrong("invalid_sizes",
                 absl::StrCat("x_rows=", p.x_rows, "; need ", p.items));
  }
  if (p.rows != nullptr) {
    RETURN_IF_ERROR(
        CheckIndices("ExpertMatmul: rows", p.rows, p.items, p.x_rows));
  }
  return ValidateGroups(p);
}

// Items of one expert that are multiplied together.
struct Part {
  int64_t first;
  int64_t items;
  int64_t expert;
};

// One call on the CPU. All experts' work is one region of the thread pool: with
// one row, an expert alone has too little for a region of its own.
class CpuExpertMatmul {
 public:
  CpuExpertMatmul(Stream& stream, const ExpertMatmulParams& p)
      : pool_(stream.pool()),
        bodies_(MatmulBodiesOf(stream)),
        p_(p),
        k_(p.outputs[0].weights->cols()),
        blocks_(k_ / 32),
        panels_(ExpertStride(p.n) / PackedMatrix::kPanelRows) {
    for (int i = 0; i < p.num_outputs; ++i) {
      const bool q8 = UsesQ8(i);
      any_q8_ = any_q8_ || q8;
      any_f32_ = any_f32_ || !q8;
      any_expanded_ =
          any_expanded_ || (!q8 && p.outputs[i].weights->type() != DType::kF32);
    }
    // A part has whole tiles of either kind, unless it ends its group.
    const int64_t tile_items =
        std::lcm(bodies_.q8_tile_rows, bodies_.f32_tile_rows);
    const int64_t item_bytes =
        any_f32_ ? k_ * 4 : blocks_ * static_cast<int64_t>(sizeof(Q8Block));
    part_items_ = CeilDiv(kPartBytes / item_bytes + 1, tile_items) * tile_items;
  }

  absl::Status Run(Stream& stream) {
    RETURN_IF_ERROR(TakeScratch(stream));
    Divide();
    // An activation is quantised once, for all experts that read it.
    if (any_q8_ && p_.rows != nullptr) {
      InParallel(p_.x_rows, p_.x_rows * k_, [&](int64_t row) {
        bodies_.quantise(Row(row), p_.x_stride, 1, k_,
                         of_rows_ + row * blocks_);
      });
    }
    InParallel(num_parts_, p_.items * k_,
               [&](int64_t part) { Prepare(parts_[part]); });
    Multiply();
    return absl::OkStatus();
  }

 private:
  const float* Row(int64_t row) const { return p_.x.raw() + row * p_.x_stride; }
  int64_t RowOf(int64_t item) const {
    return p_.rows != nullptr ? p_.rows[item] : item;
  }
  bool UsesQ8(int i) const {
    return p_.compute == Compute::kQ8 &&
           IsQuantised(p_.outputs[i].weights->type());
  }

  absl::Status TakeScratch(Stream& stream) {
    constexpr int64_t kBlock = sizeof(Q8Block);
    const bool gathers = any_q8_ && p_.rows != nullptr;
    const int64_t most_parts = p_.num_groups + p_.items / part_items_;
    const int64_t parts_bytes =
        Aligned(most_parts * static_cast<int64_t>(sizeof(Part)));
    const int64_t rows_bytes =
        gathers ? Aligned(p_.x_rows * blocks_ * kBlock) : 0;
    const int64_t q8_bytes = any_q8_ ? Aligned(p_.items * blocks_ * kBlock) : 0;
    const int64_t f32_bytes = any_f32_ ? Aligned(p_.items * k_ * 4) : 0;
    expanded_floats_ = any_expanded_ ? k_ * 16 * bodies_.expanded_panels : 0;
    const int64_t bytes = parts_bytes + rows_bytes + q8_bytes + f32_bytes +
                          4 * expanded_floats_ * pool_.num_threads();
    ASSIGN_OR_RETURN(const DevicePtr<std::byte> taken,
                     stream.Scratch(static_cast<size_t>(bytes)));
    std::byte* at = taken.raw();
    const auto take = [&at]<typename T>(T** part, int64_t size) {
      *part = reinterpret_cast<T*>(at);
      at += size;
    };
    take(&parts_, parts_bytes);
    take(&of_rows_, rows_bytes);
    take(&q8_, q8_bytes);
    take(&f32_, f32_bytes);
    expanded_ = reinterpret_cast<float*>(at);
    return absl::OkStatus();
  }

  // Divides the groups into parts.
  void Divide() {
    for (int64_t i = 0; i < p_.num_groups; ++i) {
      const ExpertGroup& group = p_.groups[i];
      for (int64_t first = group.begin; first < group.end;
           first += part_items_) {
        parts_[num_parts_++] = {first, std::min(part_items_, group.end - first),
                                group.expert};
      }
    }
  }

  // Calls body(i) for 0 <= i < n, by several threads if that is worth it.
  template <typename Body>
  void InParallel(int64_t n, int64_t activations, Body body) {
    const auto range = [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) body(i);
    };
    if (activations < kParallelActivations) return range(0, n, 0);
    pool_.ParallelFor(n, CeilDiv(n, 8 * pool_.num_threads()), range);
  }

  // Lays a part's activations out in tiles.
  void Prepare(const Part& part) {
    // A tile of one row is the row.
    const bool in_place = part.items == 1;
    for (int64_t i = 0; any_q8_ && i < part.items; i += bodies_.q8_tile_rows) {
      if (in_place && p_.rows != nullptr) break;
      const int64_t first = part.first + i;
      const auto items = static_cast<int>(
          std::min<int64_t>(bodies_.q8_tile_rows, part.items - i));
      Q8Block* const tile = q8_ + first * blocks_;
      if (p_.rows == nullptr) {
        bodies_.quantise(Row(first), p_.x_stride, items, k_, tile);
        continue;
      }
      for (int r = 0; r < items; ++r) {
        const Q8Block* const row = of_rows_ + RowOf(first + r) * blocks_;
        for (int64_t block = 0; block < blocks_; ++block) {
          tile[block * items + r] = row[block];
        }
      }
    }
    for (int64_t i = 0; any_f32_ && !in_place && i < part.items;
         i += bodies_.f32_tile_rows) {
      const int64_t first = part.first + i;
      const auto items = static_cast<int>(
          std::min<int64_t>(bodies_.f32_tile_rows, part.items - i));
      float* const tile = f32_ + first * k_;
      for (int r = 0; r < items; ++r) {
        const float* const row = Row(RowOf(first + r));
        for (int64_t j = 0; j < k_; ++j) tile[j * items + r] = row[j];
      }
    }
  }

  // A unit is (part, panel of any output), parts outermost.
  void Multiply() {
    const int64_t threads = pool_.num_threads();
    const int64_t of_part = p_.num_outputs * panels_;
    const int64_t units = num_parts_ * of_part;
    int64_t grain = threads == 1 ? units : CeilDiv(units, 16 * threads);
    const int64_t unit_work = 16 * k_ * CeilDiv(p_.items, num_parts_);
    grain = std::max(grain, CeilDiv(kMinRangeWork, unit_work));
    if (grain > 4) grain = CeilDiv(grain, 4) * 4;
    pool_.ParallelFor(
        units, grain, [&](int64_t begin, int64_t end, int thread) {
          while (begin < end) {
            const int64_t part = begin / of_part;
            const int64_t part_end = std::min(end, (part + 1) * of_part);
            MultiplyPanels(parts_[part], begin - part * of_part,
                           part_end - part * of_part, thread);
            begin = part_end;
          }
        });
  }

  // Multiplies panels [begin, end), which are counted through all outputs.
  void MultiplyPanels(const Part& part, int64_t begin, int64_t end,
                      int thread) {
    for (int i = 0; i < p_.num_outputs; ++i, begin -= panels_, end -= panels_) {
      const MatmulRange range = {std::max<int64_t>(begin, 0),
                                 std::min(end, panels_), 0, part.items};
      if (range.panel_begin >= range.panel_end) continue;
      const ScaledTarget target = TargetOf(part, i);
      const int64_t row = RowOf(part.first);
      if (UsesQ8(i)) {
        const bool in_place = part.items == 1 && p_.rows != nullptr;
        bodies_.q8(
            target, range,
            in_place ? of_rows_ + row * blocks_ : q8_ + part.first * blocks_);
      } else {
        bodies_.f32(target, range,
                    part.items == 1 ? Row(row) : f32_ + part.first * k_,
                    expanded_ + thread * expanded_floats_);
      }
    }
  }

  ScaledTarget TargetOf(const Part& part, int i) const {
    const ExpertMatmulOutput& output = p_.outputs[i];
    const PackedMatrix& weights = *output.weights;
    return {
        {weights.data().As<const uint8_t>().raw() +
             part.expert * panels_ * weights.panel_bytes(),
         weights.panel_bytes(), weights.type(), k_, p_.n,
         /*bias=*/nullptr, output.out.raw() + part.first * output.out_stride,
         output.out_stride, /*add=*/false},
        /*scale=*/1.0f};
  }

  ThreadPool& pool_;
  const MatmulBodies& bodies_;
  const ExpertMatmulParams& p_;
  const int64_t k_;
  const int64_t blocks_;  // in a row
  const int64_t panels_;  // in the matrix of an expert
  bool any_q8_ = false;
  bool any_f32_ = false;
  bool any_expanded_ = false;
  int64_t part_items_ = 0;       // at most
  int64_t expanded_floats_ = 0;  // per thread

  Part* parts_ = nullptr;
  int64_t num_parts_ = 0;
  Q8Block* of_rows_ = nullptr;  // [x_rows][blocks]
  Q8Block* q8_ = nullptr;       // tiles of all items
  float* f32_ = nullptr;        // tiles of all items
  float* expanded_ = nullptr;   // [threads][expanded_floats_]
};

absl::Status OnCpu(Stream& stream, const ExpertMatmulParams& p) {
  return CpuExpertMatmul(stream, p).Run(stream);
}

// Multiplies group by group, by Matmul.
absl::Status ByGroups(Stream& stream, const ExpertMatmulParams& p) {
  const int64_t k = p.outputs[0].weights->cols();
  DevicePtr<const float> x = p.x;
  int64_t x_stride = p.x_stride;
  if (p.rows != nullptr) {
    RETURN_IF_ERROR(GatherRows(stream, {.x = p.x,
                                        .x_stride = p.x_stride,
                                        .x_rows = p.x_rows,
                                        .rows = p.rows,
                                        .items = p.items,
                                        .dim = k,
                                        .out = p.room}));
    x = p.room;
    x_stride = k;
  }
  for (int64_t g = 0; g < p.num_groups; ++g) {
    const ExpertGroup& group = p.groups[g];
    MatmulParams own = {.x = x + group.begin * x_stride,
                        .x_stride = x_stride,
                        .rows = group.end - group.begin,
                        .compute = p.compute,
                        .num_outputs = p.num_outputs,
                        .outputs = {},
                        .fast = p.fast};
    PackedMatrix weights[2];
    for (int i = 0; i < p.num_outputs; ++i) {
      const ExpertMatmulOutput& output = p.outputs[i];
      weights[i] =
          output.weights->Borrow(group.expert * ExpertStride(p.n), p.n);
      own.outputs[i] = {&weights[i], nullptr,
                        output.out + group.begin * output.out_stride,
                        output.out_stride, StoreMode::kAssign};
    }
    RETURN_IF_ERROR(Matmul(stream, own));
  }
  return absl::OkStatus();
}

constexpr OpBodies<ExpertMatmulParams> kExpertMatmul = {
    .reference = ByGroups,
    .cpu = OnCpu,
    .gpu = ByGroups,
    .keep = [](ExpertMatmulParams& p, HostLists& lists) {
      if (p.rows != nullptr) p.rows = lists.Keep(p.rows, p.items);
      p.groups = lists.Keep(p.groups, p.num_groups);
    }};

}  // namespace

int64_t ExpertMatmulScratchBytes(int64_t x_rows, int64_t items, int64_t experts,
                                 int64_t k, int threads) {
  constexpr int64_t kMostExpanded = 4;  // panels
  const int64_t parts = experts + CeilDiv(items * k * 4, kPartBytes);
  return Aligned(parts * static_cast<int64_t>(sizeof(Part))) +
         Aligned(CeilDiv(x_rows * k, 32) *
                 static_cast<int64_t>(sizeof(Q8Block))) +
         Aligned(CeilDiv(items * k, 32) *
                 static_cast<int64_t>(sizeof(Q8Block))) +
         Aligned(items * k * 4) + threads * k * 16 * 4 * kMostExpanded;
}

absl::Status ExpertMatmul(Stream& stream, const ExpertMatmulParams& p) {
  RETURN_IF_ERROR(Validate(p, PackedMatrix::OrderFor(stream)));
  if (p.items == 0) return absl::OkStatus();
  return Run(kExpertMatmul, stream, p);
}

}  // namespace tiercel
