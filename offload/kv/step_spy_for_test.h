#ifndef TIERCEL_OFFLOAD_KV_STEP_SPY_FOR_TEST_H_
#define TIERCEL_OFFLOAD_KV_STEP_SPY_FOR_TEST_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/status/error.h"
#include "offload/kv/layered_kv.h"

namespace tiercel {

// Records the calls that a KV store makes to its observer.
class StepSpy final : public StepObserver {
 public:
  absl::Status BeginStep(int64_t end, int64_t rows, bool certain,
                         Cancelled cancelled) override {
    if (cancelled()) return CancelledError();
    seen_.push_back(absl::StrCat("begin ", rows, " from ", end,
                                 certain ? " certain" : " open"));
    return absl::OkStatus();
  }
  absl::Status KeepQueries(Stream&, int, int64_t, int64_t,
                           DevicePtr<const float>) override {
    return absl::OkStatus();
  }
  absl::Status AfterLayer(Stream&, int, const KvPages&) override {
    return absl::OkStatus();
  }
  void Commit(int64_t end) override {
    seen_.push_back(absl::StrCat("commit ", end));
  }
  void Abandon() override { seen_.push_back("abandon"); }
  void Truncate(int64_t end) override {
    seen_.push_back(absl::StrCat("truncate ", end));
  }

  std::vector<std::string> Seen() { return std::exchange(seen_, {}); }

 private:
  std::vector<std::string> seen_;
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_KV_STEP_SPY_FOR_TEST_H_
