#include "kernels/attention/attention.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/attention/attention_body.h"
#include "kernels/attention/attention_gpu.h"
#include "kernels/attention/attention_pages.h"
#include "kernels/device/cuda/cuda_driver.h"
#include "kernels/device/op.h"
#include "kernels/kv/kv_row.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {
namespace {

// VNNI has no instructions for floats.
constexpr PerIsa<ComputeBlockFn*> kComputeBlock = {
    portable::ComputeBlock, avx2::ComputeBlock, avx512::ComputeBlock,
    avx512::ComputeBlock};
constexpr PerIsa<FoldPagesFn*> kFoldPages = {
    portable::FoldPages, avx2::FoldPages, avx512::FoldPages, avx512::FoldPages};

// The number of queries that share one expansion of a page's K and V to floats.
// More queries make the expansion cheaper (it costs about as much as three
// queries); fewer make more items for the threads.
constexpr int kTileQueries = 192;

// The partial results held at a time, in floats: 8 MiB, which the last-level
// cache keeps until they are folded. One row over 128K positions and 32 heads
// of 128 needs 17 MiB and takes three waves.
constexpr int64_t kWaveFloats = int64_t{2} << 20;
// The share of kWaveFloats that one page of a block of rows may take. A wave
// then has 8 pages or more, so that threads rarely wait for each other.
constexpr int64_t kPageFloats = kWaveFloats / 8;

constexpr int64_t kAlignFloats = 16;

int64_t AlignUp(int64_t n, int64_t alignment) {
  return (n + alignment - 1) / alignment * alignment;
}

// The scratch of one thread: a page's K and V as floats, and the scores of a
// few queries.
int64_t BlockScratchFloats(int64_t padded_dim) {
  return 2 * kPageTokens * padded_dim + kMaxTileQueries * kPageTokens;
}

absl::Status Validate(const AttentionParams& p) {
  const KvLayout& kv = p.layout;
  RETURN_IF_ERROR(CheckQueryRows("Attention", p.rows, p.heads, p.q_stride, kv));
  for (DType type : {kv.type_k, kv.type_v}) {
    RETURN_IF_ERROR(CheckKvType("Attention", type, kv.head_dim));
  }
  constexpr int64_t kMaxPosition = int64_t{1} << 48;
  if (p.begin < 0 || p.position < p.begin || p.position > kMaxPosition ||
      p.rows > kMaxPosition) {
    return UsageError("invalid_position",
                      absl::StrCat("Attention: begin=", p.begin,
                                   ", position=", p.position, ", rows=", p.rows,
                                   "; need 0 <= begin <= position, both "
                                   "position and rows at most 2^48"));
  }
  if (p.rows == 0) return absl::OkStatus();
  const int64_t first = p.begin / kPageTokens;
  const int64_t last = (p.position + p.rows - 1) / kPageTokens;
  if (first < p.first_page || last - p.first_page >= p.num_pages) {
    return UsageError(
        "invalid_position",
        absl::StrCat("Attention: got ", p.num_pages, " pages from page ",
                     p.first_page, "; need pages ", first, " to ", last));
  }
  for (int head = 0; p.view != nullptr && head < kv.kv_heads; ++head) {
    RETURN_IF_ERROR(CheckHeadView(p.view[head], head));
  }
  if (p.part.is_whole()) return absl::OkStatus();
  const int64_t own = p.position / kPageTokens;
  const bool ends = p.part.end == AttentionPart::kToTheEnd;
  if (p.part.sum == nullptr || p.view != nullptr || p.part.first < first ||
      p.part.first > own ||
      (!ends && (p.part.end <= p.part.first || p.part.end > own))) {
    return UsageError(
        "invalid_position",
        absl::StrCat("Attention: a part from page ", p.part.first, " to ",
                     p.part.end, "; need a part without a view, of pages ",
                     first, " to ", own));
  }
  return absl::OkStatus();
}

// The division of the work into waves and items. It does not change the result:
// a block's bits depend on its query and its page alone, and blocks are folded
// in page order.
struct Division {
  int64_t padded_dim;
  int64_t block_rows;  // rows whose partial results exist at the same time
  int64_t wave_pages;  // pages whose partial results exist at the same time
  int64_t tile_rows;   // rows of a work item
  int64_t page_queries;
};

Division Divide(const AttentionParams& p) {
  Division division;
  division.padded_dim = AlignUp(p.layout.head_dim, kAlignFloats);
  const int64_t query_floats = division.padded_dim + 2;
  division.block_rows =
      std::clamp<int64_t>(kPageFloats / (p.heads * query_floats), 1, p.rows);
  division.page_queries = division.block_rows * p.heads;
  division.wave_pages = std::max<int64_t>(
      1, kWaveFloats / (division.page_queries * query_floats));
  division.tile_rows = std::clamp<int64_t>(
      kTileQueries / (p.heads / p.layout.kv_heads), 1, division.block_rows);
  return division;
}

// The scratch memory of one call.
struct Buffers {
  float* out;  // [wave_pages, block_rows, heads, padded_dim]
  float* max;  // [wave_pages, block_rows, heads]
  float* sum;
  float* running_max;  // [block_rows, heads]
  float* running_sum;
  float* threads;  // [threads, thread_floats]
  int64_t thread_floats;
  std::byte* list;  // [PageListBytes]
};

absl::Status Allocate(Stream& stream, const AttentionParams& p,
                      const Division& division, Buffers* buffers) {
  const int64_t pages = PagesUpTo(p, p.rows - 1);
  const int64_t queries =
      std::min(division.wave_pages, pages) * division.page_queries;
  const int64_t scalars = AlignUp(queries, kAlignFloats);
  const int64_t running = AlignUp(division.page_queries, kAlignFloats);
  const int64_t thread_floats = BlockScratchFloats(division.padded_dim);
  const int64_t total = queries * division.padded_dim + 2 * scalars +
                        2 * running +
                        stream.pool().num_threads() * thread_floats;
  ASSIGN_OR_RETURN(const DevicePtr<std::byte> taken,
                   stream.Scratch(static_cast<size_t>(total) * sizeof(float) +
                                  PageListBytes(p)));
  std::byte* const scratch = taken.raw();
  buffers->out = reinterpret_cast<float*>(scratch);
  buffers->max = buffers->out + queries * division.padded_dim;
  buffers->sum = buffers->max + scalars;
  buffers->running_max = buffers->sum + scalars;
  buffers->running_sum = buffers->running_max + running;
  buffers->threads = buffers->running_sum + running;
  buffers->thread_floats = thread_floats;
  buffers->list = scratch + static_cast<size_t>(total) * sizeof(float);
  return absl::OkStatus();
}

class Call {
 public:
  Call(Stream& stream, const AttentionParams& p, const Division& division,
       const Buffers& buffers)
      : stream_(stream), p_(p), division_(division), buffers_(buffers) {}

  // Computes rows row..row + rows - 1 over the pages that they see.
  void Rows(int64_t row, int64_t rows, const PageList& pages) {
    for (int64_t at = 0; at < pages.count; at += division_.wave_pages) {
      const PageList wave =
          pages.Part(at, std::min(division_.wave_pages, pages.count - at));
      ComputeWave(row, rows, wave);
      FoldWave(row, rows, wave, at == 0 && !p_.Continues());
    }
  }

 private:
  // A work item: one KV head of one page, for one tile of rows.
  struct Item {
    int64_t wave_page;
    int kv_head;
    int64_t tile;  // its first row in the block of rows
    const std::byte* k;
    // The cells of the page that the rows see, as in AttentionBlock.
    int64_t rows;
    int begin;
    int64_t end;
    int64_t recent;
    CellSet fixed;
    bool whole;   // each row sees every cell up to its own
    bool hidden;  // no row sees any
  };

  // Items are numbered in the order of memory, the tiles of one page one after
  // the other, so that they find the page in the cache.
  Item ItemOf(int64_t index, int64_t tiles, int64_t row, int64_t rows,
              const PageList& wave) const {
    const int64_t kv_heads = p_.layout.kv_heads;
    Item item;
    item.wave_page = index / tiles / kv_heads;
    item.kv_head = static_cast<int>(index / tiles % kv_heads);
    item.tile = index % tiles * division_.tile_rows;
    const int64_t page = wave.At(item.wave_page);
    item.k = p_.pages[page - p_.first_page].raw() +
             p_.layout.KOffset(item.kv_head, 0);

    const int64_t start = page * kPageTokens;
    const int64_t position = p_.position + row + item.tile;
    item.rows = std::min(division_.tile_rows, rows - item.tile);
    item.begin = static_cast<int>(std::max(p_.begin - start, int64_t{0}));
    item.end = position + 1 - start;
    FindKeys(position, page, &item);
    return item;
  }

  // Sets the cells of the item's page that the view shows.
  void FindKeys(int64_t position, int64_t page, Item* item) const {
    constexpr int64_t kEver = int64_t{1} << 60;
    item->recent = -kEver;
    item->fixed = {};
    item->whole = true;
    item->hidden = item->end + item->rows <= 1;  // in the future of all rows
    if (p_.view == nullptr) return;
    const HeadView& view = p_.view[item->kv_head];
    const int64_t recent =
        position + 1 - page * kPageTokens - std::min(view.recent, kEver);
    if (recent + item->rows - 1 <= item->begin) return;
    const CellSet fixed = CellsOf(view.fixed, page);
    if (std::all_of(std::begin(fixed.word), std::end(fixed.word),
                    [](uint64_t word) { return word == ~uint64_t{0}; })) {
      return;
    }
    item->recent = recent;
    item->fixed = fixed;
    item->whole = false;
    // The start of the window of the first row that is not before the page.
    const int64_t window = recent + std::max(1 - item->end, int64_t{0});
    item->hidden = item->hidden ||
                   (window >= kPageTokens &&
                    std::all_of(std::begin(fixed.word), std::end(fixed.word),
                                [](uint64_t word) { return word == 0; }));
  }

  void ComputeWave(int64_t row, int64_t rows, const PageList& wave) {
    const int64_t tiles =
        (rows + division_.tile_rows - 1) / division_.tile_rows;
    const int64_t items = wave.count * p_.layout.kv_heads * tiles;
    // A decode step's items take a microsecond each and are bound by memory: a
    // range of them prefetches across items. A prompt's items take a hundred
    // times longer.
    const int64_t ranges = int64_t{12} * stream_.pool().num_threads();
    const int64_t grain =
        tiles > 1 ? 1 : std::clamp<int64_t>(items / ranges, 1, 16);
    stream_.pool().ParallelFor(
        items, grain, [&](int64_t begin, int64_t end, int thread) {
          Item item = ItemOf(begin, tiles, row, rows, wave);
          for (int64_t i = begin; i < end; ++i) {
            Item next;
            if (i + 1 < end) next = ItemOf(i + 1, tiles, row, rows, wave);
            const bool ahead = i + 1 < end && next.whole && !next.hidden;
            ComputeItem(row, item, ahead ? next.k : nullptr, thread);
            item = next;
          }
        });
  }

  void ComputeItem(int64_t row, const Item& item, const std::byte* next_k,
                   int thread) {
    const KvLayout& kv = p_.layout;
    const int group = p_.heads / kv.kv_heads;
    const int64_t query = item.wave_page * division_.page_queries +
                          item.tile * p_.heads + int64_t{item.kv_head} * group;
    if (item.hidden) {
      for (int64_t r = 0; r < item.rows; ++r) {
        std::fill_n(buffers_.sum + query + r * p_.heads, group, 0.0f);
      }
      return;
    }
    AttentionBlock b;
    b.q = p_.q.raw() + (row + item.tile) * p_.q_stride +
          int64_t{item.kv_head} * group * kv.head_dim;
    b.q_stride = p_.q_stride;
    b.rows = static_cast<int>(item.rows);
    b.group = group;
    b.head_dim = kv.head_dim;
    b.scale = p_.scale;
    b.k = item.k;
    b.v = b.k + kv.VOffset(item.kv_head, 0) - kv.KOffset(item.kv_head, 0);
    b.next_k = next_k;
    b.type_k = kv.type_k;
    b.type_v = kv.type_v;
    b.k_row_bytes = kv.KRowBytes();
    b.v_row_bytes = kv.VRowBytes();
    b.begin = item.begin;
    b.end = item.end;
    b.recent = item.recent;
    b.fixed = item.fixed;
    b.stride = p_.heads;
    b.max = buffers_.max + query;
    b.sum = buffers_.sum + query;
    b.out = buffers_.out + query * division_.padded_dim;
    b.scratch = buffers_.threads + thread * buffers_.thread_floats;
    kComputeBlock[stream_.isa()](b);
  }

  void FoldWave(int64_t row, int64_t rows, const PageList& wave, bool first) {
    const int64_t heads = p_.heads;
    // Folding one page of one query takes a fraction of a microsecond.
    const int64_t grain = std::max<int64_t>(1, 64 / wave.count);
    stream_.pool().ParallelFor(rows * heads, grain,
                               [&](int64_t begin, int64_t end, int) {
                                 for (int64_t i = begin; i < end; ++i) {
                                   FoldQuery(row, i, wave, first);
                                 }
                               });
  }

  void FoldQuery(int64_t row, int64_t query, const PageList& wave, bool first) {
    const int64_t r = row + query / p_.heads;
    // A row sees itself, so its own page is the last that it sees. It is in no
    // part but the last.
    const int64_t own = (p_.position + r) / kPageTokens;
    const int64_t seen = wave.CountUpTo(own);
    if (seen == 0) return;
    AttentionFold f;
    f.max = buffers_.max + query;
    f.sum = buffers_.sum + query;
    f.out = buffers_.out + query * division_.padded_dim;
    f.stride = division_.page_queries;
    f.out_stride = division_.page_queries * division_.padded_dim;
    f.pages = seen;
    f.head_dim = p_.layout.head_dim;
    f.first = first;
    f.last = wave.At(seen - 1) == own;
    const bool whole = p_.part.is_whole();
    const int64_t place = row * p_.heads + query;
    f.running_max =
        whole ? buffers_.running_max + query : p_.part.max.raw() + place;
    f.running_sum =
        whole ? buffers_.running_sum + query : p_.part.sum.raw() + place;
    f.result = p_.out.raw() + place * p_.layout.head_dim;
    kFoldPages[stream_.isa()](f);
  }

  Stream& stream_;
  const AttentionParams& p_;
  const Division& division_;
  const Buffers& buffers_;
};

absl::Status OnReference(Stream& stream, const AttentionParams& p) {
  ASSIGN_OR_RETURN(const DevicePtr<std::byte> list,
                   stream.Scratch(PageListBytes(p)));
  RETURN_IF_ERROR(CheckPages(p, SeenPages(p, 0, p.rows, list.raw())));
  AttentionReference(p);
  return absl::OkStatus();
}

absl::Status OnCpu(Stream& stream, const AttentionParams& p) {
  const Division division = Divide(p);
  Buffers buffers;
  RETURN_IF_ERROR(Allocate(stream, p, division, &buffers));
  PageList pages = SeenPages(p, 0, p.rows, buffers.list);
  RETURN_IF_ERROR(CheckPages(p, pages));
  Call call(stream, p, division, buffers);
  for (int64_t row = 0; row < p.rows; row += division.block_rows) {
    const int64_t rows = std::min(division.block_rows, p.rows - row);
    if (rows < p.rows) pages = SeenPages(p, row, rows, buffers.list);
    call.Rows(row, rows, pages);
  }
  return absl::OkStatus();
}

void Keep(AttentionParams& p, HostLists& lists) {
  p.pages = lists.Keep(p.pages, p.num_pages);
  if (p.view == nullptr) return;
  HeadView* const view = lists.Keep(p.view, p.layout.kv_heads);
  for (int head = 0; head < p.layout.kv_heads; ++head) {
    const std::span<const PositionRange> fixed = view[head].fixed;
    view[head].fixed = {lists.Keep(fixed.data(), std::ssize(fixed)),
                        fixed.size()};
  }
  p.view = view;
}

constexpr OpBodies<AttentionParams> kAttention = {
    .reference = OnReference,
    .cpu = OnCpu,
    .gpu = [](Stream& stream,
              const AttentionParams& p) { return AttendOnGpu(stream, p); },
    .keep = Keep};

}  // namespace

absl::Status Attention(Stream& stream, const AttentionParams& p) {
  RETURN_IF_ERROR(Validate(p));
  if (p.rows == 0) return absl::OkStatus();
  return Run(kAttention, stream, p);
}

}  // namespace tiercel
