#ifndef TIERCEL_OFFLOAD_RANKS_GATHER_H_
#define TIERCEL_OFFLOAD_RANKS_GATHER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "kernels/machine/stream.h"
#include "offload/ranks/rank_group.h"
#include "offload/tier/faults.h"

namespace tiercel {

// The columns of a matrix that one rank computes: [begin, end).
struct Columns {
  int64_t begin = 0;
  int64_t end = 0;

  int64_t size() const { return end - begin; }
  friend bool operator==(const Columns&, const Columns&) = default;
};

// A matrix that the ranks compute by columns, as one rank sees it; all of it in
// the memory of the rank's device.
struct GatherParams {
  // [ranks], all of the matrix together. What two ranks compute, both have with
  // the same bits.
  std::span<const Columns> columns;
  int64_t rows;        // 0 is allowed
  const void* own;     // [rows, own_stride]: the rank's columns
  int64_t own_stride;  // elements, >= what the rank computes
  void* all;  // [rows, all_stride]; `own` lies in its place there, or apart
  int64_t all_stride;
  int64_t element_bytes = sizeof(float);
};

// How the ranks of a model give each other what each of them has computed. No
// number is added on the way, so that what is gathered is bit for bit what one
// rank would have computed.
class Gather {
 public:
  explicit Gather(RankGroup& group,
                  std::shared_ptr<const Faults> faults = nullptr);
  virtual ~Gather() = default;

  // RankGroup::Run, for parts that gather; one at a time.
  absl::Status Run(absl::FunctionRef<absl::Status(int rank)> part);

  // All ranks call it in their parts of a Run, in the same order: `all` becomes
  // the whole matrix on each, after what was queued before on `stream`. What a
  // rank gives stays as it is until it meets the others again, or the Run is
  // over. Errors: rank_failed; gather_failed, where ranks disagree about the
  // matrix, or the way between them breaks; device_failed.
  absl::Status All(Stream& stream, int rank, const GatherParams& p);

  // A rank, whose queue is `stream`, ends its part with it: then all that was
  // queued is done, and what was gathered is right. Errors: those of
  // Synchronize; gather_failed.
  absl::Status Finish(Stream& stream, int rank);

  // Bytes that a rank has received of others; always growing.
  uint64_t received(int rank) const {
    return seats_[static_cast<size_t>(rank)].received;
  }

 protected:
  // What a rank has to give.
  struct Offer {
    const std::byte* own = nullptr;
    int64_t own_stride = 0;
    int64_t rows = 0;
    Columns columns;
    uint64_t split = 0;  // a hash of how all the matrix is divided
  };

  RankGroup& group() { return group_; }

  // Offers what the rank has, and waits until all ranks do, each with its
  // status. `*turn` says which offers are meant: they hold until the rank meets
  // the others again. Errors: those of RankGroup::Meet; gather_failed to all
  // ranks, where they disagree.
  absl::Status MeetAll(int rank, const GatherParams& p,
                       const absl::Status& mine, size_t* turn);
  const Offer& OfferOf(size_t rank, size_t turn) const {
    return seats_[rank].offers[turn];
  }

 private:
  virtual absl::Status Exchange(Stream& stream, int rank,
                                const GatherParams& p) = 0;
  virtual void Begin() {}
  virtual void End() {}
  // A rank ends its part with an error of its own, or throws, on its thread.
  virtual void Leave(const absl::Status& /*why*/) {}
  // Finish asks it once it has waited.
  virtual absl::Status Check(int /*rank*/) { return absl::OkStatus(); }

  struct alignas(64) Seat {
    // There are two: others may still read one when the next gather begins.
    std::array<Offer, 2> offers;
    uint32_t run = 0;      // the group's, that the rank gathered in last
    uint64_t gathers = 0;  // in it
    uint64_t received = 0;
  };

  RankGroup& group_;
  const std::shared_ptr<const Faults> faults_;
  std::vector<Seat> seats_;  // [rank]
};

// Among the threads of this process: a rank copies the others' columns from
// where they are, once all are there. Between GPUs the driver copies, through
// the host's memory where one may not read the other's.
class InProcessGather final : public Gather {
 public:
  using Gather::Gather;

 private:
  absl::Status Exchange(Stream& stream, int rank,
                        const GatherParams& p) override;
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_RANKS_GATHER_H_
