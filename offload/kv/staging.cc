#include "offload/kv/staging.h"

#include <algorithm>
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

size_t Index(int64_t i) { return static_cast<size_t>(i); }

}  // namespace

bool PagesRead::In(int layer, int64_t page) const {
  if (layers_.empty()) return true;
  const auto& pages = layers_[layers_.size() == 1 ? 0 : Index(layer)];
  return pages[Index(page)] != 0;
}

bool PagesRead::InAny(int64_t page) const {
  for (size_t layer = 0; layer < layers_.size(); ++layer) {
    if (In(static_cast<int>(layer), page)) return true;
  }
  return layers_.empty();
}

// ---- Before a step ----

absl::Status Staging::Join(StagedStep& step, Cancelled cancelled) {
  step.parked_layer = -1;
  step.parked.clear();
  return Enter(step, cancelled);
}

absl::Status Staging::Enter(StagedStep& step, Cancelled cancelled) {
  if (steps_.empty()) {
    if (ahead_.layers == 0) {
      RETURN_IF_ERROR(AwaitBuffers(cancelled));
    }
    places_.clear();
    taken_.assign(Index(tier_.shape.staged_pages), 0);
    free_ = 0;
    asked_ = 0;
    ended_ = 0;
    there_ = {};
    awaited_ = -1;
  } else if (asked_ > 0) {
    return InternalError("internal", "a step joins one that has begun");
  }
  step.away.clear();
  step.later.clear();
  step.done = 0;
  for (int64_t page = 0; page < step.first_written; ++page) {
    const bool on_device = step.pages.OnDevice(page);
    const bool stays =
        step.pages.IsResident(page) || step.pages.IsNewest(page, step.end);
    if (!on_device) step.away.push_back(page);
    if (!on_device || !stays) step.later.push_back(page);
  }
  RETURN_IF_ERROR(TakePlaces(step));
  step.host = 0;
  steps_.push_back(&step);
  return absl::OkStatus();
}

// Pages keep the places in which they were fetched ahead, or in which sequences
// that have joined have them.
absl::Status Staging::TakePlaces(StagedStep& step) {
  step.place.assign(Index(step.pages.size()), -1);
  PageList without;
  std::vector<int64_t> added;  // contents
  std::vector<int64_t> taken;  // places
  const auto take = [&](int64_t page, int64_t place) {
    step.place[Index(page)] = place;
    taken_[Index(place)] = 1;
    taken.push_back(place);
    if (page >= step.first_written) return;
    const int64_t contents = step.pages.At(page).contents;
    places_[contents] = place;
    added.push_back(contents);
  };
  for (int64_t page = 0; page < step.pages.size(); ++page) {
    const PageTable::Page& at = step.pages.At(page);
    if (at.device >= 0) continue;
    if (page >= step.first_written) {
      without.push_back(page);
    } else if (const auto has = places_.find(at.contents);
               has != places_.end()) {
      step.place[Index(page)] = has->second;
    } else if (const auto ahead = ahead_.place.find(at.contents);
               ahead != ahead_.place.end()) {
      take(page, ahead->second);
    } else {
      without.push_back(page);
    }
  }
  for (const int64_t page : without) {
    const int64_t place = TakePlace();
    if (place < 0) {
      for (const int64_t contents : added) places_.erase(contents);
      for (const int64_t each : taken) taken_[Index(each)] = 0;
      free_ = 0;
      return MemoryError(
          "out_of_memory",
          absl::StrCat("a layer buffer holds ", tier_.shape.staged_pages,
                       " pages, the step needs more"));
    }
    take(page, place);
  }
  for (const int64_t place : taken) {
    tier_.staged_most = std::max(tier_.staged_most, place + 1);
  }
  return absl::OkStatus();
}

// Returns the first free place, if possible one that has no page that was
// fetched ahead; or -1.
int64_t Staging::TakePlace() {
  const int64_t count = std::ssize(taken_);
  const auto has_ahead = [this](int64_t place) {
    return !ahead_.contents.empty() && ahead_.contents[Index(place)] != 0;
  };
  while (free_ < count && (taken_[Index(free_)] != 0 || has_ahead(free_))) {
    ++free_;
  }
  if (free_ < count) return free_;
  for (int64_t place = 0; place < count; ++place) {
    if (taken_[Index(place)] != 0) continue;
    ahead_.place.erase(std::exchange(ahead_.contents[Index(place)], 0));
    return place;
  }
  return -1;
}

// Waits for fetches of an abandoned step, which may still be arriving. Their
// errors no longer matter.
absl::Status Staging::AwaitBuffers(Cancelled cancelled) {
  for (KvTier::Buffer& buffer : tier_.buffers) {
    const absl::Status status = engine().Wait(buffer.filled, cancelled);
    if (ClassOf(status) == ErrorClass::kCancelled) return status;
  }
  return absl::OkStatus();
}

// The number of the pages, from the first on, that the host attends to.
int64_t Staging::HostsOf(const StagedStep& step, const PageList& pages) const {
  if (tier_.host == nullptr) return 0;
  const int64_t most = tier_.shape.host.Pages(std::ssize(pages));
  int64_t count = 0;
  for (; count < most; ++count) {
    const int64_t page = pages[Index(count)];
    const PageTable::Page& at = step.pages.At(page);
    if (page >= step.host_end || page != pages.front() + count ||
        at.place.file != nullptr || at.layers < Layers()) {
      break;
    }
  }
  return count;
}

// ---- Layer by layer ----

absl::Status Staging::Bring(int layer, Cancelled cancelled) {
  while (asked_ < std::min(Layers(), layer + 2)) Ask(asked_);
  if (awaited_ != layer) {
    absl::Status arrived = Await(layer, cancelled);
    if (ClassOf(arrived) == ErrorClass::kCancelled) return arrived;
    awaited_ = layer;
    arrived_ = std::move(arrived);
  }
  return arrived_;
}

DevicePtr<std::byte> Staging::PageOf(const StagedStep& step, int layer,
                                     int64_t page) const {
  if (page < step.first_written && !step.reads.In(layer, page)) {
    return nullptr;
  }
  if (step.host > 0 && page >= step.away.front() &&
      page < step.away.front() + step.host) {
    return nullptr;
  }
  return Place(layer, step.place[Index(page)]);
}

Staging::Ticket Staging::SendDown(const StagedStep& step, const PageList& pages,
                                  int layer) {
  std::vector<Transfer> transfers;
  for (int64_t page : pages) {
    transfers.push_back(step.residency.Between(
        Direction::kDeviceToHost, page, layer,
        step.pages.OnDevice(page) ? step.pages.OnDevicePage(layer, page)
                                  : Place(layer, step.place[Index(page)])));
  }
  return engine().Submit(step.phase, Joined(transfers, kDownBytes));
}

void Staging::Done(StagedStep& step, int layer, Ticket sent) {
  if (sent != 0) BufferOf(layer).sent = sent;
  step.done = layer + 1;
  EndLayers();
}

// Ends the layers that have ended for all sequences of the step.
void Staging::EndLayers() {
  const auto computes = [this](const StagedStep* step) {
    return step->done <= ended_;
  };
  while (!steps_.empty() &&
         std::none_of(steps_.begin(), steps_.end(), computes)) {
    const int next = ended_++ + 2;
    if (next < Layers()) {
      if (next >= asked_) Ask(next);
    } else if (!steps_.front()->prompt && next - Layers() < Layers()) {
      AskAhead(next - Layers());
    }
    if (ended_ < Layers()) continue;
    tier_.turn += Layers();
    steps_.clear();
  }
}

// Returns true if an earlier step has asked for all that this one reads in the
// layer.
bool Staging::IsThere(int layer) const {
  return layer < std::ssize(there_) && there_[Index(layer)];
}

bool Staging::WasAsked(int layer) const {
  if (layer >= ahead_.layers) return false;
  const auto& asked = ahead_.asked[Index(layer)];
  for (const StagedStep* const step : steps_) {
    const PageList& away = step->away;
    for (auto page = away.begin() + step->host; page != away.end(); ++page) {
      if (!step->reads.In(layer, *page)) continue;
      const auto ahead = ahead_.place.find(step->pages.At(*page).contents);
      if (ahead == ahead_.place.end() || asked[Index(ahead->second)] == 0) {
        return false;
      }
    }
  }
  return true;
}

// Pages that were fetched ahead are there: the host leaves them alone.
void Staging::TakeShare(StagedStep& step) {
  for (const int64_t most = HostsOf(step, step.away); step.host < most;
       ++step.host) {
    if (IsAhead(step.pages.At(step.away[Index(step.host)]))) break;
  }
}

void Staging::Ask(int layer) {
  // The host folds for one sequence.
  if (asked_ == 0 && steps_.size() == 1) TakeShare(*steps_.front());
  asked_ = layer + 1;
  if (WasAsked(layer)) {
    UseAhead(layer);
  } else {
    Fetch(layer);
  }
  // From here on the buffers have this step's pages.
  if (asked_ == std::min(static_cast<int>(there_.size()), Layers()))
    ahead_ = {};
}

void Staging::Fetch(int layer) {
  std::vector<Transfer> transfers;
  std::vector<uint8_t> fetched(taken_.size(), 0);
  for (StagedStep* const step : steps_) {
    const auto fetch = [&](int64_t page) {
      const int64_t place = step->place[Index(page)];
      if (std::exchange(fetched[Index(place)], 1) != 0) return 0;
      transfers.push_back(step->residency.Between(
          Direction::kHostToDevice, page, layer, Place(layer, place)));
      return 1;
    };
    for (auto page = step->away.begin() + step->host; page != step->away.end();
         ++page) {
      if (step->reads.In(layer, *page)) step->moves.swept_pages += fetch(*page);
    }
    if (layer != step->parked_layer) continue;
    for (const int64_t page : step->parked) {
      step->moves.resumed_pages += fetch(page);
    }
  }
  BufferOf(layer).filled =
      engine().Submit(steps_.front()->phase, Joined(transfers));
}

// A fetch of an earlier step may have failed: that is no failure of this step,
// which fetches once more.
absl::Status Staging::Await(int layer, Cancelled cancelled) {
  absl::Status status = engine().Wait(BufferOf(layer).filled, cancelled);
  if (!status.ok() && ClassOf(status) != ErrorClass::kCancelled &&
      IsThere(layer)) {
    Fetch(layer);
    status = engine().Wait(BufferOf(layer).filled, cancelled);
  }
  RETURN_IF_ERROR(status);
  return engine().Wait(BufferOf(layer).sent, cancelled);
}

DevicePtr<std::byte> Staging::Place(int64_t layer, int64_t place) const {
  return tier_.BufferOf(layer).pages.data() +
         place * tier_.shape.layout.PageBytes();
}

// ---- The next step's first two layers ----

void Staging::UseAhead(int layer) {
  there_[Index(layer)] = true;
  for (const auto& [by, pages] : ahead_.by[Index(layer)]) {
    by->moves.ahead_pages -= pages;
  }
}

// Gives the pages that a next step stages their places.
void Staging::PlanAhead() {
  ahead_ = {};
  ahead_.contents.assign(taken_.size(), 0);
  ahead_.asked = {std::vector<uint8_t>(taken_.size(), 0),
                  std::vector<uint8_t>(taken_.size(), 0)};
  if (steps_.size() == 1) {
    StagedStep& only = *steps_.front();
    only.later.erase(only.later.begin(),
                     only.later.begin() + HostsOf(only, only.later));
  }
  const auto put = [this](int64_t contents, int64_t place) {
    ahead_.place[contents] = place;
    ahead_.contents[Index(place)] = contents;
  };
  std::vector<int64_t> without;  // contents
  for (const StagedStep* const step : steps_) {
    for (const int64_t page : step->later) {
      const int64_t contents = step->pages.At(page).contents;
      const auto now = places_.find(contents);
      if (now != places_.end()) {
        put(contents, now->second);
      } else {
        without.push_back(contents);
      }
    }
  }
  int64_t place = 0;
  for (const int64_t contents : without) {
    if (ahead_.place.contains(contents)) continue;
    while (place < std::ssize(taken_) && ahead_.contents[Index(place)] != 0) {
      ++place;
    }
    if (place == std::ssize(taken_)) return;
    put(contents, place);
  }
}

void Staging::AskAhead(int layer) {
  if (layer == 0) PlanAhead();
  if (ahead_.layers != layer) return;
  std::vector<Transfer> transfers;
  auto& asked = ahead_.asked[Index(layer)];
  const int64_t later = Layers() + layer;  // counted from this step's first
  for (StagedStep* const step : steps_) {
    int64_t pages = 0;
    for (const int64_t page : step->later) {
      // Later rows read no more of these pages than this step's first row does.
      if (!step->reads.In(layer, page)) continue;
      const auto place = ahead_.place.find(step->pages.At(page).contents);
      if (place == ahead_.place.end()) continue;
      if (std::exchange(asked[Index(place->second)], 1) != 0) continue;
      transfers.push_back(step->residency.Between(
          Direction::kHostToDevice, page, layer, Place(later, place->second)));
      ++pages;
    }
    step->moves.swept_pages += pages;
    step->moves.ahead_pages += pages;
    ahead_.by[Index(layer)].emplace_back(step, pages);
  }
  BufferOf(later).filled =
      engine().Submit(steps_.front()->phase, Joined(transfers, kAheadBytes));
  ahead_.layers = layer + 1;
}

// ---- A step that does not go on ----

void Staging::DropFetches() {
  for (KvTier::Buffer& buffer : tier_.buffers) engine().Drop(buffer.filled);
  ahead_ = {};
}

void Staging::Leave(StagedStep& step) {
  const auto own = std::find(steps_.begin(), steps_.end(), &step);
  if (own == steps_.end()) return;
  steps_.erase(own);
  if (!steps_.empty()) {
    EndLayers();
  } else if (asked_ > 0) {
    DropFetches();
  }
}

void Staging::Forget(StagedStep& step) {
  Leave(step);
  for (auto& by : ahead_.by) {
    by.erase(std::remove_if(by.begin(), by.end(),
                            [&step](const auto& charged) {
                              return charged.first == &step;
                            }),
             by.end());
  }
}

Staging::Ticket Staging::Suspend(StagedStep& step, int layer, PageList parked) {
  DropFetches();
  step.parked_layer = layer;
  step.parked = std::move(parked);
  step.moves.parked_pages += std::ssize(step.parked);
  steps_.clear();
  return SendDown(step, step.parked, layer);
}

absl::Status Staging::Resume(StagedStep& step, Cancelled cancelled) {
  ahead_ = {};  // the buffers are not filled from the first layer on
  RETURN_IF_ERROR(Enter(step, cancelled));
  asked_ = ended_ = step.done = step.parked_layer;
  return absl::OkStatus();
}

absl::Status Staging::SkipTo(int layer, Cancelled cancelled) {
  RETURN_IF_ERROR(AwaitBuffers(cancelled));
  ahead_ = {};
  asked_ = ended_ = steps_.front()->done = layer;
  return absl::OkStatus();
}

}  // namespace tiercel
