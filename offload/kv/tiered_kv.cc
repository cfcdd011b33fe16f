#include "offload/kv/tiered_kv.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "kernels/base/error.h"

namespace tiercel {
namespace {

// What is fetched ahead leaves room for what is urgent after this many, or
// after a page that has more.
constexpr int64_t kAheadBytes = int64_t{1} << 20;

}  // namespace

TieredKv::TieredKv(std::shared_ptr<KvTier> tier, int64_t begin)
    : KvStore(tier->shape.layout, tier->shape.layers, begin),
      tier_(std::move(tier)) {}

TieredKv::~TieredKv() {
  AbandonOwn();
  DropPages(0);
}

// ---- A step ----

absl::Status TieredKv::BeginOwnStep(int64_t rows, Station station,
                                    const View& view, Cancelled cancelled) {
  if (absl::Status s = BindView(view); !s.ok()) return s;
  AbandonOwn();
  auto step = std::make_unique<Step>();
  step->sent.reserve(static_cast<size_t>(layers_));
  step->station = station;
  step->rows = rows;
  step->prompt = rows > kMaxStepRows;
  step->first_written = end_ / kPageTokens - FirstPage();
  const absl::StatusOr<bool> in_place = FitsInPlace(*step, cancelled);
  if (!in_place.ok()) return in_place.status();
  step->in_place = *in_place;
  if (!step->in_place) {
    if (absl::Status s = PrepareStaging(cancelled); !s.ok()) return s;
  }
  step_ = std::move(step);
  absl::Cleanup undo = [this] { AbandonOwn(); };
  absl::Status status = OpenPages(cancelled);
  if (status.ok() && !step_->in_place) status = LayOutStaging();
  if (status.ok()) std::move(undo).Cancel();
  return status;
}

// Makes the layer buffers this sequence's own, and the device hold no more than
// the next step expects.
absl::Status TieredKv::PrepareStaging(Cancelled cancelled) {
  const bool ahead = tier_->owner == this && ahead_ > 0;
  if (!ahead) {
    next_.clear();
    ahead_ = 0;
    if (absl::Status s = AwaitStaging(cancelled); !s.ok()) return s;
    tier_->owner = this;
  }
  return RetireClosedPages(ahead, cancelled);
}

// Finds out what the step reads, and whether all of it is on the device, with
// room for what it writes. Closed pages that it does not read leave the device
// for that.
absl::StatusOr<bool> TieredKv::FitsInPlace(Step& step, Cancelled cancelled) {
  if (reads_.IsFull() || step.rows == 0) return false;
  const int lists = reads_.LayersAreAlike() ? 1 : layers_;
  for (int layer = 0; layer < lists; ++layer) {
    step.read.push_back(reads_.PagesRead(layer, end_, step.rows));
  }
  if (step.prompt) return false;
  for (int64_t page = 0; page < PagesUpTo(end_); ++page) {
    if (At(page).device < 0 && Reads(step, page)) return false;
  }
  int64_t needed = PagesUpTo(end_ + step.rows) - NumPages();
  if (step.first_written < NumPages()) {  // the open page
    if (tier_->slots.IsShared(At(step.first_written).device)) ++needed;
  }
  for (int64_t page = 0; page < NumPages(); ++page) {
    if (tier_->slots.free() >= needed) break;
    if (!IsClosed(page) || Reads(step, page)) continue;
    if (absl::Status s = Settle(At(page), cancelled); !s.ok()) return s;
    LeaveDevice(At(page));
  }
  return tier_->slots.free() >= needed;
}

bool TieredKv::Reads(const Step& step, int layer, int64_t page) {
  if (step.read.empty()) return true;
  const auto& pages = step.read[step.read.size() == 1 ? 0 : layer];
  return pages[static_cast<size_t>(page)] != 0;
}

bool TieredKv::Reads(const Step& step, int64_t page) {
  for (size_t layer = 0; layer < step.read.size(); ++layer) {
    if (Reads(step, static_cast<int>(layer), page)) return true;
  }
  return step.read.empty();
}

// Whether an earlier step has asked for what this one reads of the layer.
bool TieredKv::IsThere(const Step& step, int layer) {
  return layer < std::ssize(step.there) &&
         step.there[static_cast<size_t>(layer)];
}

// What others, or an abandoned step, asked for may still be arriving. Whether
// it arrived well concerns nobody any more.
absl::Status TieredKv::AwaitStaging(Cancelled cancelled) {
  for (KvTier::Staging& buffer : tier_->staging) {
    const absl::Status status = engine().Wait(buffer.filled, cancelled);
    if (ClassOf(status) == ErrorClass::kCancelled) return status;
  }
  return absl::OkStatus();
}

// Pages that are full and not resident leave the device: after a step those
// that were fetched ahead, so that what is on the way is what is needed.
absl::Status TieredKv::RetireClosedPages(bool ahead, Cancelled cancelled) {
  PageList closed;
  if (ahead) {
    closed = next_;
  } else {
    for (int64_t page = 0; page < NumPages(); ++page) {
      if (IsClosed(page)) closed.push_back(page);
    }
  }
  for (int64_t index : closed) {
    Page& page = At(index);
    if (page.device < 0) continue;
    if (absl::Status s = Settle(page, cancelled); !s.ok()) return s;
    LeaveDevice(page);
  }
  return absl::OkStatus();
}

// Host slots for all pages of the step, device slots for those that are written
// there.
absl::Status TieredKv::OpenPages(Cancelled cancelled) {
  const int64_t first = step_->first_written;
  const int64_t count = PagesUpTo(end_ + step_->rows);
  pages_.reserve(static_cast<size_t>(count));
  while (NumPages() < count) {
    const absl::StatusOr<int64_t> host = tier_->pool.Take();
    if (!host.ok()) return host.status();
    pages_.push_back({.host = *host});
  }
  for (int64_t index = first; index < count; ++index) {
    Page& page = At(index);
    const bool exists =
        index == first && end_ % kPageTokens != 0 && end_ > begin_;
    const bool stays =
        !step_->prompt || IsResident(index) || index == count - 1 || exists;
    if (!stays) continue;
    const bool away = page.device < 0;
    if (away) {
      const absl::StatusOr<int64_t> slot = TakeDeviceSlot(cancelled);
      if (!slot.ok()) return slot.status();
      page.device = *slot;
    }
    if (!exists) continue;
    if (away) {
      absl::Cleanup undo = [&] { LeaveDevice(page); };
      if (absl::Status s = Reopen(index, cancelled); !s.ok()) return s;
      std::move(undo).Cancel();
    }
    // Cut by a truncation, it may still be on its way down.
    const absl::Status sent = engine().Wait(page.down, cancelled);
    if (ClassOf(sent) == ErrorClass::kCancelled) return sent;
    page.down = 0;
    page.below = page.below && sent.ok();
    if (absl::Status s = OwnOpenPage(page, cancelled); !s.ok()) return s;
  }
  return absl::OkStatus();
}

// Before it is written: what a fork shares of the open page becomes two.
absl::Status TieredKv::OwnOpenPage(Page& page, Cancelled cancelled) {
  if (tier_->slots.IsShared(page.device)) {
    const absl::StatusOr<int64_t> own = TakeDeviceSlot(cancelled);
    if (!own.ok()) return own.status();
    for (int layer = 0; layer < layers_; ++layer) {
      std::memcpy(tier_->slots.Page(layer, *own),
                  tier_->slots.Page(layer, page.device),
                  static_cast<size_t>(layout_.PageBytes()));
    }
    tier_->slots.Release(std::exchange(page.device, *own));
  }
  if (tier_->pool.IsShared(page.host)) {
    const absl::StatusOr<int64_t> own = tier_->pool.Take();
    if (!own.ok()) return own.status();
    tier_->pool.Release(std::exchange(page.host, *own));
    page.below = false;
  }
  return absl::OkStatus();
}

// Staging has a place for every page that is not on the device, whether the
// view reads it or not: those that exist first, in order, then those that a
// prompt fills.
absl::Status TieredKv::LayOutStaging() {
  Step& step = *step_;
  step.place.assign(pages_.size(), -1);
  int64_t place = 0;
  PageList later;
  for (int64_t index = 0; index < NumPages(); ++index) {
    const bool on_device = At(index).device >= 0;
    if (!on_device) step.place[static_cast<size_t>(index)] = place++;
    if (index >= step.first_written) continue;
    if (!on_device) step.away.push_back(index);
    if (!on_device || !IsResident(index)) later.push_back(index);
  }
  if (place > tier_->shape.staged_pages) {
    return MemoryError(
        "out_of_memory",
        absl::StrCat("a layer buffer holds ", tier_->shape.staged_pages,
                     " pages, the step needs ", place));
  }
  // A page that was closed since, and left, has the next place.
  const bool same_places =
      step.away.size() >= next_.size() &&
      std::equal(next_.begin(), next_.end(), step.away.begin());
  for (int layer = 0; same_places && layer < ahead_; ++layer) {
    const PageList& there = asked_ahead_[static_cast<size_t>(layer)];
    const bool all =
        std::all_of(step.away.begin(), step.away.end(), [&](int64_t page) {
          return !Reads(step, layer, page) ||
                 std::binary_search(there.begin(), there.end(), page);
        });
    if (!all) continue;
    step.there[static_cast<size_t>(layer)] = true;
    moves_.ahead_pages -= std::ssize(there);
  }
  ahead_ = 0;
  next_ = std::move(later);
  return absl::OkStatus();
}

absl::StatusOr<KvPages> TieredKv::BeginLayer(int layer, Cancelled cancelled) {
  const Step& step = *step_;
  if (!step.in_place) {
    while (step.asked < std::min(layers_, layer + 2)) Ask(step.asked);
    // What is read has arrived; what is written over has left.
    absl::Status status = AwaitFetched(layer, cancelled);
    if (status.ok()) {
      status = engine().Wait(tier_->StagingOf(layer).sent, cancelled);
    }
    if (!status.ok()) return status;
  }
  table_.clear();
  for (int64_t index = 0; index < NumPages(); ++index) {
    const int64_t device = At(index).device;
    std::byte* page = nullptr;
    if (device >= 0) {
      page = tier_->slots.Page(layer, device);
    } else if (index >= step.first_written || Reads(step, layer, index)) {
      page = StagedPage(layer, step.place[static_cast<size_t>(index)]);
    }
    table_.push_back(page);
  }
  return KvPages{.layout = layout_,
                 .pages = table_.data(),
                 .first_page = FirstPage(),
                 .num_pages = NumPages(),
                 .begin = begin_,
                 .end = end_,
                 .view = reads_.Heads(layer)};
}

void TieredKv::EndLayer(int layer) {
  if (step_->in_place) return;
  if (step_->prompt) {
    PageList full;
    for (int64_t i = step_->first_written; i < NumPages(); ++i) {
      if (IsFull(i, end_ + step_->rows)) full.push_back(i);
    }
    const Ticket ticket = SendDown(full, layer);
    moves_.closed_pages += std::ssize(full);
    tier_->StagingOf(layer).sent = ticket;
    step_->sent.push_back(ticket);
  }
  const int next = layer + 2;
  if (next < layers_) {
    Ask(next);
  } else if (!step_->prompt && next - layers_ < layers_) {
    AskAhead(next - layers_);
  }
}

absl::Status TieredKv::CommitOwn(int64_t rows, Cancelled cancelled) {
  const Step& step = *step_;
  for (Ticket ticket : step.sent) {  // a prompt is safe before it exists
    if (absl::Status s = engine().Wait(ticket, cancelled); !s.ok()) return s;
  }
  // The rows of a step end in two pages at most: one is full now. Sending it is
  // the last that may be refused.
  const int64_t first = step.first_written;
  const Ticket down = !step.prompt && rows > 0 && IsFull(first, end_ + rows)
                          ? SendDownAllLayers(first)
                          : 0;
  end_ += rows;
  DropPages(PagesUpTo(end_));
  for (int64_t i = first; i < NumPages(); ++i) {
    At(i).below = IsFull(i, end_);
    At(i).down = i == first ? down : 0;
  }
  if (!step.in_place) tier_->turn += layers_;
  EndStep();
  return absl::OkStatus();
}

void TieredKv::AbandonOwn() {
  if (step_ == nullptr) return;
  if (!step_->in_place) {
    if (tier_->owner ==
        this) {  // since it was suspended a fork may have worked
      for (KvTier::Staging& buffer : tier_->staging) {
        engine().Drop(buffer.filled);
      }
    }
    for (Ticket ticket : step_->sent) engine().Drop(ticket);
    // Slots go back only when nothing is copied from them any more.
    for (Ticket ticket : step_->sent) (void)engine().Wait(ticket);
    next_.clear();
    ahead_ = 0;
  }
  EndStep();
  DropPages(PagesUpTo(end_));
}

void TieredKv::EndStep() {
  engine().Forget(step_->state);
  step_.reset();
}

// ---- An interrupted step ----

absl::Status TieredKv::SuspendOwn(int layer, int64_t rows, std::byte* state,
                                  int64_t bytes) {
  Step& step = *step_;
  for (KvTier::Staging& buffer : tier_->staging) engine().Drop(buffer.filled);
  step.there = {};
  absl::StatusOr<HostRegion> region =
      HostRegion::ReserveUnmapped(static_cast<size_t>(bytes));
  if (!region.ok()) return region.status();
  if (step.state.bytes() > 0) engine().Forget(step.state);
  step.state = *std::move(region);
  step.layer = layer;
  step.parked.clear();
  for (int64_t i = step.first_written; i < NumPages(); ++i) {
    const int64_t page_begin = (FirstPage() + i) * kPageTokens;
    if (At(i).device < 0 && page_begin < end_ + rows) step.parked.push_back(i);
  }
  const Ticket pages = SendDown(step.parked, layer);
  const Ticket saved =
      engine().Submit(step.station, {{.direction = Direction::kDeviceToHost,
                                      .host = &step.state,
                                      .device = state,
                                      .bytes = bytes}});
  moves_.parked_pages += std::ssize(step.parked);
  moves_.parked_bytes += bytes;
  absl::Status status = engine().Wait(pages);
  if (!status.ok()) engine().Drop(saved);
  status.Update(engine().Wait(saved));
  return status;
}

absl::Status TieredKv::ResumeOwn(std::byte* state, Cancelled cancelled) {
  Step& step = *step_;
  const auto bytes = static_cast<int64_t>(step.state.bytes());
  if (absl::Status s = AwaitStaging(cancelled); !s.ok()) return s;
  tier_->owner = this;
  const Ticket back =
      engine().Submit(step.station, {{.direction = Direction::kHostToDevice,
                                      .host = &step.state,
                                      .device = state,
                                      .bytes = bytes}});
  moves_.resumed_bytes += bytes;
  step.asked = step.layer;
  return WaitOrDrop(back, cancelled);
}

// ---- Parts of it, for others to keep ----

uint64_t TieredKv::CopyRuns(Station station, const std::vector<KvRun>& runs) {
  std::vector<Transfer> transfers;
  for (const KvRun& run : runs) {
    const int64_t index = run.position / kPageTokens - FirstPage();
    const Page& page = At(index);
    if (page.device >= 0) {
      CopyRun(layout_, tier_->slots.Page(run.layer, page.device), run);
      continue;
    }
    const auto slot = static_cast<int>(run.position % kPageTokens);
    Transfer k = Between(Direction::kHostToDevice, index, run.layer, run.k);
    k.offset += layout_.KOffset(run.head, slot);
    k.bytes = run.rows * layout_.KRowBytes();
    Transfer v = Between(Direction::kHostToDevice, index, run.layer, run.v);
    v.offset += layout_.VOffset(run.head, slot);
    v.bytes = run.rows * layout_.VRowBytes();
    moves_.gathered_bytes += k.bytes + v.bytes;
    transfers.push_back(k);
    transfers.push_back(v);
  }
  // What is not on the device is below for good: nothing queued writes it.
  return engine().Submit(station, Joined(std::move(transfers)),
                         CopyEngine::Turn::kUrgent);
}

absl::Status TieredKv::AwaitCopies(uint64_t copies, Cancelled cancelled) {
  return engine().Wait(copies, cancelled);
}

// ---- The sequence ----

void TieredKv::TruncateOwn(int64_t length) {
  AbandonOwn();
  end_ = begin_ + length;
  DropPages(PagesUpTo(end_));
  // What was fetched ahead would miss what is written from here on.
  const bool stale = !next_.empty() && (next_.back() >= NumPages() ||
                                        !IsFull(next_.back(), end_));
  if (stale) ahead_ = 0;
}

absl::StatusOr<std::unique_ptr<KvStore>> TieredKv::Fork() {
  auto fork = std::make_unique<TieredKv>(tier_, begin_);
  fork->pages_.reserve(static_cast<size_t>(PagesUpTo(end_)));
  for (int64_t i = 0; i < PagesUpTo(end_); ++i) {
    Page& page = At(i);
    // An error is told once, and would concern both.
    page.below = engine().Wait(page.down).ok() && page.below;
    page.down = 0;
    tier_->pool.AddReference(page.host);
    if (page.device >= 0) tier_->slots.AddReference(page.device);
    fork->pages_.push_back(page);
  }
  fork->end_ = end_;
  return fork;
}

int64_t TieredKv::HostBytes() const {
  const auto below = std::count_if(pages_.begin(), pages_.end(),
                                   [](const Page& page) { return page.below; });
  return below * layers_ * layout_.PageBytes();
}

absl::StatusOr<int64_t> TieredKv::TakeDeviceSlot(Cancelled cancelled) {
  int64_t slot = tier_->slots.Take();
  // Steps in place may have left closed pages, the first of them the stalest.
  for (int64_t i = 0; slot < 0 && i < NumPages(); ++i) {
    if (!IsClosed(i)) continue;
    if (absl::Status s = Settle(At(i), cancelled); !s.ok()) return s;
    LeaveDevice(At(i));
    slot = tier_->slots.Take();
  }
  // A fork found the slots taken: resident pages of this sequence make room,
  // the last of them first.
  for (int64_t i = tier_->shape.resident_pages - 1; slot < 0 && i >= 0; --i) {
    if (i >= NumPages() || At(i).device < 0 || !IsFull(i, end_)) continue;
    if (absl::Status s = Settle(At(i), cancelled); !s.ok()) return s;
    LeaveDevice(At(i));
    slot = tier_->slots.Take();
  }
  if (slot >= 0) return slot;
  return MemoryError("out_of_memory",
                     absl::StrCat("device pages: all ", tier_->slots.count(),
                                  " are in use by other sequences"));
}

// Makes sure that the host tier has what the page holds.
absl::Status TieredKv::Settle(Page& page, Cancelled cancelled) {
  absl::Status status;
  if (page.below) {
    status = engine().Wait(page.down, cancelled);
    if (status.ok() || ClassOf(status) == ErrorClass::kCancelled) return status;
  }
  // What was sent got lost, and what was fetched ahead of it: once more.
  page.below = false;
  ahead_ = 0;
  page.down = SendDownAllLayers(&page - pages_.data());
  if (absl::Status s = engine().Wait(page.down, cancelled); !s.ok()) return s;
  page.below = true;
  return absl::OkStatus();
}

void TieredKv::LeaveDevice(Page& page) {
  tier_->slots.Release(std::exchange(page.device, -1));
}

void TieredKv::DropPages(int64_t keep) {
  while (NumPages() > keep) {
    Page& page = pages_.back();
    (void)engine().Wait(page.down);
    if (page.device >= 0) LeaveDevice(page);
    tier_->pool.Release(page.host);
    pages_.pop_back();
  }
}

// ---- What moves ----

void TieredKv::Ask(int layer) {
  Step& step = *step_;
  if (layer < step.asked) return;
  step.asked = layer + 1;
  if (!IsThere(step, layer)) Fetch(layer);
}

void TieredKv::Fetch(int layer) {
  Step& step = *step_;
  std::vector<Transfer> transfers;
  const auto fetch = [&](int64_t page) {
    transfers.push_back(
        Between(Direction::kHostToDevice, page, layer,
                StagedPage(layer, step.place[static_cast<size_t>(page)])));
  };
  for (int64_t page : step.away) {
    if (Reads(step, layer, page)) fetch(page);
  }
  moves_.swept_pages += std::ssize(transfers);
  if (layer == step.layer) {
    for (int64_t page : step.parked) fetch(page);
    moves_.resumed_pages += std::ssize(step.parked);
  }
  tier_->StagingOf(layer).filled =
      engine().Submit(step.station, Joined(std::move(transfers)));
}

// What an earlier step asked for and then did not wait for may have got lost:
// that is no failure of this one, which asks once more.
absl::Status TieredKv::AwaitFetched(int layer, Cancelled cancelled) {
  const absl::Status status =
      engine().Wait(tier_->StagingOf(layer).filled, cancelled);
  if (status.ok() || ClassOf(status) == ErrorClass::kCancelled ||
      !IsThere(*step_, layer)) {
    return status;
  }
  Fetch(layer);
  return engine().Wait(tier_->StagingOf(layer).filled, cancelled);
}

void TieredKv::AskAhead(int layer) {
  std::vector<Transfer> transfers;
  PageList& asked = asked_ahead_[static_cast<size_t>(layer)];
  asked.clear();
  for (size_t place = 0; place < next_.size(); ++place) {
    // The rows that come see of these pages what this step's first row sees,
    // or less.
    if (!Reads(*step_, layer, next_[place])) continue;
    asked.push_back(next_[place]);
    transfers.push_back(
        Between(Direction::kHostToDevice, next_[place], layer,
                StagedPage(layers_ + layer, static_cast<int64_t>(place))));
  }
  moves_.swept_pages += std::ssize(asked);
  moves_.ahead_pages += std::ssize(asked);
  tier_->StagingOf(layers_ + layer).filled = engine().Submit(
      step_->station, Joined(std::move(transfers), kAheadBytes));
  ahead_ = layer + 1;
}

CopyEngine::Ticket TieredKv::SendDown(const PageList& pages, int layer) {
  std::vector<Transfer> transfers;
  for (int64_t page : pages) {
    const int64_t device = At(page).device;
    transfers.push_back(Between(
        Direction::kDeviceToHost, page, layer,
        device >= 0
            ? tier_->slots.Page(layer, device)
            : StagedPage(layer, step_->place[static_cast<size_t>(page)])));
  }
  return engine().Submit(step_->station, Joined(std::move(transfers)));
}

CopyEngine::Ticket TieredKv::SendDownAllLayers(int64_t page) {
  std::vector<Transfer> transfers;
  for (int layer = 0; layer < layers_; ++layer) {
    transfers.push_back(Between(Direction::kDeviceToHost, page, layer,
                                tier_->slots.Page(layer, At(page).device)));
  }
  moves_.closed_pages += layers_;
  return engine().Submit(step_ != nullptr ? step_->station : Station::kVerify,
                         std::move(transfers));
}

absl::Status TieredKv::Reopen(int64_t page, Cancelled cancelled) {
  std::vector<Transfer> transfers;
  for (int layer = 0; layer < layers_; ++layer) {
    transfers.push_back(Between(Direction::kHostToDevice, page, layer,
                                tier_->slots.Page(layer, At(page).device)));
  }
  moves_.reopened_pages += layers_;
  const Ticket ticket = engine().Submit(step_->station, std::move(transfers));
  return WaitOrDrop(ticket, cancelled);
}

// Whatever comes of it, nothing is on the way after it: where it was to arrive
// may be given back.
absl::Status TieredKv::WaitOrDrop(Ticket ticket, Cancelled cancelled) {
  absl::Cleanup drop = [&] {
    engine().Drop(ticket);
    (void)engine().Wait(ticket);
  };
  return engine().Wait(ticket, cancelled);
}

Transfer TieredKv::Between(Direction direction, int64_t page, int layer,
                           std::byte* device) const {
  const PagePool::Place place =
      tier_->pool.PlaceOf(layer, pages_[static_cast<size_t>(page)].host);
  return {.direction = direction,
          .host = place.region,
          .offset = place.offset,
          .device = device,
          .bytes = layout_.PageBytes()};
}

std::byte* TieredKv::StagedPage(int layer, int64_t place) {
  return tier_->StagingOf(layer).pages.data() + place * layout_.PageBytes();
}

}  // namespace tiercel
