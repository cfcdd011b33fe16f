#include "kernels/attention/attention_gpu.h"

#include <algorithm>
#include <span>
#include <vector>

#include "kernels/attention/attention_body.h"
#include "kernels/attention/attention_pages.h"
#include "kernels/attention/flash_attention.h"
#include "kernels/device/cuda/cuda_driver.h"
#include "kernels/device/device_types.h"
#include "lib/status/status_macros.h"

namespace tiercel {
namespace {

// The least number of pages of a wave, if there are as many.
constexpr int64_t kLeastPages = 8;
// The queries of a block of the GPU, if there are many.
constexpr int64_t kTileQueries = 32;

// The scratch memory: the lists that the kernels read besides q and KV, and the
// results of a wave.
struct Buffers {
  DevicePtr<AttentionWave::Page> pages;  // pages of all waves, if they are many
  DevicePtr<std::byte> shown;            // ShownOfHeads
  DevicePtr<float> floats;
};

// The size of `count` elements, aligned.
template <typename T>
int64_t BytesOf(DevicePtr<T>, int64_t count) {
  return AlignedBytes(count * static_cast<int64_t>(sizeof(T)));
}

// The views of all KV heads, and the bounds of their ranges after them: one
// list is sent by one launch.
class ShownOfHeads {
 public:
  explicit ShownOfHeads(const AttentionParams& p) {
    for (int head = 0; p.view != nullptr && head < p.layout.kv_heads; ++head) {
      const HeadView& view = p.view[head];
      for (const PositionRange& range : view.fixed) {
        bounds_.insert(bounds_.end(), {range.begin, range.end});
      }
      heads_.push_back({nullptr, std::ssize(view.fixed), view.recent});
    }
  }

  int64_t Bytes() const {
    return HeadBytes() + std::ssize(bounds_) * int64_t{sizeof(int64_t)};
  }

  // Returns the list as it is when it begins at `to` in a GPU's memory.
  std::vector<std::byte> At(DevicePtr<std::byte> to) {
    const auto* bounds = (to + HeadBytes()).As<const int64_t>().raw();
    for (AttentionWave::Shown& head : heads_) {
      head.bounds = bounds;
      bounds += 2 * head.ranges;
    }
    std::vector<std::byte> list;
    const auto append = [&list](const auto& part) {
      const auto bytes = std::as_bytes(std::span(part));
      list.insert(list.end(), bytes.begin(), bytes.end());
    };
    append(heads_);
    append(bounds_);
    return list;
  }

 private:
  int64_t HeadBytes() const {
    return std::ssize(heads_) * int64_t{sizeof(AttentionWave::Shown)};
  }

  std::vector<AttentionWave::Shown> heads_;
  std::vector<int64_t> bounds_;
};

// The pages that the kernels read, of the list's page numbers.
std::vector<AttentionWave::Page> PagesAt(const AttentionParams& p,
                                         const PageList& pages) {
  std::vector<AttentionWave::Page> list;
  for (int64_t i = 0; i < pages.count; ++i) {
    const int64_t page = pages.At(i);
    list.push_back({p.pages[page - p.first_page].raw(), page * kPageTokens});
  }
  return list;
}

class GpuCall {
 public:
  GpuCall(Stream& stream, const AttentionParams& p, int64_t wave_floats,
          int64_t folding_tiles)
      : stream_(stream), p_(p), shown_(p) {
    const int64_t queries = p.rows * (p.heads / p.layout.kv_heads);
    folds_ = p.layout.kv_heads * ((queries - 1) / kTileQueries + 1) >=
                 folding_tiles &&
             p.out.IsAligned(16) && p.part.is_whole();
    if (folds_) {
      block_rows_ = p.rows;
      wave_pages_ = PagesUpTo(p, p.rows - 1);
      return;
    }
    const int64_t query_floats = p.layout.head_dim + 2;
    const int64_t most_rows = std::clamp<int64_t>(
        wave_floats / kLeastPages / (p.heads * query_floats), 1, p.rows);
    const int64_t blocks = (p.rows - 1) / most_rows + 1;  // similar sizes
    block_rows_ = (p.rows - 1) / blocks + 1;
    wave_pages_ = std::clamp<int64_t>(
        wave_floats / (block_rows_ * p.heads * query_floats), 1,
        PagesUpTo(p, p.rows - 1));
  }

  absl::Status Run() {
    std::vector<std::byte> room(PageListBytes(p_));
    PageList pages = SeenPages(p_, 0, p_.rows, room.data());
    RETURN_IF_ERROR(CheckPages(p_, pages));
    RETURN_IF_ERROR(TakeScratch());
    for (int64_t row = 0; row < p_.rows; row += block_rows_) {
      const int64_t rows = std::min(block_rows_, p_.rows - row);
      if (rows < p_.rows) pages = SeenPages(p_, row, rows, room.data());
      RETURN_IF_ERROR(Rows(row, rows, pages));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status TakeScratch() {
    const int64_t pages = BytesOf(room_.pages, PagesUpTo(p_, p_.rows - 1));
    const int64_t shown = AlignedBytes(shown_.Bytes());
    const int64_t queries = block_rows_ * p_.heads;
    const int64_t floats =
        folds_ ? 0
               : wave_pages_ * queries * (p_.layout.head_dim + 2) + 2 * queries;
    ASSIGN_OR_RETURN(const DevicePtr<std::byte> scratch,
                     stream_.Scratch(static_cast<size_t>(
                         pages + shown + BytesOf(room_.floats, floats))));
    room_.pages = scratch.As<AttentionWave::Page>();
    room_.shown = scratch + pages;
    room_.floats = (scratch + pages + shown).As<float>();
    if (p_.view == nullptr) return absl::OkStatus();
    return Send(room_.shown, shown_.At(room_.shown));
  }

  template <typename T>
  absl::Status Send(DevicePtr<T> to, const std::vector<T>& from) {
    return stream_.Send(to, from.data(), from.size() * sizeof(T));
  }

  // Computes rows row..row + rows - 1 over the pages that they see.
  absl::Status Rows(int64_t row, int64_t rows, const PageList& pages) {
    const std::vector<AttentionWave::Page> list = PagesAt(p_, pages);
    const bool are_few = pages.count <= AttentionWave::Pages::kFew;
    if (!are_few) RETURN_IF_ERROR(Send(room_.pages, list));
    for (int64_t at = 0; at < pages.count; at += wave_pages_) {
      const int64_t size = std::min(wave_pages_, pages.count - at);
      AttentionWave::Pages of_wave = {};
      if (are_few) {
        std::copy_n(list.begin() + at, size, of_wave.few);
      } else {
        of_wave.list = room_.pages.raw() + at;
      }
      RETURN_IF_ERROR(
          Wave(row, rows, at == 0, of_wave, size, at + size == pages.count));
    }
    return absl::OkStatus();
  }

  // Computes a wave of `size` pages.
  absl::Status Wave(int64_t row, int64_t rows, bool first,
                    const AttentionWave::Pages& pages, int64_t size,
                    bool last) {
    const int64_t queries = rows * p_.heads;
    float* const out =
        room_.floats.raw();  // first: kernels write it by packets
    float* const max = out + size * queries * p_.layout.head_dim;
    float* const sum = max + size * queries;
    float* running_max =
        out + wave_pages_ * block_rows_ * p_.heads * (p_.layout.head_dim + 2);
    float* running_sum = running_max + queries;
    if (!p_.part.is_whole()) {
      running_max = p_.part.max.raw() + row * p_.heads;
      running_sum = p_.part.sum.raw() + row * p_.heads;
    }
    const AttentionWave wave = {
        .q = p_.q.raw() + row * p_.q_stride,
        .q_stride = p_.q_stride,
        .rows = rows,
        .heads = p_.heads,
        .scale = p_.scale,
        .layout = p_.layout,
        .num_pages = size,
        .begin = p_.begin,
        .position = p_.position + row,
        .shown = p_.view == nullptr
                     ? nullptr
                     : room_.shown.As<const AttentionWave::Shown>().raw(),
        .max = max,
        .sum = sum,
        .out = out,
        .running_max = running_max,
        .running_sum = running_sum,
        .first = first && !p_.Continues(),
        .last = last && p_.part.end == AttentionPart::kToTheEnd,
        .result = p_.out.raw() + row * p_.heads * p_.layout.head_dim,
        .folds = folds_};
    return CudaStatus("Attention",
                      AttentionWaveCuda(stream_.queue().handle(), wave, pages));
  }

  Stream& stream_;
  const AttentionParams& p_;
  ShownOfHeads shown_;
  bool folds_;          // a block of the GPU folds the pages that it reads
  int64_t block_rows_;  // rows whose partial results exist at the same time
  int64_t wave_pages_;
  Buffers room_;
};

// Computes all rows by the matrix unit.
absl::Status AttendFast(Stream& stream, const AttentionParams& p) {
  const PageList seen = SeenPages(p, 0, p.rows, /*room=*/nullptr);
  RETURN_IF_ERROR(CheckPages(p, seen));
  const std::vector<AttentionWave::Page> list = PagesAt(p, seen);
  ASSIGN_OR_RETURN(const DevicePtr<const AttentionWave::Page> pages,
                   SendToScratch(stream, list.data(), std::ssize(list)));
  return CudaStatus("Attention",
                    FlashAttentionCuda(stream.queue().handle(),
                                       {.q = p.q.raw(),
                                        .q_stride = p.q_stride,
                                        .rows = p.rows,
                                        .heads = p.heads,
                                        .scale = p.scale,
                                        .layout = p.layout,
                                        .pages = pages.raw(),
                                        .num_pages = std::ssize(list),
                                        .begin = p.begin,
                                        .position = p.position,
                                        .out = p.out.raw()}));
}

}  // namespace

absl::Status AttendOnGpu(Stream& stream, const AttentionParams& p,
                         int64_t wave_floats, int64_t folding_tiles) {
  if (p.fast && p.view == nullptr && p.part.is_whole() &&
      FlashAttentionFits(p.layout) && p.out.IsAligned(16)) {
    return AttendFast(stream, p);
  }
  return GpuCall(stream, p, wave_floats, folding_tiles).Run();
}

}  // namespace tiercel
