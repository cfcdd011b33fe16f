// Drafts during sweeps: the text is the one that there is without them, and
// blocks that hold are followed by others that are there already.

#include "runtime/drafting/draft_ahead.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/system/faults.h"
#include "lib/status/error.h"
#include "runtime/drafting/model_target.h"
#include "runtime/drafting/session_kv.h"
#include "runtime/generate/generate.h"
#include "runtime/policies/policy.h"
#include "runtime/session/batch.h"
#include "tests/drafting.h"
#include "tests/golden.h"
#include "tests/tiers.h"

namespace tiercel::draft_ahead_test {
namespace {

class DraftAheadTest : public testing::Test {
 protected:
  // A view that holds most of the text, so that some blocks hold whole.
  static PolicyParams Choice(Proposer proposer = Proposer::kNone,
                             int branches = 0) {
    PolicyParams choice = {.policy = PolicyNamed("triforce"),
                           .proposer = proposer,
                           .verify = VerifyMode::kCoupled,
                           .gamma1 = DraftLength::Fixed(3),
                           .gamma2 = DraftLength::Fixed(4),
                           .branches = branches};
    choice.draft_ahead = true;
    choice.view = {.chunk = 8, .budget = 160, .sink = 8, .window = 32};
    return choice;
  }
  Session::Options OptionsOf(const PolicyParams& choice) const {
    return choice.OptionsFor(*model_, {.context = 500});
  }
  Ids Plain(const GenerateParams& params) const {
    return PlainText(*model_, prompt_, params);
  }
  std::unique_ptr<Session> Read(Tiered& tiered) const {
    EXPECT_TRUE(
        Prefill(*tiered.session, prompt_.data(), prompt_.size(), kNoProgress)
            .ok());
    return std::move(tiered.session);
  }
  static const DraftLevel& Outer(const Report& report) {
    return report.rounds.levels.back();
  }

  const std::unique_ptr<Model> model_ =
      OpenModel({.path = Deepened("llama_chat"), .machine = {.threads = 2}});
  const Ids prompt_ = RepeatedText(60, 4);
};

TEST_F(DraftAheadTest, TheTextIsThatOfNoDrafter) {
  for (const float temperature : {0.0f, 0.8f}) {
    const GenerateParams params = DraftedParams(temperature, 90);
    const Ids expected = Plain(params);
    for (const PolicyParams& choice :
         {Choice(), Choice(Proposer::kNgram),
          Choice(Proposer::kNgram, /*branches=*/2)}) {
      for (const Budget budget : {Budget::kLeast, Budget::kMiddle}) {
        Tiered tiered = MakeTiered(*model_, OptionsOf(choice), budget);
        const auto session = Read(tiered);
        const Report report = GenerateDrafted(*session, params, choice);
        ASSERT_TRUE(report.status.ok()) << report.status;
        EXPECT_EQ(report.tokens, expected);
        EXPECT_GT(Outer(report).ahead, 2) << static_cast<int>(choice.proposer);
        ExpectNoTrace(*session, *model_);
      }
    }
  }
}

// A block that was drafted ahead holds as others do: it is what would have been
// drafted afterwards, but for the chunks that the sweep chooses.
TEST_F(DraftAheadTest, ItsBlocksHoldAsOthersDo) {
  const GenerateParams params = DraftedParams(0.8f, 160);
  PolicyParams choice = Choice();
  double acceptance[2] = {};
  for (const bool ahead : {false, true}) {
    choice.draft_ahead = ahead;
    Tiered tiered = MakeTiered(*model_, OptionsOf(choice), Budget::kLeast);
    const Report report = GenerateDrafted(*Read(tiered), params, choice);
    acceptance[ahead] = static_cast<double>(Outer(report).accepted) /
                        static_cast<double>(Outer(report).checked);
  }
  EXPECT_GT(acceptance[1], 0.9 * acceptance[0]);
}

// Without a link a sweep has nothing to wait for.
TEST_F(DraftAheadTest, WithoutALinkItDraftsAfterwards) {
  const GenerateParams params = DraftedParams(0.8f, 60);
  const auto session = Prefilled(*model_, prompt_, OptionsOf(Choice()));
  const Report report = GenerateDrafted(*session, params, Choice());
  EXPECT_EQ(report.tokens, Plain(params));
  EXPECT_EQ(Outer(report).ahead, 0);
}

// A drafter of one pass over the view, which then waits until pages come. Its
// blocks have a branch in place of their second token.
class WatchingDrafter final : public Drafter {
 public:
  WatchingDrafter(Session& session, const std::atomic<int64_t>& copies)
      : session_(session), copies_(copies) {}
  const char* name() const override { return "watching"; }
  absl::StatusOr<DraftBlock> Draft(const std::vector<int32_t>& tokens,
                                   int64_t /*most*/,
                                   const DrawKey& /*key*/) override {
    DraftView& view = session_.draft_view();
    const int64_t end = view.end();
    begin_ = end;
    const int64_t before = copies_;
    EXPECT_TRUE(view.Forward(&tokens.back(), 1, /*layers=*/6).ok());
    EXPECT_EQ(view.end(), end + 1);
    view.Truncate(end);
    for (int i = 0; i < 200 && waits_ && copies_ == before; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    came_ = copies_ - before;
    const auto only = [](int32_t id) { return Distribution{{id}, {1.0f}}; };
    return DraftBlock{{3, 4, 5},
                      {only(3), only(4), only(5)},
                      {{.at = 1, .tokens = {6}, .distributions = {only(6)}}}};
  }
  void Wait() { waits_ = true; }            // from the next Draft on
  int64_t came() const { return came_; }    // during the last Draft
  int64_t begin() const { return begin_; }  // the view's end when it began

 private:
  Session& session_;
  const std::atomic<int64_t>& copies_;
  bool waits_ = false;
  int64_t came_ = 0;
  int64_t begin_ = 0;
};

// The sweep passes layers, and asks for pages, between the layers of a draft.
TEST_F(DraftAheadTest, PagesComeWhileItDrafts) {
  const PolicyParams choice = Choice(Proposer::kNone, /*branches=*/1);
  Tiered tiered = MakeTiered(*model_, OptionsOf(choice), Budget::kLeast);
  const auto session = Read(tiered);
  ASSERT_TRUE(session->draft_view().CatchUp(Phase::kVerify).ok());
  ASSERT_TRUE(session->Append(&prompt_[0], 1).ok());
  std::atomic<int64_t> copies = 0;
  const Faults count(Callee::kLink, [&](const Operation&) {
    ++copies;
    return 0;
  });
  WatchingDrafter drafter(*session, copies);
  const auto ahead = DraftAhead::Create(*session, drafter);
  ASSERT_TRUE(ahead.ok()) << ahead.status();
  const Ids tokens = session->sequence().tokens();
  const auto block = (*ahead)->Draft(tokens, /*most=*/3, {});
  ASSERT_TRUE(block.ok()) << block.status();
  EXPECT_EQ(drafter.came(), 0);
  drafter.Wait();
  ModelTarget target(*session, {}, std::make_unique<SessionKv>(*session));
  EXPECT_TRUE((*ahead)->Check(target, *block).ok());
  EXPECT_GT(drafter.came(), 0);
  // The view has the rows of the block, but for its last token's.
  EXPECT_EQ(drafter.begin(), std::ssize(tokens) + 2);
}

// The plan has room for a second workspace, which goes back with the first.
TEST_F(DraftAheadTest, ItsWorkspaceIsPlannedAndGivenBack) {
  PolicyParams choice = Choice();
  const Session::Options with = OptionsOf(choice);
  choice.draft_ahead = false;
  const Session::Options without = OptionsOf(choice);
  const int64_t least = BytesFor(*model_, with, Budget::kLeast);
  EXPECT_GT(least, BytesFor(*model_, without, Budget::kLeast));
  Tiered tiered = MakeTiered(*model_, with, Budget::kLeast);
  const auto session = Read(tiered);
  const DeviceMemory& memory = tiered.model->machine->memory();
  session->runner().Rest();
  const int64_t before = memory.used();
  const auto policy = NewPolicy(*session, Choice());
  ASSERT_TRUE(policy.ok());
  const Report report =
      Generate(*session, **policy, {}, DraftedParams(0.8f, 60), nullptr);
  EXPECT_TRUE(report.status.ok()) << report.status;
  EXPECT_GT(Outer(report).ahead, 2);
  EXPECT_LE(memory.used(), least);
  EXPECT_GT(memory.used(), before);
  session->runner().Rest();
  (*policy)->Rest();
  EXPECT_EQ(memory.used(), before);
}

// Texts that are made together have one sweep, and none has company.
TEST_F(DraftAheadTest, TextsOfABatchAreWhatTheyAreAlone) {
  const GenerateParams params = DraftedParams(0.8f, 40);
  const Ids expected = Plain(params);
  PolicyParams choice = Choice();
  Session::Options options = OptionsOf(choice);
  options.forks = 1;
  options.fork_tokens = 120;
  Tiered tiered = MakeTiered(*model_, options, Budget::kLeast);
  const auto session = Read(tiered);
  const absl::StatusOr<std::unique_ptr<Session>> fork = session->Fork();
  ASSERT_TRUE(fork.ok()) << fork.status();
  const absl::StatusOr<std::unique_ptr<Batch>> batch = Batch::Create(*session);
  ASSERT_TRUE(batch.ok()) << batch.status();
  std::vector<Report> reports(2);
  const auto call = [&](Session& own, Report& report) {
    return Batch::Call{own,
                       [&] { report = GenerateDrafted(own, params, choice); }};
  };
  ASSERT_TRUE((*batch)
                  ->Run({call(*session, reports[0]), call(**fork, reports[1])})
                  .ok());
  for (const Report& report : reports) {
    EXPECT_EQ(report.tokens, expected);
    EXPECT_EQ(Outer(report).ahead, 0);
  }
}

// A sweep that fails, whatever was drafted beside it, leaves the session as it
// was.
TEST_F(DraftAheadTest, ASweepMayFail) {
  const GenerateParams params = DraftedParams(0.8f, 40);
  const Ids expected = Plain(params);
  Tiered tiered = MakeTiered(*model_, OptionsOf(Choice()), Budget::kLeast);
  const auto session = Read(tiered);
  FailAt copy;
  const Faults faults(Callee::kLink,
                      [&](const Operation&) { return copy() ? 1 : 0; });
  int failures = 0;
  for (int64_t n = 1;; n += 11) {
    session->Truncate(prompt_.size());
    copy.Arm(n, 1);
    const Report failed = GenerateDrafted(*session, params, Choice());
    const bool happened = copy.happened();
    copy.Disarm();
    failures += failed.status.ok() ? 0 : 1;
    session->Truncate(prompt_.size());
    const Report report = GenerateDrafted(*session, params, Choice());
    ASSERT_EQ(report.tokens, expected) << "copy " << n;
    EXPECT_GT(Outer(report).ahead, 2);
    if (!happened) break;
  }
  EXPECT_GT(failures, 5);
}

// A mask that ends the call does so in a draft ahead, too, and penalties see
// the tokens that are supposed to hold.
TEST_F(DraftAheadTest, MasksAndPenaltiesAreThoseOfTheText) {
  int64_t asked = 0;
  int64_t refuses_at = 0;
  const TokenMask::Rule rule = [&](std::span<const int32_t> output,
                                   std::span<uint32_t> allowed) {
    // Every third token is even.
    for (uint32_t& word : allowed) {
      if (output.size() % 3 == 0) word &= 0x55555555u;
    }
    return ++asked == refuses_at ? CancelledError() : absl::OkStatus();
  };
  GenerateParams params = DraftedParams(0.8f, 40);
  params.distribution.repeat_penalty = 1.2f;
  params.distribution.dry = StrictDry();
  params.mask = rule;
  const Ids expected = Plain(params);
  const PolicyParams choice = Choice(Proposer::kNgram, /*branches=*/2);
  Tiered tiered = MakeTiered(*model_, OptionsOf(choice), Budget::kLeast);
  const auto session = Read(tiered);
  asked = 0;
  const Report report = GenerateDrafted(*session, params, choice);
  EXPECT_EQ(report.tokens, expected);
  EXPECT_GT(Outer(report).ahead, 0);
  const int64_t all = asked;
  for (refuses_at = 1; refuses_at <= all; refuses_at += 7) {
    session->Truncate(prompt_.size());
    asked = 0;
    EXPECT_EQ(CodeOf(GenerateDrafted(*session, params, choice).status),
              "cancelled")
        << refuses_at << " of " << all;
  }
}

TEST_F(DraftAheadTest, NeedsCoupledRoundsOverAView) {
  PolicyParams choice = Choice();
  choice.verify = VerifyMode::kResidual;
  EXPECT_EQ(CheckPolicy(*model_, choice).message(),
            "draft_ahead: needs verify coupled, under which it changes no "
            "token");
  EXPECT_EQ(CodeOf(CheckPolicy(*model_, Choice(Proposer::kSelf))),
            "invalid_argument");
  PolicyParams single = Choice();
  single.view.selection = kDraftSelection;
  EXPECT_EQ(CodeOf(CheckPolicy(*model_, single)), "invalid_argument");
  const auto two = OpenModel({.path = CheckpointPath("llama_chat.gguf"),
                              .machine = {.threads = 2},
                              .ranks = 2});
  EXPECT_EQ(CheckPolicy(*two, Choice()).message(),
            "draft_ahead: got a model of 2 ranks, need one");
  PolicyParams full = Choice(Proposer::kNgram);
  full.policy = PolicyNamed("full");
  EXPECT_EQ(CodeOf(CheckPolicy(*model_, full)), "invalid_argument");
}

}  // namespace
}  // namespace tiercel::draft_ahead_test
