// A session whose KV does not fit the device gives the same bytes as one whose
// KV does, and moves the bytes that offload/KV_FORMAT.md says.

#include "tests/tiers.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/system/faults.h"
#include "kernels/system/testing.h"
#include "lib/status/error.h"
#include "runtime/generate/generate.h"
#include "tests/golden.h"

namespace tiercel::tiers_test {
namespace {

const GenerateParams kGreedy40 = {.max_tokens = 40,
                                  .seed = 0,
                                  .distribution = {},
                                  .ignore_eos = true,
                                  .stops = {}};

class TiersTest : public testing::Test {
 protected:
  static std::unique_ptr<Model> Open(const std::string& name) {
    return OpenReference({.path = Deepened(name), .machine = {.threads = 2}});
  }
};

TEST_F(TiersTest, LogitsAreTheSameBytes) {
  const auto model = Open("llama_rope_linear");
  const std::vector<int32_t> ids =
      RandomIds(TriesAll() ? 900 : 600, model->config.vocab);
  for (const DType type : {DType::kF16, DType::kQ8_0}) {
    Session::Options options;
    options.context = 1000;
    options.type_k = options.type_v = type;
    const auto session = MakeSession(*model, options);
    const std::vector<float> expected = AllLogits(*session, ids, 512);
    for (const Budget budget :
         {Budget::kLeast, Budget::kMiddle, Budget::kAll}) {
      for (const int threads : {1, 2}) {
        for (const size_t rows : {1, 64, 300}) {
          if (!TriesAll() && (rows == 64) != (threads == 1)) continue;
          const Tiered tiered =
              MakeTiered(*model, options, budget, kFast, threads);
          EXPECT_TRUE(SameBits(AllLogits(*tiered.session, ids, rows), expected))
              << "rows " << rows << " threads " << threads;
        }
      }
    }
  }
}

TEST_F(TiersTest, TextIsTheSameThroughFollowUpQuestions) {
  const auto model = Open("llama_chat");
  const std::vector<int32_t> ids = RandomIds(1000, model->config.vocab);
  Session::Options options;
  options.context = 1500;
  const auto plain = MakeSession(*model, options);
  const Tiered tiered = MakeTiered(*model, options, Budget::kLeast);
  GenerateParams params = kGreedy40;
  params.max_tokens = 150;
  params.distribution.temperature = 1.0f;
  for (Session* session : {plain.get(), tiered.session.get()}) {
    ASSERT_TRUE(Prefill(*session, ids.data(), 700, kNoProgress).ok());
  }
  for (const size_t question : {1, 30, 100, 300}) {
    std::vector<Report> reports;
    for (Session* session : {plain.get(), tiered.session.get()}) {
      session->Truncate(700);
      ASSERT_TRUE(
          Prefill(*session, ids.data() + 700, question, kNoProgress).ok());
      reports.push_back(Generate(*session, params, nullptr));
      ASSERT_TRUE(reports.back().status.ok());
      ASSERT_TRUE(session->CatchUp(Phase::kVerify).ok());
    }
    EXPECT_EQ(reports[0].tokens, reports[1].tokens) << question;
    EXPECT_EQ(NextLogits(*tiered.session), NextLogits(*plain));
  }
}

// The host attends to some of the pages, at rates at which it has few, half and
// most of them, while the device has none resident or some.
TEST_F(TiersTest, TheHostsShareOfASweepDoesNotShow) {
  const auto model = Open("llama_rope_linear");
  const std::vector<int32_t> ids =
      RandomIds(TriesAll() ? 1000 : 800, model->config.vocab);
  for (const DType type : {DType::kF16, DType::kQ8_0}) {
    Session::Options options;
    options.context = 1024;
    options.type_k = options.type_v = type;
    const std::vector<float> expected =
        AllLogits(*MakeSession(*model, options), ids, 512);
    for (const Budget budget : {Budget::kLeast, Budget::kMiddle}) {
      for (const double host : {3e8, 1e9, 1e10}) {
        if (budget == Budget::kMiddle && host != 1e10) continue;
        for (const size_t rows : {1, 17, 64}) {
          if (!TriesAll() && (rows == 64) != (host == 3e8)) continue;
          const Tiered shared = MakeShared(*model, options, budget, host);
          EXPECT_TRUE(SameBits(AllLogits(*shared.session, ids, rows), expected))
              << "rows " << rows << " host " << host;
          EXPECT_GT(shared.session->traffic().moves.host_pages, 0)
              << "rows " << rows << " host " << host;
        }
      }
    }
  }
}

TEST_F(TiersTest, TheHostsShareDoesNotCrossTheLink) {
  const auto model = Open("llama_chat");
  Session::Options options;
  options.context = 1500;
  const std::vector<int32_t> ids = RandomIds(1000, model->config.vocab);
  const Tiered shared =
      MakeShared(*model, options, Budget::kLeast, kSharedLink.bytes_per_s);
  Session& session = *shared.session;
  const TierShape& shape = session.kv().plan().shape;
  ASSERT_EQ(shape.resident_pages, 0);
  const auto prefill = Prefill(session, ids.data(), 1000, kNoProgress);
  ASSERT_TRUE(prefill.ok());
  GenerateParams params = kGreedy40;
  params.max_tokens = 100;
  const Report report = Generate(session, params, nullptr, *prefill);
  ASSERT_TRUE(report.status.ok());
  // As in EveryByteOfARunIsForeseen, but for the host's pages.
  const int64_t layers = model->config.layers;
  int64_t swept = 0;
  int64_t hosts = 0;
  int64_t length = 1000;
  int64_t staged = length / kPageTokens;
  for (int step = 0; step < 99; ++step) {
    swept += layers * (staged - shape.host.Pages(staged));
    hosts += layers * shape.host.Pages(staged);
    staged = length / kPageTokens;
    ++length;
  }
  const int64_t ahead = 2 * (staged - shape.host.Pages(staged));
  const nlohmann::json ledger = report.ToJson()["ledger"];
  const nlohmann::json& formula = ledger["formula"];
  EXPECT_GT(hosts, swept / 2);
  EXPECT_EQ(formula["host_pages"], hosts);
  EXPECT_EQ(formula["swept_pages"], swept + ahead);
  EXPECT_EQ(formula["ahead_pages"], ahead);
  const int64_t page = formula["page_bytes"];
  EXPECT_EQ(ledger["h2d_bytes"], (swept + ahead) * page);
}

// A step whose rows choose a retrieval view reads what they choose, wherever it
// is in the text, so it has no share.
TEST_F(TiersTest, AStepThatChoosesAViewHasNoShare) {
  const auto model = Open("llama_chat");
  const std::vector<int32_t> ids = RandomIds(700, model->config.vocab);
  Session::Options options;
  options.context = 1500;
  const std::vector<float> expected =
      AllLogits(*MakeSession(*model, options), ids, 512);
  options.retrieval =
      RetrievalSize{.chunk = 8, .budget = 64, .sink = 8, .window = 16};
  const Tiered shared = MakeShared(*model, options, Budget::kLeast, 2e9);
  EXPECT_TRUE(SameBits(AllLogits(*shared.session, ids, 17), expected));
  EXPECT_EQ(shared.session->traffic().moves.host_pages, 0);
}

TEST_F(TiersTest, TheHostsShareGoesWithFollowUpQuestionsAndForks) {
  const auto model = Open("llama_chat");
  const std::vector<int32_t> ids = RandomIds(1300, model->config.vocab);
  Session::Options options;
  options.context = 1500;
  const auto plain = MakeSession(*model, options);
  // This memory, which the forks will need, is taken until the session is made.
  constexpr int64_t kForks = int64_t{4} << 20;
  std::optional<DeviceArray<std::byte>> others;
  const Tiered shared = MakeShared(
      *model, options, Budget::kLeast, 2e9, /*threads=*/2, kForks,
      [&](DeviceMemory& memory) {
        others = *DeviceArray<std::byte>::Create(memory, kForks, "x");
      });
  others.reset();
  const auto text_of = [&](Session& session) {
    const Report report = Generate(session, kGreedy40, nullptr);
    EXPECT_TRUE(report.status.ok()) << report.status;
    EXPECT_TRUE(session.CatchUp(Phase::kVerify).ok());
    return report.tokens;
  };
  for (Session* session : {plain.get(), shared.session.get()}) {
    ASSERT_TRUE(Prefill(*session, ids.data(), 900, kNoProgress).ok());
  }
  for (const size_t question : {1, 40, 200}) {
    std::vector<std::vector<int32_t>> texts;
    for (Session* session : {plain.get(), shared.session.get()}) {
      session->Truncate(900);
      const auto fork = session->Fork();
      ASSERT_TRUE(fork.ok()) << fork.status();
      for (Session* one : {session, fork->get()}) {
        const auto read =
            Prefill(*one, ids.data() + 900, question, kNoProgress);
        ASSERT_TRUE(read.ok()) << read.status();
      }
      texts.push_back(text_of(*session));
      texts.push_back(text_of(**fork));
    }
    EXPECT_EQ(texts[0], texts[2]) << question;
    EXPECT_EQ(texts[1], texts[3]) << question;
  }
  EXPECT_GT(shared.session->traffic().moves.host_pages, 0);
}

// The sums of offload/KV_FORMAT.md, from positions alone.
TEST_F(TiersTest, EveryByteOfARunIsForeseen) {
  const auto model = Open("llama_chat");
  Session::Options options;
  options.context = 1500;
  const std::vector<int32_t> ids = RandomIds(1000, model->config.vocab);
  const Tiered tiered = MakeTiered(*model, options, Budget::kLeast);
  Session& session = *tiered.session;
  ASSERT_EQ(session.kv().plan().shape.resident_pages, 0);
  const int64_t layers = model->config.layers;
  const auto prefill = Prefill(session, ids.data(), 1000, kNoProgress);
  ASSERT_TRUE(prefill.ok());
  GenerateParams params = kGreedy40;
  params.max_tokens = 100;
  const Report report = Generate(session, params, nullptr, *prefill);
  ASSERT_TRUE(report.status.ok());
  // 100 tokens are 99 steps: the first comes with the prompt. A step reads the
  // pages that were full before the step before it, and asks for the first two
  // layers of the next.
  int64_t swept = 0;
  int64_t length = 1000;
  int64_t staged = length / kPageTokens;
  for (int step = 0; step < 99; ++step) {
    swept += layers * staged;
    staged = length / kPageTokens;
    ++length;
  }
  swept += 2 * staged;
  const nlohmann::json ledger = report.ToJson()["ledger"];
  const nlohmann::json& formula = ledger["formula"];
  EXPECT_EQ(formula["swept_pages"], swept);
  EXPECT_EQ(formula["ahead_pages"], 2 * staged);
  EXPECT_EQ(formula["closed_pages"], layers * (1099 / kPageTokens));
  const int64_t page = formula["page_bytes"];
  EXPECT_EQ(page, kPageTokens * 2 * 16 * 2);
  EXPECT_EQ(ledger["h2d_bytes"], swept * page);
  EXPECT_EQ(ledger["d2h_bytes"], layers * (1099 / kPageTokens) * page);
  EXPECT_EQ(ledger["phases"]["prefill"]["h2d_bytes"], 0);
  EXPECT_EQ(ledger["phases"]["prefill"]["d2h_bytes"],
            layers * (1000 / kPageTokens) * page);
  EXPECT_EQ(report.ToJson()["simulated"], true);
}

// A sweep waits for its layers, but the first two may have been prefetched.
TEST_F(TiersTest, TheLinksTimeIsOfThePhaseInWhoseTimeItMoves) {
  constexpr double kRate = 1e8;
  const auto model = Open("llama_chat");
  Session::Options options;
  options.context = 1500;
  const std::vector<int32_t> ids = RandomIds(1000, model->config.vocab);
  const Tiered tiered = MakeTiered(*model, options, Budget::kLeast, kRate);
  Session& session = *tiered.session;
  const TimeSpent start = session.Elapsed();
  const auto prefill = Prefill(session, ids.data(), 1000, kNoProgress);
  ASSERT_TRUE(prefill.ok());
  GenerateParams params = kGreedy40;
  params.max_tokens = 20;
  const Report report = Generate(session, params, nullptr, *prefill);
  ASSERT_TRUE(report.status.ok());
  const int64_t page = tiered.session->kv().plan().shape.layout.PageBytes();
  const auto seconds = [&](int64_t pages) {
    return static_cast<double>(pages * page) / kRate * (1 - 1e-6);
  };
  const int64_t full = 1000 / kPageTokens;
  const int64_t layers = model->config.layers;
  ASSERT_GT(layers, 2);
  EXPECT_GE(report.prefill.spent.link_seconds, seconds(layers * full));
  EXPECT_GE(report.rounds.verify.link_seconds,
            seconds(19 * (layers - 2) * full));
  EXPECT_EQ(report.rounds.draft.link_seconds, 0);
  EXPECT_LE(
      report.prefill.spent.link_seconds + report.rounds.verify.link_seconds,
      (session.Elapsed() - start).link_seconds * (1 + 1e-6));
  const nlohmann::json verify = report.ToJson()["ledger"]["phases"]["verify"];
  EXPECT_EQ(verify["seconds"], report.rounds.verify.seconds);
  EXPECT_EQ(verify["link_busy_s"], report.rounds.verify.link_seconds);
  EXPECT_EQ(verify["link_busy_share"],
            report.rounds.verify.link_seconds / report.rounds.verify.seconds);
}

// Returns the logits [ids, vocab] of the tokens, which are read `rows` at a
// time under a view.
std::vector<float> LogitsUnder(const View& view, Session& session,
                               const std::vector<int32_t>& ids, int64_t rows) {
  const auto vocab = static_cast<size_t>(session.model().config.vocab);
  std::vector<float> logits(ids.size() * vocab, kPoison);
  EXPECT_TRUE(session.Append(ids.data(), ids.size()).ok());
  const auto count = static_cast<int64_t>(ids.size());
  for (int64_t row = 0; row < count; row += rows) {
    const int64_t n = std::min(rows, count - row);
    EXPECT_TRUE(session.Forward(n, Phase::kDraft, kNoProgress, view).ok());
    RowLogits(session, n, logits.data() + static_cast<size_t>(row) * vocab);
  }
  return logits;
}

// A view of sinks, a window and different chunks in every layer and head.
View ChunkView(const ModelConfig& config, int64_t length, int64_t recent) {
  std::mt19937 random(11);
  View view = View::Window(4, recent);
  for (int i = 0; i < config.layers * config.kv_heads; ++i) {
    view.selected.emplace_back();
    for (int chunk = 0; chunk < 3; ++chunk) {
      const int64_t at =
          static_cast<int64_t>(random() % static_cast<uint64_t>(length)) / 8 *
          8;
      view.selected.back().push_back({at, at + 8});
    }
  }
  return view;
}

TEST_F(TiersTest, ViewsGiveTheSameBytesInEveryTier) {
  const auto model = Open("llama_rope_linear");
  const std::vector<int32_t> ids = RandomIds(700, model->config.vocab);
  Session::Options options;
  options.context = 800;
  const auto logits_of = [&](const View& view, int64_t rows) {
    return LogitsUnder(view, *MakeSession(*model, options), ids, rows);
  };
  const std::vector<float> full = logits_of(View::Full(), 700);
  EXPECT_TRUE(SameBits(logits_of(View::Window(0, 700), 64), full));
  for (const View& view : {View::Window(4, 40), View::Window(16, 300),
                           ChunkView(model->config, 700, 20)}) {
    const std::vector<float> expected = logits_of(view, 700);
    EXPECT_FALSE(SameBits(expected, full));
    for (const Budget budget :
         {Budget::kLeast, Budget::kMiddle, Budget::kAll}) {
      for (const int64_t rows : {1, 64, 300}) {
        const Tiered tiered = MakeTiered(*model, options, budget);
        EXPECT_TRUE(
            SameBits(LogitsUnder(view, *tiered.session, ids, rows), expected))
            << "recent " << view.recent << " rows " << rows;
        const Traffic traffic = tiered.session->traffic();
        EXPECT_EQ(traffic.link[static_cast<size_t>(Phase::kDraft)].h2d_bytes,
                  static_cast<uint64_t>(
                      traffic.moves.swept_pages *
                      tiered.session->kv().plan().shape.layout.PageBytes()));
        if (budget == Budget::kAll) {
          EXPECT_EQ(traffic.moves.swept_pages, 0);
        }
      }
    }
  }
}

// A draft's rows leave no trace once they are truncated away.
TEST_F(TiersTest, ADraftLeavesNoTrace) {
  const auto model = Open("llama_chat");
  const std::vector<int32_t> ids = RandomIds(800, model->config.vocab);
  const std::vector<int32_t> draft(ids.begin() + 760, ids.end());
  Session::Options options;
  options.context = 1000;
  const auto untouched = MakeSession(*model, options);
  ASSERT_TRUE(Prefill(*untouched, ids.data(), 760, kNoProgress).ok());
  const std::vector<float> expected =
      LogitsUnder(View::Full(), *untouched, draft, 40);
  const auto tested = Tested(*model);
  for (const bool in_tiers : {false, true}) {
    for (const View& view :
         {View::Window(4, 50), ChunkView(model->config, 760, 300)}) {
      const Tiered tiered = MakeTiered(*model, options, Budget::kLeast);
      const auto plain = MakeSession(*tested, options);
      Session& session = in_tiers ? *tiered.session : *plain;
      ASSERT_TRUE(Prefill(session, ids.data(), 760, kNoProgress).ok());
      for (int round = 0; round < 3; ++round) {  // the draft crosses a page
        const std::vector<float> drafted = LogitsUnder(view, session, draft, 1);
        EXPECT_FALSE(SameBits(drafted, expected));
        session.Truncate(760);
        EXPECT_TRUE(
            SameBits(LogitsUnder(View::Full(), session, draft, 40), expected));
        session.Truncate(760);
      }
      ASSERT_TRUE(session.CatchUp(Phase::kVerify).ok());
    }
  }
}

TEST_F(TiersTest, AnInterruptedPromptGoesOnUnderItsOwnView) {
  const auto model = Open("llama_chat");
  const std::vector<int32_t> ids = RandomIds(300, model->config.vocab);
  const View window = View::Window(4, 50);
  const auto tested = Tested(*model);
  for (const View& view : {window, View::Full()}) {
    const auto whole = MakeSession(*model);
    const std::vector<float> expected = LogitsUnder(view, *whole, ids, 300);
    const auto session = MakeSession(*tested);
    ASSERT_TRUE(session->Append(ids.data(), 300).ok());
    int calls = 0;
    ASSERT_FALSE(session
                     ->Forward(
                         300, Phase::kDraft,
                         [&](uint64_t, uint64_t) { return ++calls < 4; },
                         window)
                     .ok());
    std::vector<float> logits(expected.size(), kPoison);
    ASSERT_TRUE(session->Forward(300, Phase::kDraft, kNoProgress, view).ok());
    RowLogits(*session, 300, logits.data());
    EXPECT_TRUE(SameBits(logits, expected));
  }
}

TEST_F(TiersTest, AViewOfAnotherModelIsRefused) {
  const auto model = Tested(*Open("llama_chat"));
  const auto session = MakeSession(*model);
  const std::vector<int32_t> ids = RandomIds(3, model->config.vocab);
  ASSERT_TRUE(session->Append(ids.data(), 3).ok());
  View view = View::Window(4, 50);
  view.selected.resize(3);
  EXPECT_EQ(CodeOf(session->Forward(3, Phase::kDraft, kNoProgress, view)),
            "invalid_view");
  EXPECT_EQ(session->sequence().pending(), 3);
  EXPECT_TRUE(session->CatchUp(Phase::kVerify).ok());
}

TEST_F(TiersTest, NothingMovesWhereAllMemoryIsOne) {
  const auto model = Open("llama_chat");
  const auto session = MakeSession(*model);
  const std::vector<int32_t> ids = RandomIds(300, model->config.vocab);
  const auto prefill = Prefill(*session, ids.data(), 300, kNoProgress);
  ASSERT_TRUE(prefill.ok());
  const nlohmann::json report =
      Generate(*session, kGreedy40, nullptr, *prefill).ToJson();
  EXPECT_EQ(report["ledger"]["h2d_bytes"], 0);
  EXPECT_EQ(report["ledger"]["d2h_bytes"], 0);
  EXPECT_EQ(report["simulated"], false);
  // 340 positions begin three pages.
  const TierShape& shape = session->kv().plan().shape;
  EXPECT_EQ(session->kv().memory().host,
            3 * shape.layers * shape.layout.PageBytes());
}

// A prompt that is stopped at any call of progress leaves the session as it
// was, and goes on there later: in all, every row passes every layer once.
TEST_F(TiersTest, AnInterruptedPromptGoesOnWhereItWas) {
  const auto model = Open("llama_chat");
  const std::vector<int32_t> ids = RandomIds(1500, model->config.vocab);
  Session::Options options;
  options.context = 1600;
  const auto uninterrupted = MakeSession(*model, options);
  ASSERT_TRUE(Prefill(*uninterrupted, ids.data(), 1500, kNoProgress).ok());
  for (const bool in_tiers : {false, true}) {
    Tiered tiered;
    std::unique_ptr<Session> plain;
    std::atomic<bool> cancels = false;
    if (in_tiers) {
      tiered = MakeTiered(*model, options, Budget::kLeast);
    } else {
      tiered.model = Tested(*model);
      plain = MakeSession(*tiered.model, options);
    }
    Session& session = in_tiers ? *tiered.session : *plain;
    const Faults faults(Callee::kLink, [&](const Operation&) {
      if (!cancels.exchange(false)) return 0;
      session.cancellation().Cancel();
      // The thread that waits for this copy should see the cancel while it
      // waits.
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      return 0;
    });
    ASSERT_TRUE(Prefill(session, ids.data(), 200, kNoProgress).ok());
    const std::vector<float> before = NextLogits(session);
    std::optional<uint64_t> stopped_at;
    int stops = 0;
    while (true) {
      int calls = 0;
      const absl::Status status =
          Prefill(session, ids.data() + 200, 1300,
                  [&](uint64_t done, uint64_t) {
                    if (++calls == 1 && stopped_at.has_value()) {
                      EXPECT_EQ(done, *stopped_at);
                    }
                    stopped_at = done;
                    return calls < 2;
                  })
              .status();
      if (status.ok()) break;
      ASSERT_EQ(ClassOf(status), ErrorClass::kCancelled);
      ASSERT_EQ(session.sequence().tokens().size(), 200u);
      ASSERT_LT(++stops, 100);
      // A cancel while the parked part comes back does not lose it.
      if (!in_tiers || stops % 2 == 0) continue;
      cancels = true;
      ASSERT_EQ(
          ClassOf(
              Prefill(session, ids.data() + 200, 1300, kNoProgress).status()),
          ErrorClass::kCancelled);
      session.cancellation().Clear();
    }
    EXPECT_GT(stops, 3);
    EXPECT_EQ(NextLogits(session), NextLogits(*uninterrupted));
    // Another prompt of the same length drops the parked part of this one.
    session.Truncate(200);
    ASSERT_FALSE(
        Prefill(session, ids.data() + 200, 1300, [](uint64_t done, uint64_t) {
          return done == 0;
        }).ok());
    ASSERT_TRUE(session.CatchUp(Phase::kVerify).ok());
    EXPECT_EQ(NextLogits(session), before);
    ASSERT_FALSE(
        Prefill(session, ids.data() + 200, 1300, [](uint64_t done, uint64_t) {
          return done == 0;
        }).ok());
    const auto other = MakeSession(*model, options);
    for (Session* one : {&session, other.get()}) {
      if (one == other.get()) {
        ASSERT_TRUE(Prefill(*one, ids.data(), 200, kNoProgress).ok());
      }
      ASSERT_TRUE(Prefill(*one, ids.data(), 1300, kNoProgress).ok());
    }
    EXPECT_EQ(NextLogits(session), NextLogits(*other));
  }
}

// ---- Prompts of more rows than the device has hidden states for ----

constexpr size_t kLong = 2200;  // in blocks of 512: four, and 152

Session::Options LongOptions() { return {.context = 2400}; }

TEST_F(TiersTest, APromptInTilesIsTheSameBytes) {
  const auto model = Open("llama_chat");
  const std::vector<int32_t> ids = RandomIds(kLong, model->config.vocab);
  const auto plain = MakeSession(*model, LongOptions());
  const std::vector<float> expected = AllLogits(*plain, ids, kLong);
  for (const Budget budget : {Budget::kLeast, Budget::kMiddle, Budget::kAll}) {
    const Tiered tiered = MakeTiered(*model, LongOptions(), budget);
    Session& session = *tiered.session;
    const bool in_tiles = session.kv().plan().state_rows < std::ssize(ids);
    EXPECT_EQ(in_tiles, budget != Budget::kAll);
    EXPECT_TRUE(SameBits(AllLogits(session, ids, kLong), expected));
    EXPECT_EQ(session.traffic().moves.states_up_bytes > 0, in_tiles);
    EXPECT_EQ(tiered.model->machine->memory().used(),
              session.kv().plan().DeviceBytes());
    // Shorter prompts afterwards give the same bytes as in a fork.
    session.Truncate(100);
    plain->Truncate(100);
    const std::unique_ptr<Session> fork = *plain->Fork();
    EXPECT_TRUE(
        SameBits(AllLogits(session, ids, 300), AllLogits(*fork, ids, 300)));
  }
}

TEST_F(TiersTest, AForkHasTilesOfItsOwn) {
  const auto model = Open("llama_chat");
  const std::vector<int32_t> ids = RandomIds(kLong, model->config.vocab);
  const auto plain = MakeSession(*model, LongOptions());
  ASSERT_TRUE(Prefill(*plain, ids.data(), kLong, kNoProgress).ok());
  // This memory, which the fork will need, is taken until it is made.
  constexpr int64_t kForks = int64_t{40} << 20;
  Model::Options with = model->options;
  with.machine.simulation = {
      {.bytes = BytesFor(*model, LongOptions(), Budget::kLeast) + kForks,
       .link = {kFast, 0}}};
  const auto small = OpenModel(with);
  auto others =
      DeviceArray<std::byte>::Create(small->machine->memory(), kForks, "x");
  ASSERT_TRUE(others.ok()) << others.status();
  const auto session = MakeSession(*small, LongOptions());
  *others = {};
  ASSERT_LT(session->kv().plan().state_rows, std::ssize(ids));
  ASSERT_FALSE(
      Prefill(*session, ids.data(), kLong, [](uint64_t done, uint64_t total) {
        return done < total / 2;
      }).ok());
  const std::unique_ptr<Session> fork = *session->Fork();
  for (Session* one : {fork.get(), session.get()}) {
    ASSERT_TRUE(Prefill(*one, ids.data(), kLong, kNoProgress).ok());
    EXPECT_EQ(NextLogits(*one), NextLogits(*plain));
  }
  EXPECT_GT(fork->traffic().moves.states_up_bytes, 0);
}

// The sums of offload/KV_FORMAT.md.
TEST_F(TiersTest, EveryByteOfAPromptInTilesIsForeseen) {
  const auto model = Open("llama_chat");
  const std::vector<int32_t> ids = RandomIds(kLong, model->config.vocab);
  const Tiered tiered = MakeTiered(*model, LongOptions(), Budget::kLeast);
  Session& session = *tiered.session;
  const auto prefill = Prefill(session, ids.data(), kLong, kNoProgress);
  ASSERT_TRUE(prefill.ok());
  GenerateParams params = kGreedy40;
  params.max_tokens = 1;
  const nlohmann::json ledger =
      Generate(session, params, nullptr, *prefill).ToJson()["ledger"];
  const nlohmann::json& formula = ledger["formula"];
  const int64_t layers = model->config.layers;
  const int64_t row = model->config.hidden * 4;
  const int64_t up = (layers - 1) * kLong * row;
  // The last three blocks stay on the device.
  const int64_t down = (layers * kLong - 512 - 512 - 152) * row;
  EXPECT_EQ(formula["states_up_bytes"], up);
  EXPECT_EQ(formula["states_down_bytes"], down);
  const int64_t pages = layers * (kLong / kPageTokens);
  EXPECT_EQ(formula["closed_pages"], pages);
  const int64_t page = formula["page_bytes"];
  EXPECT_EQ(ledger["h2d_bytes"], up);
  EXPECT_EQ(ledger["d2h_bytes"], down + pages * page);
  // A prompt of fewer rows moves no hidden states.
  session.Truncate(100);
  ASSERT_TRUE(Prefill(session, ids.data(), 1536, kNoProgress).ok());
  EXPECT_EQ(session.traffic().moves.states_up_bytes, up);
}

// A prompt that is stopped after any block or layer parks no hidden states,
// which are in the host tier.
TEST_F(TiersTest, APromptInTilesGoesOnWhereItWas) {
  const auto model = Open("llama_chat");
  const std::vector<int32_t> ids = RandomIds(kLong, model->config.vocab);
  const auto uninterrupted = MakeSession(*model, LongOptions());
  ASSERT_TRUE(Prefill(*uninterrupted, ids.data(), kLong, kNoProgress).ok());
  std::atomic<bool> cancels = false;
  const Tiered tiered = MakeTiered(*model, LongOptions(), Budget::kLeast);
  Session& session = *tiered.session;
  const Faults faults(Callee::kLink, [&](const Operation&) {
    if (!cancels.exchange(false)) return 0;
    session.cancellation().Cancel();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return 0;
  });
  std::optional<uint64_t> stopped_at;
  int stops = 0;
  while (true) {
    int calls = 0;
    const absl::Status status =
        Prefill(session, ids.data(), kLong, [&](uint64_t done, uint64_t) {
          if (++calls == 1 && stopped_at.has_value()) {
            EXPECT_EQ(done, *stopped_at);
          }
          stopped_at = done;
          return calls < 2;
        }).status();
    if (status.ok()) break;
    ASSERT_EQ(ClassOf(status), ErrorClass::kCancelled);
    ASSERT_TRUE(session.sequence().tokens().empty());
    session.runner().Rest();  // as at the end of a call
    ASSERT_LT(++stops, 100);
    if (stops % 2 == 0) continue;
    cancels = true;  // while the parked part comes back
    ASSERT_EQ(
        ClassOf(Prefill(session, ids.data(), kLong, kNoProgress).status()),
        ErrorClass::kCancelled);
    session.cancellation().Clear();
    stopped_at.reset();
  }
  EXPECT_GT(stops, 10);
  EXPECT_EQ(NextLogits(session), NextLogits(*uninterrupted));
  EXPECT_EQ(session.traffic().moves.parked_bytes, 0);
  EXPECT_EQ(session.traffic().moves.resumed_bytes, 0);
}

// Any of its copies may fail: then the prompt fails, and the next does not.
TEST_F(TiersTest, EveryCopyOfATileMayFail) {
  const auto model = Open("llama_chat");
  const std::vector<int32_t> ids = RandomIds(1700, model->config.vocab);
  const auto plain = MakeSession(*model, LongOptions());
  ASSERT_TRUE(Prefill(*plain, ids.data(), ids.size(), kNoProgress).ok());
  const int64_t tile = 512 * model->config.hidden * 4;
  std::atomic<int> left = 0;
  const Faults faults(Callee::kLink, [&](const Operation& copy) {
    return copy.bytes == tile && left-- == 0;
  });
  const Tiered tiered = MakeTiered(*model, LongOptions(), Budget::kLeast);
  Session& session = *tiered.session;
  for (const int at : {0, 1, 2, 7, 12, 18, 23, 28, 1000}) {
    left = at;
    const absl::Status status =
        Prefill(session, ids.data(), ids.size(), kNoProgress).status();
    if (at == 1000) {
      ASSERT_TRUE(status.ok()) << status;
      break;
    }
    EXPECT_EQ(CodeOf(status), "copy_failed") << at;
    EXPECT_TRUE(session.sequence().tokens().empty());
  }
  EXPECT_EQ(NextLogits(session), NextLogits(*plain));
}

TEST_F(TiersTest, WhatDoesNotFitIsRefusedWithNumbers) {
  const auto model = Open("llama_chat");
  Session::Options options;
  options.context = 1500;
  const int64_t least = BytesFor(*model, options, Budget::kLeast);
  Model::Options with = model->options;
  with.machine.simulation = {{.bytes = least - 64, .link = {kFast, 0}}};
  const auto small = OpenModel(with);
  const absl::Status status = Session::Create(*small, options).status();
  EXPECT_EQ(CodeOf(status), "does_not_fit");
  EXPECT_EQ(ClassOf(status), ErrorClass::kMemory);
  const std::string message(status.message());
  EXPECT_THAT(message, testing::HasSubstr(std::to_string(least)));
  // The context that it names does fit.
  const size_t at = message.rfind(' ');
  options.context = std::stoll(message.substr(at));
  EXPECT_LT(options.context, 1500);
  EXPECT_GT(options.context, 1000);
  EXPECT_TRUE(Session::Create(*small, options).ok());
  ++options.context;
  EXPECT_FALSE(Session::Create(*small, options).ok());
  // The device cannot hold the weights.
  with = small->options;
  with.machine.simulation->bytes = 4096;
  EXPECT_EQ(CodeOf(Model::Open(with, kNoProgress).status()), "out_of_memory");
}

// All a session needs is taken when it is made.
TEST_F(TiersTest, NoRunTakesMoreThanThePlan) {
  const auto model = Open("llama_rope_linear");
  Session::Options options;
  options.context = 1000;
  options.type_k = options.type_v = DType::kQ8_0;
  const Tiered tiered = MakeTiered(*model, options, Budget::kLeast);
  const int64_t taken = tiered.model->machine->memory().used();
  EXPECT_EQ(taken, tiered.session->kv().plan().DeviceBytes());
  AllLogits(*tiered.session, RandomIds(900, model->config.vocab), 450);
  ASSERT_TRUE(Generate(*tiered.session, kGreedy40, nullptr).status.ok());
  // The device never had more to give.
  EXPECT_EQ(tiered.model->machine->DeviceBudget(), taken);
  EXPECT_EQ(tiered.model->machine->memory().used(), taken);
  EXPECT_EQ(tiered.session->kv().memory().device, taken);
  // The open page has not gone to the host tier.
  const TierShape& shape = tiered.session->kv().plan().shape;
  EXPECT_EQ(tiered.session->kv().memory().host,
            940 / kPageTokens * shape.layers * shape.layout.PageBytes());
}

// The real model has thirty layers, and some resident pages.
TEST_F(TiersTest, SmolLm2) {
  if (TriesLess() || TestedDevice() != DeviceKind::kCpu) {
    GTEST_SKIP() << "the small models have what shows there";
  }
  const char* const path = getenv("TIERCEL_MODEL");
  if (path == nullptr && getenv("CI") == nullptr) GTEST_SKIP();
  ASSERT_NE(path, nullptr);
  const auto model = OpenReference({.path = path, .machine = {.threads = 2}});
  Session::Options options;
  options.context = 600;
  const std::vector<int32_t> ids = RandomIds(520, model->config.vocab);
  const auto plain = MakeSession(*model, options);
  ASSERT_TRUE(Prefill(*plain, ids.data(), 520, kNoProgress).ok());
  const Report expected = Generate(*plain, kGreedy40, nullptr);
  ASSERT_TRUE(expected.status.ok());
  ASSERT_TRUE(plain->CatchUp(Phase::kVerify).ok());
  for (const Budget budget : {Budget::kMiddle, Budget::kLeast, Budget::kAll}) {
    if (budget != Budget::kMiddle && !TriesAll()) break;
    const Tiered tiered = MakeTiered(*model, options, budget);
    Session& session = *tiered.session;
    ASSERT_TRUE(Prefill(session, ids.data(), 520, kNoProgress).ok());
    const Report report = Generate(session, kGreedy40, nullptr);
    ASSERT_TRUE(report.status.ok());
    ASSERT_TRUE(session.CatchUp(Phase::kVerify).ok());
    EXPECT_EQ(report.tokens, expected.tokens);
    EXPECT_EQ(NextLogits(session), NextLogits(*plain));
    EXPECT_EQ(tiered.model->machine->memory().used(),
              session.kv().plan().DeviceBytes());
    const int64_t resident = session.kv().plan().shape.resident_pages;
    if (budget == Budget::kMiddle) {
      EXPECT_GT(resident, 0);
      EXPECT_LT(resident, 5);
    }
    EXPECT_EQ(session.traffic().moves.swept_pages == 0, budget == Budget::kAll);
  }
}

}  // namespace
}  // namespace tiercel::tiers_test
