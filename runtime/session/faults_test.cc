// Refusals, failures and cancellations at any moment give a clear status; the
// session is as before, and later calls give the same results as if nothing had
// happened.

#include "kernels/system/faults.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/system/testing.h"
#include "lib/status/error.h"
#include "runtime/generate/generate.h"
#include "runtime/policies/policy.h"
#include "runtime/policies/policy_kind.h"
#include "runtime/policies/sadas/sadas_params.h"
#include "runtime/policies/sfi/sfi_params.h"
#include "runtime/policies/speed/speed_params.h"
#include "tests/drafting.h"
#include "tests/golden.h"
#include "tests/tiers.h"

namespace tiercel::faults_test {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

// The number of the next call that fails: each, or, in the short run, the first
// ones and then fewer and fewer.
int64_t After(int64_t n) {
  return TriesAllFaults() || n < 24 ? n + 1 : n + n / 4;
}

GenerateParams Greedy(int64_t max_tokens) {
  return {.max_tokens = max_tokens,
          .seed = 0,
          .distribution = {},
          .ignore_eos = true,
          .stops = {}};
}

class FaultsTest : public testing::Test {
 protected:
  static constexpr size_t kPrompt = 400;
  static constexpr int64_t kOutput = 8;

  FaultsTest() {
    model_ = OpenReference(
        {.path = Deepened("llama_rope_linear"), .machine = {.threads = 2}});
    options_.context = 600;
    ids_ = RandomIds(500, model_->config.vocab);
    const auto session = MakeSession(*model_, options_);
    EXPECT_TRUE(Prefill(*session, ids_.data(), kPrompt, kNoProgress).ok());
    prompt_logits_ = NextLogits(*session);
    EXPECT_TRUE(Generate(*session, Greedy(kOutput), nullptr).status.ok());
    expected_ = session->sequence().tokens();
    EXPECT_TRUE(session->CatchUp(Phase::kVerify).ok());
    logits_ = NextLogits(*session);
  }

  // Opens a session on a device.
  Tiered Make(Budget budget = Budget::kLeast, double link = kFast) {
    return MakeTiered(*model_, options_, budget, link);
  }

  // Calls attempt() until it succeeds, and after each failure failed(), which
  // checks the state it left. Returns the number of failures.
  int Until(const std::function<absl::Status()>& attempt,
            const std::function<void(const absl::Status&)>& failed) {
    for (int failures = 0;; ++failures) {
      const absl::Status status = attempt();
      if (status.ok()) return failures;
      failed(status);
      if (failures > 3 || HasFatalFailure()) {
        ADD_FAILURE() << "still failing: " << status;
        return failures;
      }
    }
  }

  // Reads a prompt and generates an answer; `failed` gets every status but OK.
  void Answer(Session& session,
              const std::function<void(const absl::Status&)>& failed) {
    Until(
        [&] {
          return Prefill(session, ids_.data(), kPrompt, kNoProgress).status();
        },
        [&](const absl::Status& status) {
          failed(status);
          EXPECT_TRUE(session.sequence().tokens().empty());
        });
    Until(
        [&]() -> absl::Status {
          const auto left = static_cast<int64_t>(
              expected_.size() - session.sequence().tokens().size());
          if (left == 0) return absl::OkStatus();  // the last was kept
          return generate_(session, left);
        },
        [&](const absl::Status& status) {
          failed(status);
          // Tokens that were returned are kept.
          ASSERT_LE(session.sequence().tokens().size(), expected_.size());
          EXPECT_TRUE(std::equal(session.sequence().tokens().begin(),
                                 session.sequence().tokens().end(),
                                 expected_.begin()));
        });
    EXPECT_EQ(session.sequence().tokens(), expected_);
    Until([&] { return session.CatchUp(Phase::kVerify); }, failed);
    EXPECT_TRUE(SameBits(NextLogits(session), logits_));
  }

  // Generates by `params` with `choice`, over a view that is filled over a
  // link; each time another copy fails, with the status `code`.
  void DraftThroughFaults(FailAt& copy, const PolicyParams& choice,
                          std::string_view code);

  std::unique_ptr<Model> model_;
  Session::Options options_;
  // Generates an answer's next tokens.
  std::function<absl::Status(Session&, int64_t)> generate_ =
      [](Session& session, int64_t max_tokens) {
        return Generate(session, Greedy(max_tokens), nullptr).status;
      };

  // Options of a device on which all fits, unless a fault refuses it.
  Model::Options OnALargeDevice() const {
    Model::Options with = model_->options;
    with.machine.device = TestedDevice();
    with.machine.simulation = {
        {.bytes = BytesFor(*model_, options_, Budget::kAll) + (8 << 20),
         .link = {kFast, 0}}};
    return with;
  }

  std::vector<int32_t> ids_;
  std::vector<int32_t> expected_;  // prompt and answer
  std::vector<float> prompt_logits_;
  std::vector<float> logits_;   // after prompt and answer
  Session* session_ = nullptr;  // the one that drafts
};

// ---- Device memory ----

TEST_F(FaultsTest, EveryAllocationMayBeRefused) {
  FailingCall allocation(Callee::kMemory, "allocate");
  const Model::Options with = OnALargeDevice();
  for (const bool from_then_on : {false, true}) {
    for (int64_t n = 1;; n = After(n)) {
      allocation.Arm(n, from_then_on ? FailAt::kAll : 1);
      const auto failed = [&](const absl::Status& status) {
        EXPECT_EQ(CodeOf(status), "out_of_memory") << status;
        EXPECT_EQ(ClassOf(status), ErrorClass::kMemory);
        EXPECT_THAT(std::string(status.message()), HasSubstr("need "));
        EXPECT_THAT(std::string(status.message()), HasSubstr(" are free"));
        EXPECT_TRUE(allocation.happened());
        allocation.Disarm();
      };
      std::unique_ptr<Model> model;
      Until(
          [&] {
            auto opened = Model::Open(with, kNoProgress);
            if (opened.ok()) model = *std::move(opened);
            return opened.status();
          },
          failed);
      const int64_t weights = model->machine->memory().used();
      std::unique_ptr<Session> session;
      Until(
          [&] {
            auto created = Session::Create(*model, options_);
            if (created.ok()) session = *std::move(created);
            return created.status();
          },
          [&](const absl::Status& status) {
            failed(status);
            EXPECT_EQ(model->machine->memory().used(), weights) << n;
          });
      const int64_t taken = model->machine->memory().used();
      Answer(*session, failed);
      EXPECT_EQ(model->machine->memory().used(),
                taken);  // the session had it all
      // A fork computes in the same workspace.
      session->runner().Rest();
      std::unique_ptr<Session> fork = *session->Fork();
      fork->Truncate(0);
      Answer(*fork, failed);
      EXPECT_EQ(model->machine->memory().used(), taken);
      // Together they need two workspaces.
      session->Truncate(0);
      Answer(*session, failed);
      fork.reset();
      session->runner().Rest();
      EXPECT_EQ(model->machine->memory().used(), taken);
      session.reset();
      EXPECT_EQ(model->machine->memory().used(), weights);
      if (!allocation.happened()) {
        EXPECT_GT(n, 60);  // the weights alone take more
        break;
      }
      if (HasFailure()) {
        ADD_FAILURE() << "allocation " << n;
        return;
      }
    }
  }
}

// A session allocates its view when it is made, and so does a fork.
TEST_F(FaultsTest, AViewMayFindNoRoom) {
  FailingCall allocation(Callee::kMemory, "allocate");
  options_.retrieval = kSmallView;
  generate_ = [](Session& session, int64_t max_tokens) {
    return GenerateDrafted(session, Greedy(max_tokens),
                           {.policy = PolicyNamed("triforce"),
                            .verify = VerifyMode::kCoupled})
        .status;
  };
  const Model::Options with = OnALargeDevice();
  const auto model = OpenModel(with);
  const int64_t weights = model->machine->memory().used();
  for (const bool from_then_on : {false, true}) {
    int64_t n = 1;
    for (;; ++n) {
      allocation.Arm(n, from_then_on ? FailAt::kAll : 1);
      int64_t taken = weights;
      const auto failed = [&](const absl::Status& status) {
        EXPECT_EQ(CodeOf(status), "out_of_memory") << status;
        EXPECT_TRUE(allocation.happened());
        allocation.Disarm();
      };
      const auto make = [&](auto create) {
        std::unique_ptr<Session> session;
        Until(
            [&] {
              absl::StatusOr<std::unique_ptr<Session>> made = create();
              if (made.ok()) session = *std::move(made);
              return made.status();
            },
            [&](const absl::Status& status) {
              failed(status);
              EXPECT_EQ(model->machine->memory().used(), taken);
            });
        return session;
      };
      auto session = make([&] { return Session::Create(*model, options_); });
      taken = model->machine->memory().used();
      Answer(*session, failed);
      EXPECT_EQ(model->machine->memory().used(), taken);
      session->runner().Rest();
      auto fork = make([&] { return session->Fork(); });
      EXPECT_GT(model->machine->memory().used(), taken);
      fork->Truncate(0);
      Answer(*fork, failed);
      session.reset();
      fork.reset();
      EXPECT_EQ(model->machine->memory().used(), weights);
      if (HasFailure()) {
        ADD_FAILURE() << "allocation " << n;
        return;
      }
      if (!allocation.happened()) break;
    }
    EXPECT_GT(n, 10);
  }
}

// ---- Copies ----

TEST_F(FaultsTest, EveryCopyMayFail) {
  FailingCall copy(Callee::kLink, "copy");
  for (const Budget budget : {Budget::kLeast, Budget::kMiddle}) {
    const Tiered tiered = Make(budget);
    int64_t n = 1;
    for (;; n = After(n)) {
      copy.Arm(n);
      Answer(*tiered.session, [&](const absl::Status& status) {
        EXPECT_EQ(CodeOf(status), "copy_failed") << status;
        EXPECT_TRUE(copy.happened());
      });
      if (HasFailure()) {
        ADD_FAILURE() << "copy " << n;
        return;
      }
      if (!copy.happened()) break;
      tiered.session->Truncate(0);
    }
    EXPECT_GT(n, 40);
  }
}

void FaultsTest::DraftThroughFaults(FailAt& copy, const PolicyParams& choice,
                                    std::string_view code) {
  options_ = choice.OptionsFor(*model_, options_);
  const GenerateParams params = DraftedParams(0.8f, 16);
  const Ids prompt(ids_.begin(), ids_.begin() + kPrompt);
  const auto in_place = Prefilled(*model_, prompt, options_);
  const Ids text = DraftedText(*in_place, params, choice);
  ASSERT_TRUE(in_place->CatchUp(Phase::kVerify).ok());

  const Tiered tiered = Make();
  Session& session = *tiered.session;
  session_ = &session;
  ASSERT_TRUE(Prefill(session, prompt.data(), prompt.size(), kNoProgress).ok());
  std::vector<DraftLevel> levels;  // the last generation's
  for (const bool from_then_on : {false, true}) {
    int failures = 0;
    for (int64_t n = 1;; n = After(n)) {
      session.Truncate(kPrompt);
      copy.Arm(n, from_then_on ? FailAt::kAll : 1);
      Ids given;
      const auto failed = [&](const absl::Status& status) {
        ++failures;
        EXPECT_EQ(CodeOf(status), code) << status;
        // A cancellation may come after its work is done.
        EXPECT_TRUE(copy.happened() || code == "cancelled");
        copy.Disarm();
        session.cancellation().Clear();
        // Tokens that were returned are kept, and no others.
        Ids tokens = prompt;
        tokens.insert(tokens.end(), given.begin(), given.end());
        EXPECT_EQ(session.sequence().tokens(), tokens);
      };
      Until(
          [&]() -> absl::Status {
            GenerateParams rest = params;
            if (choice.verify == VerifyMode::kResidual ||
                choice.form == PolicyForm::kPlain) {
              // With these the tokens depend on where the generation began, so
              // it begins anew.
              given.clear();
              session.Truncate(kPrompt);
            }
            rest.max_tokens -= std::ssize(given);
            if (rest.max_tokens == 0) return absl::OkStatus();
            const Report report = GenerateDrafted(
                session, rest, choice, [&](const OutputToken& token) {
                  given.push_back(token.id);
                  return true;
                });
            levels = report.rounds.levels;
            return report.status;
          },
          failed);
      EXPECT_EQ(given, text);
      Until([&] { return session.CatchUp(Phase::kVerify); }, failed);
      EXPECT_TRUE(SameBits(NextLogits(session), NextLogits(*in_place)));
      // The fault may have come after all was done, or not yet.
      copy.Disarm();
      session.cancellation().Clear();
      if (HasFailure()) {
        ADD_FAILURE() << "copy " << n << (from_then_on ? " and all after" : "");
        return;
      }
      if (!copy.happened()) break;
    }
    // Steps over a view copy little or nothing, and a prefetch may fail without
    // an error.
    EXPECT_GT(failures, choice.form == PolicyForm::kPlain ? 8 : 12);
  }
  if (choice.form == PolicyForm::kPlain) return;
  const DraftLevel& level = levels.back();
  EXPECT_GT(level.accepted, 0);
  EXPECT_LT(level.accepted, level.drafted);
  if (choice.policy != PolicyNamed("triforce")) return;
  const Traffic traffic = session.traffic();
  EXPECT_GT(traffic.link[static_cast<size_t>(Phase::kRefresh)].h2d_bytes, 0u);
}

TEST_F(FaultsTest, EveryCopyOfADraftMayFail) {
  FailingCall copy(Callee::kLink, "copy");
  DraftThroughFaults(copy,
                     {.policy = PolicyNamed("triforce"),
                      .verify = VerifyMode::kResidual,
                      .gamma2 = DraftLength::Fixed(5),
                      .view = kSmallView},
                     "copy_failed");
  DraftThroughFaults(copy,
                     {.policy = PolicyNamed("triforce"),
                      .proposer = Proposer::kNgram,
                      .verify = VerifyMode::kCoupled,
                      .gamma2 = DraftLength::Fixed(5),
                      .draft_ahead = true,
                      .view = kSmallView},
                     "copy_failed");
}

// The other policies: their steps read windows, chosen positions or fewer
// layers, and their sweeps verify drafts of such steps.
std::vector<PolicyParams> OtherPolicies() {
  std::vector<PolicyParams> all;
  for (const PolicyForm form : {PolicyForm::kPlain, PolicyForm::kVerified}) {
    PolicyParams params = {.form = form,
                           .verify = VerifyMode::kCoupled,
                           .gamma2 = DraftLength::Fixed(5),
                           .view = kSmallView};
    params.policy = PolicyNamed("sadas");
    params.Own<SadasParams>().window = 64;
    EXPECT_TRUE(params.Own<SadasParams>().Set("think=on,most=8").ok());
    all.push_back(params);
    params.policy = PolicyNamed("sfi");
    params.Own<SfiParams>().budget = 64;
    params.Own<SfiParams>().window = 32;
    EXPECT_TRUE(params.Own<SfiParams>()
                    .Set("trigger=fixed,interval=4,evidence=4")
                    .ok());
    all.push_back(params);
    params.policy = PolicyNamed("speed");
    EXPECT_TRUE(params.Own<SpeedParams>().Set("cut=4,tail=3").ok());
    all.push_back(params);
  }
  return all;
}

TEST_F(FaultsTest, EveryCopyOfAnyPolicyMayFail) {
  FailingCall copy(Callee::kLink, "copy");
  for (const PolicyParams& choice : OtherPolicies()) {
    SCOPED_TRACE(choice.policy->name());
    DraftThroughFaults(copy, choice, "copy_failed");
  }
}

// Every copy of a prompt that goes on where it was stopped may fail, too.
TEST_F(FaultsTest, ARestoreMayFailHalfWay) {
  FailingCall copy(Callee::kLink, "copy");
  const Tiered tiered = Make();
  Session& session = *tiered.session;
  int64_t n = 1;
  for (bool failed = true; failed; ++n) {
    session.Truncate(0);
    ASSERT_TRUE(Prefill(session, ids_.data(), 100, kNoProgress).ok());
    int calls = 0;
    ASSERT_FALSE(
        Prefill(session, ids_.data() + 100, 300, [&](uint64_t, uint64_t) {
          return ++calls < 4;
        }).ok());
    copy.Arm(n);
    failed = false;
    Until(
        [&] {
          return Prefill(session, ids_.data() + 100, 300, kNoProgress).status();
        },
        [&](const absl::Status& status) {
          failed = true;
          EXPECT_EQ(CodeOf(status), "copy_failed");
          EXPECT_EQ(session.sequence().tokens(),
                    std::vector<int32_t>(ids_.begin(), ids_.begin() + 100));
        });
    failed = failed || copy.happened();
    copy.Disarm();
    EXPECT_TRUE(SameBits(NextLogits(session), prompt_logits_)) << n;
  }
  EXPECT_GT(n, 5);
}

// ---- Cancellation ----

TEST_F(FaultsTest, CancelledWhileAnyCopyIsOnTheWay) {
  FailAt copy;
  Session* session = nullptr;
  const Faults faults(Callee::kLink, [&](const Operation&) {
    if (copy()) {
      session->cancellation().Cancel();
      // The thread that waits for this copy should see the cancel while it
      // waits.
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return 0;
  });
  const Tiered tiered = Make();
  session = tiered.session.get();
  int cancelled = 0;
  for (int64_t n = 1;; n = After(n)) {
    copy.Arm(n);
    Answer(*session, [&](const absl::Status& status) {
      EXPECT_EQ(CodeOf(status), "cancelled") << status;
      session->cancellation().Clear();
      ++cancelled;
    });
    // The fault may have come after all was done, or not yet.
    session->cancellation().Clear();
    if (HasFailure()) {
      ADD_FAILURE() << "copy " << n;
      return;
    }
    if (!copy.happened()) break;
    session->Truncate(0);
  }
  EXPECT_GT(cancelled, 16);
}

TEST_F(FaultsTest, CancelledWhileAnyCopyOfADraftIsOnTheWay) {
  FailAt copy;
  const Faults faults(Callee::kLink, [&](const Operation&) {
    if (copy()) {
      session_->cancellation().Cancel();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return 0;
  });
  DraftThroughFaults(copy,
                     {.policy = PolicyNamed("triforce"),
                      .proposer = Proposer::kNgram,
                      .verify = VerifyMode::kResidual,
                      .gamma2 = DraftLength::Fixed(5),
                      .view = kSmallView},
                     "cancelled");
  DraftThroughFaults(copy,
                     {.policy = PolicyNamed("triforce"),
                      .verify = VerifyMode::kCoupled,
                      .gamma2 = DraftLength::Fixed(3),
                      .draft_ahead = true,
                      .view = kSmallView},
                     "cancelled");
  for (const PolicyParams& choice : OtherPolicies()) {
    SCOPED_TRACE(choice.policy->name());
    DraftThroughFaults(copy, choice, "cancelled");
  }
}

// A call may be cancelled between any two parts of the arithmetic, in place and
// on a simulated device.
TEST_F(FaultsTest, CancelledAtAnyLook) {
  for (const bool simulated : {false, true}) {
    Tiered tiered;
    std::unique_ptr<Session> plain;
    if (simulated) {
      tiered = Make();
    } else {
      tiered.model = Tested(*model_);
      plain = MakeSession(*tiered.model, options_);
    }
    Session& session = simulated ? *tiered.session : *plain;
    for (const bool by_call : {false, true}) {
      FailAt look;
      for (int64_t n = 1;; n = After(n)) {
        session.Truncate(0);
        look.Arm(n);
        const auto failed = [&](const absl::Status& status) {
          EXPECT_EQ(CodeOf(status), "cancelled") << status;
          session.cancellation().Clear();
        };
        const auto go_on = [&] {
          if (!look()) return true;
          if (by_call) session.cancellation().Cancel();
          return by_call;
        };
        Until(
            [&] {
              return Prefill(session, ids_.data(), kPrompt,
                             [&](uint64_t, uint64_t) { return go_on(); })
                  .status();
            },
            [&](const absl::Status& status) {
              failed(status);
              EXPECT_TRUE(session.sequence().tokens().empty());
            });
        session.cancellation().Clear();
        Until(
            [&]() -> absl::Status {
              const auto left = static_cast<int64_t>(
                  expected_.size() - session.sequence().tokens().size());
              if (left == 0) return absl::OkStatus();
              return Generate(session, Greedy(left),
                              [&](const OutputToken&) { return go_on(); })
                  .status;
            },
            failed);
        session.cancellation().Clear();
        EXPECT_EQ(session.sequence().tokens(), expected_) << n;
        if (!look.happened()) break;
        ASSERT_LT(n, 1000);
      }
    }
  }
}

// ---- The host tier ----

TEST_F(FaultsTest, PinningMayBeRefused) {
  const std::vector<std::function<bool(int64_t)>> refusals = {
      [](int64_t) { return false; },
      [](int64_t) { return true; },                   // at once
      [so_far = int64_t{0}](int64_t bytes) mutable {  // after some
        return (so_far += bytes) > 200000;
      },
      [calls = 0](int64_t) mutable { return ++calls % 2 == 0; },
  };
  for (size_t i = 0; i < refusals.size(); ++i) {
    const Faults faults(Callee::kHost, [&](const Operation& pin) {
      return refusals[i](pin.bytes);
    });
    const Tiered tiered = Make();
    Session& session = *tiered.session;
    Answer(session, [](const absl::Status& status) { FAIL() << status; });
    session.Truncate(kPrompt);
    const nlohmann::json report =
        Generate(session, Greedy(2), nullptr).ToJson();
    ASSERT_TRUE(report["warnings"].is_array());
    // The machine itself may refuse, too; each reason is given once.
    int refused = 0;
    for (const std::string text : report["warnings"]) {
      refused += text.find("refused by a test") != std::string::npos;
    }
    EXPECT_EQ(refused, i == 0 ? 0 : 1) << report["warnings"];
  }
  const auto plain = MakeSession(*model_, options_);
  Answer(*plain, [](const absl::Status& status) { FAIL() << status; });
  EXPECT_EQ(NewReport(*plain, {}).ToJson()["warnings"],
            nlohmann::json::array());
}

// ---- Long lives ----

TEST_F(FaultsTest, AFullContextServesTheNextChat) {
  const auto fresh = MakeSession(*model_, options_);
  ASSERT_TRUE(Prefill(*fresh, ids_.data() + 50, 300, kNoProgress).ok());
  const Report expected = Generate(*fresh, Greedy(20), nullptr);
  ASSERT_TRUE(expected.status.ok());
  for (const bool simulated : {false, true}) {
    Tiered tiered;
    std::unique_ptr<Session> plain;
    if (simulated) {
      tiered = Make();
    } else {
      tiered.model = Tested(*model_);
      plain = MakeSession(*tiered.model, options_);
    }
    Session& session = simulated ? *tiered.session : *plain;
    for (const size_t keep : {size_t{0}, size_t{70}, size_t{255}}) {
      session.Truncate(0);
      // The KV that is kept belongs to the new chat.
      ASSERT_TRUE(Prefill(session, ids_.data() + 50, keep, kNoProgress).ok());
      ASSERT_TRUE(Prefill(session, ids_.data(), 500 - keep, kNoProgress).ok());
      EXPECT_EQ(Generate(session, Greedy(0), nullptr).finish_reason, "length");
      EXPECT_EQ(session.sequence().room(), 0);
      ASSERT_TRUE(session.CatchUp(Phase::kVerify).ok());  // the last row too
      EXPECT_EQ(CodeOf(Prefill(session, ids_.data(), 1, kNoProgress).status()),
                "context_length_exceeded");
      session.Truncate(keep);
      ASSERT_TRUE(
          Prefill(session, ids_.data() + 50 + keep, 300 - keep, kNoProgress)
              .ok());
      EXPECT_EQ(session.sequence().tokens(),
                std::vector<int32_t>(ids_.begin() + 50, ids_.begin() + 350));
      EXPECT_EQ(Generate(session, Greedy(20), nullptr).tokens, expected.tokens);
    }
  }
}

// Any order of a program's calls, on a device that fails now and then, gives
// the logits of a session that has all its KV in memory and whose device never
// fails.
TEST_F(FaultsTest, AnyLifeGivesTheSameBytes) {
  const unsigned seeds = TriesAllFaults() ? 300 : 4;
  options_.context = 1000;
  const std::vector<int32_t> text = RandomIds(4000, model_->config.vocab);
  for (unsigned seed = 0; seed < seeds; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&random](size_t n) { return random() % n; };
    std::atomic<unsigned> noise{seed};
    const Faults faults(Callee::kLink, [&](const Operation&) {
      noise = noise * 1664525 + 1013904223;
      return seed % 2 == 1 && noise >> 16 < 200;
    });
    Tiered tiered = Make(seed % 4 < 2 ? Budget::kLeast : Budget::kMiddle);
    std::unique_ptr<Session> session = std::move(tiered.session);
    std::unique_ptr<Session> plain = MakeSession(*model_, options_);
    const auto failed = [&](const absl::Status& status) {
      EXPECT_EQ(CodeOf(status), "copy_failed");
      EXPECT_EQ(session->sequence().tokens(), plain->sequence().tokens());
    };
    const auto append = [&](size_t count) {
      count = std::min(count, static_cast<size_t>(session->sequence().room()));
      if (count == 0) return;
      const int32_t* const ids = text.data() + below(text.size() - count);
      if (below(3) == 0) {  // stopped, and perhaps not resumed
        size_t calls = below(12);
        const absl::Status status =
            Prefill(*session, ids, count, [&](uint64_t, uint64_t) {
              return calls-- > 0;
            }).status();
        if (status.ok()) {
          session->Truncate(plain->sequence().tokens().size());
        } else {
          EXPECT_EQ(session->sequence().tokens(), plain->sequence().tokens());
        }
        if (below(3) == 0) return;
      }
      Until([&] { return Prefill(*session, ids, count, kNoProgress).status(); },
            failed);
      ASSERT_TRUE(Prefill(*plain, ids, count, kNoProgress).ok());
    };
    for (int turn = 0; turn < 25 && !HasFailure(); ++turn) {
      switch (below(8)) {
        case 0: {
          const size_t length = below(session->sequence().tokens().size() + 1);
          session->Truncate(length);
          plain->Truncate(length);
          break;
        }
        case 1:
          append(65 + below(400));
          break;
        case 2:
          append(1 + below(64));
          break;
        case 3:  // a fork takes its place
          session = *session->Fork();
          break;
        case 4: {  // a fork beside it may not fit on the device
          const std::unique_ptr<Session> fork = *session->Fork();
          if (fork->sequence().room() == 0) break;
          const absl::Status status =
              Prefill(*fork, text.data(), 1, kNoProgress).status();
          if (!status.ok() && CodeOf(status) != "copy_failed") {
            EXPECT_EQ(CodeOf(status), "out_of_memory") << status;
          }
          break;
        }
        default:
          for (size_t i = below(30); i > 0; --i) append(1);
      }
      if (session->sequence().tokens().empty()) continue;
      Until([&] { return session->CatchUp(Phase::kVerify); }, failed);
      ASSERT_TRUE(plain->CatchUp(Phase::kVerify).ok());
      EXPECT_TRUE(SameBits(NextLogits(*session), NextLogits(*plain)))
          << "turn " << turn;
    }
    if (HasFailure()) {
      ADD_FAILURE() << "seed " << seed;
      return;
    }
  }
}

}  // namespace
}  // namespace tiercel::faults_test
