#include "offload/kv/tiered_kv.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {

TieredKv::TieredKv(std::shared_ptr<KvTier> tier, int64_t begin)
    : KvStore(tier->shape.layout, tier->shape.layers, begin),
      tier_(std::move(tier)),
      pages_(*tier_, FirstPage()),
      residency_(*tier_, pages_, moves_),
      staged_(pages_, residency_, moves_) {}

TieredKv::~TieredKv() {
  AbandonOwn();
  staging().Forget(staged_);
}

// ---- A step ----

absl::Status TieredKv::BeginOwnStep(int64_t rows, Phase phase, const View& view,
                                    Cancelled cancelled) {
  RETURN_IF_ERROR(BindView(view));
  AbandonOwn();
  step_ = std::make_unique<Step>();
  absl::Cleanup undo = [this] { AbandonOwn(); };
  step_->sent.reserve(static_cast<size_t>(layers_));
  step_->rows = rows;
  staged_.reads = {};
  staged_.phase = phase;
  staged_.end = end_;
  staged_.first_written = end_ / kPageTokens - FirstPage();
  staged_.prompt = rows > kMaxStepRows;
  residency_.TakeTurn();
  ASSIGN_OR_RETURN(const bool in_place, FitsInPlace(cancelled));
  if (!in_place) {
    RETURN_IF_ERROR(RetireClosedPages(cancelled));
    step_->in_place = false;
  }
  residency_.ChargeTo(phase);
  absl::Status status = absl::OkStatus();
  if (!step_->in_place) status = residency_.BringBack(end_, cancelled);
  if (status.ok()) status = OpenPages(cancelled);
  if (status.ok() && !step_->in_place) {
    status = staging().Join(staged_, cancelled);
  }
  if (status.ok()) std::move(undo).Cancel();
  return status;
}

// Finds the pages that the step reads, and returns true if all of them are on
// the device, with room for those that it writes. To make that room, closed
// pages that it does not read leave the device, and pages of other sequences.
absl::StatusOr<bool> TieredKv::FitsInPlace(Cancelled cancelled) {
  const Step& step = *step_;
  if (reads_.IsFull() || step.rows == 0) return false;
  const int lists = reads_.LayersAreAlike() ? 1 : layers_;
  std::vector<std::vector<uint8_t>> layers;
  layers.reserve(static_cast<size_t>(lists));
  for (int layer = 0; layer < lists; ++layer) {
    layers.push_back(reads_.PagesRead(layer, end_, step.rows));
  }
  staged_.reads = PagesRead(std::move(layers));
  if (staged_.prompt) return false;
  const auto reads = [&](int64_t page) {
    return page >= staged_.first_written || staged_.reads.InAny(page);
  };
  for (int64_t page = 0; page < pages_.size(); ++page) {
    if (!pages_.OnDevice(page) && reads(page)) return false;
  }
  int64_t needed = PagesUpTo(end_ + step.rows) - pages_.size();
  if (staged_.first_written < pages_.size()) {  // the open page
    if (tier_->slots.IsShared(pages_.At(staged_.first_written).device))
      ++needed;
  }
  return residency_.MakeRoom(
      needed,
      [&](int64_t page) { return pages_.IsClosed(page, end_) && !reads(page); },
      cancelled);
}

// Makes pages leave the device that are full and neither resident nor among the
// newest. If pages were fetched ahead it is those, so that the step reads
// exactly what has been fetched for it.
absl::Status TieredKv::RetireClosedPages(Cancelled cancelled) {
  bool ahead = false;
  PageList stale;
  for (int64_t page = 0; page < pages_.size(); ++page) {
    const bool leaves = pages_.IsStale(page, end_);
    if (!leaves && pages_.OnDevice(page)) continue;
    ahead = ahead || staging().IsAhead(pages_.At(page));
    if (leaves) stale.push_back(page);
  }
  for (const int64_t page : stale) {
    if (ahead && !staging().IsAhead(pages_.At(page))) continue;
    RETURN_IF_ERROR(residency_.Leave(page, cancelled));
  }
  return absl::OkStatus();
}

// Takes slots below for all pages of the step, and device slots for those that
// are written there.
absl::Status TieredKv::OpenPages(Cancelled cancelled) {
  const int64_t first = staged_.first_written;
  const int64_t count = PagesUpTo(end_ + step_->rows);
  RETURN_IF_ERROR(residency_.Grow(count));
  const auto exists_already = [&](int64_t page) {
    return page < first ||
           (page == first && end_ % kPageTokens != 0 && end_ > begin_);
  };
  for (int64_t page = first; page < count; ++page) {
    const bool exists = exists_already(page);
    // Layers that exist already stay until the step is committed.
    int& layers = pages_.At(page).layers;
    const int written = LayersOf(page);
    const bool stays = !staged_.prompt || pages_.IsResident(page) ||
                       pages_.IsNewest(page, end_ + step_->rows) ||
                       page == count - 1 || exists;
    if (stays) {
      RETURN_IF_ERROR(residency_.Open(page, exists, end_, cancelled));
    }
    layers = exists ? std::max(layers, written) : written;
  }
  return absl::OkStatus();
}

// The host may attend to pages before this one: in a sweep under the full view
// to those that no observer reads, in any other step to none.
int64_t TieredKv::HostEnd() const {
  if (!reads_.IsFull() || staged_.prompt || step_->rows == 0) return 0;
  return ObserverReadsFrom() / kPageTokens - FirstPage();
}

HostPages TieredKv::OnHost(int layer) {
  const std::span<const int64_t> pages = staged_.host_pages();
  if (step_->in_place || pages.empty()) return {};
  host_table_.assign(static_cast<size_t>(pages_.size()), nullptr);
  for (int64_t page : pages) {
    host_table_[static_cast<size_t>(page)] =
        tier_->pool.Page(layer, pages_.At(page).place.slot);
  }
  moves_.host_pages += std::ssize(pages);
  return {.by = tier_->host.get(),
          .first = FirstPage() + pages.front(),
          .count = std::ssize(pages),
          .pages = host_table_.data()};
}

absl::StatusOr<KvPages> TieredKv::BeginLayer(int layer, Cancelled cancelled) {
  if (!step_->in_place) {
    staged_.host_end = HostEnd();
    RETURN_IF_ERROR(staging().Bring(layer, cancelled));
  }
  table_.clear();
  for (int64_t page = 0; page < pages_.size(); ++page) {
    DevicePtr<std::byte> bytes;
    if (pages_.OnDevice(page)) {
      bytes = pages_.OnDevicePage(layer, page);
    } else if (!step_->in_place) {
      bytes = staging().PageOf(staged_, layer, page);
    }
    table_.push_back(bytes);
  }
  return KvPages{.layout = layout_,
                 .pages = table_.data(),
                 .first_page = FirstPage(),
                 .num_pages = pages_.size(),
                 .begin = begin_,
                 .end = end_,
                 .view = reads_.Heads(layer),
                 .host = OnHost(layer)};
}

void TieredKv::EndLayer(int layer) {
  if (step_->in_place) return;
  Ticket sent = 0;
  if (staged_.prompt) {
    PageList full;
    for (int64_t i = staged_.first_written; i < pages_.size(); ++i) {
      if (layer < LayersOf(i) && pages_.IsFull(i, end_ + step_->rows)) {
        full.push_back(i);
      }
    }
    sent = staging().SendDown(staged_, full, layer);
    moves_.closed_pages += std::ssize(full);
    step_->sent.push_back(sent);
  }
  staging().Done(staged_, layer, sent);
}

absl::Status TieredKv::CommitOwn(int64_t rows, Cancelled cancelled) {
  const Step& step = *step_;
  // A prompt's pages must all be below before its rows exist.
  for (Ticket ticket : step.sent) {
    RETURN_IF_ERROR(engine().Wait(ticket, cancelled));
  }
  // The rows of a step lie in two pages at most, so only the first may have
  // become full. Sending that down is the last operation that may fail.
  const int64_t first = staged_.first_written;
  for (int64_t page = reads_.shallow() ? 0 : first; page < pages_.size();
       ++page) {
    int& layers = pages_.At(page).layers;
    layers = std::min(layers, LayersOf(page));
  }
  const Ticket down =
      !staged_.prompt && rows > 0 && pages_.IsFull(first, end_ + rows)
          ? residency_.Close(first)
          : 0;
  end_ += rows;
  tier_->NoteWritten();
  residency_.Shrink(PagesUpTo(end_));
  pages_.NoteBelow(first, end_, down);
  EndStep();
  return absl::OkStatus();
}

void TieredKv::AbandonOwn() {
  if (step_ == nullptr) return;
  if (!step_->in_place) {
    staging().Leave(staged_);
    for (Ticket ticket : step_->sent) engine().Drop(ticket);
    // Slots are freed only after all copies from them have ended.
    for (Ticket ticket : step_->sent) (void)engine().Wait(ticket);
  }
  EndStep();
  residency_.Shrink(PagesUpTo(end_));
}

void TieredKv::EndStep() {
  engine().Forget(step_->state);
  step_.reset();
  residency_.ChargeTo(Phase::kVerify);
  residency_.Rest();
}

// ---- An interrupted step ----

absl::Status TieredKv::SuspendOwn(int layer, int64_t rows,
                                  DevicePtr<std::byte> state, int64_t bytes) {
  Step& step = *step_;
  ASSIGN_OR_RETURN(HostRegion region,
                   HostRegion::Reserve(static_cast<size_t>(bytes)));
  if (step.state.bytes() > 0) engine().Forget(step.state);
  step.state = std::move(region);
  PageList written;
  for (int64_t i = staged_.first_written; i < pages_.size(); ++i) {
    const int64_t page_begin = (FirstPage() + i) * kPageTokens;
    if (pages_.OnDevice(i)) {
      pages_.NoteWritten(i);
    } else if (layer < pages_.At(i).layers && page_begin < end_ + rows) {
      written.push_back(i);
    }
  }
  const Ticket parked = staging().Suspend(staged_, layer, std::move(written));
  const Ticket saved =
      bytes == 0 ? 0
                 : engine().Submit(staged_.phase,
                                   {{.direction = Direction::kDeviceToHost,
                                     .host = &step.state,
                                     .device = state,
                                     .bytes = bytes}});
  moves_.parked_bytes += bytes;
  absl::Status status = engine().Wait(parked);
  if (!status.ok()) engine().Drop(saved);
  status.Update(engine().Wait(saved));
  residency_.Rest();
  return status;
}

absl::Status TieredKv::ResumeOwn(DevicePtr<std::byte> state,
                                 Cancelled cancelled) {
  const Step& step = *step_;
  const auto bytes = static_cast<int64_t>(step.state.bytes());
  residency_.TakeTurn();
  absl::Cleanup undo = [this] {
    staging().Leave(staged_);
    residency_.Rest();
  };
  for (int64_t page = 0; page < pages_.size(); ++page) {
    if (pages_.OnDevice(page) || staged_.HasPlace(page)) continue;
    RETURN_IF_ERROR(residency_.BringAgain(page, cancelled));
  }
  RETURN_IF_ERROR(staging().Resume(staged_, cancelled));
  if (bytes > 0) {
    const Ticket back =
        engine().Submit(staged_.phase, {{.direction = Direction::kHostToDevice,
                                         .host = &step.state,
                                         .device = state,
                                         .bytes = bytes}});
    moves_.resumed_bytes += bytes;
    RETURN_IF_ERROR(engine().WaitOrDrop(back, cancelled));
  }
  std::move(undo).Cancel();
  return absl::OkStatus();
}

// ---- Layers of a step that are held, or taken ----

// The layer's full pages were sent down before the copies of this function, so
// they have arrived once these have. It is left to Commit to return their
// errors.
absl::StatusOr<std::unique_ptr<HeldLayer>> TieredKv::HoldLayer(
    int layer, DevicePtr<std::byte> state, int64_t bytes, Cancelled cancelled) {
  const Step& step = *step_;
  std::vector<PageSlot> slots;
  int64_t open = -1;
  for (int64_t page = staged_.first_written; page < pages_.size(); ++page) {
    if (pages_.IsFull(page, StepEnd())) {
      slots.push_back(pages_.At(page).place);
    } else {
      open = page;
    }
  }
  std::vector<std::byte> last(
      open < 0 ? 0 : static_cast<size_t>(layout_.PageBytes()));
  ASSIGN_OR_RETURN(
      HostRegion region,
      HostRegion::Reserve(static_cast<size_t>(bytes) + last.size()));
  std::vector<Transfer> transfers;
  if (bytes > 0) {
    transfers.push_back({.direction = Direction::kDeviceToHost,
                         .host = &region,
                         .device = state,
                         .bytes = bytes});
  }
  moves_.parked_bytes += bytes;
  if (open >= 0) {
    transfers.push_back({.direction = Direction::kDeviceToHost,
                         .host = &region,
                         .offset = bytes,
                         .device = pages_.OnDevicePage(layer, open),
                         .bytes = layout_.PageBytes()});
    ++moves_.parked_pages;
  }
  const absl::Status parked = engine().WaitOrDrop(
      engine().Submit(staged_.phase, std::move(transfers)), cancelled);
  engine().Forget(region);
  if (!parked.ok()) return parked;
  // If nothing was parked the layer's pages may still be on their way down.
  RETURN_IF_ERROR(engine().WaitUntold(step.sent.back(), cancelled));
  const auto failed = [this](Ticket sent) { return engine().Failed(sent); };
  if (std::any_of(step.sent.begin(), step.sent.end(), failed)) {
    return DeviceError("copy_failed", "pages of the layer got lost");
  }
  if (open >= 0) {
    region.Read(bytes, last.data(), last.size());
    ClearCells(static_cast<int>(StepEnd() % kPageTokens), layout_, last.data());
  }
  return std::make_unique<HeldLayer>(
      std::shared_ptr<PagePool>(tier_, &tier_->pool), layer, std::move(slots),
      std::move(last), std::make_shared<HostRegion>(std::move(region)), bytes);
}

// Pages are written below directly, without the link. Those that the step has
// on the device, and its state, come up from there.
absl::StatusOr<int> TieredKv::TakeOwnLayers(GiveLayers give,
                                            DevicePtr<std::byte> state,
                                            int64_t bytes,
                                            Cancelled cancelled) {
  ASSIGN_OR_RETURN(const HostRegion region,
                   HostRegion::Reserve(static_cast<size_t>(bytes)));
  const absl::StatusOr<int> layers = give(
      [this](int layer, int64_t page, const std::byte* from) {
        return residency_.PutBelow(page, layer, from);
      },
      [&](int64_t offset, const std::byte* from, size_t count) {
        region.Write(offset, from, count);
        return absl::OkStatus();
      });
  if (!layers.ok() || *layers == 0) return layers;
  std::vector<Transfer> transfers;
  for (int64_t page = staged_.first_written; page < pages_.size(); ++page) {
    if (!pages_.OnDevice(page)) continue;
    for (int layer = 0; layer < *layers; ++layer) {
      transfers.push_back(residency_.Between(Direction::kHostToDevice, page,
                                             layer,
                                             pages_.OnDevicePage(layer, page)));
    }
    moves_.reopened_pages += *layers;
  }
  if (bytes > 0) {
    transfers.push_back({.direction = Direction::kHostToDevice,
                         .host = &region,
                         .device = state,
                         .bytes = bytes});
  }
  moves_.resumed_bytes += bytes;
  const absl::Status up = engine().WaitOrDrop(
      engine().Submit(staged_.phase, std::move(transfers)), cancelled);
  engine().Forget(region);
  if (!up.ok()) return up;
  RETURN_IF_ERROR(staging().SkipTo(*layers, cancelled));
  return layers;
}

// ---- Runs that are copied out ----

uint64_t TieredKv::CopyRuns(Stream& stream, Phase phase,
                            const std::vector<KvRun>& runs) {
  std::vector<Transfer> transfers;
  std::vector<KvRun> at_hand;
  std::vector<KvRun> away;
  std::vector<KvRun> on_disk;
  const auto page_of = [this](const KvRun& run) {
    return run.position / kPageTokens - FirstPage();
  };
  for (const KvRun& run : runs) {
    const int64_t page = page_of(run);
    const bool disk = pages_.At(page).place.file != nullptr;
    (pages_.OnDevice(page) ? at_hand : disk ? on_disk : away).push_back(run);
  }
  // A page on disk is read whole, and once for all runs in it.
  std::stable_sort(
      on_disk.begin(), on_disk.end(), [&](const KvRun& a, const KvRun& b) {
        return std::pair(a.layer, page_of(a)) < std::pair(b.layer, page_of(b));
      });
  away.insert(away.end(), on_disk.begin(), on_disk.end());
  for (const KvRun& run : away) {
    const int64_t page = page_of(run);
    const auto cell = static_cast<int>(run.position % kPageTokens);
    Transfer k =
        pages_.CopyOf(Direction::kHostToDevice, page, run.layer, run.k);
    if (k.ReadsDisk() && (transfers.empty() || !transfers.back().IsOfPage(k))) {
      ++moves_.disk_pages;
    }
    k.offset += layout_.KOffset(run.head, cell);
    k.bytes = run.rows * layout_.KRowBytes();
    Transfer v =
        pages_.CopyOf(Direction::kHostToDevice, page, run.layer, run.v);
    v.offset += layout_.VOffset(run.head, cell);
    v.bytes = run.rows * layout_.VRowBytes();
    moves_.gathered_bytes += k.bytes + v.bytes;
    transfers.push_back(k);
    transfers.push_back(v);
  }
  copied_.Update(
      FillRuns(stream, layout_, layout_, at_hand, [&](const KvRun& run) {
        return pages_.OnDevicePage(run.layer, page_of(run));
      }));
  // No queued copy writes these pages: a page that is not on the device is
  // below already. So the copies may go before all others.
  return engine().Submit(phase, Joined(transfers), CopyEngine::Turn::kUrgent);
}

absl::Status TieredKv::AwaitCopies(uint64_t copies, Cancelled cancelled) {
  absl::Status status = engine().Wait(copies, cancelled);
  if (ClassOf(status) == ErrorClass::kCancelled) return status;
  // The error of either part is returned now, and no later call returns it.
  status.Update(std::exchange(copied_, absl::OkStatus()));
  return status;
}

// ---- The sequence ----

void TieredKv::TruncateOwn(int64_t length) {
  AbandonOwn();
  end_ = begin_ + length;
  residency_.Shrink(PagesUpTo(end_));
}

int64_t TieredKv::IntactLength() const {
  const int64_t damaged = pages_.FirstDamaged();
  if (damaged == pages_.size()) return length();
  return std::max<int64_t>(
      0, std::min(end_, (FirstPage() + damaged) * kPageTokens) - begin_);
}

// Pages that are put are written below directly, without the link; those that a
// prompt would have left on the device come up from there.
absl::Status TieredKv::LoadOwn(int64_t rows, GivePages give,
                               const std::shared_ptr<PageFile>& text,
                               Cancelled cancelled) {
  const int64_t first = PagesUpTo(end_);
  const int64_t end = end_ + rows;
  residency_.TakeTurn();
  residency_.ChargeTo(Phase::kPrefill);
  const absl::Cleanup end_load = [&] {
    residency_.Rest();
    residency_.ChargeTo(Phase::kVerify);
    residency_.Shrink(PagesUpTo(end_));  // drops the pages of a failed load
  };
  RETURN_IF_ERROR(residency_.Grow(PagesUpTo(end), text));
  const absl::Status given = give(
      [this](int layer, int64_t page, const std::byte* bytes) {
        return residency_.PutBelow(page, layer, bytes);
      },
      Nowhere);
  if (!given.ok()) return given;
  for (int64_t page = first; page < pages_.size(); ++page) {
    pages_.At(page).layers = layers_;
    const bool stays = pages_.IsResident(page) || pages_.IsNewest(page, end);
    if (!stays) continue;
    const absl::Status up =
        pages_.IsFull(page, end)
            ? residency_.Bring(page, end_, cancelled)
            : residency_.Open(page, /*exists=*/true, end_, cancelled);
    if (!up.ok()) return up;
  }
  end_ = end;
  tier_->NoteWritten();
  pages_.NoteBelow(first, end_, /*down=*/0);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<HeldPages>> TieredKv::Hold(int64_t positions,
                                                          Cancelled cancelled) {
  const int64_t end = (begin_ + positions) / kPageTokens * kPageTokens;
  std::vector<PageSlot> slots;
  for (int64_t page = 0; page < PagesUpTo(end); ++page) {
    RETURN_IF_ERROR(residency_.Settle(page, cancelled));
    slots.push_back(pages_.At(page).place);
  }
  return std::make_unique<PoolPages>(
      std::shared_ptr<PagePool>(tier_, &tier_->pool), std::move(slots));
}

absl::StatusOr<std::unique_ptr<KvStore>> TieredKv::Fork() {
  auto fork = std::make_unique<TieredKv>(tier_, begin_);
  residency_.ShareWith(fork->residency_, PagesUpTo(end_));
  fork->end_ = end_;
  return fork;
}

}  // namespace tiercel
