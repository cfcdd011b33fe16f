#include "offload/move/disk_link.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {

namespace {

// The number of pages that a lane reads at once: half of a layer's pages keep
// the disk busy.
int64_t AtOnce(int64_t page_bytes, int64_t pages) {
  const size_t most = ReadsAtOnce(static_cast<size_t>(page_bytes));
  return std::clamp<int64_t>(pages / 2, 2, static_cast<int64_t>(most));
}

}  // namespace

absl::StatusOr<std::unique_ptr<DiskLink>> DiskLink::Create(
    std::unique_ptr<Link> copies, DiskCalls& disk, int64_t page_bytes,
    int64_t pages) {
  ASSIGN_OR_RETURN(
      HostRegion buffers,
      HostRegion::Reserve(static_cast<size_t>(BufferBytes(page_bytes, pages))));
  return std::unique_ptr<DiskLink>(new DiskLink(
      std::move(copies), disk, page_bytes,
      static_cast<size_t>(AtOnce(page_bytes, pages)), std::move(buffers)));
}

int64_t DiskLink::BufferBytes(int64_t page_bytes, int64_t pages) {
  return (2 * AtOnce(page_bytes, pages) + 1) * page_bytes;
}

DiskLink::DiskLink(std::unique_ptr<Link> copies, DiskCalls& disk,
                   int64_t page_bytes, size_t at_once, HostRegion buffers)
    : Link(copies->clock()),
      copies_(std::move(copies)),
      disk_(disk),
      page_bytes_(page_bytes),
      buffers_(std::move(buffers)) {
  for (size_t i = 0; i < lanes_.size(); ++i) {
    Lane& lane = lanes_[i];
    lane.first_byte = static_cast<int64_t>(i * at_once) * page_bytes_;
    lane.held.resize(at_once);
    lane.asked.reserve(at_once);
    lane.reads.emplace(disk_, buffers_.data() + lane.first_byte,
                       static_cast<size_t>(page_bytes_), at_once);
  }
}

// ---- A list of transfers ----

DiskLink::Lane* DiskLink::LaneOf(const std::vector<Transfer>* transfers) {
  const auto lane =
      std::find_if(lanes_.begin(), lanes_.end(),
                   [&](const Lane& some) { return some.of == transfers; });
  return lane != lanes_.end() ? &*lane : nullptr;
}

DiskLink::Lane* DiskLink::LaneOf(const Transfer& transfer) {
  const auto lane =
      std::find_if(lanes_.begin(), lanes_.end(), [&](const Lane& some) {
        constexpr std::less<> before;
        return some.of != nullptr && !before(&transfer, some.of->data()) &&
               before(&transfer, some.of->data() + some.of->size());
      });
  return lane != lanes_.end() ? &*lane : nullptr;
}

void DiskLink::Begin(const std::vector<Transfer>& transfers) {
  const bool reads =
      std::any_of(transfers.begin(), transfers.end(),
                  [](const Transfer& t) { return t.ReadsDisk(); });
  if (!reads) return;
  Lane& lane = *LaneOf(nullptr);
  lane.of = &transfers;
  lane.next = 0;
  lane.last = nullptr;
  AskMore(lane);
}

// Pages whose transfers were dropped have not been copied: their reads end
// here.
void DiskLink::End(const std::vector<Transfer>& transfers) {
  Lane* const lane = LaneOf(&transfers);
  if (lane == nullptr) return;
  for (const size_t buffer : lane->asked) {
    while (!lane->held[buffer].whole.has_value()) AwaitOne(*lane);
    lane->reads->Free(buffer);
  }
  lane->asked.clear();
  lane->at_hand = false;
  lane->of = nullptr;
}

// Begins to read as many pages as there are buffers for. Transfers that follow
// each other and are of one page share its read.
void DiskLink::AskMore(Lane& lane) {
  for (; lane.next < lane.of->size() && lane.reads->HasRoom(); ++lane.next) {
    const Transfer& t = (*lane.of)[lane.next];
    if (!t.ReadsDisk()) continue;
    if (lane.last != nullptr && lane.last->IsOfPage(t)) continue;
    lane.last = &t;
    const size_t buffer = lane.reads->Begin(t.file->file(), t.file->name(),
                                            t.file->OffsetOf(t.layer, t.slot),
                                            static_cast<size_t>(page_bytes_));
    lane.held[buffer] = {.page = &t};
    lane.asked.push_back(buffer);
  }
}

void DiskLink::AwaitOne(Lane& lane) {
  uint64_t bytes = 0;
  const BufferedReads::Whole next = lane.reads->Next(&bytes);
  read_bytes_ += bytes;
  Lane::Held& held = lane.held[next.buffer];
  held.whole = next;
  held.since = clock().Now();
}

// ---- A page ----

// Waits until the page of `transfer` is in its buffer and checked.
absl::Status DiskLink::BringPage(Lane& lane, const Transfer& transfer) {
  if (lane.at_hand) {
    const Transfer* const at = lane.held[lane.asked.front()].page;
    if (at->IsOfPage(transfer)) return absl::OkStatus();
    RETURN_IF_ERROR(LeavePage(lane));
  }
  AskMore(lane);
  const size_t buffer = lane.asked.front();
  Lane::Held& held = lane.held[buffer];
  while (!held.whole.has_value()) AwaitOne(lane);
  if (held.whole->failed) {
    transfer.file->NoteDamage(transfer.layer, transfer.slot);
    return lane.reads->StatusOf(*held.whole);
  }
  const absl::Status checked = transfer.file->Check(
      transfer.layer, transfer.slot, lane.reads->BytesOf(buffer));
  lane.at_hand = checked.ok();
  return checked;
}

// The error may concern earlier copies, too, so Finish returns it again.
absl::Status DiskLink::EndCopies() {
  const absl::Status ended = copies_->Finish().status();
  lost_.Update(ended);
  return ended;
}

absl::StatusOr<double> DiskLink::Finish() {
  absl::StatusOr<double> finished = copies_->Finish();
  const absl::Status lost = std::exchange(lost_, absl::OkStatus());
  return lost.ok() ? finished : lost;
}

// Frees the buffer of the page at hand once the copies out of it have ended.
absl::Status DiskLink::LeavePage(Lane& lane) {
  const absl::Status left = EndCopies();
  lane.reads->Free(lane.asked.front());
  lane.asked.erase(lane.asked.begin());
  lane.at_hand = false;
  return left;
}

absl::StatusOr<Link::Moved> DiskLink::Copy(const Transfer& transfer,
                                           Clock::Time since,
                                           const std::atomic<bool>& drop) {
  if (transfer.file == nullptr) return copies_->Copy(transfer, since, drop);
  if (!transfer.ReadsDisk()) return CopyDown(transfer, since, drop);
  Lane& lane = *LaneOf(transfer);
  RETURN_IF_ERROR(BringPage(lane, transfer));
  const size_t buffer = lane.asked.front();
  Transfer copy = transfer;
  copy.file = nullptr;
  copy.host = &buffers_;
  copy.offset = lane.first_byte + static_cast<int64_t>(buffer) * page_bytes_ +
                transfer.offset;
  return copies_->Copy(copy, std::max(since, lane.held[buffer].since), drop);
}

absl::StatusOr<Link::Moved> DiskLink::CopyDown(const Transfer& transfer,
                                               Clock::Time since,
                                               const std::atomic<bool>& drop) {
  Transfer copy = transfer;
  copy.file = nullptr;
  copy.host = &buffers_;
  copy.offset = static_cast<int64_t>(buffers_.bytes()) - page_bytes_;
  const absl::StatusOr<Moved> moved = copies_->Copy(copy, since, drop);
  if (!moved.ok()) return moved;
  RETURN_IF_ERROR(EndCopies());
  if (moved->bytes < transfer.bytes) return moved;  // it was dropped
  RETURN_IF_ERROR(transfer.file->Write(transfer.layer, transfer.slot,
                                       buffers_.data() + copy.offset));
  return moved;
}

}  // namespace tiercel
