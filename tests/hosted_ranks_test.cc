// Several simulated GPUs, one for each rank, none of which can touch another's
// memory: they give the bytes of one rank on the CPU, whether ranks gather by a
// simulated NCCL or by copies. A fault on one of them is one status.

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/device/executor/hosted_stream.h"
#include "kernels/system/faults.h"
#include "lib/status/error.h"
#include "offload/ranks/nccl_for_test.h"
#include "offload/ranks/no_hang_for_test.h"
#include "runtime/plan/plan.h"
#include "runtime/policies/policy.h"
#include "tests/drafting.h"
#include "tests/golden.h"
#include "tests/tiers.h"

namespace tiercel::hosted_ranks_test {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::IsEmpty;

class HostedRanksTest : public testing::Test {
 protected:
  ~HostedRanksTest() override {
    RestoreSimDevices();
    SetHostedGpu(kHostedGpu);
  }

  static Model::Options Over(const std::string& path, int ranks, bool nccl) {
    Model::Options options = {
        .path = path,
        .machine = {.device = DeviceKind::kCuda, .threads = 2},
        .ranks = ranks};
    if (nccl) options.machine.nccl = FakeNccl::Functions();
    return options;
  }

  // Devices with the least that a session needs, each behind a link.
  static Model::Options Tiered(const std::string& path, int ranks, bool nccl,
                               const Session::Options& session) {
    Model::Options options = Over(path, ranks, nccl);
    options.machine.simulation = {
        {.bytes = int64_t{1} << 40, .link = {kFast, 0}}};
    Model::Options header = options;
    header.weights = false;
    const auto model = OpenModel(header);
    const auto sizes = model->MeasureRanks();
    EXPECT_TRUE(sizes.ok()) << sizes.status();
    int64_t bytes = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      bytes =
          std::max(bytes, SiteOf(*model, (*sizes)[static_cast<size_t>(rank)],
                                 session, model->machine->threads(), rank)
                              .LeastDeviceBytes(session.context));
    }
    options.machine.simulation->bytes = bytes;
    return options;
  }

  static std::unique_ptr<Model> OneOnCpu(const std::string& path) {
    return OpenModel({.path = path, .machine = {.threads = 2}});
  }

  const NoHang no_hang_;
  FakeNccl fake_;
};

bool SameBytes(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && !a.empty() &&
         std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Each rank has a KV head or two, or ranks share a single one.
TEST_F(HostedRanksTest, LogitsAreTheCpus) {
  for (const auto& [name, ranks] :
       {std::pair("llama_gqa", 2), std::pair("llama_gqa", 3),
        std::pair("llama_mqa", 2), std::pair("qwen3", 2),
        std::pair("qwen3moe", 3)}) {
    const std::string path = CheckpointPath(std::string(name) + ".gguf");
    const auto cpu = OneOnCpu(path);
    const Ids ids = RandomIds(24, cpu->config.vocab);
    for (const bool nccl : {false, true}) {
      const int made = fake_.calls("create_all");
      const auto model = OpenModel(Over(path, ranks, nccl));
      for (const size_t rows : {0, 7}) {
        const auto session = MakeSession(*model, {.context = 256});
        EXPECT_TRUE(SameBytes(AllLogits(*session, ids, rows),
                              AllLogits(*MakeSession(*cpu), ids, rows)))
            << name << " over " << ranks << ", " << rows << " rows a step";
        EXPECT_THAT(session->warnings(), IsEmpty());
        // Each rank has its part on a device of its own.
        for (int rank = 0; rank < ranks; ++rank) {
          EXPECT_GT(model->machine_of(rank).memory().used(), 0) << rank;
          EXPECT_NE(&model->machine_of(rank).memory(),
                    &model->machine_of((rank + 1) % ranks).memory());
        }
      }
      EXPECT_EQ(fake_.calls("create_all") - made, nccl ? 2 : 0);
    }
    EXPECT_EQ(fake_.alive(), 0);
  }
}

// A text with drafts over a view, behind links, and one without either.
class HostedRanksTextTest : public HostedRanksTest {
 protected:
  static constexpr int kRanks = 2;

  absl::StatusOr<Ids> Text(Session& session,
                           const PolicyParams& params = {}) const {
    const absl::StatusOr<std::unique_ptr<Policy>> policy =
        NewPolicy(session, params);
    if (!policy.ok()) return policy.status();
    const Report report =
        Generate(session, **policy, {}, DraftedParams(0.7f, 4), nullptr);
    if (!report.status.ok()) return report.status;
    return report.tokens;
  }
  absl::StatusOr<Ids> Run(const Model& model, const Ids& prompt,
                          const Session::Options& options,
                          const PolicyParams& params = {}) const {
    absl::StatusOr<std::unique_ptr<Session>> session =
        Session::Create(model, options);
    if (!session.ok()) return session.status();
    const auto read =
        Prefill(**session, prompt.data(), prompt.size(), kNoProgress);
    if (!read.ok()) return read.status();
    return Text(**session, params);
  }
  absl::StatusOr<Ids> Run(const Model& model) const {
    return Run(model, prompt_, session_);
  }

  const std::string path_ = CheckpointPath("llama_gqa.gguf");
  const Ids prompt_ = RandomIds(20, 67);
  const Session::Options session_ = {.context = 128};
};

TEST_F(HostedRanksTextTest, TextIsTheCpusBehindLinks) {
  PolicyParams params;
  params.policy = PolicyNamed("triforce");
  params.verify = VerifyMode::kCoupled;
  params.proposer = Proposer::kNgram;
  params.view = kSmallView;
  const std::string path = Deepened("llama_gqa");
  const auto cpu = OneOnCpu(path);
  const Session::Options session = params.OptionsFor(*cpu, {.context = 300});
  const Ids prompt = RandomIds(150, 67);
  const absl::StatusOr<Ids> expected = Run(*cpu, prompt, session, params);
  ASSERT_TRUE(expected.ok()) << expected.status();
  for (const bool nccl : {false, true}) {
    const auto model = OpenModel(Tiered(path, kRanks, nccl, session));
    const absl::StatusOr<Ids> text = Run(*model, prompt, session, params);
    ASSERT_TRUE(text.ok()) << text.status();
    EXPECT_EQ(*text, *expected);
  }
}

// The next call to fail: fewer and fewer, so that the test ends.
int Next(int at) { return (TriesAllFaults() ? 5 : 20) * at + 3; }

// Any call of one device may fail, once or for good.
TEST_F(HostedRanksTextTest, OneDevicesFaultIsOneStatus) {
  const Model::Options options = Over(path_, kRanks, true);
  const Ids expected = *Run(*OneOnCpu(path_));
  for (const auto& [gpu, call] : {std::pair(0, "copy"), std::pair(1, "launch"),
                                  std::pair(1, "wait"), std::pair(1, "mark")}) {
    for (const int error : {kCudaInvalidValue, kCudaIllegalAddress}) {
      bool any = false;
      for (int at = 0;; at = Next(at)) {
        const auto model = OpenModel(options);
        ASSERT_NE(model, nullptr);
        std::atomic<int> calls = 0;
        const std::string_view name = call;
        SimFaults faults(
            [&](std::string_view asked) {
              return asked == name && calls++ == at ? error : 0;
            },
            gpu);
        const absl::StatusOr<Ids> text = Run(*model);
        const bool met = calls > at;
        faults.End();
        if (!text.ok()) {
          any = true;
          EXPECT_EQ(ClassOf(text.status()), ErrorClass::kDevice)
              << call << " " << at << ": " << text.status();
        } else {
          EXPECT_EQ(*text, expected) << call << " " << at;
        }
        const absl::StatusOr<Ids> next = Run(*model);
        ASSERT_TRUE(next.ok()) << call << " " << at << ": " << next.status();
        EXPECT_EQ(*next, expected) << call << " " << at;
        if (!met) break;
      }
      // A device that cannot mark a place waits for more instead.
      EXPECT_TRUE(any || std::string_view(call) == "mark") << call;
    }
  }
}

// The library fails, or loses data, in a prompt and in an answer: the session
// is as before, and its next request is right.
TEST_F(HostedRanksTextTest, TheLibrarysFaultIsOneStatus) {
  const auto model = OpenModel(Over(path_, kRanks, true));
  const Ids expected = *Run(*OneOnCpu(path_));
  for (const bool loses : {false, true}) {
    int prompts = 0;
    int texts = 0;
    for (int at = 0;; at += 1 + (TriesAllFaults() ? at / 2 : at)) {
      const auto session = MakeSession(*model, session_);
      std::atomic<int> left = at;
      std::optional<Faults> faults;
      faults.emplace(Callee::kNccl, [&](const Operation& asked) {
        const bool fails = asked.call == (loses ? "deliver" : "send") &&
                           asked.device == 1 && left-- == 0;
        return fails ? FakeNccl::kRefused : 0;
      });
      const absl::Status read =
          Prefill(*session, prompt_.data(), prompt_.size(), kNoProgress)
              .status();
      if (read.ok()) {
        const absl::StatusOr<Ids> text = Text(*session);
        if (left >= 0) {
          ASSERT_TRUE(text.ok()) << text.status();
          EXPECT_EQ(*text, expected);
          break;
        }
        ++texts;
        EXPECT_EQ(CodeOf(text.status()), "gather_failed") << at;
        session->Truncate(prompt_.size());
      } else {
        ++prompts;
        EXPECT_EQ(CodeOf(read), "gather_failed") << at << ": " << read;
        EXPECT_EQ(session->sequence().tokens().size(), 0u);
        EXPECT_EQ(session->sequence().kv_length(), 0);
      }
      faults.reset();
      if (!read.ok()) {
        ASSERT_TRUE(
            Prefill(*session, prompt_.data(), prompt_.size(), kNoProgress)
                .ok());
      }
      const absl::StatusOr<Ids> next = Text(*session);
      ASSERT_TRUE(next.ok()) << next.status();
      EXPECT_EQ(*next, expected) << at;
    }
    EXPECT_GT(prompts, 1);
    EXPECT_GT(texts, 1);
  }
}

// H09: the warning names what the library lacks, and copies do its work.
TEST_F(HostedRanksTextTest, ALibraryThatDoesNotServeIsDoneWithout) {
  const Ids expected = *Run(*OneOnCpu(path_));
  const auto model = OpenModel(Over(path_, kRanks, true));
  const auto check = [&](const char* why) {
    const auto session = MakeSession(*model, session_);
    ASSERT_TRUE(
        Prefill(*session, prompt_.data(), prompt_.size(), kNoProgress).ok());
    EXPECT_EQ(*Text(*session), expected);
    ASSERT_EQ(session->warnings().size(), 1u);
    EXPECT_THAT(session->warnings()[0],
                HasSubstr("copies from GPU to GPU, which is slower: NCCL: "));
    EXPECT_THAT(session->warnings()[0], HasSubstr(why));
    setenv("TIERCEL_NCCL", "1", /*overwrite=*/1);
    const absl::Status needed = Session::Create(*model, session_).status();
    unsetenv("TIERCEL_NCCL");
    EXPECT_THAT(CodeOf(needed), AnyOf("no_library", "gather_failed"));
    EXPECT_THAT(std::string(needed.message()), HasSubstr(why));
  };
  fake_.version = 22001;
  check("got version 2.20.1, need 2.27.5 or a later 2");
  fake_.version = 22809;
  {
    FailingCall refused(Callee::kNccl, "create_all", FakeNccl::kRefused);
    refused.Arm(1, FailAt::kAll);
    check("CommInitAll ended with error 1, unhandled cuda error");
  }
  const int made = fake_.calls("create_all");
  setenv("TIERCEL_NCCL", "0", /*overwrite=*/1);
  EXPECT_THAT(MakeSession(*model, session_)->warnings(), IsEmpty());
  unsetenv("TIERCEL_NCCL");
  EXPECT_EQ(fake_.calls("create_all"), made);
}

// The best count of ranks for a session of 1,000 tokens, among as many
// simulated GPUs, each with `bytes` behind a link.
class HostedRanksChoiceTest : public HostedRanksTest {
 protected:
  std::unique_ptr<Model> Header(const std::string& path, int ranks,
                                int64_t bytes) const {
    Model::Options options = Over(path, ranks, /*nccl=*/false);
    options.weights = false;
    options.machine.simulation = {{.bytes = bytes, .link = {kFast, 0}}};
    return OpenModel(options);
  }
  int Chosen(int64_t bytes, int gpus = 4, const FastSteps& fast = {}) const {
    return Chosen(path_, bytes, gpus, fast);
  }
  int Chosen(const std::string& path, int64_t bytes, int gpus,
             const FastSteps& fast = {}) const {
    GpuFacts facts = kHostedGpu;
    facts.gpus = gpus;
    SetHostedGpu(facts);
    const absl::StatusOr<int> chosen = ChooseRanks(
        *Header(path, 1, bytes), session_, /*draft=*/std::nullopt, fast);
    EXPECT_TRUE(chosen.ok()) << chosen.status();
    return chosen.value_or(0);
  }
  // Least gives the bytes that each of so many devices needs, and Whole those
  // with which all KV stays on it.
  int64_t Least(int ranks) const {
    SetHostedGpu(kHostedGpu);
    return DescribePlan(*Header(path_, ranks, 1024), session_)
        .value()["min_device_bytes"];
  }
  int64_t Whole(int ranks) const {
    SetHostedGpu(kHostedGpu);
    const nlohmann::json plan =
        DescribePlan(*Header(path_, ranks, kPlenty), session_).value();
    int64_t most = 0;
    nlohmann::json all = nlohmann::json::array({plan["tiers"]});
    if (ranks > 1) all = plan["ranks"];
    for (const nlohmann::json& of : all) {
      int64_t bytes = 0;
      for (const auto& [part, size] : of["device"].items()) {
        bytes += size.get<int64_t>();
      }
      most = std::max(most, bytes);
    }
    return most;
  }

  static constexpr int64_t kPlenty = int64_t{1} << 40;
  // It has more layers than the two that are on their way through a device at
  // once.
  const std::string path_ = Deepened("llama_gqa");
  const Session::Options session_ = {.context = 1000};
};

TEST_F(HostedRanksChoiceTest, TheFewestWhoseLinksBringLeast) {
  // No KV comes over a link.
  EXPECT_EQ(Chosen(kPlenty), 1);
  EXPECT_EQ(Chosen(Whole(1)), 1);
  // Two ranks have room for all KV. With less, the rank with two of three heads
  // lacks room for one full page, besides the last page, which is open.
  ASSERT_LT(Whole(2), Whole(1));
  EXPECT_EQ(Chosen(Whole(2)), 2);
  const int64_t page =
      6 * KvLayout{DType::kF16, DType::kF16, /*kv_heads=*/2, /*head_dim=*/8}
              .PageBytes();
  EXPECT_EQ(Chosen(Whole(2) - page), 3);
  // If there are fewer GPUs, all of them are chosen.
  EXPECT_EQ(Chosen(Least(1), 1), 1);
  EXPECT_EQ(Chosen(Least(1), 2), 2);
  // Steps that read resident KV move nothing over links.
  EXPECT_EQ(Chosen(Least(1), 4, {.positions = 64, .share = 1}), 1);
  EXPECT_GT(Chosen(Least(1), 4, {.positions = 64, .share = 0.9}), 1);
}

TEST_F(HostedRanksChoiceTest, WhatFitsComesFirst) {
  ASSERT_LT(Least(2), Least(1));
  EXPECT_EQ(Chosen(Least(1) - 64, 2), 2);
  ASSERT_LT(Least(4), Least(2));
  EXPECT_EQ(Chosen(Least(4)), 4);
  // Nothing fits: it chooses all there are, or as many as the model is split
  // into.
  EXPECT_EQ(Chosen(1024), 4);
  EXPECT_EQ(Chosen(1024, 2), 2);
  EXPECT_EQ(Chosen(CheckpointPath("llama_mqa.gguf"), 1024, 4), 3);
}

TEST_F(HostedRanksChoiceTest, OfGpusAlone) {
  const auto cpu = OneOnCpu(CheckpointPath("llama_gqa.gguf"));
  EXPECT_EQ(*ChooseRanks(*cpu, session_, /*draft=*/std::nullopt, {}), 1);
  // A GPU is lost meanwhile.
  const auto header = Header(path_, 1, kPlenty);
  const SimFaults faults([](std::string_view) { return kCudaIllegalAddress; },
                         /*device=*/0);
  EXPECT_EQ(
      ClassOf(
          ChooseRanks(*header, session_, /*draft=*/std::nullopt, {}).status()),
      ErrorClass::kDevice);
  const auto too_long = ChooseRanks(*cpu, {.context = 2000},
                                    /*draft=*/std::nullopt, {});
  EXPECT_EQ(CodeOf(too_long.status()), "invalid_context");
}

// Another GPU's link would reach the memory too, but by a detour.
TEST_F(HostedRanksTest, ARanksLinkIsItsOwnGpus) {
  const Model::Options options =
      Over(CheckpointPath("llama_gqa.gguf"), 3, /*nccl=*/false);
  for (int rank = 0; rank < 3; ++rank) {
    Machine machine(options.machine, rank, 3);
    ASSERT_TRUE(machine.FindDevice().ok());
    std::array<int, 3> made = {};
    const Faults faults(Callee::kDevice, [&made](const Operation& asked) {
      if (asked.call == "create") ++made.at(static_cast<size_t>(asked.device));
      return 0;
    });
    EXPECT_TRUE(machine.NewLink(machine.NewPlacement()).ok());
    for (int gpu = 0; gpu < 3; ++gpu) {
      EXPECT_EQ(made[static_cast<size_t>(gpu)], gpu == rank ? 1 : 0) << rank;
    }
  }
}

TEST_F(HostedRanksTest, RanksNeedAGpuEach) {
  GpuFacts facts = kHostedGpu;
  facts.gpus = 2;
  SetHostedGpu(facts);
  const std::string path = CheckpointPath("llama_gqa.gguf");
  EXPECT_NE(OpenModel(Over(path, 2, false)), nullptr);
  const absl::Status status =
      Model::Open(Over(path, 3, false), [](uint64_t, uint64_t) {
        return true;
      }).status();
  EXPECT_EQ(CodeOf(status), "cannot_split");
  EXPECT_EQ(ClassOf(status), ErrorClass::kUsage);
  EXPECT_EQ(status.message(),
            "tensor parallel: 3 ranks need a GPU each, this process sees 2");
  // Without any GPU the error is another one.
  facts.gpus = 0;
  SetHostedGpu(facts);
  EXPECT_EQ(CodeOf(Model::Open(Over(path, 3, false),
                               [](uint64_t, uint64_t) { return true; })
                       .status()),
            "no_device");
}

}  // namespace
}  // namespace tiercel::hosted_ranks_test
