// Compares a retrieval view, after any series of steps, with what it should
// show: chunks chosen anew from the whole sequence, and the newest positions.

#include "offload/retrieval/retrieval.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/kv/chunk_means.h"
#include "kernels/kv/kv_row.h"
#include "kernels/number/half.h"
#include "kernels/select/chunk_scores.h"
#include "kernels/system/testing.h"
#include "lib/status/error.h"
#include "offload/kv/in_place_kv.h"
#include "offload/retrieval/testing.h"
#include "tests/setup/draws.h"

namespace tiercel::retrieval_test {
namespace {

constexpr int kLayers = 2;
constexpr int kKvHeads = 2;
constexpr int kHeads = 4;
constexpr int kHeadDim = 32;
constexpr int64_t kContext = 900;
constexpr auto kGoOn = [] { return false; };

// A store whose copies arrive only when they are awaited, or fail then.
class LateKv final : public KvStore {
 public:
  LateKv(std::unique_ptr<KvStore> kv, const KvLayout& layout, int64_t begin)
      : KvStore(layout, kLayers, begin), kv_(std::move(kv)) {
    end_ = kv_->end();
  }

  absl::Status BeginOwnStep(int64_t rows, Phase phase, const View& view,
                            Cancelled cancelled) override {
    return kv_->BeginStep(rows, phase, view, cancelled);
  }
  absl::StatusOr<KvPages> BeginLayer(int layer, Cancelled cancelled) override {
    return kv_->BeginLayer(layer, cancelled);
  }
  void EndLayer(int layer) override { kv_->EndLayer(layer); }
  absl::Status CommitOwn(int64_t rows, Cancelled cancelled) override {
    const absl::Status status = kv_->Commit(rows, cancelled);
    end_ = kv_->end();
    return status;
  }
  void AbandonOwn() override { kv_->Abandon(); }
  absl::Status SuspendOwn(int layer, int64_t rows, DevicePtr<std::byte> state,
                          int64_t bytes) override {
    return kv_->Suspend(layer, rows, state, bytes);
  }
  absl::Status ResumeOwn(DevicePtr<std::byte> state,
                         Cancelled cancelled) override {
    return kv_->Resume(state, cancelled);
  }
  absl::StatusOr<int> TakeOwnLayers(GiveLayers give, DevicePtr<std::byte> state,
                                    int64_t bytes,
                                    Cancelled cancelled) override {
    return kv_->TakeLayers(give, state, bytes, cancelled);
  }
  absl::StatusOr<std::unique_ptr<HeldLayer>> HoldLayer(
      int layer, DevicePtr<std::byte> state, int64_t bytes,
      Cancelled cancelled) override {
    return kv_->HoldLayer(layer, state, bytes, cancelled);
  }
  void TruncateOwn(int64_t length) override {
    kv_->Truncate(length);
    end_ = kv_->end();
  }
  absl::StatusOr<std::unique_ptr<KvStore>> Fork() override {
    return std::make_unique<LateKv>(*kv_->Fork(), layout_, begin_);
  }
  int64_t HostBytes() const override { return kv_->HostBytes(); }
  absl::Status LoadOwn(int64_t rows, GivePages give,
                       const std::shared_ptr<PageFile>& text,
                       Cancelled cancelled) override {
    const absl::Status status = kv_->Load(rows, give, cancelled, text);
    end_ = kv_->end();
    return status;
  }
  absl::StatusOr<std::unique_ptr<HeldPages>> Hold(
      int64_t positions, Cancelled cancelled) override {
    return kv_->Hold(positions, cancelled);
  }

  uint64_t CopyRuns(Stream& stream, Phase phase,
                    const std::vector<KvRun>& runs) override {
    EXPECT_EQ(phase, Phase::kRefresh);
    asked.insert(asked.end(), runs.begin(), runs.end());
    if (runs.empty()) return 0;
    // The present contents are what will arrive.
    std::vector<Late>& late = late_[++last_];
    for (const KvRun& run : runs) {
      Late copy;
      copy.run = run;
      copy.k.resize(static_cast<size_t>(run.rows * layout_.KRowBytes()));
      copy.v.resize(static_cast<size_t>(run.rows * layout_.VRowBytes()));
      KvRun here = run;
      here.k = InPlace(copy.k.data());
      here.v = InPlace(copy.v.data());
      kv_->CopyRuns(stream, phase, {here});
      late.push_back(std::move(copy));
    }
    return last_;
  }
  absl::Status AwaitCopies(uint64_t copies, Cancelled cancelled) override {
    const auto late = late_.find(copies);
    if (late == late_.end()) return absl::OkStatus();
    if (cancelled()) return CancelledError();
    const bool fail = std::exchange(fails, false);
    for (const Late& copy : late->second) {
      if (fail) break;
      std::copy(copy.k.begin(), copy.k.end(), HostAddress(copy.run.k));
      std::copy(copy.v.begin(), copy.v.end(), HostAddress(copy.run.v));
    }
    late_.erase(late);
    return fail ? DeviceError("copy_failed", "a fault of the test")
                : absl::OkStatus();
  }
  bool has_late_copies() const { return !late_.empty(); }

  std::vector<KvRun> asked;
  bool fails = false;  // the next copy that is awaited fails

 private:
  struct Late {
    KvRun run;
    std::vector<std::byte> k;
    std::vector<std::byte> v;
  };
  const std::unique_ptr<KvStore> kv_;
  std::map<uint64_t, std::vector<Late>> late_;
  uint64_t last_ = 0;
};

// Memory that is always full.
class NoMemory final : public DeviceMemory {
 public:
  absl::StatusOr<DevicePtr<std::byte>> Allocate(
      size_t /*bytes*/, std::string_view /*what*/) override {
    return MemoryError("out_of_memory", "a fault of the test");
  }
  void Free(DevicePtr<std::byte> /*data*/, size_t /*bytes*/) override {}
};

// A row in layout `from` as a view in layout `to` holds it.
StoredRow InView(const StoredRow& row, const KvLayout& from,
                 const KvLayout& to) {
  const auto convert = [&](const std::vector<std::byte>& bytes, DType type,
                           DType as) {
    if (type == as) return bytes;
    std::vector<float> values(kHeadDim);
    KvRowToF32(type, bytes.data(), kHeadDim, values.data());
    std::vector<std::byte> out(static_cast<size_t>(RowBytes(as, kHeadDim)));
    KvRowFromF32(as, values.data(), kHeadDim, out.data());
    return out;
  };
  return {convert(row.k, from.type_k, to.type_k),
          convert(row.v, from.type_v, to.type_v)};
}

// A sequence with its view, and what the view should be.
class Life {
 public:
  using Chunks = std::vector<int32_t>;

  Life(DeviceMemory& memory, Stream& stream, const Retrieval::Shape& shape,
       unsigned seed)
      : stream_(stream), shape_(shape), random_(seed) {
    kv_ = std::make_unique<LateKv>(
        std::make_unique<InPlaceKv>(
            std::make_shared<PagePool>(shape.layout, kLayers, 16), shape.begin),
        shape.layout, shape.begin);
    view_ = *Retrieval::Create(memory, shape, *kv_);
  }

  LateKv& kv() { return *kv_; }
  Retrieval& view() { return *view_; }
  bool ready() const { return ready_; }
  int64_t room() const { return shape_.context - kv_->length(); }

  // Does a step of the target, of whose rows `kept` stay. It is abandoned after
  // `stop` layers if these are not all.
  void Step(int64_t rows, int64_t kept, bool certain, int stop = kLayers) {
    ASSERT_TRUE(
        kv_->BeginStep(rows, Phase::kVerify, View::Full(), kGoOn, certain)
            .ok());
    ASSERT_EQ(kv_->Step().seen_by, view_.get());
    last_known_ = false;
    if (certain) ready_ = false;
    const bool had_room = ready_ && Room() >= rows;
    ASSERT_EQ(view_->HasRoom(rows), had_room);
    for (int layer = 0; layer < stop; ++layer) {
      const KvPages pages = *kv_->BeginLayer(layer, kGoOn);
      for (int64_t i = 0; i < rows; ++i) WriteRow(pages, pages.end + i);
      const int64_t width = int64_t{kHeads} * kHeadDim;
      const std::vector<float> q = Random(rows * width);
      const int64_t part = Below(rows + 1);
      ASSERT_TRUE(
          view_->KeepQueries(stream_, layer, 0, part, InPlace(q.data())).ok());
      ASSERT_TRUE(view_
                      ->KeepQueries(stream_, layer, part, rows - part,
                                    InPlace(q.data()) + part * width)
                      .ok());
      ASSERT_TRUE(view_->AfterLayer(stream_, layer, pages).ok());
      kv_->EndLayer(layer);
      if (kept > 0) {
        query_[layer].resize(static_cast<size_t>(width));
        std::transform(q.begin() + (kept - 1) * width, q.begin() + kept * width,
                       query_[layer].begin(),
                       [](float x) { return F32FromF16(F16FromF32(x)); });
      }
    }
    if (stop < kLayers) {
      kv_->Abandon();
      if (certain) fresh_ = false;
      return;
    }
    ASSERT_TRUE(kv_->Commit(kept, kGoOn).ok());
    last_known_ = kept > 0;
    fresh_ = certain;
    ready_ = certain || had_room;
    if (!certain) return;
    recent_begin_ = RecentBegin();
    ChooseAll();
    in_order_ = true;
    EXPECT_TRUE(view_->HasRoom(kMaxStepRows));
  }

  void Truncate(int64_t length) {
    const int64_t before = kv_->end();
    kv_->Truncate(length);
    if (kv_->end() == before) return;
    fresh_ = false;
    last_known_ = false;
    ready_ = ready_ && RecentBegin() >= recent_begin_;
  }

  // Refreshes the view, and checks that exactly the missing chunks are copied.
  void Refresh() {
    const bool due = ready_ && !fresh_ && last_known_;
    const bool fails = due && kv_->has_late_copies() && kv_->fails;
    kv_->asked.clear();
    const absl::Status status = view_->Refresh(stream_, kGoOn);
    ASSERT_EQ(status.ok(), !fails) << status;
    if (fails) {
      ASSERT_EQ(CodeOf(status), "copy_failed");
    }
    if (fails) ready_ = false;
    std::set<std::vector<int64_t>> expected;
    if (due && !fails) {
      const std::vector<Chunks> before = chosen_;
      recent_begin_ = RecentBegin();
      ChooseAll();
      in_order_ = false;
      for (size_t i = 0; i < chosen_.size(); ++i) {
        for (int32_t chunk : chosen_[i]) {
          if (std::binary_search(before[i].begin(), before[i].end(), chunk)) {
            continue;
          }
          const auto [from, to] = Positions(chunk);
          expected.insert({static_cast<int64_t>(i) / kKvHeads,
                           static_cast<int64_t>(i) % kKvHeads, from,
                           to - from});
        }
      }
      EXPECT_TRUE(view_->HasRoom(kMaxStepRows));
    }
    for (const KvRun& run : kv_->asked) {
      ASSERT_EQ(expected.erase({run.layer, run.head, run.position, run.rows}),
                1u)
          << run.position;
    }
    ASSERT_TRUE(expected.empty());
    refreshes_ += due && !fails;
    ASSERT_EQ(view_->refreshes(), refreshes_);
  }

  // A refresh that is cancelled while it waits has changed nothing.
  void RefreshCancelled() {
    const bool waits =
        ready_ && !fresh_ && last_known_ && kv_->has_late_copies();
    if (!waits) return;
    const absl::Status status = view_->Refresh(stream_, [] { return true; });
    ASSERT_EQ(ClassOf(status), ErrorClass::kCancelled);
  }
  void CertainStepCancelled() {
    if (!kv_->has_late_copies()) return;
    const absl::Status status =
        kv_->BeginStep(1, Phase::kVerify, View::Full(), [] { return true; });
    ASSERT_EQ(ClassOf(status), ErrorClass::kCancelled);
    ASSERT_EQ(kv_->Step().seen_by, nullptr);
  }

  // Refreshes on a stream that has no scratch memory.
  void RefreshWithoutMemory() {
    if (!ready_ || fresh_ || !last_known_ || kv_->fails) return;
    NoMemory none;
    const auto stream = Stream::Create({DeviceKind::kCpu, 1, &none});
    ASSERT_TRUE(stream.ok());
    const absl::Status status = view_->Refresh(**stream, kGoOn);
    if (status.ok()) {  // it had nothing to choose from
      fresh_ = false;
      recent_begin_ = RecentBegin();
      ChooseAll();
      in_order_ = false;
      ++refreshes_;
      return;
    }
    EXPECT_EQ(CodeOf(status), "out_of_memory");
    ready_ = false;
  }

  // Writes provisional rows, which the next step drops.
  void Draft(int64_t rows) {
    if (!ready_ || !view_->HasRoom(rows)) return;
    CompactKv& kv = view_->kv();
    for (int layer = 0; layer < kLayers; ++layer) {
      if (!Arrives(layer)) return;
      const KvPages pages = *kv.BeginLayer(layer, kGoOn);
      for (int64_t i = 0; i < rows; ++i) WriteRow(pages, pages.end + i);
      kv.EndLayer(layer);
    }
    kv.Extend(rows);
  }

  void Fork(bool go_on_with_it) {
    std::unique_ptr<KvStore> store = *kv_->Fork();
    std::unique_ptr<Retrieval> fork = *view_->Fork(*store);
    EXPECT_FALSE(fork->HasRoom(0));
    EXPECT_FALSE(fork->fresh());
    if (!go_on_with_it) {
      fork.reset();
      return;
    }
    view_ = std::move(fork);
    kv_.reset(static_cast<LateKv*>(store.release()));
    ready_ = fresh_ = last_known_ = false;
    refreshes_ = 0;
  }

  void DropView() { view_.reset(); }

  void Check() {
    ASSERT_EQ(view_->HasRoom(0), ready_);
    ASSERT_EQ(view_->fresh(), fresh_);
    if (!ready_) return;
    CompactKv& compact = view_->kv();
    ASSERT_EQ(compact.end(), kv_->end());
    ASSERT_EQ(compact.recent_begin(), recent_begin_);
    ASSERT_GE(kv_->end() - recent_begin_,
              std::min(shape_.size.window, kv_->length()));
    for (int layer = 0; layer < kLayers; ++layer) {
      if (!Arrives(layer)) return;
      const KvPages all = *kv_->BeginLayer(layer, kGoOn);
      const KvPages pages = *compact.BeginLayer(layer, kGoOn);
      for (int head = 0; head < kKvHeads; ++head) {
        std::vector<StoredRow> expected;
        for (int32_t chunk : Chosen(layer, head)) {
          const auto [from, to] = Positions(chunk);
          for (int64_t t = from; t < to; ++t) {
            expected.push_back(
                InView(RowAt(all, head, t), all.layout, pages.layout));
          }
        }
        for (int64_t t = recent_begin_; t < kv_->end(); ++t) {
          expected.push_back(
              InView(RowAt(all, head, t), all.layout, pages.layout));
        }
        std::vector<StoredRow> seen;
        for (auto& [cell, row] : SeenCells(pages, head)) seen.push_back(row);
        // After a certain step even the order is independent of earlier steps.
        if (!in_order_) {
          const auto less = [](const StoredRow& a, const StoredRow& b) {
            return a.k != b.k ? a.k < b.k : a.v < b.v;
          };
          std::sort(expected.begin(), expected.end(), less);
          std::sort(seen.begin(), seen.end(), less);
        }
        ASSERT_EQ(seen.size(), expected.size());
        ASSERT_TRUE(seen == expected) << "layer " << layer << " head " << head;
      }
    }
  }

  int64_t Below(int64_t n) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(n));
  }

 private:
  Chunks& Chosen(int layer, int head) {
    return chosen_[static_cast<size_t>(layer * kKvHeads + head)];
  }
  std::pair<int64_t, int64_t> Positions(int32_t chunk) const {
    const int64_t size = shape_.size.chunk;
    const int64_t at = (shape_.begin / size + chunk) * size;
    return {std::max(at, shape_.begin), at + size};
  }
  // The newest positions begin with a chunk, and are the window at least.
  int64_t RecentBegin() const {
    int64_t at = kv_->end() - shape_.size.window;
    while (at > 0 && at % shape_.size.chunk != 0) --at;
    return std::max(at, shape_.begin);
  }
  int64_t Room() {
    return view_->kv().RecentRoom() - (kv_->end() - recent_begin_);
  }

  // Awaits the layer; a copy that fails is reported before anything reads it.
  bool Arrives(int layer) {
    const bool may_fail = kv_->fails;
    const absl::Status status = view_->Await(stream_, layer, kGoOn);
    if (status.ok()) return true;
    EXPECT_TRUE(may_fail);
    EXPECT_EQ(CodeOf(status), "copy_failed");
    EXPECT_FALSE(view_->HasRoom(0));
    ready_ = false;
    return false;
  }

  std::vector<float> Random(int64_t count) {
    NormalFloats normal(0.0f, 1.5f);
    std::vector<float> values(static_cast<size_t>(count));
    for (float& x : values) x = normal(random_);
    return values;
  }
  void WriteRow(const KvPages& pages, int64_t position) {
    for (int head = 0; head < kKvHeads; ++head) {
      StoredRow row = RowAt(pages, head, position);
      KvRowFromF32(pages.layout.type_k, Random(kHeadDim).data(), kHeadDim,
                   row.k.data());
      KvRowFromF32(pages.layout.type_v, Random(kHeadDim).data(), kHeadDim,
                   row.v.data());
      SetRowAt(pages, head, position, row);
    }
  }

  // Chooses by the last query, from the keys of the whole sequence.
  void ChooseAll() {
    const RetrievalSize& size = shape_.size;
    const int64_t first = shape_.begin / size.chunk;
    const int64_t there =
        std::max<int64_t>(0, recent_begin_ / size.chunk - first);
    const auto chunks = static_cast<size_t>(there);
    const auto count =
        static_cast<size_t>((size.budget + size.chunk - 1) / size.chunk);
    const auto sinks =
        static_cast<size_t>((size.sink + size.chunk - 1) / size.chunk);
    for (int layer = 0; layer < kLayers; ++layer) {
      const KvPages kv = *kv_->BeginLayer(layer, kGoOn);
      std::vector<uint16_t> means(kKvHeads * chunks * kHeadDim);
      std::vector<float> scores(kKvHeads * chunks);
      ASSERT_TRUE(ChunkMeans(stream_, {.layout = kv.layout,
                                       .pages = kv.pages,
                                       .first_page = kv.first_page,
                                       .num_pages = kv.num_pages,
                                       .begin = kv.begin,
                                       .chunk = size.chunk,
                                       .first_chunk = first,
                                       .num_chunks = there,
                                       .out = InPlace(means.data()),
                                       .out_stride = there * kHeadDim,
                                       .norms = nullptr,
                                       .norms_stride = 0})
                      .ok());
      ASSERT_TRUE(
          ChunkScores(stream_, {.q = InPlace(query_[layer].data()),
                                .heads = kHeads,
                                .kv_heads = kKvHeads,
                                .head_dim = kHeadDim,
                                .scale = 1.0f / std::sqrt(float{kHeadDim}),
                                .means = InPlace(means.data()),
                                .means_stride = there * kHeadDim,
                                .num_chunks = there,
                                .out = InPlace(scores.data())})
              .ok());
      for (int head = 0; head < kKvHeads; ++head) {
        const float* const score =
            scores.data() + static_cast<size_t>(head) * chunks;
        Chunks chosen(chunks);
        std::iota(chosen.begin(), chosen.end(), 0);
        std::stable_sort(
            chosen.begin() +
                static_cast<std::ptrdiff_t>(std::min(sinks, chunks)),
            chosen.end(),
            [&](int32_t a, int32_t b) { return score[a] > score[b]; });
        chosen.resize(std::min(count, chunks));
        std::sort(chosen.begin(), chosen.end());
        Chosen(layer, head) = chosen;
      }
    }
  }

  Stream& stream_;
  const Retrieval::Shape shape_;
  std::mt19937 random_;
  std::unique_ptr<LateKv> kv_;
  std::unique_ptr<Retrieval> view_;

  bool ready_ = false;
  bool fresh_ = false;
  bool last_known_ = false;
  bool in_order_ = false;
  int64_t recent_begin_ = 0;
  int64_t refreshes_ = 0;
  std::vector<Chunks> chosen_{kLayers * kKvHeads};
  std::vector<float> query_[kLayers];  // the last accepted row's
};

class RetrievalTest : public testing::Test {
 protected:
  Retrieval::Shape Shape(const RetrievalSize& size, int64_t begin = 0,
                         DType k = DType::kF16, DType v = DType::kF32) {
    return {.layout = {k, v, kKvHeads, kHeadDim},
            .view_layout = {k, v, kKvHeads, kHeadDim},
            .layers = kLayers,
            .heads = kHeads,
            .begin = begin,
            .context = kContext,
            .size = size};
  }
  // `shape` with a view of `type`.
  static Retrieval::Shape Holding(DType type, Retrieval::Shape shape) {
    shape.view_layout.type_k = shape.view_layout.type_v = type;
    return shape;
  }

  // Does a prompt, then rounds until the context is full.
  static void GoOn(Life& life) {
    life.Step(200, 200, true);
    while (life.room() > kMaxStepRows && !HasFatalFailure()) {
      life.Draft(kMaxStepRows);
      life.Step(kMaxStepRows, 1 + life.Below(12), false);
      ASSERT_TRUE(life.ready());
      life.Check();
      life.Refresh();
      life.Check();
    }
  }

  PoisonedMemory memory_;
  std::unique_ptr<Stream> stream_ = MakeStream(DeviceKind::kCpu);
};

TEST_F(RetrievalTest, AnyLifeShowsWhatItShould) {
  constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16,
                              DType::kQ8_0};
  constexpr int64_t kBegins[] = {0, 5, 1000, (int64_t{1} << 40) + 77};
  constexpr RetrievalSize kSizes[] = {{8, 32, 8, 16},   {8, 8, 8, 1},
                                      {32, 64, 1, 40},  {128, 256, 1, 7},
                                      {16, 4096, 1, 1}, {16, 160, 40, 3000}};
  int64_t refreshes = 0;
  for (unsigned seed = 0; seed < (TriesAll() ? 24 : 12); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Retrieval::Shape shape = Shape(kSizes[seed % 6], kBegins[seed / 3 % 4],
                                   kTypes[seed % 4], kTypes[seed / 4 % 4]);
    if (seed % 8 < 4) shape = Holding(DType::kQ8_0, shape);
    Life life(memory_, *stream_, shape, seed);
    const auto below = [&](int64_t n) { return life.Below(n); };
    for (int turn = 0; turn < 80; ++turn) {
      const int64_t rows = std::min(life.room(), 1 + below(kMaxStepRows));
      switch (below(16)) {
        case 0:
          life.Truncate(below(life.kv().length() + 1));
          break;
        case 1:  // a little, as when a text ends
          life.Truncate(std::max<int64_t>(0, life.kv().length() - below(20)));
          break;
        case 2:
          if (life.room() > 64) {
            const int64_t prompt = 65 + below(life.room() - 64);
            life.Step(prompt, prompt, true);
          }
          break;
        case 3:
        case 4:
          if (rows > 0) life.Step(rows, rows, true);
          break;
        case 5:
          if (rows > 0) {
            life.Step(rows, rows, below(2) == 0,
                      static_cast<int>(below(kLayers)));
          }
          break;
        case 6:
          life.Fork(below(2) == 0);
          break;
        case 7:
          if (below(3) == 0) life.kv().fails = true;
          break;
        case 8:
          life.RefreshCancelled();
          life.CertainStepCancelled();
          break;
        case 9:
          if (below(3) == 0) life.RefreshWithoutMemory();
          break;
        default:  // a draft, its sweep, and mostly a refresh
          if (rows == 0) break;
          if (below(2) == 0) life.Draft(rows);
          if (HasFatalFailure()) return;
          life.Step(rows, below(rows + 1), false);
          if (below(4) > 0 && !HasFatalFailure()) life.Refresh();
      }
      if (HasFatalFailure()) return;
      if (below(2) == 0) life.Check();
      if (HasFailure()) return;
    }
    refreshes += life.view().refreshes();
  }
  EXPECT_GT(refreshes, 10);
}

// Many rounds follow each other, as in a long generation.
TEST_F(RetrievalTest, GoesOnWithoutARest) {
  for (const RetrievalSize& size :
       {RetrievalSize{8, 32, 8, 16}, RetrievalSize{32, 128, 32, 64},
        RetrievalSize{8, 40, 20, 16}, RetrievalSize{128, 128, 1, 1}}) {
    Life life(memory_, *stream_, Shape(size, 3), 1);
    GoOn(life);
  }
}

// The chunks that a layer lacks exceed the staging buffer.
TEST_F(RetrievalTest, LandsInParts) {
  Retrieval::Shape shape = Holding(DType::kQ8_0, Shape({8, 96, 8, 16}, 3));
  for (const int64_t view_staging_bytes : {0, 10'000}) {
    shape.view_staging_bytes = view_staging_bytes;
    Life life(memory_, *stream_, shape, 1);
    GoOn(life);
  }
}

// The newest positions may begin and end anywhere in a page.
TEST_F(RetrievalTest, HasRoomForAStepWhereverItBegins) {
  // The first fills two pages; the second needs one position of a third.
  constexpr int64_t kJustFits = kPageTokens + 1 - kMaxStepRows;
  for (const auto& [begin, window] :
       {std::pair(int64_t{127}, kJustFits), {0, kJustFits + 1}}) {
    Life life(memory_, *stream_, Shape({8, 8, 8, window}, begin), 1);
    while (life.kv().length() < 3 * kPageTokens && !HasFatalFailure()) {
      life.Step(1, 1, true);  // chooses anew
      life.Draft(kMaxStepRows);
      life.Step(kMaxStepRows, 2, false);
      life.Check();
    }
  }
}

TEST_F(RetrievalTest, ADroppedViewWaitsForWhatIsOnItsWay) {
  Life life(memory_, *stream_, Shape({8, 32, 8, 16}), 2);
  life.Step(300, 300, true);
  life.Step(20, 20, false);
  life.Refresh();
  ASSERT_TRUE(life.kv().has_late_copies());
  life.DropView();
  EXPECT_FALSE(life.kv().has_late_copies());
}

// A budget beyond the context takes no more than the context.
TEST_F(RetrievalTest, TakesNoMoreThanThereWillBe) {
  const auto taken = [](const Retrieval::Shape& shape) {
    PoisonedMemory memory;
    const int64_t begin = shape.begin;
    InPlaceKv kv(std::make_shared<PagePool>(shape.layout, kLayers, 16), begin);
    const auto view = Retrieval::Create(memory, shape, kv);
    EXPECT_TRUE(view.ok()) << view.status();
    EXPECT_EQ(memory.used(), Retrieval::Bytes(shape));
    return Retrieval::Bytes(shape);
  };
  const auto bytes = [&](const RetrievalSize& size, int64_t begin) {
    return taken(Shape(size, begin));
  };
  // A page of chunks, two of the newest positions; digests and queries of f16.
  const int64_t pages = int64_t{kLayers} * 3 * Shape({}).layout.PageBytes();
  const int64_t digests =
      int64_t{kLayers} * kKvHeads * (kContext / 8) * kHeadDim * 2;
  const int64_t queries = kLayers * kMaxStepRows * kHeads * kHeadDim * 2;
  // A choice needs a query row as floats, the scores, and the chosen chunks.
  const int64_t choice = AlignedBytes(kHeads * kHeadDim * 4) +
                         AlignedBytes(kKvHeads * (kContext / 8) * 4) +
                         AlignedBytes(kKvHeads * 8 * 4);
  EXPECT_EQ(bytes({8, 64, 8, 16}, 0), AlignedBytes(pages) +
                                          AlignedBytes(digests) +
                                          AlignedBytes(queries) + choice);
  // A view of q8_0 has rows of 34 bytes in place of 64 and 128, and a staging
  // buffer.
  Retrieval::Shape small = Holding(DType::kQ8_0, Shape({8, 64, 8, 16}));
  small.view_staging_bytes = 5000;
  EXPECT_EQ(taken(small), AlignedBytes(pages * 68 / 192) + AlignedBytes(5000) +
                              AlignedBytes(digests) + AlignedBytes(queries) +
                              choice);
  EXPECT_LT(bytes({8, 64, 8, 16}, 0), bytes({8, 256, 8, 16}, 0));
  for (const int64_t begin : {0, 5, 1000}) {
    constexpr int64_t kMost = int64_t{1} << 30;
    EXPECT_EQ(bytes({8, kMost, kMost, kMost}, begin),
              bytes({8, kContext, kContext, kContext}, begin));
  }
}

}  // namespace
}  // namespace tiercel::retrieval_test
