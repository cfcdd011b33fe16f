// Pages that are loaded into a sequence, and pages that are held for others.

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "offload/kv/kv_store_for_test.h"

namespace tiercel {
namespace {

using namespace kv_store_test;

// Copies of pages, as a file would keep them.
using Pages = std::map<std::pair<int, int64_t>, std::vector<std::byte>>;

Pages Copied(const HeldPages& held) {
  Pages pages;
  for (int layer = 0; layer < held.layers(); ++layer) {
    for (int64_t page = 0; page < held.pages(); ++page) {
      auto& bytes = pages[{layer, page}];
      bytes.resize(static_cast<size_t>(kLayout.PageBytes()));
      EXPECT_TRUE(held.Read(layer, page, bytes.data()).ok());
    }
  }
  return pages;
}

absl::Status Load(KvStore& kv, const Pages& pages, int64_t end,
                  KvStore::Cancelled cancelled = kGoOn) {
  const int64_t first = kv.end() / kPageTokens;
  return kv.Load(
      end - kv.end(),
      [&](KvStore::PutPage put, KvStore::PlacePage place) -> absl::Status {
        // Puts the pages in reverse order, and every other page by its place,
        // if it has one.
        bool by_place = false;
        for (auto it = pages.rbegin(); it != pages.rend(); ++it) {
          const auto [layer, page] = it->first;
          if (page < first || page * kPageTokens >= end) continue;
          const std::byte* from = it->second.data();
          by_place = !by_place;
          if (std::byte* const to = by_place ? place(layer, page) : nullptr) {
            std::copy(it->second.begin(), it->second.end(), to);
            from = to;
          }
          if (absl::Status s = put(layer, page, from); !s.ok()) return s;
        }
        return absl::OkStatus();
      },
      cancelled);
}

struct Case {
  int64_t resident;  // resident pages; < 0: in place
  int64_t end;
};

class LoadTest : public testing::TestWithParam<Case> {
 protected:
  static bool InPlace() { return GetParam().resident < 0; }
  // The number of positions that Hold returns in the case's store, of `end`.
  static int64_t Whole(int64_t end) {
    return InPlace() ? end : end / kPageTokens * kPageTokens;
  }

  // Returns the pages of a computed sequence that ends at the case's `end`.
  static Pages Computed(Oracle& oracle) {
    const Made from = Make(-1, 0);
    Step(*from.kv, oracle, GetParam().end);
    return Copied(**from.kv->Hold(GetParam().end, kGoOn));
  }

  int next_ = 1;
};

// A store goes on from pages that another has computed as if it had computed
// them.
TEST_P(LoadTest, ALoadedSequenceGoesOnAsAComputedOne) {
  const Case& c = GetParam();
  Oracle oracle{{}, &next_};
  const Pages pages = Computed(oracle);

  const Made made = Make(c.resident, 0);
  ASSERT_TRUE(Load(*made.kv, pages, c.end).ok());
  EXPECT_EQ(made.kv->end(), c.end);
  const Made computed = Make(c.resident, 0);
  Oracle same{{}, &next_};
  next_ = 1;
  Step(*computed.kv, same, c.end);
  EXPECT_EQ(made.kv->HostBytes(), computed.kv->HostBytes());
  EXPECT_EQ(made.HostSlots(), computed.HostSlots());
  if (made.tier != nullptr) {
    // A prompt's last page stays on the device until the next step, even if it
    // is full; a loaded one does not.
    const int64_t last = c.end % kPageTokens == 0 ? 1 : 0;
    EXPECT_EQ(made.tier->slots.free(), computed.tier->slots.free() + last);
    EXPECT_EQ(MovedUp(made),
              made.kv->moves().reopened_pages * kLayout.PageBytes());
    EXPECT_EQ(made.kv->moves().closed_pages, 0);
  }
  for (const int64_t rows : {1, 5, 64, 130, 1, 200}) {
    Step(*made.kv, oracle, rows);
  }
  CutTo(*made.kv, oracle, c.end - 3);
  Step(*made.kv, oracle, 140);
  Step(*made.kv, oracle, 1);
}

// Pages are loaded into a sequence that has some already.
TEST_P(LoadTest, PagesAreAddedBehindThoseThatAreThere) {
  const Case& c = GetParam();
  Oracle oracle{{}, &next_};
  const Pages pages = Computed(oracle);

  const Made made = Make(c.resident, 0);
  Oracle mine = oracle;
  mine.numbers.clear();
  next_ = 1;
  Step(*made.kv, mine, 2 * kPageTokens);
  Step(*made.kv, mine, 1);
  CutTo(*made.kv, mine, 2 * kPageTokens);
  ASSERT_TRUE(Load(*made.kv, pages, c.end).ok());
  Step(*made.kv, oracle, 1);
  Step(*made.kv, oracle, 150);
}

TEST_P(LoadTest, ALoadThatFailsLeavesTheSequenceAsItWas) {
  const Case& c = GetParam();
  Oracle oracle{{}, &next_};
  const Pages pages = Computed(oracle);
  for (int64_t fail_at = 0;; ++fail_at) {
    const Made made = Make(c.resident, 0);
    Oracle mine{{}, &next_};
    Step(*made.kv, mine, kPageTokens);
    const int64_t slots = made.HostSlots();
    int64_t put_pages = 0;
    const absl::Status status = made.kv->Load(
        c.end - kPageTokens,
        [&](KvStore::PutPage put, KvStore::PlacePage) -> absl::Status {
          for (const auto& [place, bytes] : pages) {
            if (place.second == 0) continue;
            if (put_pages++ == fail_at) return IoError("a_fault", "a fault");
            if (absl::Status s = put(place.first, place.second, bytes.data());
                !s.ok()) {
              return s;
            }
          }
          return absl::OkStatus();
        },
        kGoOn);
    if (status.ok()) break;
    EXPECT_EQ(CodeOf(status), "a_fault");
    EXPECT_EQ(made.kv->end(), kPageTokens);
    EXPECT_EQ(made.HostSlots(), slots);
    Step(*made.kv, mine, 1);
    Step(*made.kv, mine, 200);
  }
}

// Held pages stay as they are, whatever the sequence does: a file is written
// from them.
TEST_P(LoadTest, HeldPagesStayAsTheyWere) {
  const Case& c = GetParam();
  const Made made = Make(c.resident, 0);
  Oracle oracle{{}, &next_};
  Step(*made.kv, oracle, c.end - 1);
  Step(*made.kv, oracle, 1);
  auto held = *made.kv->Hold(c.end, kGoOn);
  ASSERT_EQ(held->positions(), Whole(c.end));
  const Pages before = Copied(*held);
  Step(*made.kv, oracle, 1);
  CutTo(*made.kv, oracle, kPageTokens + 5);
  Step(*made.kv, oracle, 300);
  CutTo(*made.kv, oracle, 0);
  Step(*made.kv, oracle, c.end);
  EXPECT_TRUE(Copied(*held) == before);
  const int64_t slots = made.HostSlots();
  held.reset();
  EXPECT_LT(made.HostSlots(), slots);
  Step(*made.kv, oracle, 3);
  // A store that loads the held pages finds the numbers that were computed.
  const Made again = Make(-1, 0);
  ASSERT_TRUE(Load(*again.kv, before, Whole(c.end)).ok());
  Oracle first{{}, &next_};
  for (int64_t i = 0; i < Whole(c.end); ++i) {
    first.numbers.push_back(static_cast<int>(i) + 1);
  }
  Step(*again.kv, first, 1);
}

// Cells after the last position may hold data of an earlier sequence: a held
// page has 0 there.
TEST_P(LoadTest, WhatLiesBehindTheLastPositionIsNotShown) {
  const Case& c = GetParam();
  if (!InPlace() || c.end % kPageTokens == 0) return;
  const Made made = Make(c.resident, 0);
  Oracle oracle{{}, &next_};
  Step(*made.kv, oracle, c.end + 1);
  CutTo(*made.kv, oracle, c.end);
  const Pages pages = Copied(**made.kv->Hold(c.end, kGoOn));
  const auto& page = pages.at({1, c.end / kPageTokens});
  const auto cell = static_cast<int>(c.end % kPageTokens);
  for (int head = 0; head < 2; ++head) {
    for (int64_t i = 0; i < kLayout.KRowBytes(); ++i) {
      EXPECT_EQ(page[static_cast<size_t>(kLayout.KOffset(head, cell) + i)],
                std::byte{0});
    }
    for (int64_t i = 0; i < kLayout.VRowBytes(); ++i) {
      EXPECT_EQ(page[static_cast<size_t>(kLayout.VOffset(head, cell) + i)],
                std::byte{0});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Stores, LoadTest,
                         testing::Values(Case{-1, 640}, Case{-1, 700},
                                         Case{0, 640}, Case{0, 700},
                                         Case{2, 640}, Case{2, 700},
                                         Case{4, 641}, Case{4, 767}));

}  // namespace
}  // namespace tiercel
