#include "runtime/policies/sfi/sfi_params.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"
#include "runtime/policies/settings.h"

namespace tiercel {

absl::Status SfiParams::Set(const std::string& settings) {
  constexpr int64_t kMost = int64_t{1} << 30;
  Settings read("sfi", settings);
  read.TakeCount("interval", 1, kMost, &interval);
  int64_t given_gap = Gap();
  read.TakeCount("gap", 1, kMost, &given_gap);
  read.TakeChoice<SfiTrigger>("trigger",
                              {{"sentence", SfiTrigger::kSentence},
                               {"fixed", SfiTrigger::kFixed},
                               {"random", SfiTrigger::kRandom},
                               {"never", SfiTrigger::kNever}},
                              &trigger);
  read.TakeChoice<bool>("fire", {{"end", false}, {"start", true}}, &at_start);
  read.TakeChoice<bool>("spacing", {{"gap", false}, {"half", true}}, &half_gap);
  plain_keys = read.Given({"interval", "gap", "trigger", "spacing"});
  verified_keys = read.Given({"drafted"});
  read.TakeCount("evidence", 1, kMaxStepRows, &choice.evidence_rows);
  read.TakeCount("queries", 1, kMaxStepRows, &choice.queries);
  read.TakeCount("drafted", 0, kMaxStepRows - 1, &choice.drafted);
  read.TakeShare("decay", &choice.decay);
  read.TakeShare("prior", &choice.most_prior);
  read.TakeCount("beside", 0, kPageTokens, &choice.beside);
  if (choice.beside > 0) choice.suppression = 0;
  read.TakeShare("nms", &choice.suppression);
  read.TakeShare("exclusive", &choice.exclusivity);
  RETURN_IF_ERROR(read.Finish());
  if (interval < given_gap) {
    return UsageError("invalid_argument",
                      absl::StrCat("settings of sfi: interval: got ", interval,
                                   ", need at least the gap's ", given_gap));
  }
  if (choice.beside > 0 && choice.suppression > 0) {
    return UsageError(
        "invalid_argument",
        absl::StrCat("settings of sfi: beside: got ", choice.beside,
                     ", need 0 with nms=", choice.suppression));
  }
  gap = given_gap;
  return absl::OkStatus();
}

RetrievalSize SfiParams::View(bool plain) const {
  RetrievalSize size = {.chunk = chunk,
                        .budget = budget,
                        .sink = sink,
                        .window = window,
                        .selection = choice,
                        .must_choose = true,
                        .measures = true};
  if (plain) {
    size.keeps_types = true;
    size.selection->drafted = 0;
    const bool ends =
        trigger == SfiTrigger::kSentence || trigger == SfiTrigger::kFixed;
    size.growth =
        std::max(kMaxStepRows,
                 ends ? interval + 1 : std::numeric_limits<int64_t>::max() / 4);
  }
  return size;
}

FastSteps SfiParams::PlannedSteps() const {
  const int64_t least = Gap();
  const bool sentences = trigger == SfiTrigger::kSentence;
  const int64_t between = sentences ? (least + interval) / 2 : interval;
  // A step also reads the tokens since the last selection, on average half of
  // those between two.
  if (trigger == SfiTrigger::kNever) return {budget + window, 1};
  return {budget + window + between / 2, 1 - 1 / static_cast<double>(between)};
}

absl::StatusOr<SfiSchedule::Options> SfiOptionsOf(const Model& model,
                                                  const SfiParams& params,
                                                  PolicyForm form) {
  SfiSchedule::Options options = {.trigger = params.trigger,
                                  .interval = params.interval,
                                  .gap = params.Gap(),
                                  .at_start = params.at_start,
                                  .half_gap = params.half_gap,
                                  .everything = params.budget + params.window};
  if (model.tokenizer != nullptr) {
    options.kinds = std::make_shared<const std::vector<TokenKind>>(
        KindsOf(*model.tokenizer));
  } else if (form == PolicyForm::kPlain &&
             params.trigger == SfiTrigger::kSentence) {
    return UsageError(
        "invalid_argument",
        "settings of sfi: the checkpoint has no tokenizer to find the ends of "
        "sentences with; need trigger=fixed");
  }
  return options;
}

}  // namespace tiercel
