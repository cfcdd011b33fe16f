// The whole runtime on a GPU's kernels, which the host executor runs, gives the
// bytes of the CPU. The host cannot read that device's memory, and the device
// does nothing until the host waits for it.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/device/executor/hosted_stream.h"
#include "kernels/device/sim/sim_memory.h"
#include "kernels/system/testing.h"
#include "lib/status/error.h"
#include "runtime/policies/policy.h"
#include "runtime/policies/sadas/sadas_params.h"
#include "runtime/policies/sfi/sfi_params.h"
#include "runtime/policies/speed/speed_params.h"
#include "tests/drafting.h"
#include "tests/golden.h"
#include "tests/tiers.h"

namespace tiercel::hosted_test {
namespace {

struct Checkpoint {
  std::string path;
  std::string tokens;
};

// Each family and each weight type.
std::vector<Checkpoint> Checkpoints() {
  std::vector<Checkpoint> all;
  for (const char* name :
       {"llama_mha", "llama_gqa", "llama_bias.gguf", "qwen2", "qwen3.gguf",
        "smollm3", "granite.gguf", "ministral3", "phi3.gguf", "qwen3moe.gguf",
        "qwen3moe_mixed"}) {
    const std::string path = CheckpointPath(name);
    all.push_back({path, path.substr(0, path.rfind(".gguf")) + "/tokens.txt"});
  }
  for (const char* name :
       {"quant32/f16", "quant32/bf16", "quant32/q8_0", "quant32/q4_0",
        "quant32/q4_1", "quant32/q5_0", "quant32/q5_1", "quant32/iq4_nl",
        "quant32/mxfp4", "quant256/q4_k", "quant256/q5_k", "quant256/q6_k",
        "quant256/iq4_xs", "quant256/q3_k", "quant256/q2_k",
        "quant_experts/q4_k"}) {
    const std::string path = CheckpointPath(name);
    all.push_back(
        {path + ".gguf", path.substr(0, path.rfind('/')) + "/tokens.txt"});
  }
  return all;
}

std::unique_ptr<Model> Open(const std::string& path, DeviceKind device,
                            Compute compute = Compute::kQ8) {
  return OpenModel({.path = path,
                    .machine = {.device = device, .threads = 2},
                    .compute = compute});
}

bool SameBytes(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && !a.empty() &&
         std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

class HostedTest : public testing::TestWithParam<Checkpoint> {
 protected:
  void SetUp() override {
    ids_ = ReadTokens(GetParam().tokens);
    ids_.resize(24);
  }
  std::vector<int32_t> ids_;
};
INSTANTIATE_TEST_SUITE_P(Checkpoints, HostedTest,
                         testing::ValuesIn(Checkpoints()), [](const auto& one) {
                           std::string name = one.param.path;
                           name = name.substr(CheckpointPath("").size());
                           std::replace(name.begin(), name.end(), '/', '_');
                           return name.substr(0, name.find('.'));
                         });

TEST_P(HostedTest, LogitsAreTheCpus) {
  for (const Compute compute : {Compute::kQ8, Compute::kF32}) {
    const auto cpu = Open(GetParam().path, DeviceKind::kCpu, compute);
    const auto gpu = Open(GetParam().path, DeviceKind::kCuda, compute);
    ASSERT_TRUE(cpu != nullptr && gpu != nullptr);
    for (const size_t rows : {0, 7}) {
      if (!TriesAll() && (rows == 0) != (compute == Compute::kQ8)) continue;
      const auto expected = MakeSession(*cpu);
      const auto session = MakeSession(*gpu, {.context = 256});
      ASSERT_NE(session, nullptr);
      EXPECT_TRUE(SameBytes(AllLogits(*session, ids_, rows),
                            AllLogits(*expected, ids_, rows)))
          << rows << " rows a step";
    }
  }
}

// Adds tokens and computes them, up to the logits after the last.
void Read(Session& session, const int32_t* ids, size_t count,
          Phase phase = Phase::kPrefill) {
  EXPECT_TRUE(session.Append(ids, count).ok());
  EXPECT_TRUE(session.CatchUp(phase).ok());
}

// A session of a small checkpoint on a device, with its prompt read.
struct Reader {
  Reader(DeviceKind device, const Session::Options& options, size_t prompt = 30)
      : model(Open(CheckpointPath("llama_gqa"), device)),
        session(MakeSession(*model, options)) {
    std::vector<int32_t> ids =
        ReadTokens(CheckpointPath("llama_gqa") + "/tokens.txt");
    ids.resize(prompt);
    Read(*session, ids.data(), ids.size());
  }
  std::unique_ptr<Model> model;
  std::unique_ptr<Session> session;
};

std::vector<int32_t> Continue(Session& session) {
  GenerateParams params;
  params.distribution.temperature = 0.8f;
  params.seed = 3;
  params.max_tokens = 12;
  params.ignore_eos = true;
  const Report report = Generate(session, params, nullptr);
  EXPECT_TRUE(report.status.ok()) << report.status;
  EXPECT_EQ(report.tokens.size(), 12u);
  return report.tokens;
}

TEST(HostedSessionTest, TextIsTheCpus) {
  for (const DType type : {DType::kF16, DType::kBF16}) {
    for (const int64_t first : {0, 120001}) {
      const Session::Options options = {.context = 256,
                                        .type_k = type,
                                        .type_v = type,
                                        .first_position = first};
      Reader cpu(DeviceKind::kCpu, options);
      Reader gpu(DeviceKind::kCuda, options);
      EXPECT_EQ(Continue(*gpu.session), Continue(*cpu.session));
      // A second answer follows, after tokens were taken back.
      cpu.session->Truncate(33);
      gpu.session->Truncate(33);
      EXPECT_EQ(Continue(*gpu.session), Continue(*cpu.session));
    }
  }
}

TEST(HostedSessionTest, AForkSharesPagesUntilItWrites) {
  const Session::Options options = {.context = 256};
  Reader cpu(DeviceKind::kCpu, options);
  Reader gpu(DeviceKind::kCuda, options);
  const std::vector<int32_t> expected = Continue(*cpu.session);
  absl::StatusOr<std::unique_ptr<Session>> fork = gpu.session->Fork();
  ASSERT_TRUE(fork.ok()) << fork.status();
  EXPECT_EQ(Continue(**fork), expected);
  EXPECT_EQ(Continue(*gpu.session), expected);
}

// Views are selected and filled on the device, and rows read them.
struct PolicyCase {
  const char* name;
  PolicyParams params;
};

std::vector<PolicyCase> Policies() {
  const auto of = [](const PolicyKind* policy, PolicyForm form) {
    PolicyParams params = {.policy = policy,
                           .form = form,
                           .verify = VerifyMode::kCoupled,
                           .view = kSmallView};
    if (policy == PolicyNamed("sfi")) {
      SfiParams& sfi = params.Own<SfiParams>();
      sfi.budget = 40;
      sfi.sink = 2;
      sfi.window = 20;
      EXPECT_TRUE(sfi.Set("trigger=fixed,interval=6,gap=1").ok());
    } else if (policy == PolicyNamed("sadas")) {
      SadasParams& sadas = params.Own<SadasParams>();
      sadas.window = 40;
      EXPECT_TRUE(sadas.Set("think=on,most=12").ok());
    } else if (policy == PolicyNamed("speed")) {
      EXPECT_TRUE(params.Own<SpeedParams>().Set("cut=1").ok());
    }
    return params;
  };
  std::vector<PolicyCase> cases = {
      {"triforce", of(PolicyNamed("triforce"), PolicyForm::kVerified)},
      {"triforce_ahead", of(PolicyNamed("triforce"), PolicyForm::kVerified)},
      {"sfi", of(PolicyNamed("sfi"), PolicyForm::kVerified)},
      {"sfi_plain", of(PolicyNamed("sfi"), PolicyForm::kPlain)},
      {"sfi_chunks", of(PolicyNamed("sfi"), PolicyForm::kPlain)},
      {"sadas", of(PolicyNamed("sadas"), PolicyForm::kVerified)},
      {"sadas_plain", of(PolicyNamed("sadas"), PolicyForm::kPlain)},
      {"speed", of(PolicyNamed("speed"), PolicyForm::kVerified)},
      {"speed_plain", of(PolicyNamed("speed"), PolicyForm::kPlain)},
  };
  cases[0].params.proposer = Proposer::kNgram;
  cases[1].params.draft_ahead = true;
  cases[4].params.Own<SfiParams>().chunk = 8;
  return cases;
}

class HostedPolicyTest : public testing::TestWithParam<PolicyCase> {};
INSTANTIATE_TEST_SUITE_P(Policies, HostedPolicyTest,
                         testing::ValuesIn(Policies()),
                         [](const auto& one) { return one.param.name; });

TEST_P(HostedPolicyTest, TextIsTheCpus) {
  if (!TriesAll()) GTEST_SKIP() << "a link leaves less of it to chance";
  const Ids prompt = RepeatedText(36, 4);
  const auto text = [&](DeviceKind device) {
    const auto model = Open(CheckpointPath("llama_chat.gguf"), device);
    const auto session = Prefilled(
        *model, prompt, GetParam().params.OptionsFor(*model, {.context = 512}));
    return DraftedText(*session, DraftedParams(0.7f, 24), GetParam().params);
  };
  const Ids expected = text(DeviceKind::kCpu);
  EXPECT_EQ(expected.size(), 24u);
  EXPECT_EQ(text(DeviceKind::kCuda), expected);
}

// ---- Behind a link ----

// Pages come and go while the kernels that read them are queued: in a prompt,
// in an answer within a page and in one that fills it. The link counts the same
// bytes as on the CPU.
TEST(HostedTiersTest, BytesAndTrafficAreTheCpus) {
  const std::string path = Deepened("llama_chat");
  const auto cpu = Open(path, DeviceKind::kCpu);
  const auto gpu = Open(path, DeviceKind::kCuda);
  const Ids ids = RandomIds(400, cpu->config.vocab);
  const Session::Options options = {.context = 640};
  const auto run = [&](Session& session, std::vector<float>* logits) {
    Read(session, ids.data(), 280);
    for (size_t i = 280; i < 400; i += 15) {
      Read(session, ids.data() + i, 15, Phase::kVerify);
      const std::vector<float> next = NextLogits(session);
      logits->insert(logits->end(), next.begin(), next.end());
    }
  };
  std::vector<float> expected;
  run(*MakeSession(*cpu, options), &expected);
  for (const Budget budget : {Budget::kLeast, Budget::kMiddle}) {
    const Tiered on_cpu = MakeTiered(*cpu, options, budget);
    const Tiered on_gpu = MakeTiered(*gpu, options, budget);
    ASSERT_EQ(on_gpu.session->kv().plan().shape.resident_pages,
              on_cpu.session->kv().plan().shape.resident_pages);
    std::vector<float> logits;
    run(*on_cpu.session, &logits);
    logits.clear();
    run(*on_gpu.session, &logits);
    EXPECT_TRUE(SameBytes(logits, expected));
    const LinkLedger& counted = on_gpu.session->traffic().link;
    for (size_t i = 0; i < counted.size(); ++i) {
      const LinkUse use = on_cpu.session->traffic().link[i];
      EXPECT_EQ(counted[i].h2d_bytes, use.h2d_bytes) << i;
      EXPECT_EQ(counted[i].d2h_bytes, use.d2h_bytes) << i;
    }
  }
}

// The hidden states of a prompt come and go in tiles, while the kernels that
// use them are queued.
TEST(HostedTiersTest, APromptInTilesIsTheCpus) {
  if (!TriesAll()) GTEST_SKIP() << "a prompt of more rows than three blocks";
  const std::string path = CheckpointPath("llama_chat");
  const auto cpu = Open(path, DeviceKind::kCpu);
  const auto gpu = Open(path, DeviceKind::kCuda);
  const Ids ids = RandomIds(3100, cpu->config.vocab);
  const Session::Options options = {.context = 3200};
  const auto expected = MakeSession(*cpu, options);
  Read(*expected, ids.data(), ids.size());
  const Tiered tiered = MakeTiered(*gpu, options, Budget::kLeast);
  Session& session = *tiered.session;
  ASSERT_LT(session.kv().plan().state_rows, std::ssize(ids));
  Read(session, ids.data(), ids.size());
  EXPECT_TRUE(SameBytes(NextLogits(session), NextLogits(*expected)));
  // The last three of four blocks stay on the device behind the last layer.
  const int64_t row = gpu->config.hidden * 4;
  EXPECT_EQ(session.traffic().moves.states_up_bytes, std::ssize(ids) * row);
  EXPECT_EQ(session.traffic().moves.states_down_bytes,
            (std::ssize(ids) + 1024) * row);
}

// Forks take turns with the layer buffers and share pages until they write. A
// prompt that was stopped in a layer goes on there.
TEST(HostedTiersTest, ForksAndStoppedPromptsAreTheCpus) {
  const std::string path = Deepened("llama_chat");
  const auto cpu = Open(path, DeviceKind::kCpu);
  const auto gpu = Open(path, DeviceKind::kCuda);
  const Ids ids = RandomIds(420, cpu->config.vocab);
  const Session::Options options = {.context = 512};
  const auto run = [&](Session& session) {
    Ids text;
    const auto go_on = [&](Session& one) {
      const Ids more = Continue(one);
      text.insert(text.end(), more.begin(), more.end());
    };
    Read(session, ids.data(), 250);
    absl::StatusOr<std::unique_ptr<Session>> fork = session.Fork();
    EXPECT_TRUE(fork.ok()) << fork.status();
    go_on(**fork);
    EXPECT_TRUE(session.Append(ids.data() + 250, 170).ok());
    // The prompt stops in its third layer, while the fork uses the buffers.
    uint64_t asked = 0;
    EXPECT_FALSE(session
                     .CatchUp(Phase::kPrefill,
                              [&](uint64_t, uint64_t) { return ++asked < 3; })
                     .ok());
    go_on(**fork);
    EXPECT_TRUE(session.CatchUp(Phase::kPrefill).ok());
    go_on(session);
    go_on(**fork);
    session.Truncate(140);
    fork->reset();
    EXPECT_TRUE(session.CatchUp(Phase::kVerify).ok());
    go_on(session);
    return text;
  };
  const Ids expected = run(*MakeSession(*cpu, options));
  EXPECT_EQ(expected.size(), 5u * 12);
  // The least device, and the memory of a fork, which is in use until there is
  // one.
  constexpr int64_t kForks = int64_t{40} << 20;
  Model::Options with = gpu->options;
  with.machine.simulation = {
      {.bytes = BytesFor(*gpu, options, Budget::kLeast) + kForks,
       .link = {kFast, 0}}};
  const auto model = OpenModel(with);
  auto others =
      DeviceArray<std::byte>::Create(model->machine->memory(), kForks, "x");
  ASSERT_TRUE(others.ok()) << others.status();
  const auto session = MakeSession(*model, options);
  ASSERT_EQ(session->kv().plan().shape.resident_pages, 0);
  *others = {};
  EXPECT_EQ(run(*session), expected);
}

TEST_P(HostedPolicyTest, TextIsTheCpusBehindALink) {
  const Ids prompt = RepeatedText(36, 4);
  const std::string path = Deepened("llama_chat");
  const auto text = [&](Session& session) {
    EXPECT_TRUE(
        Prefill(session, prompt.data(), prompt.size(), kNoProgress).ok());
    return DraftedText(session, DraftedParams(0.7f, 24), GetParam().params);
  };
  const auto cpu = Open(path, DeviceKind::kCpu);
  const Session::Options options =
      GetParam().params.OptionsFor(*cpu, {.context = 512});
  const Ids expected = text(*MakeSession(*cpu, options));
  EXPECT_EQ(expected.size(), 24u);
  const auto gpu = Open(path, DeviceKind::kCuda);
  const Tiered tiered = MakeTiered(*gpu, options, Budget::kLeast);
  EXPECT_EQ(text(*tiered.session), expected);
}

// Filled KV has the bytes of the CPU's too, on the device and behind a link,
// where pages leave before the last row is there.
TEST(HostedTiersTest, AFilledTextIsTheCpus) {
  const std::string path = Deepened("llama_chat");
  const auto cpu = Open(path, DeviceKind::kCpu);
  const auto gpu = Open(path, DeviceKind::kCuda);
  const Ids ids = RandomIds(700, cpu->config.vocab);
  const Session::Options options = {.context = 800};
  const auto text = [&](Session& session) {
    EXPECT_TRUE(
        FillPrompt(session, ids.data(), ids.size(), /*seed=*/5, kNoProgress)
            .ok());
    Read(session, ids.data(), 3);
    return Continue(session);
  };
  const Ids expected = text(*MakeSession(*cpu, options));
  EXPECT_EQ(text(*MakeSession(*gpu, options)), expected);
  for (const Budget budget : {Budget::kLeast, Budget::kAll}) {
    EXPECT_EQ(text(*MakeTiered(*gpu, options, budget).session), expected);
  }
}

// The rows may still be on their way when the session is forked.
TEST(HostedSessionTest, AForkWaitsForWhatItShares) {
  const auto text = [](DeviceKind device) {
    Reader reader(device, {.context = 256});
    const std::vector<int32_t> ids = {3, 1, 4, 1, 5};
    EXPECT_TRUE(reader.session->Append(ids.data(), ids.size()).ok());
    EXPECT_TRUE(reader.session->Forward(5, Phase::kPrefill, kNoProgress).ok());
    absl::StatusOr<std::unique_ptr<Session>> fork = reader.session->Fork();
    EXPECT_TRUE(fork.ok()) << fork.status();
    return Continue(**fork);
  };
  EXPECT_EQ(text(DeviceKind::kCuda), text(DeviceKind::kCpu));
}

// A cancelled step finishes its writes before its pages go to another sequence:
// with few rows at once, or with a prompt that is taken back.
TEST(HostedSessionTest, PagesThatAreGivenBackAreNotWritten) {
  const Session::Options options = {.context = 512};
  for (const int64_t rows : {60, 200}) {
    Reader cpu(DeviceKind::kCpu, options, /*prompt=*/120);
    Reader gpu(DeviceKind::kCuda, options, /*prompt=*/120);
    absl::StatusOr<std::unique_ptr<Session>> fork = gpu.session->Fork();
    ASSERT_TRUE(fork.ok()) << fork.status();
    const std::vector<int32_t> other(200, 7);
    // The fork takes its memory first: a later growth would wait.
    Read(**fork, other.data(), other.size());
    (*fork)->Truncate(120);
    EXPECT_TRUE((*fork)->Append(other.data(), other.size()).ok());
    uint64_t asked = 0;
    EXPECT_FALSE((*fork)
                     ->Forward(rows, Phase::kPrefill,
                               [&](uint64_t, uint64_t) { return ++asked < 2; })
                     .ok());
    if (rows > kMaxStepRows) (*fork)->Truncate(3);

    const std::vector<int32_t> ids(150, 9);
    for (Reader* reader : {&cpu, &gpu}) {
      Read(*reader->session, ids.data(), ids.size());
    }
    fork->reset();  // the fork's unfinished writes happen now
    EXPECT_EQ(Continue(*gpu.session), Continue(*cpu.session)) << rows;
  }
}

// ---- What a token costs ----

// The device calls for one decoded token.
std::map<std::string, int> CallsOfOneToken(const std::string& path) {
  const auto model = Open(path, DeviceKind::kCuda);
  const auto session = MakeSession(*model, {.context = 256});
  const Ids ids = RandomIds(130, model->config.vocab);
  Read(*session, ids.data(), 129);
  const auto step = [&] {
    Read(*session, ids.data() + 129, 1, Phase::kVerify);
  };
  step();
  std::map<std::string, int> calls;
  const SimFaults faults([&](std::string_view call) {
    ++calls[std::string(call)];
    return 0;
  });
  step();
  return calls;
}

// Kernels send all lists, so that no copy waits behind KV on its way; the host
// reads once, and waits once.
TEST(HostedCallsTest, ATokenIsReadOnceAndWaitedForOnce) {
  const struct {
    const char* name;
    int layers;
    int of_layer;    // launches
    int around_all;  // the token's id and its row, angles (2), norm, logits
  } cases[] = {
      {"llama_gqa", 2, 10, 6},          // f32: norms and gates alone
      {"quant32/q4_0.gguf", 1, 11, 6},  // norms and gates with the codes
      {"quant256/q6_k.gguf", 1, 11, 6},
      {"qwen3.gguf", 2, 12, 6},  // norms of q and k
  };
  for (const auto& one : cases) {
    std::map<std::string, int> calls =
        CallsOfOneToken(CheckpointPath(one.name));
    EXPECT_EQ(calls["launch"], one.layers * one.of_layer + one.around_all)
        << one.name;
    calls.erase("launch");
    EXPECT_EQ(calls, (std::map<std::string, int>{{"copy", 1}, {"wait", 1}}));
  }
}

// The host reads the experts of a row once a layer, and waits for them.
TEST(HostedCallsTest, ExpertsAreWaitedForOnceALayer) {
  const std::map<std::string, int> calls =
      CallsOfOneToken(CheckpointPath("qwen3moe.gguf"));
  constexpr int kLayers = 2;
  EXPECT_EQ(calls.at("copy"), kLayers + 1);
  EXPECT_EQ(calls.at("wait"), kLayers + 1);
}

// Behind a view the rows of all heads are copied to the store by one launch for
// K and one for V.
TEST(HostedCallsTest, ATokenOfPlainSfiIsReadOnce) {
  const PolicyCase sfi = Policies()[3];
  ASSERT_STREQ(sfi.name, "sfi_plain");
  const auto model = Open(CheckpointPath("llama_chat.gguf"), DeviceKind::kCuda);
  const auto copies_of = [&](int tokens) {
    const auto session =
        Prefilled(*model, RepeatedText(36, 4),
                  sfi.params.OptionsFor(*model, {.context = 512}));
    std::atomic<int> copies = 0;
    const SimFaults faults([&](std::string_view call) {
      copies += call == "copy" ? 1 : 0;
      return 0;
    });
    EXPECT_EQ(
        DraftedText(*session, DraftedParams(0.7f, tokens), sfi.params).size(),
        static_cast<size_t>(tokens));
    return copies.load();
  };
  // No whole text is read between the third token and the fifth.
  EXPECT_EQ(copies_of(5) - copies_of(3), 2);
}

// The plan knows what a session takes before it takes it. There is room for the
// weights of both models.
TEST(HostedSessionTest, AContextThatDoesNotFitIsRefused) {
  const auto model = Open(CheckpointPath("llama_gqa"), DeviceKind::kCuda);
  const int64_t weights = model->machine->memory().used();
  Model::Options options = model->options;
  options.machine.device_memory_bytes = 2 * weights + 1000;
  const auto small = OpenModel(options);
  ASSERT_NE(small, nullptr);
  EXPECT_EQ(CodeOf(Session::Create(*small, {.context = 256}).status()),
            "does_not_fit");
}

// A part of the memory stays free for the driver.
TEST(HostedSessionTest, ABudgetLeavesTheDriverItsPart) {
  const auto model = Open(CheckpointPath("llama_gqa"), DeviceKind::kCuda);
  const absl::StatusOr<std::unique_ptr<DeviceQueue>> gpu = OpenGpu();
  ASSERT_TRUE(gpu.ok());
  // Other tests take and give back memory meanwhile, but not all of that part.
  const int64_t before = (*gpu)->FreeBytes();
  const int64_t budget = model->machine->DeviceBudget();
  const int64_t free = std::max(before, (*gpu)->FreeBytes());
  EXPECT_LE(budget - model->machine->memory().used(),
            free - Device::kReserve / 2);
}

// The driver gives out blocks of 2 MiB, of which small requests share one.
TEST(HostedSessionTest, ABudgetCountsTheDriversBlocks) {
  constexpr int64_t kMiB = int64_t{1} << 20;
  Machine machine({.device = DeviceKind::kCuda});
  ASSERT_TRUE(machine.TakeMemory().ok());
  EXPECT_EQ(TakenBytesOn(machine, 100), 128);
  EXPECT_EQ(TakenBytesOn(machine, kMiB), kMiB);
  EXPECT_EQ(TakenBytesOn(machine, kMiB + 1), 2 * kMiB);
  EXPECT_EQ(TakenBytesOn(machine, 2 * kMiB), 2 * kMiB);
  DeviceMemory& memory = machine.memory();
  const int64_t before = memory.used();
  SimMemory::Get(0).SetSize(before + 5 * kMiB);
  {
    const auto array = DeviceArray<char>::Create(memory, 3 * kMiB, "test");
    ASSERT_TRUE(array.ok());
    EXPECT_EQ(memory.used(), before + 4 * kMiB);
    EXPECT_EQ(SimMemory::Get(0).FreeBytes(), kMiB);
    EXPECT_EQ(CodeOf(DeviceArray<char>::Create(memory, kMiB + 1, "t").status()),
              "out_of_memory");
  }
  EXPECT_EQ(memory.used(), before);
  SimMemory::Get(0).SetSize(0);
  // On a device of a stated size all of it may be taken.
  Machine simulated({.device = DeviceKind::kCuda,
                     .simulation = {{.bytes = 9 * kMiB, .link = {kFast, 0}}}});
  ASSERT_TRUE(simulated.FindDevice().ok());
  EXPECT_EQ(TakenBytesOn(simulated, kMiB + 1), kMiB + 64);
}

// The weights of a plan are what loading them takes.
TEST(HostedSessionTest, WeightsCountAsTheyAreTaken) {
  const auto model = Open(CheckpointPath("llama_gqa"), DeviceKind::kCuda);
  const auto sizes = model->MeasureRanks();
  ASSERT_TRUE(sizes.ok());
  EXPECT_EQ(sizes->front().bytes, model->machine->memory().used());
  const auto counts = MeasureShares(*model->checkpoint, model->config,
                                    *model->split, [](int64_t) { return 1; });
  ASSERT_TRUE(counts.ok());
  EXPECT_EQ(counts->front().bytes, 2 + 9 * model->config.layers);
}

// Weights of the host tier come to the GPU's buffers in time.
TEST(HostedSessionTest, HostLayersGiveTheCpusText) {
  const auto text = [](DeviceKind device, int host_layers) {
    const auto model = OpenModel({.path = Deepened("llama_chat"),
                                  .machine = {.device = device, .threads = 2},
                                  .host_layers = host_layers});
    const auto session =
        Prefilled(*model, RepeatedText(60, 4), {.context = 512});
    return DraftedText(*session, DraftedParams(0.7f, 6), {});
  };
  const Ids expected = text(DeviceKind::kCpu, 0);
  for (const int host_layers : {0, 3, 6}) {
    EXPECT_EQ(text(DeviceKind::kCuda, host_layers), expected) << host_layers;
  }
}

// The GPU memory of another machine does not count on a simulated device.
TEST(HostedSessionTest, ASimulatedDeviceCountsItsOwnWeights) {
  const auto first = Open(CheckpointPath("llama_gqa"), DeviceKind::kCuda);
  const int64_t weights = first->machine->memory().used();
  Model::Options options = first->options;
  options.machine.simulation = {
      {.bytes = weights + weights / 2, .link = {kFast, 0}}};
  EXPECT_NE(OpenModel(options), nullptr);
}

// ---- Prompts by the matrix unit ----

constexpr char kWideHeads[] = "quant256/q4_k";  // heads of 64

std::unique_ptr<Model> OpenWide(DeviceKind device,
                                Compute compute = Compute::kF32) {
  return OpenModel(
      {.path = CheckpointPath(kWideHeads) + ".gguf",
       .machine = {.device = device, .threads = 2, .fast_prompts = true},
       .compute = compute});
}

// f16 has 11 bits, so the two products of attention are off by some 2^-11 of
// their sums of magnitudes. With float activations nothing enlarges that.
TEST(FastPromptsTest, AreNearTheCpusHoweverTheyAreDivided) {
  const auto cpu = OpenWide(DeviceKind::kCpu);
  const auto gpu = OpenWide(DeviceKind::kCuda);
  ASSERT_TRUE(cpu != nullptr && gpu != nullptr);
  const std::vector<int32_t> ids = RandomIds(150, cpu->config.vocab);
  for (const DType type : {DType::kF16, DType::kQ8_0}) {
    const Session::Options options = {
        .context = 256, .type_k = type, .type_v = type};
    const std::vector<float> exact =
        AllLogits(*MakeSession(*cpu, options), ids, 0);
    const std::vector<float> whole =
        AllLogits(*MakeSession(*gpu, options), ids, 0);
    EXPECT_TRUE(SameBytes(
        AllLogits(*MakeSession(*gpu, options), ids, /*rows_per_step=*/37),
        whole));
    EXPECT_FALSE(SameBytes(whole, exact));  // the matrix unit did it
    float greatest = 0.0f;
    for (const float x : exact) greatest = std::max(greatest, std::fabs(x));
    for (size_t i = 0; i < exact.size(); ++i) {
      ASSERT_NEAR(whole[i], exact[i], greatest * 0x1p-8) << i;
    }
  }
}

// With int8 activations, weights are multiplied by the matrix unit too, whose
// f16 activations are nearer to exact arithmetic.
TEST(FastPromptsTest, ProductsAreNearerThanThoseOfInt8) {
  const auto cpu = OpenWide(DeviceKind::kCpu);
  const auto q8 = OpenWide(DeviceKind::kCpu, Compute::kQ8);
  const auto gpu = OpenWide(DeviceKind::kCuda, Compute::kQ8);
  ASSERT_TRUE(cpu != nullptr && q8 != nullptr && gpu != nullptr);
  const std::vector<int32_t> ids = RandomIds(150, cpu->config.vocab);
  const auto logits_of = [&](const Model& model, int64_t rows_per_step) {
    return AllLogits(*MakeSession(model, {.context = 256}), ids, rows_per_step);
  };
  const std::vector<float> exact = logits_of(*cpu, 0);
  const std::vector<float> of_q8 = logits_of(*q8, 0);
  const std::vector<float> fast = logits_of(*gpu, 0);
  EXPECT_TRUE(SameBytes(logits_of(*gpu, /*rows_per_step=*/37), fast));
  double fast_error = 0;
  double q8_error = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    fast_error += std::pow(fast[i] - exact[i], 2);
    q8_error += std::pow(of_q8[i] - exact[i], 2);
  }
  EXPECT_GT(fast_error, 0);
  EXPECT_LT(fast_error, 0.5 * q8_error);
}

// Only prompts are fast: the same tokens in steps have the CPU's bytes.
TEST(FastPromptsTest, StepsAreExact) {
  const auto cpu = OpenWide(DeviceKind::kCpu);
  const auto gpu = OpenWide(DeviceKind::kCuda);
  ASSERT_TRUE(cpu != nullptr && gpu != nullptr);
  const std::vector<int32_t> ids = RandomIds(40, cpu->config.vocab);
  std::vector<std::vector<float>> logits;
  for (const Model* model : {cpu.get(), gpu.get()}) {
    const auto session = MakeSession(*model, {.context = 256});
    ASSERT_NE(session, nullptr);
    Read(*session, ids.data(), ids.size(), Phase::kVerify);
    const auto next = session->NextLogits();
    logits.emplace_back(next.begin(), next.end());
  }
  EXPECT_TRUE(SameBytes(logits[0], logits[1]));
}

// Tokens behind a prompt, drafted or not, are computed alike.
TEST(FastPromptsTest, ATextIsTheSameWithDrafts) {
  const auto gpu = OpenWide(DeviceKind::kCuda);
  ASSERT_NE(gpu, nullptr);
  const std::vector<int32_t> ids = RandomIds(150, gpu->config.vocab);
  std::vector<std::vector<int32_t>> texts;
  for (const bool drafts : {false, true}) {
    const PolicyParams policy = {
        .policy = PolicyNamed(drafts ? "triforce" : "full"),
        .verify = VerifyMode::kCoupled,
        .view = kSmallView};
    const auto session =
        Prefilled(*gpu, ids, policy.OptionsFor(*gpu, {.context = 256}));
    ASSERT_NE(session, nullptr);
    const Report report =
        GenerateDrafted(*session, DraftedParams(0.8f, 12), policy);
    EXPECT_TRUE(report.status.ok()) << report.status;
    texts.push_back(report.tokens);
  }
  EXPECT_EQ(texts[0], texts[1]);
}

}  // namespace
}  // namespace tiercel::hosted_test
