#include "offload/ranks/gather.h"

#include <xxhash.h>

#include <type_traits>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "kernels/device/copies.h"
#include "kernels/system/faults.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {
namespace {

// Copies columns, which may be those of another GPU: a kernel could not read
// them, so each row is a copy there.
absl::Status CopyFromRank(Stream& stream, const ColumnsCopy& p) {
  if (stream.on_host()) return stream.CopyColumns(p);
  for (int64_t row = 0; row < p.rows; ++row) {
    RETURN_IF_ERROR(stream.Copy(p.to + row * p.to_stride,
                                p.from + row * p.from_stride,
                                static_cast<size_t>(p.bytes)));
  }
  return absl::OkStatus();
}

// A hash of what the ranks must agree on besides their own columns.
uint64_t HashOf(const GatherParams& p) {
  static_assert(std::has_unique_object_representations_v<Columns>);
  return XXH3_64bits_withSeed(p.columns.data(), p.columns.size_bytes(),
                              static_cast<uint64_t>(p.element_bytes));
}

}  // namespace

Gather::Gather(RankGroup& group)
    : group_(group), seats_(static_cast<size_t>(group.ranks())) {}

absl::Status Gather::Run(absl::FunctionRef<absl::Status(int rank)> part) {
  Begin();
  const absl::Cleanup end = [this] { End(); };
  return group_.Run([&](int rank) {
    absl::Status status = RankFailed();
    bool threw = true;
    // A rank that only heard of another's error has none of its own to report.
    const absl::Cleanup leave = [&] {
      const bool own = !status.ok() && CodeOf(status) != "rank_failed";
      if (threw || own) Leave(status);
    };
    status = part(rank);
    threw = false;
    return absl::Status(status);
  });
}

absl::Status Gather::All(Stream& stream, int rank, const GatherParams& p) {
  const auto self = static_cast<size_t>(rank);
  if (FaultAt({.of = Callee::kRank,
               .call = "gather",
               .bytes = p.rows * p.columns[self].size() * p.element_bytes,
               .device = rank}) != 0) {
    return DeviceError("gather_failed",
                       absl::StrCat("rank ", rank, " gave nothing"));
  }
  RETURN_IF_ERROR(Exchange(stream, rank, p));
  int64_t columns = 0;
  for (size_t other = 0; other < p.columns.size(); ++other) {
    if (other != self) columns += p.columns[other].size();
  }
  seats_[self].received +=
      static_cast<uint64_t>(p.rows * columns * p.element_bytes);
  return absl::OkStatus();
}

absl::Status Gather::Finish(Stream& stream, int rank) {
  RETURN_IF_ERROR(stream.Synchronize());
  return Check(rank);
}

absl::Status Gather::MeetAll(int rank, const GatherParams& p,
                             const absl::Status& mine, size_t* turn) {
  const auto self = static_cast<size_t>(rank);
  const uint64_t split = HashOf(p);
  Seat& seat = seats_[self];
  // Some ranks may have gathered more often than others in a run that failed.
  if (std::exchange(seat.run, group_.runs()) != group_.runs()) seat.gathers = 0;
  *turn = seat.gathers++ % 2;
  seat.offers[*turn] = {.own = p.own.As<const std::byte>(),
                        .own_stride = p.own_stride,
                        .rows = p.rows,
                        .columns = p.columns[self],
                        .split = split};
  RETURN_IF_ERROR(group_.Meet(rank, mine));
  for (size_t other = 0; other < p.columns.size(); ++other) {
    const Offer& offer = OfferOf(other, *turn);
    const Columns& columns = p.columns[other];
    if (offer.rows == p.rows && offer.columns == columns &&
        offer.split == split) {
      continue;
    }
    return DeviceError(
        "gather_failed",
        absl::StrCat("rank ", other, " gave ", offer.rows, " rows of columns ",
                     offer.columns.begin, " to ", offer.columns.end, ", rank ",
                     rank, " needs ", p.rows, " of ", columns.begin, " to ",
                     columns.end));
  }
  return absl::OkStatus();
}

absl::Status InProcessGather::Exchange(Stream& stream, int rank,
                                       const GatherParams& p) {
  size_t turn = 0;
  // The own columns are computed, and earlier copies from others are done.
  RETURN_IF_ERROR(MeetAll(rank, p, stream.Synchronize(), &turn));
  for (size_t other = 0; other < p.columns.size(); ++other) {
    const Offer& offer = OfferOf(other, turn);
    const Columns& columns = p.columns[other];
    const DevicePtr<std::byte> to =
        p.all.As<std::byte>() + columns.begin * p.element_bytes;
    if (offer.own == to || columns.size() == 0 || p.rows == 0) continue;
    RETURN_IF_ERROR(
        CopyFromRank(stream, {.from = offer.own,
                              .from_stride = offer.own_stride * p.element_bytes,
                              .to = to,
                              .to_stride = p.all_stride * p.element_bytes,
                              .rows = p.rows,
                              .bytes = columns.size() * p.element_bytes}));
  }
  // Other ranks may overwrite the columns that were read here as soon as the
  // ranks meet, in a gather or not.
  return stream.on_host() ? absl::OkStatus() : stream.Synchronize();
}

}  // namespace tiercel
