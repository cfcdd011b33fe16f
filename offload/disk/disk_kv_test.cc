// The store of a device whose host tier is too small, so that pages are on
// disk.

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "offload/disk/faulty_disk_for_test.h"
#include "offload/kv/kv_store_for_test.h"
#include "offload/prompt_cache/kv_folder.h"

namespace tiercel::kv_store_test {
namespace {

struct OnDisk : Made {
  std::shared_ptr<PageFile> spill;

  uint64_t ReadBytes() const { return tier->disk->read_bytes(); }
};

OnDisk MakeOnDisk(int64_t resident, int64_t disk_pages, const KvFolder& folder,
                  DiskCalls& disk) {
  TierShape shape;
  shape.layout = kLayout;
  shape.layers = kLayers;
  shape.context_pages = kContextPages;
  shape.resident_pages = resident;
  shape.staged_pages = kContextPages - resident;
  shape.disk_pages = disk_pages;
  OnDisk made;
  made.spill = std::make_shared<PageFile>(disk, *folder.OpenNameless(), "pages",
                                          kLayout, kLayers, kContextPages);
  made.memory = *BoundedMemory::Create(
      AlignedBytes(shape.StagingBytes() + shape.SlotBytes()));
  made.tier =
      *KvTier::Create(shape, *made.memory,
                      std::make_unique<SimulatedLink>(1e12, 0), made.spill);
  made.kv = std::make_unique<TieredKv>(made.tier, /*begin=*/0);
  return made;
}

class DiskKvTest : public testing::Test {
 protected:
  KvFolder Folder(DiskCalls& disk) const {
    return {folder_.path(), uint64_t{1} << 30, disk};
  }
  // Expects the counts of the store and of its forks to add up to the bytes
  // that moved, after all copies have ended.
  static void ExpectCounted(OnDisk& made, const KvMoves& forks = {}) {
    made.kv->Truncate(0);
    for (const KvTier::Buffer& buffer : made.tier->buffers) {
      (void)made.tier->engine->Wait(buffer.filled);
    }
    const KvMoves moves = made.kv->moves();
    EXPECT_EQ(made.ReadBytes(),
              (moves.disk_pages + forks.disk_pages) * kLayout.PageBytes());
    EXPECT_EQ(
        made.spill->written_bytes(),
        (moves.spilled_pages + forks.spilled_pages) * kLayout.PageBytes());
    EXPECT_EQ(made.spill->slots_in_use(), 0);
    EXPECT_EQ(made.HostSlots(), 0);
  }

  const FolderForTest folder_;
  int next_ = 1;
};

// Prompts, steps, views, truncations and forks read back what they wrote,
// whichever pages are on disk, with a ring and without.
TEST_F(DiskKvTest, EveryPositionIsReadAsItWasWritten) {
  for (const bool ring : {false, true}) {
    for (const int64_t resident : {0, 2}) {
      for (const int64_t disk_pages : {1, 5, 12}) {
        SCOPED_TRACE(disk_pages);
        FaultyDisk disk;
        disk.has_ring = ring;
        disk.at_once = ring ? 0 : 1000;
        OnDisk made = MakeOnDisk(resident, disk_pages, Folder(disk), disk);
        next_ = 1;
        Oracle oracle{{}, &next_};
        for (const int64_t rows : {700, 1, 64, 64, 30, 1, 200, 1}) {
          Step(*made.kv, oracle, rows);
        }
        Step(*made.kv, oracle, 3, View::Window(4, 300));
        CutTo(*made.kv, oracle, 650);
        Step(*made.kv, oracle, 90);
        {
          const std::unique_ptr<KvStore> fork = *made.kv->Fork();
          Oracle other = oracle;
          for (const int64_t rows : {4, 1}) {
            Step(*fork, other, rows);
            Step(*made.kv, oracle, rows);
          }
        }
        Step(*made.kv, oracle, 64);
        Step(*made.kv, oracle, 1);
        // If one page is on disk it is the last, which this does not reach.
        EXPECT_EQ(made.kv->moves().spilled_pages > 0,
                  disk_pages > 1 || resident > 0);
        const int64_t in_host =
            made.kv->HostBytes() / kLayout.PageBytes() / kLayers;
        const int64_t full = made.kv->end() / kPageTokens;
        EXPECT_EQ(in_host, full - made.tier->shape.OnDisk(0, full));
      }
    }
  }
}

TEST_F(DiskKvTest, TheCountsAreOfWhatMoved) {
  for (const int64_t disk_pages : {3, 12}) {
    OnDisk made =
        MakeOnDisk(/*resident=*/1, disk_pages, Folder(GoodDisk()), GoodDisk());
    Oracle oracle{{}, &next_};
    for (const int64_t rows : {700, 1, 64, 64, 1}) {
      Step(*made.kv, oracle, rows);
    }
    ExpectCounted(made);
  }
}

// KV opened from the prompt cache stays in its file, even once that has no
// name: only pages that steps need are read. A sequence that writes to a page
// of it gets a copy.
TEST_F(DiskKvTest, AnOpenedTextIsReadWhereItIs) {
  constexpr int64_t kEnd = 1100;
  for (const int64_t resident : {0, 2}) {
    next_ = 1;
    Oracle oracle{{}, &next_};
    const KvFolder folder = Folder(GoodDisk());
    {
      const Made from = Make(/*resident=*/-1, 0);
      Step(*from.kv, oracle, kEnd);
      const KvFileInfo info = {.fingerprint = "f",
                               .title = "t",
                               .layout = kLayout,
                               .layers = kLayers,
                               .ids = std::vector<int32_t>(kEnd, 7),
                               .sums = {}};
      ASSERT_TRUE(folder.Save(info, **from.kv->Hold(kEnd, kGoOn), kGoOn).ok());
    }
    auto found = folder.Find("f", std::vector<int32_t>(kEnd, 7));
    ASSERT_TRUE(found.ok() && found->has_value());
    std::shared_ptr<const KvFile> file = std::move((*found)->file);
    ASSERT_TRUE(folder.Clear().ok());

    OnDisk made = MakeOnDisk(resident, kContextPages, folder, GoodDisk());
    ASSERT_TRUE(made.kv
                    ->Load(
                        kEnd,
                        [](KvStore::PutPage, KvStore::PlacePage) {
                          return absl::OkStatus();
                        },
                        kGoOn, KvFile::PagesOf(std::move(file)))
                    .ok());
    // The resident pages and the open page came up.
    const int64_t on_device = kLayers * (resident + 1);
    EXPECT_EQ(made.ReadBytes(), on_device * kLayout.PageBytes());
    EXPECT_EQ(made.spill->written_bytes(), 0u);
    for (const int64_t rows : {1, 64, 1, 150}) Step(*made.kv, oracle, rows);
    KvMoves forks;
    {
      const std::unique_ptr<KvStore> fork = *made.kv->Fork();
      Oracle other = oracle;
      CutTo(*fork, other, 400);
      Step(*fork, other, 10);
      Step(*made.kv, oracle, 1);
      Step(*fork, other, 1);
      forks = fork->moves();
    }
    CutTo(*made.kv, oracle, 1000);
    Step(*made.kv, oracle, 64);
    Step(*made.kv, oracle, 1);
    ExpectCounted(made, forks);
  }
}

// A read that fails is an error of one step. The positions from that page on
// are truncated, and are right once they have been written again.
TEST_F(DiskKvTest, EveryReadMayFail) {
  for (const bool damaged : {false, true}) {
    for (int64_t fail_at = 0;; fail_at += 5) {
      FaultyDisk disk;
      disk.counts_writes = false;
      disk.fail_at = fail_at;
      disk.damages = damaged;
      OnDisk made =
          MakeOnDisk(/*resident=*/1, kContextPages, Folder(GoodDisk()), disk);
      next_ = 1;
      Oracle oracle{{}, &next_};
      int failures = 0;
      const auto step = [&](int64_t rows) {
        while (true) {
          const absl::Status status = TryStep(*made.kv, oracle, rows, rows);
          if (status.ok()) return;
          ASSERT_EQ(CodeOf(status), damaged ? "page_damaged" : "io_error");
          ASSERT_LT(++failures, 3);
          const int64_t intact = made.kv->IntactLength();
          ASSERT_LT(intact, made.kv->length());
          ASSERT_EQ(intact % kPageTokens, 0);
          CutTo(*made.kv, oracle, intact);
        }
      };
      step(500);
      for (int i = 0; i < 4; ++i) step(40);
      CutTo(*made.kv, oracle, std::min<int64_t>(made.kv->length(), 300));
      step(1);
      step(140);
      step(1);
      if (testing::Test::HasFatalFailure()) return;
      if (!disk.failed()) break;
    }
  }
}

// A new page in the slot of a damaged one is not damaged.
TEST_F(DiskKvTest, DamageLeavesWithItsPage) {
  const KvFolder folder = Folder(GoodDisk());
  PageFile file(GoodDisk(), *folder.OpenNameless(), "pages", kLayout, kLayers,
                /*slots_per_segment=*/4);
  ASSERT_EQ(file.Take(), 0);
  ASSERT_EQ(file.Take(), 1);
  file.NoteDamage(/*layer=*/1, /*slot=*/1);
  EXPECT_TRUE(file.IsDamaged(1));
  EXPECT_FALSE(file.IsDamaged(0));
  file.Release(1);
  ASSERT_EQ(file.Take(), 1);
  EXPECT_FALSE(file.IsDamaged(1));
  EXPECT_FALSE(file.AnyDamaged());
}

// If the disk is full the prompt fails, and the sequence is as before.
TEST_F(DiskKvTest, ADiskThatIsFullIsAnError) {
  FaultyDisk disk;
  disk.counts_reads = false;
  disk.fail_at = 7;
  disk.more = 1000;
  disk.error = ENOSPC;
  OnDisk made =
      MakeOnDisk(/*resident=*/0, kContextPages, Folder(GoodDisk()), disk);
  Oracle oracle{{}, &next_};
  EXPECT_EQ(CodeOf(TryStep(*made.kv, oracle, 900, 900)), "disk_full");
  EXPECT_EQ(made.kv->length(), 0);
  disk.fail_at = std::numeric_limits<int64_t>::max();
  Step(*made.kv, oracle, 900);
  Step(*made.kv, oracle, 1);
}

// A page on disk is read once for all the rows that a view gathers from it.
TEST_F(DiskKvTest, GatheredRowsShareThePageThatIsRead) {
  OnDisk made =
      MakeOnDisk(/*resident=*/0, kContextPages, Folder(GoodDisk()), GoodDisk());
  Oracle oracle{{}, &next_};
  Step(*made.kv, oracle, 600);
  Step(*made.kv, oracle, 1);
  for (const KvTier::Buffer& buffer : made.tier->buffers) {
    ASSERT_TRUE(made.tier->engine->Wait(buffer.filled).ok());
  }
  const uint64_t before = made.ReadBytes();
  const int64_t pages = made.kv->moves().disk_pages;
  std::vector<std::byte> k(4 * 32 * static_cast<size_t>(kLayout.KRowBytes()));
  std::vector<std::byte> v(4 * 32 * static_cast<size_t>(kLayout.VRowBytes()));
  std::vector<KvRun> runs;
  const int64_t positions[] = {10, 200};
  for (int i = 0; i < 4; ++i) {  // head by head, in the order views use
    const int64_t at = int64_t{i} * 32;
    runs.push_back({.layer = 1,
                    .head = i / 2,
                    .position = positions[i % 2],
                    .rows = 32,
                    .k = InPlace(k.data()) + at * kLayout.KRowBytes(),
                    .v = InPlace(v.data()) + at * kLayout.VRowBytes()});
  }
  const auto stream = Stream::Create({.threads = 1});
  ASSERT_TRUE(stream.ok());
  const uint64_t copies = made.kv->CopyRuns(**stream, Phase::kRefresh, runs);
  ASSERT_TRUE(made.kv->AwaitCopies(copies, kGoOn).ok());
  EXPECT_EQ(made.kv->moves().disk_pages, pages + 2);
  EXPECT_EQ(made.ReadBytes() - before, 2 * kLayout.PageBytes());
  for (const KvRun& run : runs) {
    for (int64_t row = 0; row < run.rows; ++row) {
      const float* const key =
          HostAddress((run.k + row * kLayout.KRowBytes()).As<float>());
      const int number =
          oracle.numbers[static_cast<size_t>(run.position + row)];
      ASSERT_EQ(key[7], oracle.Key(run.layer, run.head, number));
    }
  }
}

}  // namespace
}  // namespace tiercel::kv_store_test
