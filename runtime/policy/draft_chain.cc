#include "runtime/policy/draft_chain.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "drafts/ngram.h"
#include "drafts/verifying_drafter.h"
#include "kernels/base/error.h"
#include "runtime/drafting/retrieval_target.h"
#include "runtime/model/draft_model.h"

namespace tiercel {
namespace {

// A proposal costs the level above one more row of a pass, whether it holds or
// not: few where that is a draft's pass, more where it is a sweep.
constexpr int64_t kInnerTokens = 4;
constexpr int64_t kInnerTokensOfASweep = 8;
constexpr int64_t kOuterTokens = 16;

// What adaptive lengths count with where nothing has been measured.
constexpr double kCostRatio = 8;

// A pass of one row of the session's own model that drafts.
struct DraftStep {
  int layers = 0;
  int64_t positions = 0;  // that it attends to, at most
};

// Over all of a view, through all layers.
DraftStep StepOverView(const Session& session, const RetrievalSize& view) {
  return {session.model().config.layers,
          view.budget + view.window + view.chunk};
}

// Over its first and newest positions, through the first `layers`; 0: all.
DraftStep StepOfSelf(const Session& session, const RetrievalSize& view,
                     int layers) {
  return {layers > 0 ? layers : session.model().config.layers,
          view.sink + view.window + view.chunk};
}

double Seconds(const DraftStep& step, const Session& session,
               const Rates& rates) {
  const auto length = static_cast<int64_t>(session.tokens().size());
  const auto seen = static_cast<double>(std::min(length, step.positions));
  return step.layers * (rates.step_s + seen * rates.step_position_s) +
         rates.logits_s;
}

// A sweep at the end of the sequence.
double SweepInSteps(const DraftStep& step, const Session& session,
                    const Rates& rates) {
  const auto length = static_cast<int64_t>(session.tokens().size());
  const Prediction sweep =
      session.PredictedBy(rates, {.cached = length, .prompt = length});
  return sweep.tbt_s / Seconds(step, session, rates);
}

// A step over the whole view likewise.
double StepOverViewInSteps(const DraftStep& step, const Session& session,
                           const RetrievalSize& view, const Rates& rates) {
  return Seconds(StepOverView(session, view), session, rates) /
         Seconds(step, session, rates);
}

// A pass of one row, in what a row more costs: that is what a proposal costs
// that takes no pass of its own.
double StepInRows(const Rates& rates) {
  return rates.step_s / rates.prompt_row_s;
}

// A pass of the session's model over little context in passes of a smaller one:
// each reads its weights.
double StepInSmallSteps(const Session& session, const Model& small) {
  return static_cast<double>(session.model().weights->bytes_per_token()) /
         static_cast<double>(small.weights->bytes_per_token());
}

// A sweep at the end of the sequence in those.
double SweepInSmallSteps(const Session& session, const Model& small,
                         const Rates& rates) {
  const auto length = static_cast<int64_t>(session.tokens().size());
  const auto sweep_s = [&](int64_t at) {
    return session.PredictedBy(rates, {.cached = at, .prompt = at}).tbt_s;
  };
  return StepInSmallSteps(session, small) * sweep_s(length) / sweep_s(1);
}

// To a power of two: what rates differ by from one machine of a kind to the
// next hardly ever changes a length, and so a text.
double Rounded(double ratio) { return std::exp2(std::round(std::log2(ratio))); }

// A draft's law need not be the promised one. Without the tokens that are
// hardly ever drawn, together as good as never, most of a vocabulary costs
// nothing to weigh, to draw from and to judge by.
LawParams DraftLaw(LawParams law) {
  law.min_p = std::max(law.min_p, 1e-8f);
  return law;
}

absl::StatusOr<std::unique_ptr<SmallTarget>> MakeSmallTarget(
    const Session& session, const LawParams& law, const DraftChoice& choice) {
  if (choice.draft_model == nullptr) {
    return UsageError("no_draft_model",
                      "a small model is to draft, but none was given");
  }
  const Model& model = *choice.draft_model;
  if (absl::Status s = CheckDraftModel(session.model(), model); !s.ok()) {
    return s;
  }
  const absl::StatusOr<DraftWindow> window =
      choice.draft_window.Within(model.config.context);
  if (!window.ok()) return window.status();
  absl::StatusOr<std::unique_ptr<Session>> drafts =
      Session::Create(model, {.context = window->Context()});
  if (!drafts.ok()) return Annotate(drafts.status(), "draft model");
  (*drafts)->CancelWith(session);
  return std::make_unique<SmallTarget>(*std::move(drafts), DraftLaw(law),
                                       *window);
}

}  // namespace

absl::StatusOr<std::unique_ptr<DraftChain>> DraftChain::Create(
    Session& session, const LawParams& law, const DraftChoice& choice) {
  const bool triforce = choice.policy == Policy::kTriForce;
  if ((triforce || choice.proposer == Proposer::kSelf) &&
      session.retrieval() == nullptr) {
    return UsageError("no_retrieval_view",
                      "drafts over a view need a session that keeps one");
  }
  const int all_layers = session.model().config.layers;
  if (choice.self_layers < 0 || choice.self_layers > all_layers) {
    return UsageError("invalid_argument",
                      absl::StrCat("draft_layers: got ", choice.self_layers,
                                   ", need 0 to the model's ", all_layers));
  }
  std::unique_ptr<DraftChain> chain(new DraftChain());
  chain->verify_ = choice.verify;
  const auto add_target = [&](RetrievalTarget::Options options) {
    options.law = DraftLaw(law);
    chain->uses_view_ = true;
    chain->targets_.push_back(
        std::make_unique<RetrievalTarget>(session, options));
    return chain->targets_.back().get();
  };
  const auto add = [&](std::unique_ptr<Drafter> drafter) {
    chain->outermost_ = drafter.get();
    chain->drafters_.push_back(std::move(drafter));
  };

  switch (choice.proposer) {
    case Proposer::kNone:
      break;
    case Proposer::kNgram:
      add(std::make_unique<NgramDrafter>());
      break;
    case Proposer::kSelf:
      add(std::make_unique<VerifyingDrafter>(
          *add_target({.law = {},
                       .layers = choice.self_layers,
                       .window = session.retrieval()->size().window}),
          VerifyingDrafter::Options{.name = "self", .mode = choice.verify}));
      break;
    case Proposer::kSmall: {
      absl::StatusOr<std::unique_ptr<SmallTarget>> small =
          MakeSmallTarget(session, law, choice);
      if (!small.ok()) return small.status();
      chain->targets_.push_back(*std::move(small));
      add(std::make_unique<VerifyingDrafter>(
          *chain->targets_.back(),
          VerifyingDrafter::Options{.name = "small", .mode = choice.verify}));
      break;
    }
  }
  const auto length = [&](int64_t asked, int64_t ours, auto ratio) {
    if (asked != DraftChoice::kAdaptive) {
      return DraftLength::Fixed(asked > 0 ? asked : ours);
    }
    return DraftLength::Adaptive(choice.cost_ratio > 0 ? choice.cost_ratio
                                 : session.rates().has_value()
                                     ? Rounded(ratio(session.rates()->costs))
                                     : kCostRatio);
  };
  const auto of_self = [&] {
    return StepOfSelf(session, session.retrieval()->size(), choice.self_layers);
  };
  const auto of_a_proposal = [&](const Rates& rates) {
    switch (choice.proposer) {
      case Proposer::kSelf:
        return SweepInSteps(of_self(), session, rates);
      case Proposer::kSmall:
        return SweepInSmallSteps(session, *choice.draft_model, rates);
      case Proposer::kNone:
      case Proposer::kNgram:
        break;
    }
    return StepInRows(rates);
  };
  const auto of_an_inner_proposal = [&](const Rates& rates) {
    switch (choice.proposer) {
      case Proposer::kSelf:
        return StepOverViewInSteps(of_self(), session,
                                   session.retrieval()->size(), rates);
      case Proposer::kSmall:
        return StepInSmallSteps(session, *choice.draft_model);
      case Proposer::kNone:
      case Proposer::kNgram:
        break;
    }
    return StepInRows(rates);
  };
  const auto of_a_block = [&](const Rates& rates) {
    return SweepInSteps(StepOverView(session, session.retrieval()->size()),
                        session, rates);
  };
  if (triforce) {
    add(std::make_unique<VerifyingDrafter>(
        *add_target({}),
        VerifyingDrafter::Options{
            .name = "retrieval",
            .mode = choice.verify,
            .inner = chain->outermost_,
            .inner_length = length(choice.inner_tokens, kInnerTokens,
                                   of_an_inner_proposal)}));
    chain->draft_length_ =
        length(choice.outer_tokens, kOuterTokens, of_a_block);
  } else {
    chain->draft_length_ =
        length(choice.inner_tokens, kInnerTokensOfASweep, of_a_proposal);
  }
  return chain;
}

void DraftChain::ApplyTo(GenerateParams* params) const {
  params->drafter = outermost_;
  params->draft_length = draft_length_;
  params->over_view = uses_view_;
  params->verify = verify_;
}

}  // namespace tiercel
