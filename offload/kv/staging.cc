#include "offload/kv/staging.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {
namespace {

// The most bytes of one transfer of pages that are fetched ahead, unless one
// page has more: urgent copies go between transfers.
constexpr int64_t kAheadBytes = int64_t{1} << 20;

// The most bytes of one transfer of pages that a prompt sends down.
constexpr int64_t kDownBytes = int64_t{16} << 20;

}  // namespace

bool PagesRead::In(int layer, int64_t page) const {
  if (layers_.empty()) return true;
  const auto& pages =
      layers_[layers_.size() == 1 ? 0 : static_cast<size_t>(layer)];
  return pages[static_cast<size_t>(page)] != 0;
}

bool PagesRead::InAny(int64_t page) const {
  for (size_t layer = 0; layer < layers_.size(); ++layer) {
    if (In(static_cast<int>(layer), page)) return true;
  }
  return layers_.empty();
}

// ---- Before a step ----

absl::Status Staging::Claim(Cancelled cancelled) {
  if (tier_.owner == this && HasAhead()) return absl::OkStatus();
  next_.clear();
  ahead_ = 0;
  RETURN_IF_ERROR(AwaitBuffers(cancelled));
  tier_.owner = this;
  return absl::OkStatus();
}

// Waits for fetches of other sequences, or of an abandoned step, which may
// still be arriving. Their errors no longer matter.
absl::Status Staging::AwaitBuffers(Cancelled cancelled) {
  for (KvTier::Buffer& buffer : tier_.buffers) {
    const absl::Status status = engine().Wait(buffer.filled, cancelled);
    if (ClassOf(status) == ErrorClass::kCancelled) return status;
  }
  return absl::OkStatus();
}

int Staging::Ahead() const { return lost_ == residency_.lost() ? ahead_ : 0; }

// The number of the pages, from the first on, that the host attends to.
int64_t Staging::HostsOf(const PageList& pages, int64_t host_end) const {
  if (tier_.host == nullptr) return 0;
  const int64_t most = tier_.shape.host.Pages(std::ssize(pages));
  int64_t count = 0;
  for (; count < most; ++count) {
    const int64_t page = pages[static_cast<size_t>(count)];
    const PageTable::Page& at = pages_.At(page);
    if (page >= host_end || page != pages.front() + count ||
        at.place.file != nullptr || at.layers < Layers()) {
      break;
    }
  }
  return count;
}

absl::Status Staging::LayOut(PagesRead reads, int64_t end,
                             int64_t first_written, Phase phase,
                             int64_t host_end) {
  step_ = {.reads = std::move(reads),
           .phase = phase,
           .first_written = first_written};
  step_.place.assign(static_cast<size_t>(pages_.size()), -1);
  int64_t place = 0;
  PageList later;
  for (int64_t page = 0; page < pages_.size(); ++page) {
    const bool on_device = pages_.OnDevice(page);
    if (!on_device) step_.place[static_cast<size_t>(page)] = place++;
    if (page >= first_written) continue;
    if (!on_device) step_.away.push_back(page);
    const bool stays = pages_.IsResident(page) || pages_.IsNewest(page, end);
    if (!on_device || !stays) later.push_back(page);
  }
  if (place > tier_.shape.staged_pages) {
    return MemoryError(
        "out_of_memory",
        absl::StrCat("a layer buffer holds ", tier_.shape.staged_pages,
                     " pages, the step needs ", place));
  }
  tier_.staged_most = std::max(tier_.staged_most, place);
  // Pages that have left since the fetch come after those that were fetched, so
  // these keep their places.
  const bool same_places =
      step_.away.size() >= next_.size() &&
      std::equal(next_.begin(), next_.end(), step_.away.begin());
  // A fetch ahead has left the host's pages below.
  step_.host = HostsOf(step_.away, host_end);
  if (same_places && Ahead() > 0) {
    step_.host = std::min(step_.host, next_host_);
  }
  for (int layer = 0; same_places && layer < Ahead(); ++layer) {
    const PageList& there = asked_ahead_[static_cast<size_t>(layer)];
    const bool all = std::all_of(
        step_.away.begin() + step_.host, step_.away.end(), [&](int64_t page) {
          return !step_.reads.In(layer, page) ||
                 std::binary_search(there.begin(), there.end(), page);
        });
    if (!all) continue;
    step_.there[static_cast<size_t>(layer)] = true;
    moves_.ahead_pages -= std::ssize(there);
  }
  ahead_ = 0;
  next_ = std::move(later);
  next_host_ = HostsOf(next_, host_end);
  return absl::OkStatus();
}

// ---- Layer by layer ----

absl::Status Staging::Bring(int layer, Cancelled cancelled) {
  while (step_.asked < std::min(Layers(), layer + 2)) Ask(step_.asked);
  RETURN_IF_ERROR(AwaitFetched(layer, cancelled));
  return engine().Wait(BufferOf(layer).sent, cancelled);
}

DevicePtr<std::byte> Staging::PageOf(int layer, int64_t page) const {
  if (page < step_.first_written && !step_.reads.In(layer, page)) {
    return nullptr;
  }
  if (step_.host > 0 && page >= step_.away.front() &&
      page < step_.away.front() + step_.host) {
    return nullptr;
  }
  return Place(layer, step_.place[static_cast<size_t>(page)]);
}

Staging::Ticket Staging::SendDown(const PageList& pages, int layer) {
  std::vector<Transfer> transfers;
  for (int64_t page : pages) {
    transfers.push_back(residency_.Between(
        Direction::kDeviceToHost, page, layer,
        pages_.OnDevice(page)
            ? pages_.OnDevicePage(layer, page)
            : Place(layer, step_.place[static_cast<size_t>(page)])));
  }
  return engine().Submit(step_.phase, Joined(transfers, kDownBytes));
}

void Staging::Done(int layer, Ticket sent, bool ahead) {
  if (sent != 0) BufferOf(layer).sent = sent;
  const int next = layer + 2;
  if (next < Layers()) {
    Ask(next);
  } else if (ahead && next - Layers() < Layers()) {
    AskAhead(next - Layers());
  }
}

// Returns true if an earlier step has asked for all that this one reads in the
// layer.
bool Staging::IsThere(int layer) const {
  return layer < std::ssize(step_.there) &&
         step_.there[static_cast<size_t>(layer)];
}

void Staging::Ask(int layer) {
  if (layer < step_.asked) return;
  step_.asked = layer + 1;
  if (!IsThere(layer)) Fetch(layer);
}

void Staging::Fetch(int layer) {
  std::vector<Transfer> transfers;
  const auto fetch = [&](int64_t page) {
    transfers.push_back(residency_.Between(
        Direction::kHostToDevice, page, layer,
        Place(layer, step_.place[static_cast<size_t>(page)])));
  };
  for (auto page = step_.away.begin() + step_.host; page != step_.away.end();
       ++page) {
    if (step_.reads.In(layer, *page)) fetch(*page);
  }
  moves_.swept_pages += std::ssize(transfers);
  if (layer == step_.parked_layer) {
    for (int64_t page : step_.parked) fetch(page);
    moves_.resumed_pages += std::ssize(step_.parked);
  }
  BufferOf(layer).filled = engine().Submit(step_.phase, Joined(transfers));
}

// A fetch of an earlier step may have failed: that is no failure of this step,
// which fetches once more.
absl::Status Staging::AwaitFetched(int layer, Cancelled cancelled) {
  const absl::Status status = engine().Wait(BufferOf(layer).filled, cancelled);
  if (status.ok() || ClassOf(status) == ErrorClass::kCancelled ||
      !IsThere(layer)) {
    return status;
  }
  Fetch(layer);
  return engine().Wait(BufferOf(layer).filled, cancelled);
}

void Staging::AskAhead(int layer) {
  std::vector<Transfer> transfers;
  PageList& asked = asked_ahead_[static_cast<size_t>(layer)];
  asked.clear();
  const int64_t later = Layers() + layer;  // counted from this step's first
  for (auto place = static_cast<size_t>(next_host_); place < next_.size();
       ++place) {
    // Later rows read no more of these pages than this step's first row does.
    if (!step_.reads.In(layer, next_[place])) continue;
    asked.push_back(next_[place]);
    transfers.push_back(
        residency_.Between(Direction::kHostToDevice, next_[place], layer,
                           Place(later, static_cast<int64_t>(place))));
  }
  moves_.swept_pages += std::ssize(asked);
  moves_.ahead_pages += std::ssize(asked);
  BufferOf(later).filled =
      engine().Submit(step_.phase, Joined(transfers, kAheadBytes));
  ahead_ = layer + 1;
  lost_ = residency_.lost();
}

DevicePtr<std::byte> Staging::Place(int64_t layer, int64_t place) const {
  return tier_.BufferOf(layer).pages.data() +
         place * tier_.shape.layout.PageBytes();
}

// ---- After a step ----

void Staging::Commit() {
  tier_.turn += Layers();
  step_ = {};
}

void Staging::Abandon() {
  // A fork may have taken the buffers while this step was suspended.
  if (tier_.owner == this) {
    for (KvTier::Buffer& buffer : tier_.buffers) engine().Drop(buffer.filled);
  }
  next_.clear();
  ahead_ = 0;
  step_ = {};
}

void Staging::Truncate(int64_t end) {
  // A page that is written from here on must not be used as it was fetched.
  if (next_.empty()) return;
  if (next_.back() >= pages_.size() || !pages_.IsFull(next_.back(), end)) {
    ahead_ = 0;
  }
}

Staging::Ticket Staging::Suspend(int layer, PageList parked) {
  for (KvTier::Buffer& buffer : tier_.buffers) engine().Drop(buffer.filled);
  step_.there = {};
  step_.parked_layer = layer;
  step_.parked = std::move(parked);
  moves_.parked_pages += std::ssize(step_.parked);
  return SendDown(step_.parked, layer);
}

absl::Status Staging::SkipTo(int layer, Cancelled cancelled) {
  RETURN_IF_ERROR(AwaitBuffers(cancelled));
  step_.there = {};
  step_.asked = layer;
  return absl::OkStatus();
}

absl::Status Staging::Resume(Cancelled cancelled) {
  RETURN_IF_ERROR(AwaitBuffers(cancelled));
  tier_.owner = this;
  step_.asked = step_.parked_layer;
  return absl::OkStatus();
}

}  // namespace tiercel
