// Layers of a prompt that are held while it is read, and with which another
// store goes on where this one was left.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "gtest/gtest.h"
#include "lib/status/error.h"
#include "offload/kv/kv_store_for_test.h"

namespace tiercel {
namespace {

using namespace kv_store_test;

constexpr size_t kStateBytes = 1000;

std::vector<std::byte> StateOf(int layer) {
  std::vector<std::byte> state(kStateBytes);
  for (size_t i = 0; i < state.size(); ++i) {
    state[i] = static_cast<std::byte>((i * 7 + 31 * (layer + 1)) % 251);
  }
  return state;
}

// The parts of a layer that a file would keep.
struct KeptLayer {
  std::map<int64_t, std::vector<std::byte>> pages;
  std::vector<std::byte> state;
};

KeptLayer Copied(const HeldLayer& held, int64_t first_page) {
  KeptLayer kept;
  for (int64_t page = 0; page < held.pages(); ++page) {
    auto& bytes = kept.pages[first_page + page];
    bytes.resize(static_cast<size_t>(kLayout.PageBytes()));
    EXPECT_TRUE(held.ReadPage(page, bytes.data()).ok());
  }
  kept.state.resize(static_cast<size_t>(held.state_bytes()));
  held.ReadState(0, kept.state.data(), kept.state.size());
  return kept;
}

// Computes one layer of a step of `rows` rows.
absl::Status ComputeLayer(KvStore& kv, const Oracle& oracle, int layer,
                          int64_t rows) {
  const absl::StatusOr<KvPages> pages = kv.BeginLayer(layer, kGoOn);
  if (!pages.ok()) return pages.status();
  Check(*pages, layer, oracle, View::Full());
  for (int64_t i = 0; i < rows; ++i) {
    Write(*pages, layer, oracle, i, *oracle.next + static_cast<int>(i));
  }
  kv.EndLayer(layer);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<HeldLayer>> Hold(KvStore& kv, int layer) {
  std::vector<std::byte> state = StateOf(layer);
  return kv.HoldLayer(layer, InPlace(state.data()), std::ssize(state), kGoOn);
}

absl::StatusOr<int> Take(KvStore& kv, const std::vector<KeptLayer>& layers,
                         std::vector<std::byte>* state) {
  return kv.TakeLayers(
      [&](KvStore::PutPage put,
          KvStore::PutState put_state) -> absl::StatusOr<int> {
        const std::vector<std::byte>& last = layers.back().state;
        const size_t half = last.size() / 2;
        absl::Status status = put_state(0, last.data(), half);
        status.Update(put_state(static_cast<int64_t>(half), last.data() + half,
                                last.size() - half));
        for (size_t layer = layers.size(); layer-- > 0;) {
          for (const auto& [page, bytes] : layers[layer].pages) {
            status.Update(put(static_cast<int>(layer), page, bytes.data()));
          }
        }
        if (!status.ok()) return status;
        return static_cast<int>(layers.size());
      },
      InPlace(state->data()), std::ssize(*state), kGoOn);
}

void NoteRows(Oracle& oracle, int64_t rows) {
  for (int64_t i = 0; i < rows; ++i) {
    oracle.numbers.push_back(*oracle.next + static_cast<int>(i));
  }
  *oracle.next += static_cast<int>(rows);
}

// Makes a step in a store whose link may fail once.
void StepAtLast(KvStore& kv, Oracle& oracle, int64_t rows) {
  if (!TryStep(kv, oracle, rows, rows).ok()) Step(kv, oracle, rows);
}

// Expects the bytes that moved up to be those that the moves add up to.
void ExpectCounted(const Made& made) {
  if (made.tier == nullptr) return;
  const KvMoves moves = made.kv->moves();
  EXPECT_EQ(MovedUp(made),
            kLayout.PageBytes() * (moves.swept_pages + moves.reopened_pages +
                                   moves.resumed_pages) +
                moves.resumed_bytes);
}

struct LayersCase {
  int64_t from;    // resident pages of the first store; < 0: in place
  int64_t to;      // ... of the store that goes on
  int64_t before;  // positions that both have before the prompt
  int64_t rows;
};

class LayersTest : public testing::TestWithParam<LayersCase> {
 protected:
  // Makes a store with `resident` pages that has begun the prompt's step.
  Made Begun(int64_t resident, Oracle& oracle) {
    const LayersCase& c = GetParam();
    next_ = 1;
    Made made = Make(resident, 0);
    if (c.before > 0) Step(*made.kv, oracle, c.before);
    EXPECT_TRUE(
        made.kv->BeginStep(c.rows, Phase::kPrefill, View::Full(), kGoOn).ok());
    return made;
  }

  // Computes the first `layers` layers in a store, and leaves it there.
  std::vector<KeptLayer> Computed(int layers) {
    const LayersCase& c = GetParam();
    Oracle oracle{{}, &next_};
    const Made made = Begun(c.from, oracle);
    std::vector<std::unique_ptr<HeldLayer>> held;
    for (int layer = 0; layer < layers; ++layer) {
      EXPECT_TRUE(ComputeLayer(*made.kv, oracle, layer, c.rows).ok());
      auto one = Hold(*made.kv, layer);
      EXPECT_TRUE(one.ok()) << one.status();
      held.push_back(*std::move(one));
    }
    made.kv->Abandon();
    // Held pages do not change when the sequence writes others in their place.
    Oracle other = oracle;
    int number = 100'000;
    other.next = &number;
    Step(*made.kv, other, c.rows);
    std::vector<KeptLayer> kept;
    for (const auto& layer : held) {
      kept.push_back(Copied(*layer, c.before / kPageTokens));
    }
    const int64_t slots = made.HostSlots();
    held.clear();
    EXPECT_LE(made.HostSlots(), slots);
    return kept;
  }

  // Expects the layer's states, and its K in the last row of each page.
  void ExpectHeld(const HeldLayer& held, int layer, const Oracle& oracle) {
    const LayersCase& c = GetParam();
    const KeptLayer kept = Copied(held, c.before / kPageTokens);
    EXPECT_EQ(kept.state, StateOf(layer));
    EXPECT_EQ(std::ssize(kept.pages), held.pages());
    for (const auto& [page, bytes] : kept.pages) {
      const int64_t row =
          std::min((page + 1) * kPageTokens, c.before + c.rows) - 1 - c.before;
      const auto cell = static_cast<int>((c.before + row) % kPageTokens);
      float key;
      std::memcpy(&key, bytes.data() + kLayout.KOffset(1, cell), sizeof(key));
      EXPECT_EQ(key, oracle.Key(layer, 1, next_ + static_cast<int>(row)));
    }
  }

  // Repeats a prompt in a store with `resident` pages, each time with another
  // copy failing, until every copy has failed once. Either the committed rows
  // are right or an error was returned. `compute` passes the prompt through all
  // layers.
  void WithEachCopyFailing(
      int64_t resident,
      absl::FunctionRef<absl::Status(const Made&, const Oracle&)> compute) {
    const LayersCase& c = GetParam();
    for (int64_t fail_at = 0;; ++fail_at) {
      next_ = 1;
      Oracle oracle{{}, &next_};
      const Made made = Make(resident, 0, fail_at);
      if (c.before > 0 && !TryStep(*made.kv, oracle, c.before, c.before).ok()) {
        continue;
      }
      absl::Status status =
          made.kv->BeginStep(c.rows, Phase::kPrefill, View::Full(), kGoOn);
      if (status.ok()) status = compute(made, oracle);
      if (status.ok()) status = made.kv->Commit(c.rows, kGoOn);
      if (status.ok()) {
        NoteRows(oracle, c.rows);
      } else {
        EXPECT_EQ(CodeOf(status), "copy_failed");
        made.kv->Abandon();
        StepAtLast(*made.kv, oracle, c.rows);
      }
      StepAtLast(*made.kv, oracle, 1);
      if (!made.copy->happened()) break;
    }
  }

  int next_ = 1;
};

TEST_P(LayersTest, AStoreGoesOnWhereAnotherWasLeft) {
  const LayersCase& c = GetParam();
  for (int layers = 1; layers < kLayers; ++layers) {
    const std::vector<KeptLayer> kept = Computed(layers);
    Oracle oracle{{}, &next_};
    const Made made = Begun(c.to, oracle);
    std::vector<std::byte> state(kStateBytes);
    const auto taken = Take(*made.kv, kept, &state);
    ASSERT_TRUE(taken.ok()) << taken.status();
    EXPECT_EQ(*taken, layers);
    EXPECT_EQ(state, StateOf(layers - 1));
    ASSERT_TRUE(Layers(*made.kv, oracle, c.rows, layers).ok());
    ASSERT_TRUE(made.kv->Commit(c.rows, kGoOn).ok());
    NoteRows(oracle, c.rows);
    ExpectCounted(made);
    const Made computed = Make(c.to, 0);
    Oracle same{{}, &next_};
    next_ = 1;
    if (c.before > 0) Step(*computed.kv, same, c.before);
    Step(*computed.kv, same, c.rows);
    // The pages of layers that were taken did not come up.
    EXPECT_EQ(made.kv->moves().swept_pages * kLayers,
              computed.kv->moves().swept_pages * (kLayers - layers));
    EXPECT_EQ(made.kv->HostBytes(), computed.kv->HostBytes());
    EXPECT_EQ(made.HostSlots(), computed.HostSlots());
    for (const int64_t rows : {1, 64, 130, 1}) Step(*made.kv, oracle, rows);
    CutTo(*made.kv, oracle, c.before + c.rows - 3);
    Step(*made.kv, oracle, 140);
    Step(*made.kv, oracle, 1);
    ExpectCounted(made);
  }
}

// The held copy of a page that is not full has 0 after the end of the prompt.
TEST_P(LayersTest, CellsBehindThePromptAreNotShown) {
  const LayersCase& c = GetParam();
  const int64_t end = c.before + c.rows;
  if (end % kPageTokens == 0) return;
  const std::vector<KeptLayer> kept = Computed(1);
  const std::vector<std::byte>& last = kept[0].pages.at(end / kPageTokens);
  const auto cell = static_cast<int>(end % kPageTokens);
  for (int head = 0; head < 2; ++head) {
    for (const auto& [begin, behind] :
         {std::pair(kLayout.KOffset(head, cell), kLayout.KOffset(head + 1, 0)),
          std::pair(kLayout.VOffset(head, cell),
                    kLayout.VOffset(head + 1, 0))}) {
      EXPECT_TRUE(std::all_of(last.begin() + begin, last.begin() + behind,
                              [](std::byte b) { return b == std::byte{0}; }));
    }
  }
}

// `give` may fail, or give nothing: the step then goes on from its first layer,
// as if TakeLayers had not been called.
TEST_P(LayersTest, AStepThatTakesNothingIsAStep) {
  const LayersCase& c = GetParam();
  const std::vector<KeptLayer> kept = Computed(2);
  for (const bool fails : {true, false}) {
    Oracle oracle{{}, &next_};
    const Made made = Begun(c.to, oracle);
    std::vector<std::byte> state(kStateBytes);
    const auto taken = made.kv->TakeLayers(
        [&](KvStore::PutPage put,
            KvStore::PutState put_state) -> absl::StatusOr<int> {
          EXPECT_TRUE(put_state(0, kept[0].state.data(), 10).ok());
          const auto& [page, bytes] = *kept[0].pages.rbegin();
          EXPECT_TRUE(put(0, page, bytes.data()).ok());
          if (fails) return IoError("a_fault", "a fault of the test");
          return 0;
        },
        InPlace(state.data()), std::ssize(state), kGoOn);
    EXPECT_EQ(taken.ok(), !fails);
    ASSERT_TRUE(Layers(*made.kv, oracle, c.rows).ok());
    ASSERT_TRUE(made.kv->Commit(c.rows, kGoOn).ok());
    NoteRows(oracle, c.rows);
    Step(*made.kv, oracle, 1);
    Step(*made.kv, oracle, 70);
  }
}

// Every copy of a prompt whose layers are held fails once. The held layers are
// right, and so are the committed rows, whether layers are held one by one or
// several together after the last of them.
TEST_P(LayersTest, ACopyThatFailsIsTold) {
  const LayersCase& c = GetParam();
  if (c.from < 0) return;
  for (const int together : {1, kLayers - 1}) {
    WithEachCopyFailing(c.from, [&](const Made& made, const Oracle& oracle) {
      for (int layer = 0; layer < kLayers; ++layer) {
        absl::Status s = ComputeLayer(*made.kv, oracle, layer, c.rows);
        if (!s.ok()) return s;
        if ((layer + 1) % together != 0) continue;
        for (int at = layer + 1 - together; at <= layer; ++at) {
          const auto held = Hold(*made.kv, at);
          if (!held.ok()) {
            EXPECT_EQ(CodeOf(held.status()), "copy_failed");
            continue;
          }
          ExpectHeld(**held, at, oracle);
        }
      }
      return absl::OkStatus();
    });
  }
}

// Every copy of a prompt that goes on fails once: either the committed rows are
// right or the error is returned.
TEST_P(LayersTest, ACopyThatFailsOnTheWayUpLeavesTheSequence) {
  const LayersCase& c = GetParam();
  if (c.to < 0) return;
  const std::vector<KeptLayer> kept = Computed(2);
  WithEachCopyFailing(c.to, [&](const Made& made, const Oracle& oracle) {
    std::vector<std::byte> state(kStateBytes);
    const absl::Status taken = Take(*made.kv, kept, &state).status();
    return taken.ok() ? Layers(*made.kv, oracle, c.rows, 2) : taken;
  });
}

INSTANTIATE_TEST_SUITE_P(
    Cases, LayersTest,
    testing::Values(LayersCase{-1, -1, 0, 300}, LayersCase{-1, 0, 0, 300},
                    LayersCase{0, -1, 0, 300}, LayersCase{0, 2, 0, 384},
                    LayersCase{2, 0, 128, 256}, LayersCase{2, 2, 200, 300},
                    LayersCase{-1, 3, 200, 184}, LayersCase{3, -1, 200, 65},
                    LayersCase{0, 0, 5, 120}, LayersCase{12, 12, 0, 500}));

}  // namespace
}  // namespace tiercel
