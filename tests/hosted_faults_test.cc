// A GPU refuses calls (H01 to H08): whichever call fails, the error says so,
// everything else goes on, and all memory comes back.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/device/executor/hosted_stream.h"
#include "kernels/device/sim/sim_memory.h"
#include "kernels/system/faults.h"
#include "lib/status/error.h"
#include "runtime/policies/policy.h"
#include "tests/drafting.h"
#include "tests/golden.h"
#include "tests/tiers.h"

namespace tiercel::hosted_faults_test {
namespace {

using testing::AnyOf;

// Fails call number `at` (from 0) of one name, and the `times` - 1 after it.
class RefusedCall {
 public:
  RefusedCall(std::string_view call, int at, int error, int times = 1)
      : faults_([this, call, error](std::string_view asked) {
          return asked == call && fails_() ? error : 0;
        }) {
    fails_.Arm(at + 1, times);
  }
  bool met() const { return fails_.happened(); }

 private:
  FailAt fails_;
  const SimFaults faults_;
};

class HostedFaultsTest : public testing::TestWithParam<std::string_view> {
 protected:
  // Opens a model behind a link if there is none, and runs a session: a prompt
  // and an answer with drafts.
  static absl::StatusOr<Ids> Run(std::unique_ptr<Model>& model) {
    if (model == nullptr) {
      absl::StatusOr<std::unique_ptr<Model>> opened =
          Model::Open(options_, [](uint64_t, uint64_t) { return true; });
      if (!opened.ok()) return opened.status();
      model = *std::move(opened);
    }
    absl::StatusOr<std::unique_ptr<Session>> session =
        Session::Create(*model, session_);
    if (!session.ok()) return session.status();
    const auto read =
        Prefill(**session, prompt_.data(), prompt_.size(), kNoProgress);
    if (!read.ok()) return read.status();
    const absl::StatusOr<std::unique_ptr<Policy>> policy =
        NewPolicy(**session, params_);
    if (!policy.ok()) return policy.status();
    const Report report =
        Generate(**session, **policy, {}, DraftedParams(0.7f, 6), nullptr);
    if (!report.status.ok()) return report.status;
    return report.tokens;
  }

  static void SetUpTestSuite() {
    params_.policy = PolicyNamed("triforce");
    params_.verify = VerifyMode::kCoupled;
    params_.proposer = Proposer::kNgram;
    params_.view = kSmallView;
    options_ = {.path = Deepened("llama_chat"),
                .machine = {.device = DeviceKind::kCuda, .threads = 2}};
    const auto like = OpenModel(options_);
    session_ = params_.OptionsFor(*like, {.context = 300});
    const int64_t bytes = BytesFor(*like, session_, Budget::kLeast);
    options_.machine.simulation = {{.bytes = bytes, .link = {kFast, 0}}};
    prompt_ = RepeatedText(36, 4);  // more than a page
    std::unique_ptr<Model> model;
    const absl::StatusOr<Ids> text = Run(model);
    ASSERT_TRUE(text.ok()) << text.status();
    expected_ = *text;
  }

  // The bytes of the device, and those pinned for it.
  static int64_t Used() {
    return MakeHostedStream(Order::kAscending)->memory().used() +
           SimPinnedBytes();
  }

  static inline Ids prompt_;
  static inline PolicyParams params_;
  static inline Session::Options session_;
  static inline Model::Options options_;
  static inline Ids expected_;
};
// The names of calls of a GPU.
std::vector<std::string_view> Calls() {
  if (!TriesAllFaults()) return {"allocate", "copy", "launch", "wait"};
  return {"create", "allocate", "pin",  "see",  "copy",
          "launch", "mark",     "wait", "check"};
}
INSTANTIATE_TEST_SUITE_P(Calls, HostedFaultsTest, testing::ValuesIn(Calls()),
                         [](const auto& one) {
                           return std::string(one.param);
                         });

// The next call to fail: fewer and fewer, so that the test ends.
int Next(int at) { return TriesAllFaults() ? at + 1 + at / 8 : 24 * at + 1; }

TEST_P(HostedFaultsTest, OneFailedCallFailsOneRequest) {
  const int64_t before = Used();
  // The library asks for memory twice before it gives up.
  const bool memory = GetParam() == "allocate";
  const int error = memory ? kCudaOutOfMemory : kCudaInvalidValue;
  bool any = false;
  for (int at = 0;; at = Next(at)) {
    std::unique_ptr<Model> model;
    {
      const RefusedCall fault(GetParam(), at, error, memory ? 2 : 1);
      const absl::StatusOr<Ids> text = Run(model);
      if (!fault.met()) break;
      any = true;
      if (text.ok()) {  // the library had another way
        EXPECT_EQ(*text, expected_) << at;
      } else if (memory) {
        EXPECT_EQ(CodeOf(text.status()), "out_of_memory") << at;
      } else {
        EXPECT_THAT(CodeOf(text.status()), AnyOf("device_failed", "no_device"))
            << at << ": " << text.status();
      }
    }
    const absl::StatusOr<Ids> text = Run(model);
    ASSERT_TRUE(text.ok()) << at << ": " << text.status();
    EXPECT_EQ(*text, expected_) << at;
    model.reset();
    EXPECT_EQ(Used(), before) << at;
  }
  EXPECT_TRUE(any);
}

// H07, H08: from then on every request fails, always for the same reason.
TEST_P(HostedFaultsTest, OfALostDeviceEverybodyIsTold) {
  const int64_t before = Used();
  for (int at = 0;; at = Next(at)) {
    {
      std::unique_ptr<Model> model;
      const RefusedCall fault(GetParam(), at, kCudaIllegalAddress);
      absl::StatusOr<Ids> text = Run(model);
      if (!fault.met()) break;
      for (int again = 0; again < 3; ++again) {
        if (again == 0 && text.ok()) {  // it was lost after the last token
          EXPECT_EQ(*text, expected_) << at;
        } else {
          EXPECT_EQ(CodeOf(text.status()), "device_lost")
              << at << ": " << text.status();
          EXPECT_EQ(ClassOf(text.status()), ErrorClass::kDevice);
        }
        text = Run(model);
      }
      // A request of another model is told so too.
      std::unique_ptr<Model> other;
      EXPECT_EQ(CodeOf(Run(other).status()), "device_lost") << at;
    }
    EXPECT_EQ(Used(), before) << at;
  }
}

// H04: memory that another process held for a moment is there at the second
// try.
TEST(HostedGpuTest, MemoryThatIsShortForAMomentChangesNothing) {
  const auto text = [] {
    const auto model = OpenModel({.path = CheckpointPath("llama_chat.gguf"),
                                  .machine = {.device = DeviceKind::kCuda}});
    const auto session =
        Prefilled(*model, RepeatedText(34, 4), {.context = 512});
    return DraftedText(*session, DraftedParams(0.7f, 6), {});
  };
  const Ids expected = text();
  for (int at = 0;; at = TriesAllFaults() ? 2 * at + 1 : 4 * at + 1) {
    const RefusedCall fault("allocate", at, kCudaOutOfMemory);
    EXPECT_EQ(text(), expected) << at;
    if (!fault.met()) break;
  }
}

// Another process takes memory while a session is made, and keeps a part of it:
// the session is made with what is left, where fewer pages stay on the device.
TEST(HostedGpuTest, ASessionIsMadeOfWhatOthersLeave) {
  const auto model = OpenModel({.path = CheckpointPath("llama_chat.gguf"),
                                .machine = {.device = DeviceKind::kCuda}});
  SimMemory& memory = SimMemory::Get(0);
  const int64_t weights = memory.used();
  const Session::Options options = {.context = 600};
  const auto text = [&](Session& session) {
    const Ids ids = RepeatedText(34, 4);
    EXPECT_TRUE(Prefill(session, ids.data(), ids.size(), kNoProgress).ok());
    return DraftedText(session, DraftedParams(0.7f, 6), {});
  };
  Ids expected;
  int64_t all = 0;
  {
    const auto session = MakeSession(*model, options);
    all = memory.used() - weights;
    EXPECT_TRUE(session->kv().plan().on_device);
    expected = text(*session);
  }
  const int64_t least = BytesFor(*model, options, Budget::kLeast) - weights;
  ASSERT_LT(least, all);
  const auto size = [&](int64_t bytes) {
    memory.SetSize(Device::kReserve + weights + bytes);
  };
  for (int at = 0;; at += TriesAllFaults() ? 1 : 4) {
    size(all);
    int calls = 0;
    bool taken = false;
    std::unique_ptr<Session> session;
    {
      const SimFaults faults([&](std::string_view call) {
        if (call == "allocate" && calls++ == at) {
          memory.SetSize(1);
          taken = true;
        } else if (call == "free" && taken) {
          size(least);
        }
        return 0;
      });
      session = MakeSession(*model, options);
    }
    ASSERT_NE(session, nullptr) << at;
    EXPECT_EQ(session->kv().plan().on_device, !taken) << at;
    EXPECT_EQ(text(*session), expected) << at;
    session = nullptr;
    EXPECT_EQ(memory.used(), weights) << at;
    if (!taken) break;
  }
  memory.SetSize(0);
}

// A lost device has no free memory, but the error must not say so.
TEST(HostedGpuTest, ALostDeviceIsNotTakenForAFullOne) {
  const Model::Options options = {.path = CheckpointPath("llama_chat.gguf"),
                                  .machine = {.device = DeviceKind::kCuda}};
  const auto model = OpenModel(options);
  const RefusedCall fault("wait", 0, kCudaIllegalAddress);
  const auto session = MakeSession(*model, {.context = 256});
  const std::vector<int32_t> ids(40, 7);
  EXPECT_EQ(
      CodeOf(Prefill(*session, ids.data(), ids.size(), kNoProgress).status()),
      "device_lost");
  EXPECT_EQ(CodeOf(Session::Create(*model, {.context = 256}).status()),
            "device_lost");
  EXPECT_EQ(CodeOf(Model::Open(options, [](uint64_t, uint64_t) { return true; })
                       .status()),
            "device_lost");
}

// H01, H02.
TEST(HostedGpuTest, NoGpuIsSaidBeforeAnythingIsRead) {
  const auto open = [] {
    return Model::Open(
               {.path = "/nowhere", .machine = {.device = DeviceKind::kCuda}},
               [](uint64_t, uint64_t) { return true; })
        .status();
  };
  for (const std::string_view call : {"create", "launch"}) {
    const RefusedCall fault(call, 0, kCudaNoKernelImage);
    EXPECT_EQ(CodeOf(open()), "no_device") << call;
  }
  GpuFacts facts = kHostedGpu;
  facts.capability = 70;
  SetHostedGpu(facts);
  const absl::Status status = open();
  SetHostedGpu(kHostedGpu);
  EXPECT_EQ(CodeOf(status), "no_device");
  EXPECT_EQ(ClassOf(status), ErrorClass::kDevice);
  EXPECT_EQ(status.message(),
            "device cuda: the GPU has compute capability 7.0, need 7.5 "
            "(Turing) or later");
}

}  // namespace
}  // namespace tiercel::hosted_faults_test
