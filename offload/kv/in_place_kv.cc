#include "offload/kv/in_place_kv.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "lib/status/status_macros.h"

namespace tiercel {

InPlaceKv::InPlaceKv(std::shared_ptr<PagePool> pool, int64_t begin)
    : KvStore(pool->layout(), pool->layers(), begin),
      pool_(std::move(pool)),
      pages_(static_cast<size_t>(layers_)) {}

InPlaceKv::~InPlaceKv() { DropPages(0); }

absl::Status InPlaceKv::BeginOwnStep(int64_t rows, Phase /*phase*/,
                                     const View& view,
                                     Cancelled /*cancelled*/) {
  RETURN_IF_ERROR(BindView(view));
  AbandonOwn();
  absl::Cleanup undo = [this] { AbandonOwn(); };
  // The open page is the only one that both exists and will be written to.
  const auto open = static_cast<size_t>(end_ / kPageTokens - FirstPage());
  const bool shared =
      rows > 0 && open < slots_.size() && pool_->IsShared(slots_[open]);
  while (static_cast<int64_t>(slots_.size()) < PagesUpTo(end_ + rows)) {
    RETURN_IF_ERROR(AddPage());
  }
  if (shared) {
    RETURN_IF_ERROR(OwnPage(open));
  }
  std::move(undo).Cancel();
  return absl::OkStatus();
}

// BeginOwnStep calls this last: a step that failed after it would leave the
// copied page behind.
absl::Status InPlaceKv::OwnPage(size_t page) {
  ASSIGN_OR_RETURN(const int64_t copy, pool_->Take());
  for (int layer = 0; layer < page_layers_[page]; ++layer) {
    if (absl::Status s = pool_->CopyPage(layer, slots_[page], copy); !s.ok()) {
      pool_->Release(copy);
      return s;
    }
  }
  for (int layer = 0; layer < layers_; ++layer) {
    pages_[static_cast<size_t>(layer)][page] = pool_->Page(layer, copy);
  }
  pool_->Release(std::exchange(slots_[page], copy));
  return absl::OkStatus();
}

// All lists get room for the page first, so that nothing can fail half-way.
absl::Status InPlaceKv::AddPage() {
  const size_t room = 2 * slots_.size() + 1;
  if (slots_.size() == slots_.capacity()) slots_.reserve(room);
  if (page_layers_.size() == page_layers_.capacity()) {
    page_layers_.reserve(room);
  }
  for (std::vector<DevicePtr<std::byte>>& pages : pages_) {
    if (pages.size() == pages.capacity()) pages.reserve(room);
  }
  ASSIGN_OR_RETURN(const int64_t slot, pool_->Take());
  slots_.push_back(slot);
  page_layers_.push_back(layers_);
  for (int layer = 0; layer < layers_; ++layer) {
    pages_[static_cast<size_t>(layer)].push_back(pool_->Page(layer, slot));
  }
  return absl::OkStatus();
}

absl::StatusOr<KvPages> InPlaceKv::BeginLayer(int layer,
                                              Cancelled /*cancelled*/) {
  const std::vector<DevicePtr<std::byte>>& pages =
      pages_[static_cast<size_t>(layer)];
  return KvPages{.layout = layout_,
                 .pages = pages.data(),
                 .first_page = FirstPage(),
                 .num_pages = static_cast<int64_t>(pages.size()),
                 .begin = begin_,
                 .end = end_,
                 .view = reads_.Heads(layer)};
}

absl::Status InPlaceKv::CommitOwn(int64_t rows, Cancelled /*cancelled*/) {
  const int64_t first = reads_.shallow() ? 0 : end_ / kPageTokens - FirstPage();
  for (auto page = static_cast<size_t>(first); page < slots_.size(); ++page) {
    page_layers_[page] = LayersOf(static_cast<int64_t>(page));
  }
  end_ += rows;
  pool_->NoteWritten();
  DropPages(PagesUpTo(end_));
  return absl::OkStatus();
}

absl::Status InPlaceKv::SuspendOwn(int /*layer*/, int64_t /*rows*/,
                                   DevicePtr<std::byte> /*state*/,
                                   int64_t /*bytes*/) {
  return absl::OkStatus();
}

absl::Status InPlaceKv::ResumeOwn(DevicePtr<std::byte> /*state*/,
                                  Cancelled /*cancelled*/) {
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<HeldLayer>> InPlaceKv::HoldLayer(
    int layer, DevicePtr<std::byte> state, int64_t bytes,
    Cancelled /*cancelled*/) {
  if (pool_->on_device()) return NotInHostMemory();
  ASSIGN_OR_RETURN(HostRegion copy,
                   HostRegion::Reserve(static_cast<size_t>(bytes)));
  copy.Write(0, HostAddress(state), static_cast<size_t>(bytes));
  const auto first = static_cast<std::ptrdiff_t>(end_ / kPageTokens);
  const auto whole = static_cast<std::ptrdiff_t>(StepEnd() / kPageTokens);
  std::vector<std::byte> last;
  if (StepEnd() % kPageTokens != 0) {
    const std::byte* const page = HostPage(layer, whole);
    last.assign(page, page + layout_.PageBytes());
    ClearCells(static_cast<int>(StepEnd() % kPageTokens), layout_, last.data());
  }
  return std::make_unique<HeldLayer>(
      pool_, layer, SlotsOf({slots_.begin() + first, slots_.begin() + whole}),
      std::move(last), std::make_shared<HostRegion>(std::move(copy)), bytes);
}

absl::StatusOr<int> InPlaceKv::TakeOwnLayers(GiveLayers give,
                                             DevicePtr<std::byte> state,
                                             int64_t /*bytes*/,
                                             Cancelled /*cancelled*/) {
  if (pool_->on_device()) return NotInHostMemory();
  return give(
      [this](int layer, int64_t page, const std::byte* bytes) {
        std::copy_n(bytes, layout_.PageBytes(), HostPage(layer, page));
        return absl::OkStatus();
      },
      [to = HostAddress(state)](int64_t offset, const std::byte* from,
                                size_t count) {
        std::copy_n(from, count, to + offset);
        return absl::OkStatus();
      });
}

uint64_t InPlaceKv::CopyRuns(Stream& stream, Phase /*phase*/,
                             const std::vector<KvRun>& runs) {
  copied_.Update(
      FillRuns(stream, layout_, layout_, runs, [this](const KvRun& run) {
        const int64_t page = run.position / kPageTokens - FirstPage();
        return pages_[static_cast<size_t>(run.layer)]
                     [static_cast<size_t>(page)];
      }));
  return 0;
}

absl::Status InPlaceKv::AwaitCopies(uint64_t /*copies*/,
                                    Cancelled /*cancelled*/) {
  return std::exchange(copied_, absl::OkStatus());
}

void InPlaceKv::TruncateOwn(int64_t length) {
  end_ = begin_ + length;
  DropPages(PagesUpTo(end_));
}

absl::Status InPlaceKv::LoadOwn(int64_t rows, GivePages give,
                                const std::shared_ptr<PageFile>& /*text*/,
                                Cancelled /*cancelled*/) {
  if (pool_->on_device()) return NotInHostMemory();
  // Drops the pages again if the load fails.
  const absl::Cleanup end_load = [this] { AbandonOwn(); };
  while (static_cast<int64_t>(slots_.size()) < PagesUpTo(end_ + rows)) {
    RETURN_IF_ERROR(AddPage());
  }
  const auto place = [this](int layer, int64_t page) {
    return HostPage(layer, page);
  };
  const absl::Status given = give(
      [&](int layer, int64_t page, const std::byte* bytes) {
        std::byte* const to = place(layer, page);
        if (to != bytes) std::copy_n(bytes, layout_.PageBytes(), to);
        return absl::OkStatus();
      },
      place);
  if (!given.ok()) return given;
  end_ += rows;
  pool_->NoteWritten();
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<HeldPages>> InPlaceKv::Hold(
    int64_t positions, Cancelled /*cancelled*/) {
  if (pool_->on_device()) return NotInHostMemory();
  return std::make_unique<PoolPages>(pool_, slots_, begin_ + positions);
}

absl::StatusOr<std::unique_ptr<KvStore>> InPlaceKv::Fork() {
  auto fork = std::make_unique<InPlaceKv>(pool_, begin_);
  fork->end_ = end_;
  const auto pages = static_cast<size_t>(PagesUpTo(end_));
  for (size_t layer = 0; layer < pages_.size(); ++layer) {
    fork->pages_[layer] = pages_[layer];
    fork->pages_[layer].resize(pages);
  }
  fork->page_layers_.assign(
      page_layers_.begin(),
      page_layers_.begin() + static_cast<std::ptrdiff_t>(pages));
  fork->slots_.reserve(pages);
  for (size_t page = 0; page < pages; ++page) {
    const int64_t slot = slots_[page];
    pool_->AddReference(slot);
    fork->slots_.push_back(slot);
  }
  return fork;
}

void InPlaceKv::DropPages(int64_t keep) {
  while (static_cast<int64_t>(slots_.size()) > keep) {
    pool_->Release(slots_.back());
    slots_.pop_back();
    page_layers_.pop_back();
    for (std::vector<DevicePtr<std::byte>>& pages : pages_) pages.pop_back();
  }
}

}  // namespace tiercel
