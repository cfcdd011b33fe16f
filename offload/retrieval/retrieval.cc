#include "offload/retrieval/retrieval.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/kv/kv_convert.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"
#include "offload/retrieval/digest_selector.h"
#include "offload/retrieval/key_scorer.h"
#include "offload/retrieval/mean_scorer.h"

namespace tiercel {
namespace {

// n / by, rounded up, without overflow; n >= 0.
int64_t CeilDiv(int64_t n, int64_t by) { return n / by + (n % by != 0); }

int64_t QueryWidth(const Retrieval::Shape& shape) {
  return int64_t{shape.heads} * shape.layout.head_dim;
}

// The number of positions whose queries are kept: those of a sweep, whose last
// accepted row may choose, and with a selection as many before it.
int64_t HeldQueryRows(const Retrieval::Shape& shape) {
  return (shape.size.selection.has_value() ? 2 : 1) * kMaxStepRows;
}

// The most rows that choose at once.
int64_t MostQueryRows(const Retrieval::Shape& shape) {
  if (!shape.size.selection.has_value()) return 1;
  const Selection& choice = *shape.size.selection;
  return std::max(choice.evidence_rows, choice.queries + choice.drafted);
}

Digests::Shape DigestsShape(const Retrieval::Shape& shape) {
  return {.layout = shape.layout,
          .layers = shape.layers,
          .heads = shape.heads,
          .chunk = shape.size.chunk,
          .begin = shape.begin,
          .context = shape.context,
          .norms = shape.size.selection.has_value()};
}

bool ByKeys(const RetrievalSize& size) {
  return size.selection.has_value() && size.chunk == 1;
}

// The newest positions that are always in view. They include the rows that
// choose, so that each of these sees all chunks that may be chosen.
int64_t WindowOf(const RetrievalSize& size) {
  if (!size.selection.has_value()) return size.window;
  return std::max(
      {size.window, size.selection->evidence_rows, size.selection->queries});
}

KeyScorer::Shape KeysShape(const Retrieval::Shape& shape) {
  return {.layout = shape.layout,
          .layers = shape.layers,
          .heads = shape.heads,
          .begin = shape.begin,
          .context = shape.context};
}

CompactKv::Shape CompactShape(const Retrieval::Shape& shape) {
  const RetrievalSize& size = shape.size;
  // The chunks of a full context bound those of the view.
  const int64_t chunks = DigestsShape(shape).Chunks();
  const int64_t window = std::min(WindowOf(size), shape.context);
  return {.layout = shape.view_layout,
          .layers = shape.layers,
          .chunk = size.chunk,
          .chunks = std::min(CeilDiv(size.budget, size.chunk), chunks),
          .sinks = std::min(CeilDiv(size.sink, size.chunk), chunks),
          // The window may begin anywhere in a page, and grows by the rows of
          // steps until it is next cut. Drafted rows use the cells of the steps
          // that check them.
          .recent_pages = CeilDiv(
              kPageTokens - 1 + size.branch_rows +
                  std::min(window + size.growth, shape.context + kMaxStepRows),
              kPageTokens)};
}

ImportanceSelector::Shape SelectorShape(const Retrieval::Shape& shape) {
  const CompactKv::Shape held = CompactShape(shape);
  return {.layers = shape.layers,
          .heads = shape.heads,
          .kv_heads = shape.layout.kv_heads,
          .chunk = shape.size.chunk,
          .begin = shape.begin,
          .chunks = DigestsShape(shape).Chunks(),
          .sinks = held.sinks,
          .budget = held.chunks,
          .choice = *shape.size.selection,
          .of_ranks = shape.of_ranks};
}

DigestSelector::Shape DigestSelectorShape(const Retrieval::Shape& shape) {
  const CompactKv::Shape held = CompactShape(shape);
  return {.digests = DigestsShape(shape),
          .sinks = held.sinks,
          .chunks = held.chunks};
}

absl::StatusOr<std::unique_ptr<Selector>> MakeSelector(
    DeviceMemory& memory, const Retrieval::Shape& shape) {
  if (!shape.size.selection.has_value()) {
    return DigestSelector::Create(memory, DigestSelectorShape(shape));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Scorer> scorer,
                   ByKeys(shape.size)
                       ? KeyScorer::Create(memory, KeysShape(shape))
                       : MeanScorer::Create(memory, DigestsShape(shape)));
  return ImportanceSelector::Create(memory, SelectorShape(shape),
                                    std::move(scorer));
}

int64_t SelectorBytes(const Retrieval::Shape& shape) {
  if (!shape.size.selection.has_value()) {
    return DigestSelectorShape(shape).Bytes();
  }
  return SelectorShape(shape).Bytes() + (ByKeys(shape.size)
                                             ? KeysShape(shape).Bytes()
                                             : DigestsShape(shape).Bytes());
}

bool TypesDiffer(const Retrieval::Shape& shape) {
  return shape.layout.type_k != shape.view_layout.type_k ||
         shape.layout.type_v != shape.view_layout.type_v;
}

ViewStaging::Shape ViewStagingShape(const Retrieval::Shape& shape) {
  if (!TypesDiffer(shape)) return {};
  const int64_t chunk =
      shape.size.chunk * (shape.layout.KRowBytes() + shape.layout.VRowBytes());
  return {.from = shape.layout,
          .to = shape.view_layout,
          .bytes = std::max(shape.view_staging_bytes, chunk)};
}

}  // namespace

absl::Status CheckRetrievalSize(const RetrievalSize& size) {
  constexpr int64_t kMost = int64_t{1} << 30;
  const auto refuse = [](std::string_view what, int64_t got,
                         std::string_view needed) {
    return UsageError("invalid_argument",
                      absl::StrCat(std::string(what), ": got ", got, ", need ",
                                   std::string(needed)));
  };
  const bool selected = size.selection.has_value();
  if (size.chunk < (selected ? 1 : 8) || size.chunk > kPageTokens ||
      kPageTokens % size.chunk != 0) {
    return refuse(
        "chunk", size.chunk,
        selected ? "1, 2, 4, 8, 16, 32, 64 or 128" : "8, 16, 32, 64 or 128");
  }
  for (const auto& [what, tokens] :
       {std::pair("sink", size.sink), std::pair("window", size.window),
        std::pair("budget", size.budget)}) {
    if (tokens < 1 || tokens > kMost) {
      return refuse(what, tokens, absl::StrCat("1 to ", kMost));
    }
  }
  if (size.budget < size.sink) {
    return refuse("budget", size.budget,
                  absl::StrCat("at least the sink's ", size.sink));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Retrieval>> Retrieval::Create(
    DeviceMemory& memory, const Shape& shape, KvStore& store) {
  ASSIGN_OR_RETURN(CompactKv compact,
                   CompactKv::Create(memory, CompactShape(shape), shape.begin));
  ASSIGN_OR_RETURN(ViewStaging staging,
                   ViewStaging::Create(memory, ViewStagingShape(shape)));
  ASSIGN_OR_RETURN(std::unique_ptr<Selector> selector,
                   MakeSelector(memory, shape));
  ASSIGN_OR_RETURN(
      DeviceArray<uint16_t> queries,
      DeviceArray<uint16_t>::Create(
          memory, shape.layers * HeldQueryRows(shape) * QueryWidth(shape),
          "queries"));
  ASSIGN_OR_RETURN(DeviceArray<float> query_rows,
                   DeviceArray<float>::Create(
                       memory, MostQueryRows(shape) * QueryWidth(shape),
                       "queries that choose"));
  return std::unique_ptr<Retrieval>(new Retrieval(
      shape, memory, store, std::move(compact), std::move(staging),
      std::move(selector), std::move(queries), std::move(query_rows)));
}

int64_t Retrieval::Bytes(const Shape& shape) {
  return CompactShape(shape).Bytes() +
         AlignedBytes(ViewStagingShape(shape).bytes) + SelectorBytes(shape) +
         AlignedBytes(shape.layers * HeldQueryRows(shape) * QueryWidth(shape) *
                      static_cast<int64_t>(sizeof(uint16_t))) +
         AlignedBytes(MostQueryRows(shape) * QueryWidth(shape) *
                      static_cast<int64_t>(sizeof(float)));
}

Retrieval::Retrieval(const Shape& shape, DeviceMemory& memory, KvStore& store,
                     CompactKv compact, ViewStaging staging,
                     std::unique_ptr<Selector> selector,
                     DeviceArray<uint16_t> queries,
                     DeviceArray<float> query_rows)
    : shape_(shape),
      memory_(memory),
      store_(store),
      compact_(std::move(compact)),
      staging_(std::move(staging)),
      selector_(std::move(selector)),
      queries_(std::move(queries)),
      query_rows_(std::move(query_rows)),
      copies_(static_cast<size_t>(shape.layers), 0) {
  store_.Observe(this);
}

Retrieval::~Retrieval() {
  store_.Observe(nullptr);
  for (uint64_t copies : copies_) {
    store_.AwaitCopies(copies, [] { return false; }).IgnoreError();
  }
}

absl::StatusOr<std::unique_ptr<Retrieval>> Retrieval::Fork(
    KvStore& store) const {
  absl::StatusOr<std::unique_ptr<Retrieval>> fork =
      Create(memory_, shape_, store);
  if (!fork.ok()) return fork;
  (*fork)->selector_ = nullptr;  // the copy has its memory
  ASSIGN_OR_RETURN((*fork)->selector_, selector_->Copy(memory_));
  return fork;
}

// ---- StepObserver ----

absl::Status Retrieval::BeginStep(int64_t end, int64_t rows, bool certain,
                                  Cancelled cancelled) {
  // Copies that are under way would overwrite the rows of this step.
  for (int layer = 0; certain && layer < shape_.layers; ++layer) {
    if (absl::Status s = Arrive(layer, cancelled);
        ClassOf(s) == ErrorClass::kCancelled) {
      return s;
    }
  }
  for (int layer = 0; certain && layer < shape_.layers; ++layer) {
    staging_.Drop(layer);
  }
  compact_.Truncate(std::min(end, compact_.end()));  // drops a draft's rows
  step_end_ = end;
  step_rows_ = rows;
  certain_ = certain;
  last_position_ = -1;
  over_view_ = false;
  const bool keep = std::exchange(keep_places_, false) || !certain;
  if (!certain && !InSteps()) return absl::OkStatus();
  kept_ = keep && ready_ && InSteps();
  if (!kept_) queries_begin_ = end + std::max<int64_t>(0, rows - kMaxStepRows);
  ready_ = false;
  coverage_ = {};
  seen_from_ = compact_.recent_begin();
  // Only the first row of a sweep is sure to stay.
  const int64_t recent_begin = RecentBegin(end + (certain ? rows : 1));
  if (!kept_) {
    compact_.Reset(recent_begin, end);
  } else {
    compact_.DropBefore(recent_begin);
  }
  if (certain) compact_.Extend(rows);
  return absl::OkStatus();
}

absl::Status Retrieval::KeepQueries(Stream& stream, int layer,
                                    int64_t first_row, int64_t rows,
                                    DevicePtr<const float> q) {
  // Only the last rows of a prompt are wanted.
  const int64_t skipped = std::max<int64_t>(0, step_rows_ - kMaxStepRows);
  const int64_t width = QueryWidth(shape_);
  std::vector<KvConvertParams::Run> runs;
  for (int64_t row = std::max(first_row, skipped); row < first_row + rows;
       ++row) {
    runs.push_back({(q + (row - first_row) * width).As<const std::byte>(),
                    Query(layer, step_end_ + row).As<std::byte>(), 1});
  }
  return KvConvert(stream, {.from = DType::kF32,
                            .to = DType::kF16,
                            .head_dim = static_cast<int>(width),
                            .runs = runs.data(),
                            .num_runs = std::ssize(runs)});
}

absl::Status Retrieval::AfterLayer(Stream& stream, int layer,
                                   const KvPages& kv) {
  if (over_view_) return absl::OkStatus();
  // In the layers above nothing is chosen by scores.
  if (layer < compact_.above().layers) {
    RETURN_IF_ERROR(selector_->Update(stream, layer, kv, step_rows_));
  }
  runs_.clear();
  // A prompt that resumes where it was stopped chooses nothing: its first
  // layers were not observed.
  if (certain_ || (InSteps() && step_rows_ <= kMaxStepRows)) {
    RETURN_IF_ERROR(Choose(stream, layer, QueryRowsInStep(), &kv, &runs_));
    compact_.Recent(layer, kept_ ? step_end_ : compact_.recent_begin(),
                    step_end_ + step_rows_, &runs_);
  } else if (!InSteps() && HasRoom(step_rows_)) {
    compact_.Recent(layer, step_end_, step_end_ + step_rows_, &runs_);
  }
  return FillRuns(stream, kv.layout, shape_.view_layout, runs_,
                  [&kv](const KvRun& run) {
                    return kv.pages[run.position / kPageTokens - kv.first_page];
                  });
}

void Retrieval::Commit(int64_t end) {
  const bool known = !certain_ && step_rows_ <= kMaxStepRows && end > step_end_;
  last_position_ = known ? end - 1 : -1;
  selector_->Truncate(end);
  fresh_ = false;
  if (certain_) {
    ready_ = true;
    fresh_ =
        !kept_ && step_rows_ >= std::min(evidence_rows(), end - shape_.begin);
  } else if (InSteps()) {
    ready_ = step_rows_ <= kMaxStepRows;  // false after a resumed prompt
    compact_.Extend(end - step_end_);
  } else {
    ready_ = HasRoom(step_rows_);
    if (ready_) compact_.Extend(end - step_end_);
  }
}

void Retrieval::Abandon() {
  selector_->Truncate(step_end_);
  last_position_ = -1;
  if (certain_) fresh_ = false;  // BeginStep has reset ready_
}

void Retrieval::Truncate(int64_t end) {
  selector_->Truncate(end);
  if (end >= compact_.end()) return;
  last_position_ = -1;
  fresh_ = false;
  // The ring must still hold the whole window before the new end.
  ready_ = ready_ && RecentBegin(end) >= compact_.recent_begin();
  if (ready_) compact_.Truncate(end);
}

// ---- The view ----

int64_t Retrieval::RecentBegin(int64_t end) const {
  const int64_t run = std::max(InSteps() ? 16 : 1, shape_.size.chunk);
  return std::max(shape_.begin, (end - WindowOf(shape_.size)) / run * run);
}

DevicePtr<uint16_t> Retrieval::Query(int layer, int64_t position) {
  return queries_.data() +
         (layer * HeldQueryRows(shape_) + position % HeldQueryRows(shape_)) *
             QueryWidth(shape_);
}

LayeredKv& Retrieval::Branch(const BranchPlace& place) {
  while (branches_.size() <= place.index) {
    branches_.push_back(std::make_unique<BranchKv>(compact_));
  }
  branches_[place.index]->MoveTo(place);
  return *branches_[place.index];
}

void Retrieval::BeginViewStep(int64_t end) {
  step_end_ = end;
  step_rows_ = 1;
  over_view_ = true;
}

Retrieval::QueryRows Retrieval::QueryRowsInStep() const {
  const int64_t last = certain_ ? step_end_ + step_rows_ - 1 : step_end_;
  if (!InSteps()) return {1, 0, last};
  const Selection& choice = *shape_.size.selection;
  const int64_t wanted = kept_ ? choice.queries : evidence_rows();
  const int64_t rows = std::min(wanted, last + 1 - queries_begin_);
  const int64_t drafted =
      certain_ ? 0 : std::min(choice.drafted, step_rows_ - 1);
  return {rows + drafted, drafted, last + drafted};
}

absl::Status Retrieval::Choose(Stream& stream, int layer, const QueryRows& by,
                               const KvPages* kv, std::vector<KvRun>* missing) {
  const int64_t chunk = shape_.size.chunk;
  const int64_t chunks = std::max<int64_t>(
      0, compact_.recent_begin() / chunk - shape_.begin / chunk);
  if (layer >= compact_.above().layers) {
    ChooseAnswer(chunks);
  } else if (absl::Status s = ChooseByScores(stream, layer, by, kv, chunks);
             !s.ok()) {
    return s;
  }
  for (size_t head = 0; head < chosen_.size(); ++head) {
    compact_.Choose(layer, static_cast<int>(head), chosen_[head], missing);
  }
  return absl::OkStatus();
}

void Retrieval::ChooseAnswer(int64_t chunks) {
  const CompactKv::Shape& held = compact_.shape();
  const int64_t chunk = shape_.size.chunk;
  const int64_t sinks = std::min(held.sinks, chunks);
  const int64_t answer =
      compact_.above().answer_begin / chunk - shape_.begin / chunk;
  std::vector<int32_t> chosen(static_cast<size_t>(sinks));
  std::iota(chosen.begin(), chosen.end(), 0);
  for (int64_t i = std::max({sinks, answer, chunks - (held.chunks - sinks)});
       i < chunks; ++i) {
    chosen.push_back(static_cast<int32_t>(i));
  }
  chosen_.assign(static_cast<size_t>(shape_.layout.kv_heads), chosen);
}

absl::Status Retrieval::ChooseByScores(Stream& stream, int layer,
                                       const QueryRows& by, const KvPages* kv,
                                       int64_t chunks) {
  const int64_t width = QueryWidth(shape_);
  const int64_t first = by.last + 1 - by.rows;
  std::vector<KvConvertParams::Run> queries;
  for (int64_t row = 0; row < by.rows; ++row) {
    queries.push_back({Query(layer, first + row).As<const std::byte>(),
                       (query_rows_.data() + row * width).As<std::byte>(), 1});
  }
  RETURN_IF_ERROR(KvConvert(stream, {.from = DType::kF16,
                                     .to = DType::kF32,
                                     .head_dim = static_cast<int>(width),
                                     .runs = queries.data(),
                                     .num_runs = by.rows}));
  std::vector<const int32_t*> kept;
  Selector::Seen seen = {
      .kept = nullptr, .num_kept = 0, .newest = seen_from_ - shape_.begin};
  const bool measures = kept_ && shape_.size.measures;
  for (int head = 0; measures && head < shape_.layout.kv_heads; ++head) {
    const std::span<const int32_t> places = compact_.Chosen(layer, head);
    kept.push_back(places.data());
    seen.num_kept = std::ssize(places);
  }
  seen.kept = kept.data();
  RETURN_IF_ERROR(selector_->Choose(stream, layer,
                                    {.q = query_rows_.data(),
                                     .row_floats = width,
                                     .rows = by.rows,
                                     .position = first,
                                     .drafted = by.drafted,
                                     .seen = measures ? &seen : nullptr,
                                     .goes_on = kept_},
                                    kv, chunks, &chosen_));
  if (const std::optional<double> share = selector_->coverage()) {
    coverage_.sum += *share;
    ++coverage_.layers;
  }
  return absl::OkStatus();
}

absl::Status Retrieval::Refresh(Stream& stream, Cancelled cancelled) {
  if (InSteps() || !ready_ || fresh_ || last_position_ < 0)
    return absl::OkStatus();
  for (int layer = 0; layer < shape_.layers; ++layer) {
    RETURN_IF_ERROR(Await(stream, layer, cancelled));
  }
  ready_ = false;  // until every layer has chosen
  compact_.DropBefore(RecentBegin(compact_.end()));
  for (int layer = 0; layer < shape_.layers; ++layer) {
    runs_.clear();
    RETURN_IF_ERROR(Choose(stream, layer,
                           {.rows = 1, .drafted = 0, .last = last_position_},
                           /*kv=*/nullptr, &runs_));
    RETURN_IF_ERROR(Fetch(stream, layer, runs_, cancelled));
  }
  ready_ = true;
  ++refreshes_;
  return absl::OkStatus();
}

absl::Status Retrieval::Fetch(Stream& stream, int layer,
                              const std::vector<KvRun>& missing,
                              Cancelled cancelled) {
  uint64_t& copies = copies_[static_cast<size_t>(layer)];
  if (!TypesDiffer(shape_)) {
    copies = store_.CopyRuns(stream, Phase::kRefresh, missing);
    return absl::OkStatus();
  }
  auto run = missing.begin();
  while (run != missing.end()) {
    std::vector<KvRun> landed;
    for (; run != missing.end(); ++run) {
      const std::optional<KvRun> here = staging_.Take(*run);
      if (!here.has_value()) break;
      landed.push_back(*here);
    }
    copies = store_.CopyRuns(stream, Phase::kRefresh, landed);
    // With no room left, the runs in the buffer settle first.
    for (int l = 0; run != missing.end() && l <= layer; ++l) {
      RETURN_IF_ERROR(Await(stream, l, cancelled));
    }
  }
  return absl::OkStatus();
}

absl::Status Retrieval::Arrive(int layer, Cancelled cancelled) {
  uint64_t& copies = copies_[static_cast<size_t>(layer)];
  const absl::Status status = store_.AwaitCopies(copies, cancelled);
  if (ClassOf(status) == ErrorClass::kCancelled) return status;
  copies = 0;
  if (!status.ok()) ready_ = false;
  return status;
}

absl::Status Retrieval::Await(Stream& stream, int layer, Cancelled cancelled) {
  absl::Status status = Arrive(layer, cancelled);
  if (ClassOf(status) == ErrorClass::kCancelled) return status;
  if (!status.ok()) {
    staging_.Drop(layer);
    return status;
  }
  status = staging_.Settle(stream, layer);
  if (!status.ok()) ready_ = false;
  return status;
}

}  // namespace tiercel
