#ifndef TIERCEL_OFFLOAD_TIER_LEDGER_H_
#define TIERCEL_OFFLOAD_TIER_LEDGER_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tiercel {

// The phase that a step belongs to. Every byte that moves is charged to one.
enum class Phase { kPrefill, kRefresh, kDraft, kFast, kVerify };
inline constexpr int kNumPhases = 5;

// Counts of the traffic between host and device. They never decrease, so the
// traffic of one generation is the difference of two readings.
struct LinkUse {
  uint64_t h2d_bytes = 0;
  uint64_t d2h_bytes = 0;
  double busy_seconds = 0;  // time for which the link was occupied
};
using LinkLedger = std::array<LinkUse, kNumPhases>;

// Traffic over the link by its reason. A page here is a page of one layer.
// offload/KV_FORMAT.md says how these add up to the bytes of LinkUse.
struct KvMoves {
  int64_t swept_pages = 0;     // up: for a step to read
  int64_t ahead_pages = 0;     // among those, for a step that has not begun
  int64_t host_pages = 0;      // not up: the host attended to them
  int64_t reopened_pages = 0;  // up: to be written on after a truncation
  int64_t gathered_bytes = 0;  // up: rows for a retrieval view
  int64_t resumed_pages = 0;   // up: the layer an interrupted prompt was in
  int64_t resumed_bytes = 0;   // up: its hidden states
  int64_t closed_pages = 0;    // down: pages that have become full
  int64_t parked_pages = 0;    // down: the layer an interrupted prompt was in
  int64_t parked_bytes = 0;    // down: its hidden states
  // Hidden states that moved because the device does not hold all of them.
  int64_t states_up_bytes = 0;
  int64_t states_down_bytes = 0;
  int64_t weight_bytes = 0;  // up: of layers whose weights lie below
  // Pages among all these that were read from disk, and that were written to
  // it.
  int64_t disk_pages = 0;
  int64_t spilled_pages = 0;
};

// Traffic with the disk.
struct DiskUse {
  uint64_t read_bytes = 0;
  uint64_t written_bytes = 0;  // pages that have no room in memory
  uint64_t state_bytes = 0;    // part of read_bytes: prompts' hidden states
  int64_t read_pages = 0;      // the prompt cache's, of one layer, read whole
  double opening_seconds = 0;  // reading and checking the prompt cache's files
};

// The traffic of one of several ranks.
struct RankTraffic {
  uint64_t h2d_bytes = 0;
  uint64_t d2h_bytes = 0;
  uint64_t gathered_bytes = 0;  // from other ranks
  KvMoves moves = {};
};

// All traffic in a stretch of time, by its reason. Where there are several
// ranks, all but `ranks` are the sums over them.
struct Traffic {
  LinkLedger link = {};
  KvMoves moves = {};
  DiskUse disk = {};
  std::vector<RankTraffic> ranks = {};  // [rank]

  Traffic& operator+=(const Traffic& other) { return Add(other, 1); }
  Traffic& operator-=(const Traffic& other) { return Add(other, -1); }

 private:
  Traffic& Add(const Traffic& other, int sign) {
    for (size_t i = 0; i < link.size(); ++i) {
      // Unsigned arithmetic wraps, so adding factor = -1 times a count
      // subtracts it.
      const auto factor = static_cast<uint64_t>(sign);
      link[i].h2d_bytes += factor * other.link[i].h2d_bytes;
      link[i].d2h_bytes += factor * other.link[i].d2h_bytes;
      link[i].busy_seconds += sign * other.link[i].busy_seconds;
    }
    disk.read_bytes += static_cast<uint64_t>(sign) * other.disk.read_bytes;
    disk.written_bytes +=
        static_cast<uint64_t>(sign) * other.disk.written_bytes;
    disk.state_bytes += static_cast<uint64_t>(sign) * other.disk.state_bytes;
    disk.read_pages += sign * other.disk.read_pages;
    disk.opening_seconds += sign * other.disk.opening_seconds;
    AddTo(moves, other.moves, sign);
    ranks.resize(std::max(ranks.size(), other.ranks.size()));
    for (size_t i = 0; i < other.ranks.size(); ++i) {
      const auto factor = static_cast<uint64_t>(sign);
      ranks[i].h2d_bytes += factor * other.ranks[i].h2d_bytes;
      ranks[i].d2h_bytes += factor * other.ranks[i].d2h_bytes;
      ranks[i].gathered_bytes += factor * other.ranks[i].gathered_bytes;
      AddTo(ranks[i].moves, other.ranks[i].moves, sign);
    }
    return *this;
  }
  static void AddTo(KvMoves& moves, const KvMoves& other, int sign) {
    constexpr int64_t KvMoves::*kCounts[] = {
        &KvMoves::swept_pages,     &KvMoves::ahead_pages,
        &KvMoves::host_pages,      &KvMoves::reopened_pages,
        &KvMoves::gathered_bytes,  &KvMoves::resumed_pages,
        &KvMoves::resumed_bytes,   &KvMoves::closed_pages,
        &KvMoves::parked_pages,    &KvMoves::parked_bytes,
        &KvMoves::states_up_bytes, &KvMoves::states_down_bytes,
        &KvMoves::weight_bytes,    &KvMoves::disk_pages,
        &KvMoves::spilled_pages};
    for (const auto count : kCounts) moves.*count += sign * (other.*count);
  }
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_TIER_LEDGER_H_
