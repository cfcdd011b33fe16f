// A prompt goes on while its layers are written on another thread.

#include "runtime/session/prompt_writer.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "lib/status/error.h"
#include "offload/disk/faulty_disk_for_test.h"
#include "offload/prompt_cache/kv_folder.h"

namespace tiercel::prompt_writer_test {
namespace {

// The writer waits for any disk of these tests.
constexpr std::chrono::milliseconds kWaits = std::chrono::hours(1);
constexpr KvLayout kLayoutOfPrompts = {DType::kF16, DType::kF16, /*kv_heads=*/2,
                                       /*head_dim=*/32};

PromptInfo InfoFor(int layers) {
  PromptInfo info = {.fingerprint = "a model",
                     .layout = kLayoutOfPrompts,
                     .layers = layers,
                     .begin = 0,
                     .ids = std::vector<int32_t>(1280, 3),
                     .row_bytes = 64};
  return info;
}

// A pool's pages and hidden states, which one thread fills layer by layer.
class Prompt {
 public:
  explicit Prompt(const PromptInfo& info)
      : info_(info),
        pool_(std::make_shared<PagePool>(info.layout, info.layers, 16)),
        state_(static_cast<size_t>(info.StateBytes())) {
    for (int64_t page = 0; page < info.EndPage(); ++page) {
      slots_.push_back(*pool_->Take());
    }
  }
  void Compute(int layer) {
    const auto value = static_cast<std::byte>(layer + 1);
    for (const int64_t slot : slots_) {
      std::fill_n(pool_->HostPage(layer, slot), info_.layout.PageBytes(),
                  value);
    }
    std::fill(state_.begin(), state_.end(), value);
  }
  std::unique_ptr<HeldLayer> Hold(int layer) const {
    const auto copy =
        std::make_shared<HostRegion>(*HostRegion::Reserve(state_.size()));
    copy->Write(0, state_.data(), state_.size());
    return std::make_unique<HeldLayer>(pool_, layer, SlotsOf(slots_),
                                       std::vector<std::byte>(), copy,
                                       info_.StateBytes());
  }
  std::unique_ptr<HeldLayer> HoldPages(int layer) const {
    return std::make_unique<HeldLayer>(
        pool_, layer, SlotsOf(slots_), std::vector<std::byte>(),
        std::make_shared<HostRegion>(*HostRegion::Reserve(0)),
        /*state_bytes=*/0);
  }
  // Drops the sequence's pages, whose slots are overwritten.
  void Drop() {
    for (const int64_t slot : std::exchange(slots_, {})) pool_->Release(slot);
    for (int64_t page = 0; page < 2 * info_.EndPage(); ++page) {
      slots_.push_back(*pool_->Take());
      for (int layer = 0; layer < info_.layers; ++layer) {
        std::fill_n(pool_->HostPage(layer, slots_.back()),
                    info_.layout.PageBytes(), std::byte{99});
      }
    }
  }

 private:
  const PromptInfo info_;
  std::shared_ptr<PagePool> pool_;
  std::vector<int64_t> slots_;
  std::vector<std::byte> state_;
};

std::vector<std::unique_ptr<HeldLayer>> One(std::unique_ptr<HeldLayer> layer) {
  std::vector<std::unique_ptr<HeldLayer>> layers;
  layers.push_back(std::move(layer));
  return layers;
}

// Checks that every page and state in the file belongs to its layer; returns
// the number of layers.
int LayersIn(const KvFolder& folder, const PromptInfo& info) {
  const auto file = folder.OpenPrompt(info, /*anew=*/false);
  EXPECT_TRUE(file.ok()) << file.status();
  DiskUse use;
  std::byte state{};
  const auto layers = (*file)->Read(
      [&](int layer, int64_t, const std::byte* bytes) {
        const auto value = static_cast<std::byte>(layer + 1);
        EXPECT_TRUE(std::all_of(bytes, bytes + info.layout.PageBytes(),
                                [value](std::byte b) { return b == value; }));
        return absl::OkStatus();
      },
      [&](int64_t, const std::byte* from, size_t) {
        state = *from;
        return absl::OkStatus();
      },
      kGoOn, &use);
  EXPECT_TRUE(layers.ok()) << layers.status();
  EXPECT_EQ(state, static_cast<std::byte>(layers.value_or(0)));
  return layers.value_or(0);
}

TEST(PromptWriterTest, ALayerIsWrittenWhileTheNextComputes) {
  const FolderForTest folder;
  const KvFolder texts(folder.path() + "/texts", uint64_t{1} << 30, GoodDisk());
  const PromptInfo info = InfoFor(12);
  {
    Prompt prompt(info);
    PromptWriter writer(*texts.OpenPrompt(info, /*anew=*/false), kWaits);
    for (int layer = 0; layer + 1 < info.layers; ++layer) {
      prompt.Compute(layer);
      const auto takes = writer.TakesLayer(layer, kGoOn);
      ASSERT_TRUE(takes.ok() && *takes) << layer;
      writer.Write(One(prompt.Hold(layer)));
    }
    prompt.Drop();
  }
  EXPECT_EQ(LayersIn(texts, info), info.layers - 1);
}

// A layer that was not given is given with later ones.
TEST(PromptWriterTest, LayersThatAreThereAreNotTakenAgain) {
  const FolderForTest folder;
  const KvFolder texts(folder.path() + "/texts", uint64_t{1} << 30, GoodDisk());
  const PromptInfo info = InfoFor(7);
  {
    Prompt prompt(info);
    PromptWriter writer(*texts.OpenPrompt(info, /*anew=*/false), kWaits);
    prompt.Compute(0);
    ASSERT_TRUE(*writer.TakesLayer(0, kGoOn));
    writer.Write(One(prompt.Hold(0)));
    EXPECT_FALSE(*writer.TakesLayer(0, kGoOn));
    std::vector<std::unique_ptr<HeldLayer>> three;
    for (const int layer : {1, 2, 3}) {
      prompt.Compute(layer);
      three.push_back(layer < 3 ? prompt.HoldPages(layer) : prompt.Hold(layer));
    }
    ASSERT_TRUE(*writer.TakesLayer(3, kGoOn));
    EXPECT_EQ(writer.file().layers(), 1);
    writer.Write(std::move(three));
    EXPECT_FALSE(*writer.TakesLayer(3, kGoOn));
    EXPECT_TRUE(*writer.TakesLayer(4, kGoOn));
    EXPECT_EQ(writer.file().layers(), 4);
  }
  EXPECT_EQ(LayersIn(texts, info), 4);
}

TEST(PromptWriterTest, AWriteThatFailsIsToldWithTheNextLayer) {
  const FolderForTest folder;
  FaultyDisk disk;
  disk.counts_reads = false;
  disk.fail_at = 6;
  disk.error = ENOSPC;
  const KvFolder texts(folder.path() + "/texts", uint64_t{1} << 30, disk);
  const PromptInfo info = InfoFor(6);
  Prompt prompt(info);
  PromptWriter writer(*texts.OpenPrompt(info, /*anew=*/false), kWaits);
  absl::Status status;
  for (int layer = 0; status.ok() && layer < 5; ++layer) {
    prompt.Compute(layer);
    status = writer.TakesLayer(layer, kGoOn).status();
    if (status.ok()) writer.Write(One(prompt.Hold(layer)));
  }
  EXPECT_EQ(CodeOf(status), "disk_full");
}

}  // namespace
}  // namespace tiercel::prompt_writer_test
