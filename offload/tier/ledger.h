#ifndef TIERCEL_OFFLOAD_TIER_LEDGER_H_
#define TIERCEL_OFFLOAD_TIER_LEDGER_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tiercel {

// What a step is for; every byte that moves is asked for by one.
enum class Station { kPrefill, kRefresh, kDraft, kFast, kVerify };
inline constexpr int kNumStations = 5;

// What crossed the link between host and device; always growing, so that
// what a generation moved is the difference of two readings.
struct LinkUse {
  uint64_t h2d_bytes = 0;
  uint64_t d2h_bytes = 0;
  double busy_seconds = 0;  // the link was occupied
};
using LinkLedger = std::array<LinkUse, kNumStations>;

// Why bytes crossed the link, in pages of single layers where not in bytes;
// offload/KV_FORMAT.md has the sums.
struct KvMoves {
  int64_t swept_pages = 0;     // up: for a step to read
  int64_t ahead_pages = 0;     // of those, for a step that has not begun
  int64_t reopened_pages = 0;  // up: to be written on after a truncation
  int64_t gathered_bytes = 0;  // up: parts of pages, for a view of their own
  int64_t resumed_pages = 0;   // up: of the layer an interrupted prompt was in
  int64_t resumed_bytes = 0;   // up: its hidden states
  int64_t closed_pages = 0;    // down: full
  int64_t parked_pages = 0;  // down: of the layer an interrupted prompt was in
  int64_t parked_bytes = 0;  // down: its hidden states
  // Hidden states of prompts that are not all on the device, up and down.
  int64_t states_up_bytes = 0;
  int64_t states_down_bytes = 0;
  // The pages that were read for all these, and those that were written, where
  // below is on disk.
  int64_t disk_pages = 0;
  int64_t spilled_pages = 0;
};

// What came from disk: bytes, hidden states of prompts among them, and pages of
// single layers of saved texts that came whole; for how long texts and prompts
// were opened, reading and checking; and what of pages went there that have no
// room in memory.
struct DiskUse {
  uint64_t read_bytes = 0;
  uint64_t written_bytes = 0;
  uint64_t state_bytes = 0;
  int64_t read_pages = 0;
  double opening_seconds = 0;
};

// What moved to, from and for one of several ranks.
struct RankTraffic {
  uint64_t h2d_bytes = 0;
  uint64_t d2h_bytes = 0;
  uint64_t gathered_bytes = 0;  // from other ranks
  KvMoves moves = {};
};

// What moved in one stretch of time, and why; of several ranks together.
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
      // Modulo 2^64, where a difference of two readings is right.
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
        &KvMoves::swept_pages,       &KvMoves::ahead_pages,
        &KvMoves::reopened_pages,    &KvMoves::gathered_bytes,
        &KvMoves::resumed_pages,     &KvMoves::resumed_bytes,
        &KvMoves::closed_pages,      &KvMoves::parked_pages,
        &KvMoves::parked_bytes,      &KvMoves::states_up_bytes,
        &KvMoves::states_down_bytes, &KvMoves::disk_pages,
        &KvMoves::spilled_pages};
    for (const auto count : kCounts) moves.*count += sign * (other.*count);
  }
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_TIER_LEDGER_H_
