#ifndef TIERCEL_OFFLOAD_RANKS_NCCL_GATHER_H_
#define TIERCEL_OFFLOAD_RANKS_NCCL_GATHER_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/device/cuda/nccl.h"
#include "offload/ranks/gather.h"

namespace tiercel {

// Gathers between GPUs, rank r on the GPU number r. Each rank sends its columns
// to every other by NCCL, in the order of its queue, so that no rank waits for
// a GPU. Rows with gaps between them are packed in the queue's scratch.
//
// A rank enters the library only once all ranks have come and agree, so that a
// rank that fails earlier leaves no other inside. Where one fails later, or its
// GPU does, all communicators are aborted: GPUs that wait for it go on, the Run
// is an error, and the next Run makes communicators anew.
class NcclGather final : public Gather {
 public:
  // `streams` has one stream of each rank, for this call alone. Errors:
  // no_library, where the version does not fit; gather_failed, where the GPUs
  // cannot be connected; no_thread.
  static absl::StatusOr<std::unique_ptr<NcclGather>> Create(
      RankGroup& group, const NcclFunctions& functions,
      std::span<Stream* const> streams);
  ~NcclGather() override;

  // The most scratch that a gather of this many rows and columns takes.
  static int64_t ScratchBytes(int64_t rows, int64_t columns,
                              int64_t element_bytes = sizeof(float));

 private:
  struct alignas(64) Seat {
    std::mutex mutex;  // held during each call of the library
    void* communicator = nullptr;
    Stream* stream = nullptr;  // the stream on which Introduce connects it
  };
  // The memory that the rank's own columns are sent from, or into which
  // another's are received.
  struct Place {
    DevicePtr<std::byte> at;
    int64_t stride;               // bytes from one row to the next
    int64_t bytes;                // bytes in a row
    DevicePtr<std::byte> packed;  // rows without gaps; `at` where it has none
  };

  NcclGather(RankGroup& group, const NcclFunctions& functions);

  absl::Status Exchange(Stream& stream, int rank,
                        const GatherParams& p) override;
  void Begin() override;
  void End() override;
  void Leave(const absl::Status& why) override;
  absl::Status Check(int rank) override;

  absl::StatusOr<std::vector<Place>> PlacesOf(Stream& stream, int rank,
                                              const GatherParams& p) const;
  absl::Status Transfer(Stream& stream, int rank, const GatherParams& p,
                        const std::vector<Place>& places);
  absl::Status SendAndReceive(CUstream_st* queue, int rank, int64_t rows,
                              const std::vector<Place>& places);
  // Makes the communicators, on rank 0's thread once all ranks have come.
  absl::Status Connect();
  // Connects every pair of ranks by a first message, so that no rank's later
  // call waits for another's.
  absl::Status Introduce();
  // Aborts all communicators, and keeps `why` unless the run broke before.
  void Break(const absl::Status& why);
  // The error that the library reports of a rank's communicator, if any.
  absl::Status AsyncError(int rank);
  // The reason for which the run broke, or OK.
  absl::Status BrokenNow();
  // Returns true if there are communicators. Errors: those of BrokenNow.
  absl::StatusOr<bool> IsConnected();
  void Watch();

  const NcclFunctions call_;
  std::vector<Seat> seats_;  // [rank]

  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  bool connected_ = false;
  absl::Status why_;  // the reason for which this run, or the last one, broke
  bool running_ = false;
  bool watching_ = false;  // the watch thread polls now and then
  bool looking_ = false;   // it polls communicators now, and may abort them
  bool stop_ = false;
  std::thread watch_;  // polls for errors while ranks wait for GPUs
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_RANKS_NCCL_GATHER_H_
