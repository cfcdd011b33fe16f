#ifndef TIERCEL_OFFLOAD_KV_IN_PLACE_KV_H_
#define TIERCEL_OFFLOAD_KV_IN_PLACE_KV_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

#include "offload/kv/kv_store.h"
#include "offload/tier/page_pool.h"

namespace tiercel {

// KV whose pages are read and written where they are, and never move: either in
// the host tier, if the device computes there, or on the device alone.
class InPlaceKv final : public KvStore {
 public:
  InPlaceKv(std::shared_ptr<PagePool> pool, int64_t begin);
  ~InPlaceKv() override;

  absl::StatusOr<KvPages> BeginLayer(int layer, Cancelled cancelled) override;
  void EndLayer(int /*layer*/) override {}
  uint64_t CopyRuns(Stream& stream, Phase phase,
                    const std::vector<KvRun>& runs) override;
  absl::Status AwaitCopies(uint64_t copies, Cancelled cancelled) override;
  absl::StatusOr<std::unique_ptr<HeldLayer>> HoldLayer(
      int layer, DevicePtr<std::byte> state, int64_t bytes,
      Cancelled cancelled) override;
  absl::StatusOr<std::unique_ptr<HeldPages>> Hold(int64_t positions,
                                                  Cancelled cancelled) override;
  absl::StatusOr<std::unique_ptr<KvStore>> Fork() override;
  int64_t HostBytes() const override {
    if (pool_->on_device()) return 0;
    return std::accumulate(page_layers_.begin(), page_layers_.end(),
                           int64_t{0}) *
           layout_.PageBytes();
  }

 private:
  absl::Status BeginOwnStep(int64_t rows, Phase phase, const View& view,
                            Cancelled cancelled) override;
  absl::Status CommitOwn(int64_t rows, Cancelled cancelled) override;
  void AbandonOwn() override { DropPages(PagesUpTo(end_)); }
  absl::Status SuspendOwn(int layer, int64_t rows, DevicePtr<std::byte> state,
                          int64_t bytes) override;
  absl::Status ResumeOwn(DevicePtr<std::byte> state,
                         Cancelled cancelled) override;
  absl::StatusOr<int> TakeOwnLayers(GiveLayers give, DevicePtr<std::byte> state,
                                    int64_t bytes,
                                    Cancelled cancelled) override;
  void TruncateOwn(int64_t length) override;
  absl::Status LoadOwn(int64_t rows, GivePages give,
                       const std::shared_ptr<PageFile>& text,
                       Cancelled cancelled) override;

  absl::Status AddPage();
  absl::Status OwnPage(size_t page);
  void DropPages(int64_t keep);
  // A page as the host reads and writes it. The pool is in host memory.
  std::byte* HostPage(int layer, int64_t page) const {
    return pool_->HostPage(layer, slots_[static_cast<size_t>(page)]);
  }

  std::shared_ptr<PagePool> pool_;
  std::vector<int64_t> slots_;    // [page]
  std::vector<int> page_layers_;  // [page]: layers that have it
  // [layer][page]
  std::vector<std::vector<DevicePtr<std::byte>>> pages_;
  absl::Status copied_;  // CopyRuns' error, until AwaitCopies returns it
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_KV_IN_PLACE_KV_H_
