// DRY looks only at the answer in the distributions of every target, and in a
// block at the drafts before each row, and at nothing of the prompt.

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/drafting/draft_window.h"
#include "runtime/drafting/model_target.h"
#include "runtime/drafting/retrieval_kv.h"
#include "runtime/drafting/session_kv.h"
#include "runtime/drafting/step_target.h"
#include "runtime/drafting/window_drafter.h"
#include "tests/drafting.h"
#include "tests/golden.h"

namespace tiercel::answer_test {
namespace {

// A plain form that reads everything.
class EveryStep final : public StepTarget {
 public:
  using StepTarget::StepTarget;

 private:
  absl::StatusOr<Speed> Step() override {
    if (absl::Status s = session().CatchUp(Phase::kFast); !s.ok()) return s;
    return Speed::kFast;
  }
  void Advance(int32_t /*id*/) override {}
};

class AnswerTest : public RepeatedTextTest<3> {
 protected:
  using DistributionsFn =
      std::function<absl::StatusOr<std::vector<Distribution>>(
          Session&, const DistributionParams&, const Ids&)>;

  // The distributions of an answer that begins with `answer` and goes on with
  // `block`.
  static std::vector<Distribution> Distributions(
      const DistributionsFn& distributions,
      const DistributionParams& distribution, const Ids& answer,
      const Ids& block) {
    const auto session =
        Prefilled(*model_, *prompt_, {.retrieval = kSmallView});
    EXPECT_TRUE(session->draft_view().CatchUp(Phase::kVerify).ok());
    EXPECT_TRUE(session->Append(answer.data(), answer.size()).ok());
    const auto made = distributions(*session, distribution, block);
    EXPECT_TRUE(made.ok()) << made.status();
    return made.ok() ? *made : std::vector<Distribution>();
  }

  static void ExpectLooksAtTheAnswer(const DistributionsFn& distributions,
                                     bool takes_blocks) {
    const DistributionParams plain = {.temperature = 1};
    DistributionParams dry = plain;
    dry.dry = {.multiplier = 3, .allowed_length = 1};
    // Both tokens are in the prompt, more than once, before other tokens.
    const int32_t x = (*prompt_)[10];
    const int32_t y = (*prompt_)[31];
    ASSERT_NE(x, y);
    ASSERT_NE((*prompt_)[11], y);
    const auto same = [](const Distribution& a, const Distribution& b) {
      return a.ids == b.ids && a.probabilities == b.probabilities;
    };
    const auto both = [&](const Ids& answer, const Ids& block) {
      const std::vector<Distribution> with =
          Distributions(distributions, dry, answer, block);
      const std::vector<Distribution> without =
          Distributions(distributions, plain, answer, block);
      std::vector<bool> equal;
      for (size_t i = 0; i < with.size(); ++i) {
        equal.push_back(same(with[i], without.at(i)));
      }
      return equal;
    };
    EXPECT_THAT(both({x}, {}), testing::ElementsAre(true));
    EXPECT_THAT(both({x, y, x}, {}), testing::ElementsAre(false));
    if (!takes_blocks) return;
    // The answer holds x, y, x from the third row on.
    EXPECT_THAT(both({x}, {y, x}), testing::ElementsAre(true, true, false));
    EXPECT_THAT(both({x, y}, {5, x}), testing::ElementsAre(true, true, false));
  }

  static absl::StatusOr<std::vector<Distribution>> Drafted(DraftTarget& target,
                                                           const Ids& tokens,
                                                           const Ids& block) {
    if (absl::Status s = target.Begin(tokens); !s.ok()) return s;
    return target.Distributions(block);
  }
};

TEST_F(AnswerTest, OfASweep) {
  ExpectLooksAtTheAnswer(
      [](Session& session, const DistributionParams& distribution,
         const Ids& block) {
        return ModelTarget(session, distribution,
                           std::make_unique<SessionKv>(session))
            .Distributions(block);
      },
      /*takes_blocks=*/true);
}

TEST_F(AnswerTest, OfAStep) {
  ExpectLooksAtTheAnswer(
      [](Session& session, const DistributionParams& distribution,
         const Ids& block) {
        return EveryStep(session, distribution).Distributions(block);
      },
      /*takes_blocks=*/false);
}

TEST_F(AnswerTest, OfAView) {
  ExpectLooksAtTheAnswer(
      [](Session& session, const DistributionParams& distribution,
         const Ids& block) {
        ModelTarget target(
            session, distribution,
            std::make_unique<RetrievalKv>(session, RetrievalKv::Options{}));
        return Drafted(target, session.sequence().tokens(), block);
      },
      /*takes_blocks=*/true);
}

TEST_F(AnswerTest, OfAWindow) {
  ExpectLooksAtTheAnswer(
      [](Session& session, const DistributionParams& distribution,
         const Ids& block) {
        ModelTarget target(
            session, distribution,
            std::make_unique<WindowKv>(session, View::Window(4, 20)));
        const Ids tokens = session.sequence().tokens();
        return Drafted(target, tokens, block);
      },
      /*takes_blocks=*/true);
}

TEST_F(AnswerTest, OfASmallModel) {
  for (const int64_t recent : {8, 512}) {
    ExpectLooksAtTheAnswer(
        [recent](Session& session, const DistributionParams& distribution,
                 const Ids& block) {
          const DraftWindow window = {.sink = 4, .recent = recent};
          const SharedTokens shared(model_->config.vocab, {});
          const auto small =
              MakeSession(*model_, {.context = window.Context()});
          ModelTarget target(
              *small, distribution,
              std::make_unique<DraftWindowKv>(
                  *small, window, shared, session.sequence().answer_begin()));
          return Drafted(target, session.sequence().tokens(), block);
        },
        /*takes_blocks=*/true);
  }
}

}  // namespace
}  // namespace tiercel::answer_test
