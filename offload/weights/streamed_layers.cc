#include "offload/weights/streamed_layers.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {
namespace {

// A block crosses the link in pieces, between which urgent copies of other
// engines may go.
constexpr int64_t kPieceBytes = int64_t{16} << 20;

}  // namespace

std::vector<int> StreamedLayers::Choose(int count, int all) {
  std::vector<int> layers;
  for (int layer = 0; layer < all; ++layer) {
    if (int64_t{layer + 1} * count / all > int64_t{layer} * count / all) {
      layers.push_back(layer);
    }
  }
  return layers;
}

absl::StatusOr<std::unique_ptr<StreamedLayers>> StreamedLayers::Create(
    std::vector<int> layers, int64_t most_bytes, DeviceMemory& memory,
    std::unique_ptr<Link> link, MemoryPromise promise) {
  std::unique_ptr<StreamedLayers> made(
      new StreamedLayers(std::move(layers), std::move(promise)));
  made->process_ = getpid();
  for (Buffer& buffer : made->buffers_) {
    ASSIGN_OR_RETURN(buffer.bytes, DeviceArray<std::byte>::Create(
                                       memory, most_bytes, "layer weights"));
  }
  ASSIGN_OR_RETURN(made->engine_, CopyEngine::Create(std::move(link)));
  return made;
}

StreamedLayers::~StreamedLayers() {
  if (engine_ == nullptr) return;
  if (IsForked()) {
    // The thread that it would wait for is the parent's.
    [[maybe_unused]] CopyEngine* const parents = engine_.release();
    return;
  }
  for (Buffer& buffer : buffers_) {
    // An error is that of a fetch which no pass needed.
    engine_->Wait(buffer.filled).IgnoreError();
  }
  for (const HostRegion& block : blocks_) engine_->Forget(block);
}

bool StreamedLayers::IsForked() const { return getpid() != process_; }

std::optional<size_t> StreamedLayers::IndexOf(int layer) const {
  const auto found = std::lower_bound(layers_.begin(), layers_.end(), layer);
  if (found == layers_.end() || *found != layer) return std::nullopt;
  return static_cast<size_t>(found - layers_.begin());
}

// ---- Loading ----

void StreamedLayers::BufferMemory::Begin(DevicePtr<std::byte> begin,
                                         int64_t bytes) {
  begin_ = begin;
  bytes_ = bytes;
  taken_ = 0;
}

absl::StatusOr<DevicePtr<std::byte>> StreamedLayers::BufferMemory::Allocate(
    size_t bytes, std::string_view what) {
  const int64_t size = AlignedBytes(static_cast<int64_t>(bytes));
  if (size > bytes_ - taken_) {
    return MemoryError(
        "out_of_memory",
        absl::StrCat(std::string(what), ": need ", bytes, " bytes, ",
                     bytes_ - taken_, " of the layer's are free"));
  }
  return begin_ + std::exchange(taken_, taken_ + size);
}

DeviceMemory& StreamedLayers::BeginLayer(int layer) {
  Buffer& buffer = BufferOf(*IndexOf(layer));
  buffer.arrays.Begin(buffer.bytes.data(), buffer.bytes.bytes());
  return buffer.arrays;
}

absl::Status StreamedLayers::KeepLayer(int layer, Stream& stream) {
  const size_t index = *IndexOf(layer);
  const Buffer& buffer = BufferOf(index);
  const auto bytes = static_cast<size_t>(buffer.arrays.taken());
  ASSIGN_OR_RETURN(blocks_[index], HostRegion::Reserve(bytes));
  RETURN_IF_ERROR(
      stream.Copy(blocks_[index].data(), buffer.bytes.data(), bytes));
  RETURN_IF_ERROR(stream.Synchronize());
  int64_t written = 0;
  for (const HostRegion& block : blocks_) {
    written += static_cast<int64_t>(block.bytes());
  }
  promise_.NoteWritten(written);
  return absl::OkStatus();
}

// ---- Passes ----

void StreamedLayers::Fetch(size_t index, Phase phase) {
  Buffer& buffer = BufferOf(index);
  const HostRegion& block = blocks_[index];
  const auto bytes = static_cast<int64_t>(block.bytes());
  std::vector<Transfer> pieces;
  for (int64_t at = 0; at < bytes; at += kPieceBytes) {
    pieces.push_back({.direction = Direction::kHostToDevice,
                      .host = &block,
                      .offset = at,
                      .device = buffer.bytes.data() + at,
                      .bytes = std::min(bytes - at, kPieceBytes)});
  }
  buffer.filled = engine_->Submit(phase, std::move(pieces));
  buffer.holds = index;
}

absl::Status StreamedLayers::Bring(size_t index, Phase phase,
                                   Cancelled cancelled) {
  Buffer& own = BufferOf(index);
  if (own.holds != index) Fetch(index, phase);
  if (absl::Status s = engine_->Wait(own.filled, cancelled); !s.ok()) {
    // The bytes of a fetch that failed are undefined.
    if (ClassOf(s) != ErrorClass::kCancelled) own.holds.reset();
    return s;
  }
  // The last layer's next is the first, for the next pass. If their number is
  // odd, both have the same buffer.
  const size_t next = (index + 1) % layers_.size();
  const Buffer& other = BufferOf(next);
  if (&other != &own && other.holds != next) Fetch(next, phase);
  return absl::OkStatus();
}

void StreamedLayers::Count(LinkLedger* use) {
  const LinkLedger now = engine_->ledger();
  for (size_t phase = 0; phase < now.size(); ++phase) {
    LinkUse& told = counted_[phase];
    (*use)[phase].h2d_bytes += now[phase].h2d_bytes - told.h2d_bytes;
    (*use)[phase].busy_seconds += now[phase].busy_seconds - told.busy_seconds;
    told = now[phase];
  }
}

absl::Status StreamedLayers::WithLayer(
    int layer, Phase phase, Cancelled cancelled, LinkLedger* use,
    absl::FunctionRef<absl::Status()> compute) {
  if (IsForked()) {
    return UsageError("forked",
                      "a model with host layers is used in a process that was "
                      "forked after it was loaded");
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  const absl::Status brought = Bring(*IndexOf(layer), phase, cancelled);
  Count(use);
  return brought.ok() ? compute() : brought;
}

}  // namespace tiercel
