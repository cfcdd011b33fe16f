#ifndef TIERCEL_OFFLOAD_RANKS_GATHER_H_
#define TIERCEL_OFFLOAD_RANKS_GATHER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "kernels/device/stream.h"
#include "offload/ranks/rank_group.h"

namespace tiercel {

// The columns of a matrix that one rank computes: [begin, end).
struct Columns {
  int64_t begin = 0;
  int64_t end = 0;

  int64_t size() const { return end - begin; }
  friend bool operator==(const Columns&, const Columns&) = default;
};

// A matrix that the ranks compute by columns, as one rank sees it.
struct GatherParams {
  // [ranks]: together they cover the matrix. They may overlap where two ranks
  // compute the same bits.
  std::span<const Columns> columns;
  int64_t rows;               // 0 is allowed
  DevicePtr<const void> own;  // [rows, own_stride]: the rank's columns
  int64_t own_stride;         // elements, >= the rank's columns
  // [rows, all_stride]; `own` lies in its place there, or apart
  DevicePtr<void> all;
  int64_t all_stride;
  int64_t element_bytes = sizeof(float);
};

// An all-gather: the ranks of a model exchange the columns that each of them
// has computed. No number is added on the way, so that the gathered matrix is
// bit for bit what one rank would have computed.
class Gather {
 public:
  explicit Gather(RankGroup& group);
  virtual ~Gather() = default;

  // Does RankGroup::Run for parts that gather. One Run at a time.
  absl::Status Run(absl::FunctionRef<absl::Status(int rank)> part);

  // All ranks call it in their parts of a Run, in the same order: `all` becomes
  // the whole matrix on each, after the work queued on `stream` so far. A rank
  // must not change `own` until it meets the others again, or the Run is over.
  // Errors: rank_failed; gather_failed, where ranks disagree about the matrix,
  // or the connection between them breaks; device_failed.
  absl::Status All(Stream& stream, int rank, const GatherParams& p);

  // A rank whose queue is `stream` ends its part with this call: it returns
  // when all queued work is done and the gathered matrices are right. Errors:
  // those of Synchronize; gather_failed.
  absl::Status Finish(Stream& stream, int rank);

  // The bytes that a rank has received from others so far.
  uint64_t received(int rank) const {
    return seats_[static_cast<size_t>(rank)].received;
  }

 protected:
  // The columns that a rank offers to the others.
  struct Offer {
    DevicePtr<const std::byte> own;
    int64_t own_stride = 0;
    int64_t rows = 0;
    Columns columns;
    uint64_t split = 0;  // a hash of how the whole matrix is divided
  };

  RankGroup& group() { return group_; }

  // Offers the rank's columns, and waits until all ranks have done so, each
  // with its status. `*turn` is the index of these offers, which stay valid
  // until the rank meets the others again. Errors: those of RankGroup::Meet;
  // gather_failed to all ranks, where they disagree.
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
  // Called on a rank's thread when its part ends with an error of its own, or
  // throws.
  virtual void Leave(const absl::Status& /*why*/) {}
  // Called by Finish once the rank has waited for its stream.
  virtual absl::Status Check(int /*rank*/) { return absl::OkStatus(); }

  struct alignas(64) Seat {
    // There are two: others may still read one when the next gather begins.
    std::array<Offer, 2> offers;
    uint32_t run = 0;      // the group's Run in which the rank gathered last
    uint64_t gathers = 0;  // gathers in that Run
    uint64_t received = 0;
  };

  RankGroup& group_;
  std::vector<Seat> seats_;  // [rank]
};

// Gathers among the threads of this process: once all ranks have offered their
// columns, each copies the others' columns to itself. Between GPUs the driver
// copies, through the host's memory where one may not read the other's.
class InProcessGather final : public Gather {
 public:
  using Gather::Gather;

 private:
  absl::Status Exchange(Stream& stream, int rank,
                        const GatherParams& p) override;
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_RANKS_GATHER_H_
