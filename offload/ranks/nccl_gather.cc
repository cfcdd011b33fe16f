#include "offload/ranks/nccl_gather.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/device/copies.h"
#include "kernels/device/cuda/cuda_driver.h"
#include "kernels/system/no_signals.h"
#include "kernels/system/thread.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {
namespace {

// The time between two polls of the watch thread for the library's errors.
constexpr auto kLook = std::chrono::milliseconds(50);

// Packed columns begin at multiples of it, so that units of 16 bytes can be
// copied.
constexpr int64_t kUnit = 16;

int64_t WholeUnits(int64_t bytes) {
  return (bytes + kUnit - 1) / kUnit * kUnit;
}

}  // namespace

absl::StatusOr<std::unique_ptr<NcclGather>> NcclGather::Create(
    RankGroup& group, const NcclFunctions& functions,
    std::span<Stream* const> streams) {
  RETURN_IF_ERROR(functions.CheckVersion());
  std::unique_ptr<NcclGather> gather(new NcclGather(group, functions));
  for (size_t rank = 0; rank < streams.size(); ++rank) {
    gather->seats_[rank].stream = streams[rank];
  }
  try {
    gather->watch_ = StartThread([raw = gather.get()] { raw->Watch(); });
  } catch (const std::system_error&) {
    return MemoryError("no_thread",
                       "the system gives no thread that watches ranks");
  }
  gather->Begin();
  const absl::Status connected = gather->Connect();
  gather->End();
  if (!connected.ok()) return connected;
  return gather;
}

NcclGather::NcclGather(RankGroup& group, const NcclFunctions& functions)
    : Gather(group),
      call_(functions),
      seats_(static_cast<size_t>(group.ranks())) {}

NcclGather::~NcclGather() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (watch_.joinable()) watch_.join();
  for (Seat& seat : seats_) {
    if (seat.communicator != nullptr) call_.destroy(seat.communicator);
  }
}

int64_t NcclGather::ScratchBytes(int64_t rows, int64_t columns,
                                 int64_t element_bytes) {
  // Rounding each rank's part up to whole units takes at most one unit more.
  constexpr int64_t kMostRanks = 64;
  return rows * columns * element_bytes + kMostRanks * kUnit;
}

// ---- A gather ----

absl::Status NcclGather::Exchange(Stream& stream, int rank,
                                  const GatherParams& p) {
  const auto self = static_cast<size_t>(rank);
  seats_[self].stream = &stream;
  const absl::StatusOr<std::vector<Place>> places = PlacesOf(stream, rank, p);
  absl::Status ready = places.status();
  ready.Update(AsyncError(rank));
  size_t turn = 0;
  RETURN_IF_ERROR(MeetAll(rank, p, ready, &turn));
  ASSIGN_OR_RETURN(const bool connected, IsConnected());
  if (!connected) {
    // No rank is in a call of the library after the first meeting; the second
    // tells all how Connect ended.
    RETURN_IF_ERROR(group().Meet(rank));
    absl::Status made;
    if (rank == 0) made = Connect();
    RETURN_IF_ERROR(group().Meet(rank, made));
  }
  if (p.rows == 0) return absl::OkStatus();
  return Transfer(stream, rank, p, *places);
}

// [ranks]: the rank's own columns, and the places for those of the others.
absl::StatusOr<std::vector<NcclGather::Place>> NcclGather::PlacesOf(
    Stream& stream, int rank, const GatherParams& p) const {
  std::vector<Place> places;
  int64_t packed = 0;
  const auto is_whole = [&p](const Place& place) {
    return p.rows <= 1 || place.stride == place.bytes || place.bytes == 0;
  };
  for (size_t i = 0; i < p.columns.size(); ++i) {
    const bool own = static_cast<int>(i) == rank;
    // The rank's own columns are only read.
    const DevicePtr<std::byte> all =
        own ? DevicePtr(
                  const_cast<std::byte*>(p.own.As<const std::byte>().raw()))
            : p.all.As<std::byte>();
    const int64_t first = own ? 0 : p.columns[i].begin;
    Place place = {
        .at = all + first * p.element_bytes,
        .stride = (own ? p.own_stride : p.all_stride) * p.element_bytes,
        .bytes = p.columns[i].size() * p.element_bytes,
        .packed = nullptr};
    place.packed = place.at;
    if (!is_whole(place)) packed += WholeUnits(p.rows * place.bytes);
    places.push_back(place);
  }
  if (packed == 0) return places;
  // The scratch is large enough for Introduce too, so that it need not grow and
  // move there.
  ASSIGN_OR_RETURN(
      const DevicePtr<std::byte> scratch,
      stream.Scratch(std::max(static_cast<size_t>(packed), 1 + seats_.size())));
  DevicePtr<std::byte> next = scratch;
  for (Place& place : places) {
    if (is_whole(place)) continue;
    place.packed = next;
    next += WholeUnits(p.rows * place.bytes);
  }
  return places;
}

absl::Status NcclGather::Transfer(Stream& stream, int rank,
                                  const GatherParams& p,
                                  const std::vector<Place>& places) {
  const auto self = static_cast<size_t>(rank);
  const Place& own = places[self];
  if (own.packed != own.at) {
    RETURN_IF_ERROR(stream.CopyColumns(
        {own.at, own.stride, own.packed, own.bytes, p.rows, own.bytes}));
  }
  RETURN_IF_ERROR(
      SendAndReceive(stream.queue().handle(), rank, p.rows, places));
  for (size_t i = 0; i < places.size(); ++i) {
    const Place& place = places[i];
    if (i == self || place.packed == place.at) continue;
    RETURN_IF_ERROR(stream.CopyColumns({place.packed, place.bytes, place.at,
                                        place.stride, p.rows, place.bytes}));
  }
  const DevicePtr<std::byte> in_all =
      p.all.As<std::byte>() + p.columns[self].begin * p.element_bytes;
  if (own.at == in_all || own.bytes == 0) return absl::OkStatus();
  return stream.CopyColumns({own.at, own.stride, in_all,
                             p.all_stride * p.element_bytes, p.rows,
                             own.bytes});
}

absl::Status NcclGather::SendAndReceive(CUstream_st* queue, int rank,
                                        int64_t rows,
                                        const std::vector<Place>& places) {
  Seat& seat = seats_[static_cast<size_t>(rank)];
  const std::lock_guard<std::mutex> lock(seat.mutex);
  // The thread that aborted it has set the reason.
  if (seat.communicator == nullptr) return BrokenNow();
  absl::Status status = call_.StatusOf("GroupStart", call_.group_start());
  if (!status.ok()) return status;
  const auto sent =
      static_cast<size_t>(rows * places[static_cast<size_t>(rank)].bytes);
  for (int peer = 0; peer < group().ranks(); ++peer) {
    if (peer == rank) continue;
    const Place& from = places[static_cast<size_t>(rank)];
    const Place& to = places[static_cast<size_t>(peer)];
    if (sent > 0) {
      status.Update(call_.StatusOf(
          "Send", call_.send(from.packed.raw(), sent, NcclFunctions::kBytes,
                             peer, seat.communicator, queue)));
    }
    if (to.bytes > 0) {
      status.Update(call_.StatusOf(
          "Recv", call_.receive(
                      to.packed.raw(), static_cast<size_t>(rows * to.bytes),
                      NcclFunctions::kBytes, peer, seat.communicator, queue)));
    }
  }
  // A group that was started is ended, with errors or without.
  status.Update(call_.StatusOf("GroupEnd", call_.group_end()));
  return status;
}

// ---- Communicators ----

absl::Status NcclGather::Connect() {
  std::vector<int> gpus(seats_.size());
  std::iota(gpus.begin(), gpus.end(), 0);
  std::vector<void*> made(seats_.size(), nullptr);
  const NoSignals no_signals;  // threads of the library inherit the mask
  RETURN_IF_ERROR(call_.StatusOf(
      "CommInitAll",
      call_.create_all(made.data(), group().ranks(), gpus.data())));
  for (size_t rank = 0; rank < seats_.size(); ++rank) {
    const std::lock_guard<std::mutex> lock(seats_[rank].mutex);
    seats_[rank].communicator = made[rank];
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    connected_ = true;
  }
  if (absl::Status s = Introduce(); !s.ok()) Break(s);
  // The watch thread may have broken the connection meanwhile, too.
  return BrokenNow();
}

absl::Status NcclGather::Introduce() {
  // [rank]: one byte to send, one from each
  std::vector<DevicePtr<std::byte>> bytes;
  for (Seat& seat : seats_) {
    ASSIGN_OR_RETURN(const DevicePtr<std::byte> scratch,
                     seat.stream->Scratch(1 + seats_.size()));
    bytes.push_back(scratch);
  }
  std::vector<std::unique_lock<std::mutex>> locks;
  for (Seat& seat : seats_) {
    locks.emplace_back(seat.mutex);
    if (seat.communicator == nullptr) return RankFailed();
  }
  absl::Status status = call_.StatusOf("GroupStart", call_.group_start());
  if (!status.ok()) return status;
  for (size_t rank = 0; rank < seats_.size(); ++rank) {
    Seat& seat = seats_[rank];
    CUstream_st* const queue = seat.stream->queue().handle();
    for (size_t peer = 0; peer < seats_.size(); ++peer) {
      if (peer == rank) continue;
      status.Update(call_.StatusOf(
          "Send",
          call_.send(bytes[rank].raw(), 1, NcclFunctions::kBytes,
                     static_cast<int>(peer), seat.communicator, queue)));
      status.Update(call_.StatusOf(
          "Recv",
          call_.receive((bytes[rank] + static_cast<int64_t>(1 + peer)).raw(), 1,
                        NcclFunctions::kBytes, static_cast<int>(peer),
                        seat.communicator, queue)));
    }
  }
  status.Update(call_.StatusOf("GroupEnd", call_.group_end()));
  locks.clear();
  for (Seat& seat : seats_) {
    if (status.ok()) status = seat.stream->Synchronize();
  }
  return status;
}

void NcclGather::Break(const absl::Status& why) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (why_.ok()) why_ = why;
    connected_ = false;
  }
  for (Seat& seat : seats_) {
    const std::lock_guard<std::mutex> lock(seat.mutex);
    if (seat.communicator != nullptr) {
      call_.abort(std::exchange(seat.communicator, nullptr));
    }
  }
}

absl::Status NcclGather::BrokenNow() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return why_;
}

absl::StatusOr<bool> NcclGather::IsConnected() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!why_.ok()) return why_;
  return connected_;
}

absl::Status NcclGather::AsyncError(int rank) {
  Seat& seat = seats_[static_cast<size_t>(rank)];
  const std::lock_guard<std::mutex> lock(seat.mutex);
  int error = 0;
  if (seat.communicator == nullptr) return absl::OkStatus();
  RETURN_IF_ERROR(call_.StatusOf("CommGetAsyncError",
                                 call_.async_error(seat.communicator, &error)));
  return call_.StatusOf(absl::StrCat("rank ", rank, "'s work").c_str(), error);
}

// ---- Runs ----

void NcclGather::Begin() {
  const std::lock_guard<std::mutex> lock(mutex_);
  running_ = true;
  why_ = absl::OkStatus();
  if (!watching_) changed_.notify_all();
}

// Waits for a poll that is under way, so that it breaks this run and not the
// next.
void NcclGather::End() {
  std::unique_lock<std::mutex> lock(mutex_);
  running_ = false;
  changed_.wait(lock, [this] { return !looking_; });
}

// A cancelled rank leaves before a gather that no rank enters without it, so
// that no GPU waits for data that never comes.
void NcclGather::Leave(const absl::Status& why) {
  if (ClassOf(why) != ErrorClass::kCancelled) Break(why);
}

absl::Status NcclGather::Check(int rank) {
  absl::Status status = AsyncError(rank);
  status.Update(BrokenNow());
  return status;
}

// Polls for errors while a Run is under way, and sleeps otherwise.
void NcclGather::Watch() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stop_) {
    if (!running_) {
      watching_ = false;
      changed_.wait(lock, [this] { return running_ || stop_; });
      watching_ = true;
    }
    changed_.wait_for(lock, kLook, [this] { return stop_; });
    if (stop_ || !running_) continue;
    looking_ = true;
    lock.unlock();
    absl::Status found;
    for (int rank = 0; rank < group().ranks(); ++rank) {
      found.Update(AsyncError(rank));
    }
    if (!found.ok()) Break(found);
    lock.lock();
    looking_ = false;
    changed_.notify_all();
  }
}

}  // namespace tiercel
