// Attention's bodies for the far device (kernels/device/far_bodies.h). They are
// the CPU's, called for one row at a time, over pages in the device's memory.

#include <algorithm>
#include <vector>

#include "kernels/attention/attention_body.h"
#include "kernels/attention/attention_isas.h"
#include "kernels/device/far_bodies.h"
#include "kernels/machine/isa.h"

namespace tiercel {
namespace {

constexpr int kAlignFloats = 16;

// The best ISA of this CPU; all give the same bits. ChooseIsa cannot fail here,
// as no stream could have been made.
Isa Best() {
  static const Isa isa = ChooseIsa().value_or(Isa::kPortable);
  return isa;
}

bool Shows(const AttentionWave::Shown& shown, int64_t position) {
  for (int64_t i = 0; i < shown.ranges; ++i) {
    if (shown.bounds[2 * i] <= position && position < shown.bounds[2 * i + 1]) {
      return true;
    }
  }
  return false;
}

// The cells of a page that the row at position `row` sees.
CellSet SeenOf(const AttentionWave& w, int kv_head, int64_t page_start,
               int64_t row) {
  CellSet seen = {};
  for (int cell = 0; cell < kPageTokens; ++cell) {
    const int64_t position = page_start + cell;
    if (position < w.begin || position > row) continue;
    if (w.shown == nullptr || row - position < w.shown[kv_head].recent ||
        Shows(w.shown[kv_head], position)) {
      seen.word[cell / 64] |= uint64_t{1} << cell % 64;
    }
  }
  return seen;
}

bool IsEmpty(const CellSet& set) {
  return std::all_of(std::begin(set.word), std::end(set.word),
                     [](uint64_t word) { return word == 0; });
}

struct alignas(64) Lanes {
  float of[kAlignFloats];
};

class Wave {
 public:
  explicit Wave(const AttentionWave& w)
      : w_(w),
        group_(w.heads / w.layout.kv_heads),
        padded_((w.layout.head_dim + kAlignFloats - 1) / kAlignFloats *
                kAlignFloats),
        max_(static_cast<size_t>(w.num_pages * w.rows * w.heads)),
        sum_(max_.size()),
        out_(max_.size() * static_cast<size_t>(padded_)),
        scratch_(static_cast<size_t>(2 * kPageTokens * padded_ +
                                     kMaxTileQueries * kPageTokens) /
                 kAlignFloats) {}

  void Run() {
    for (int64_t page = 0; page < w_.num_pages; ++page) {
      for (int64_t row = 0; row < w_.rows; ++row) {
        for (int g = 0; g < w_.layout.kv_heads; ++g) Compute(page, row, g);
      }
    }
    for (int64_t query = 0; query < w_.rows * w_.heads; ++query) Fold(query);
  }

 private:
  // Computes one row over one page, for the query heads of one KV head.
  void Compute(int64_t page, int64_t row, int kv_head) {
    const KvLayout& kv = w_.layout;
    const AttentionWave::Page& at = w_.pages[page];
    const int64_t place = (page * w_.rows + row) * w_.heads + kv_head * group_;
    const CellSet seen = SeenOf(w_, kv_head, at.start, w_.position + row);
    if (IsEmpty(seen)) {
      std::fill_n(&sum_[static_cast<size_t>(place)], group_, 0.0f);
      return;
    }
    AttentionBlock b;
    b.q = w_.q + row * w_.q_stride + kv_head * group_ * kv.head_dim;
    b.q_stride = w_.q_stride;
    b.rows = 1;
    b.group = group_;
    b.head_dim = kv.head_dim;
    b.scale = w_.scale;
    b.k = at.at + kv.KOffset(kv_head, 0);
    b.v = at.at + kv.VOffset(kv_head, 0);
    b.type_k = kv.type_k;
    b.type_v = kv.type_v;
    b.k_row_bytes = kv.KRowBytes();
    b.v_row_bytes = kv.VRowBytes();
    b.next_k = nullptr;
    b.begin = 0;
    b.end = kPageTokens;
    b.recent = kPageTokens;  // all that is seen is in `fixed`
    b.fixed = seen;
    b.stride = w_.heads;
    b.max = &max_[static_cast<size_t>(place)];
    b.sum = &sum_[static_cast<size_t>(place)];
    b.out = &out_[static_cast<size_t>(place * padded_)];
    b.scratch = scratch_.front().of;
    kComputeBlock[Best()](b);
  }

  void Fold(int64_t query) {
    const auto at = static_cast<size_t>(query);
    AttentionFold f;
    f.max = &max_[at];
    f.sum = &sum_[at];
    f.out = &out_[at * static_cast<size_t>(padded_)];
    f.stride = w_.rows * w_.heads;
    f.out_stride = f.stride * padded_;
    f.pages = w_.num_pages;
    f.head_dim = w_.layout.head_dim;
    f.first = w_.first;
    f.last = w_.last;
    f.running_max = w_.running_max + query;
    f.running_sum = w_.running_sum + query;
    f.result = w_.result + query * w_.layout.head_dim;
    kFoldPages[Best()](f);
  }

  const AttentionWave& w_;
  const int group_;
  const int64_t padded_;
  std::vector<float> max_;  // [pages, rows, heads]
  std::vector<float> sum_;
  std::vector<float> out_;  // [.., padded_]
  std::vector<Lanes> scratch_;
};

// Computes row by row, as the partial results of all rows would take much room.
void FoldRows(const AttentionWave& w) {
  std::vector<float> running_max(static_cast<size_t>(w.heads));
  std::vector<float> running_sum(running_max.size());
  AttentionWave one = w;
  one.rows = 1;
  one.running_max = running_max.data();
  one.running_sum = running_sum.data();
  for (int64_t row = 0; row < w.rows; ++row) {
    Wave(one).Run();
    one.q += w.q_stride;
    ++one.position;
    one.result += w.heads * w.layout.head_dim;
  }
}

}  // namespace

int AttentionWaveCuda(CUstream_st* stream, const AttentionWave& w) {
  return Queue(stream, [w] { w.folds ? FoldRows(w) : Wave(w).Run(); });
}

}  // namespace tiercel
