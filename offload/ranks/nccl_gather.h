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
#include "kernels/machine/nccl.h"
#include "offload/ranks/gather.h"

namespace tiercel {

// It gathers between GPUs, rank r on the GPU number r. Each sends its columns
// to each other by NCCL, in the order of its queue, so that no rank waits for a
// GPU. Rows that lie apart are packed on the way, in the queue's scratch.
//
// A rank enters the library only once all ranks are there and mean the same,
// so that whoever fails before leaves nobody inside. Where one fails later, or
// its GPU does, all communicators are aborted: GPUs that wait for it go on, the
// Run is an error, and the next makes communicators anew.
class NcclGather final : public Gather {
 public:
  // `streams`: one of each rank's, for this call alone. Errors: no_library,
  // where the version is not good; gather_failed, where the GPUs cannot be
  // connected; no_thread.
  static absl::StatusOr<std::unique_ptr<NcclGather>> Create(
      RankGroup& group, const NcclFunctions& functions,
      std::span<Stream* const> streams,
      std::shared_ptr<const Faults> faults = nullptr);
  ~NcclGather() override;

  // Most scratch that a gather of so many rows and columns takes.
  static int64_t ScratchBytes(int64_t rows, int64_t columns,
                              int64_t element_bytes = sizeof(float));

 private:
  struct alignas(64) Seat {
    std::mutex mutex;  // held in each of the library's calls
    void* communicator = nullptr;
    Stream* stream = nullptr;  // where communicators are to be made
  };
  // Where the rank's own columns are sent from, or another's received.
  struct Place {
    std::byte* at;
    int64_t stride;     // bytes between its rows
    int64_t bytes;      // of a row
    std::byte* packed;  // rows without a gap; `at`, where they are so already
  };

  NcclGather(RankGroup& group, const NcclFunctions& functions,
             std::shared_ptr<const Faults> faults);

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
  // Once all ranks are there, on rank 0's thread: makes communicators.
  absl::Status Connect();
  // Makes each of them known to each other, so that no rank's later call waits
  // for another's.
  absl::Status Introduce();
  // Aborts all communicators, for this reason unless there was one.
  void Break(const absl::Status& why);
  // What the library has found in a rank's communicator since.
  absl::Status AsyncError(int rank);
  // Why the run broke, once it has.
  absl::Status BrokenNow();
  // Whether there are communicators. Errors: BrokenNow's.
  absl::StatusOr<bool> IsConnected();
  void Watch();

  const NcclFunctions call_;
  std::vector<Seat> seats_;  // [rank]

  std::mutex mutex_;  // of the rest
  std::condition_variable changed_;
  bool connected_ = false;
  absl::Status why_;  // the run under way broke, or the last one
  bool running_ = false;
  bool watching_ = false;  // and looks now and then
  bool looking_ = false;   // at communicators, which it may abort
  bool stop_ = false;
  std::thread watch_;  // looks for errors while ranks wait for GPUs
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_RANKS_NCCL_GATHER_H_
