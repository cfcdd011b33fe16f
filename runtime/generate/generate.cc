#include "runtime/generate/generate.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <span>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "kernels/token/log_probs.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"
#include "models/chat/chat_tokens.h"
#include "runtime/generate/answer_mask.h"

namespace tiercel {
namespace {

constexpr size_t kMostStopBytes = 4096;

absl::Status Validate(const GenerateParams& params, int64_t vocab) {
  RETURN_IF_ERROR(ValidateDistributionParams(params.distribution));
  if (params.max_tokens < 0) {
    return UsageError("invalid_sampling",
                      absl::StrCat("max_tokens: got ", params.max_tokens,
                                   ", need 0 or more"));
  }
  const int64_t top = params.top_log_probs.value_or(0);
  if (top < 0 || top > GenerateParams::kMostTopLogProbs) {
    return UsageError("invalid_sampling",
                      absl::StrCat("top_log_probs: got ", top, ", need 0 to ",
                                   GenerateParams::kMostTopLogProbs));
  }
  for (const std::string& stop : params.stops) {
    if (stop.empty() || stop.size() > kMostStopBytes) {
      return UsageError("invalid_stop",
                        absl::StrCat("stop text: got ", stop.size(),
                                     " bytes, need 1 to ", kMostStopBytes));
    }
  }
  for (const int32_t id : params.stop_ids) {
    if (id < 0 || id >= vocab) {
      return UsageError(
          "invalid_stop",
          absl::StrCat("stop id: got ", id, ", need 0 to ", vocab - 1));
    }
  }
  return absl::OkStatus();
}

// Returns the tokens that end this text: the model's ends, and those that the
// caller names by id, or by the text of a control token, which is no part of
// the text that stops are looked for in.
std::vector<int32_t> EndsOf(const Model& model, const GenerateParams& params) {
  std::vector<int32_t> ends = params.stop_ids;
  if (!params.ignore_eos) {
    ends.insert(ends.end(), model.config.eos_ids.begin(),
                model.config.eos_ids.end());
  }
  if (model.tokenizer == nullptr) return ends;
  for (const std::string& stop : params.stops) {
    const std::optional<int32_t> id = model.tokenizer->ControlNamed(stop);
    if (id.has_value()) ends.push_back(*id);
  }
  return ends;
}

// Counts a block, of which `given` tokens may belong to the text, and which
// took `seconds` since the block before.
void CountBlock(const VerifiedBlock& block, size_t given, double seconds,
                Report* report) {
  std::vector<double>& times = report->token_seconds;
  const bool first = times.empty();
  if (!first || block.drafted > 0) ++report->sweeps;
  if (given == 0) return;
  if (first) {
    // As a rule the first block is one token, whose distribution was known
    // without a sweep; any others came with it.
    times.push_back(seconds);
    times.resize(given);
  } else {
    times.insert(times.end(), given, seconds / static_cast<double>(given));
  }
}

// Gives out the tokens of a block until something ends the text, as one of
// `ends` does. Returns the reason, or "". `left` is the number of tokens that
// the text may still have; `top` is top_log_probs of GenerateParams.
absl::StatusOr<std::string> GiveOut(const VerifiedBlock& block,
                                    const Session& session,
                                    const std::vector<int32_t>& ends,
                                    std::optional<int64_t> top,
                                    Transcript& transcript, int64_t& left) {
  for (size_t i = 0; i < block.tokens.size(); ++i) {
    const int32_t token = block.tokens[i];
    if (std::find(ends.begin(), ends.end(), token) != ends.end()) {
      return "stop";
    }
    std::optional<TokenLogProbs> log_probs;
    if (top.has_value()) {
      log_probs = LogProbsOf(block.distributions[i].logits, token, *top);
    }
    ASSIGN_OR_RETURN(const bool more,
                     transcript.Push(token, std::move(log_probs)));
    --left;
    if (transcript.refused() || session.cancellation().cancelled())
      return CancelledError();
    if (!more) return "stop";
    if (left == 0) return "length";
  }
  return "";
}

// Pulls blocks until something ends the text; returns the reason. `mask` is
// what params.mask has become.
absl::StatusOr<std::string> Decode(Session& session, Policy& policy,
                                   const GenerateParams& params,
                                   TokenMask::Rule mask, Transcript& transcript,
                                   Report* report) {
  TimeSpent last = session.Elapsed();
  const std::vector<int32_t> ends = EndsOf(session.model(), params);
  DistributionParams distribution = params.distribution;
  if (mask) {
    distribution.mask = std::make_shared<TokenMask>(
        std::move(mask), std::ssize(session.sequence().tokens()), ends);
  }
  distribution.keeps_logits = params.top_log_probs.has_value();
  RETURN_IF_ERROR(policy.Begin(distribution, params.seed));
  int64_t left = params.max_tokens > 0
                     ? std::min(params.max_tokens, session.sequence().room())
                     : session.sequence().room();
  while (left > 0) {
    ASSIGN_OR_RETURN(const VerifiedBlock block, policy.NextBlock());
    const TimeSpent now = session.Elapsed();
    const double seconds = (now - std::exchange(last, now)).seconds;
    const int64_t before = left;
    absl::StatusOr<std::string> ended =
        GiveOut(block, session, ends, params.top_log_probs, transcript, left);
    CountBlock(block, static_cast<size_t>(before - left), seconds, report);
    if (!ended.ok() || !ended->empty()) return ended;
  }
  return "length";
}

// The report of a prompt of which `computed` tokens are new; `before` is the
// traffic before it.
PrefillReport ReportOf(const Session& session, int64_t computed,
                       const Traffic& before) {
  PrefillReport report;
  report.prompt_tokens = std::ssize(session.sequence().tokens());
  report.cached_tokens = report.prompt_tokens - computed;
  report.resumed_layers = session.sequence().resumed_layers();
  report.traffic = session.traffic();
  report.traffic -= before;
  return report;
}

// Has the thought of a text told from its answer, which alone `mask` (null:
// none) is then asked about. The text may begin within a thought.
absl::Status SplitThought(const Session& session, Transcript* transcript,
                          TokenMask::Rule* mask) {
  const Model& model = session.model();
  if (model.tokenizer == nullptr) return absl::OkStatus();
  ThoughtTags tags =
      ThoughtTagsOf(model.chat_template.get(), model.tokenizer.get());
  const bool thinks = BeginsThought(model.chat_template.get(), *model.tokenizer,
                                    tags, session.sequence().tokens());
  transcript->SplitThought(tags, thinks);
  if (*mask == nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(AnswerMask made,
                   AnswerMask::Create(std::move(*mask), model.tokenizer.get(),
                                      std::move(tags), thinks));
  *mask = [of_answer = std::make_shared<AnswerMask>(std::move(made))](
              std::span<const int32_t> output, std::span<uint32_t> allowed) {
    return of_answer->Ask(output, allowed);
  };
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PrefillReport> Prefill(Session& session, const int32_t* ids,
                                      size_t count,
                                      Session::Progress progress) {
  if (session.cancellation().cancelled()) return CancelledError();
  session.BeginPrompt();
  const TimeSpent start = session.Elapsed();
  const Traffic traffic = session.traffic();
  // This runs however the function ends, by an exception of a callback too.
  absl::Cleanup forget = [&] { session.AbandonPrompt(); };
  RETURN_IF_ERROR(session.Append(ids, count));
  SessionPromptCache* const cache = session.prompt_cache();
  if (cache != nullptr) {
    RETURN_IF_ERROR(cache->Open(progress));
  }
  const int64_t rows = session.sequence().pending();
  if (count > 0) {
    RETURN_IF_ERROR(session.CatchUp(Phase::kPrefill, progress));
    if (cache != nullptr) cache->Save();
  }
  PrefillReport report = ReportOf(session, rows, traffic);
  report.spent = session.Elapsed() - start;
  session.BeginAnswer(session.sequence().tokens().size());
  std::move(forget).Cancel();
  return report;
}

absl::StatusOr<PrefillReport> FillPrompt(Session& session, const int32_t* ids,
                                         size_t count, uint64_t seed,
                                         Session::Progress progress) {
  if (session.cancellation().cancelled()) return CancelledError();
  session.BeginPrompt();
  const Traffic traffic = session.traffic();
  absl::Cleanup forget = [&] { session.AbandonPrompt(); };
  // Only these tokens are filled: KV that is missing of earlier ones is
  // computed.
  if (session.sequence().pending() > 0) {
    RETURN_IF_ERROR(session.CatchUp(Phase::kPrefill));
  }
  RETURN_IF_ERROR(session.Append(ids, count));
  RETURN_IF_ERROR(session.Fill(
      session.sequence().pending() - kMaxStepRows, seed,
      [&](uint64_t done, uint64_t /*rows*/) { return progress(done, count); }));
  if (count > 0) {
    RETURN_IF_ERROR(session.CatchUp(Phase::kPrefill));
  }
  if (!progress(count, count)) return CancelledError();
  PrefillReport report = ReportOf(session, /*computed=*/0, traffic);
  session.BeginAnswer(session.sequence().tokens().size());
  std::move(forget).Cancel();
  return report;
}

Report Generate(Session& session, Policy& policy, const PrefillReport& prefill,
                const GenerateParams& params,
                const Transcript::OnToken& on_token) {
  const int64_t prompt = std::ssize(session.sequence().tokens());
  // Several generations from one prefill each report its time.
  Report report = NewReport(
      session,
      prefill.prompt_tokens == prompt
          ? prefill
          : PrefillReport{.prompt_tokens = prompt, .cached_tokens = prompt});
  report.status = Validate(params, session.model().config.vocab);
  if (!report.status.ok()) return report;
  if (session.cancellation().cancelled()) {
    report.status = CancelledError();
    report.finish_reason = "cancelled";
    return report;
  }
  const Traffic traffic = session.traffic();
  Transcript transcript(session.model().tokenizer.get(), params.stops,
                        on_token);
  report.status =
      transcript.GoOnBehind(session.sequence().tokens(), params.within_text);
  if (!report.status.ok()) return report;
  TokenMask::Rule mask = params.mask;
  if (params.split_thought) {
    report.status = SplitThought(session, &transcript, &mask);
    if (!report.status.ok()) return report;
  }
  absl::Cleanup forget = [&] {
    session.Truncate(static_cast<size_t>(prompt) + transcript.tokens().size());
  };
  absl::StatusOr<std::string> reason =
      Decode(session, policy, params, std::move(mask), transcript, &report);
  transcript.Finish();
  if (reason.ok() && transcript.refused()) reason = CancelledError();
  report.rounds = policy.report();
  if (report.rounds.schedule.has_value()) {
    ScheduleReport& schedule = *report.rounds.schedule;
    if (schedule.plain) report.sweeps = schedule.slow().steps;
    schedule.Cut(std::ssize(transcript.tokens()));
  }
  report.traffic = session.traffic();
  report.traffic -= traffic;
  report.warnings = session.warnings();
  std::move(forget).Invoke();
  report.NoteKv(session);
  report.text = transcript.text();
  if (params.split_thought) report.thought = transcript.thought();
  report.tokens = transcript.tokens();
  // A stop text takes back the tokens that it began in.
  report.token_seconds.resize(report.tokens.size());
  report.status = reason.status();
  if (reason.ok()) {
    report.finish_reason = *std::move(reason);
    // An answer that was not begun is cut, whatever ended the thought.
    if (transcript.in_thought()) report.finish_reason = "length";
  } else if (ClassOf(report.status) == ErrorClass::kCancelled) {
    report.finish_reason = "cancelled";
  }
  return report;
}

absl::Status Score(Session& session, const int32_t* ids, size_t count,
                   size_t rows_per_step,
                   absl::FunctionRef<bool(size_t, const float*)> on_row) {
  if (session.kv().site().extent.has_value()) {
    return UsageError("invalid_argument",
                      "score: rows of this session's prompts end before the "
                      "last layer; need a session of another policy or form");
  }
  if (session.cancellation().cancelled()) return CancelledError();
  // Logits are wide: many rows are computed at a time, few are read at a time.
  constexpr int64_t kRowsPerStep = 512;
  constexpr int64_t kLogitRows = 32;
  const int64_t step =
      rows_per_step == 0
          ? kRowsPerStep
          : static_cast<int64_t>(std::min<size_t>(rows_per_step, 1u << 20));
  const int64_t vocab = session.model().config.vocab;
  const size_t before = session.sequence().tokens().size();

  absl::Cleanup forget = [&] { session.Truncate(before); };
  session.DropProvisional();
  if (before > 0) {
    RETURN_IF_ERROR(session.CatchUp(Phase::kPrefill));
  }
  RETURN_IF_ERROR(session.Append(ids, count));
  size_t index = 0;
  while (session.sequence().pending() > 0) {
    const int64_t rows = std::min(step, session.sequence().pending());
    RETURN_IF_ERROR(session.Forward(rows, Phase::kPrefill, kNoProgress));
    for (int64_t row = 0; row < rows; row += kLogitRows) {
      const int64_t some = std::min(kLogitRows, rows - row);
      ASSIGN_OR_RETURN(const float* logits,
                       session.runner().RowLogits(row, some));
      for (int64_t i = 0; i < some; ++i) {
        if (session.cancellation().cancelled() ||
            !on_row(index++, logits + i * vocab)) {
          return CancelledError();
        }
      }
    }
  }
  session.BeginAnswer(session.sequence().tokens().size());
  std::move(forget).Cancel();
  return absl::OkStatus();
}

absl::Status ScoreSteps(Session& session, Policy& policy, const int32_t* ids,
                        size_t count,
                        absl::FunctionRef<bool(size_t, const float*)> on_row) {
  if (session.cancellation().cancelled()) return CancelledError();
  const size_t before = session.sequence().tokens().size();
  absl::Cleanup forget = [&] { session.Truncate(before); };
  RETURN_IF_ERROR(policy.Begin(DistributionParams(), /*seed=*/0));
  StepTarget& steps = *policy.steps();
  for (size_t i = 0; i < count; ++i) {
    RETURN_IF_ERROR(steps.Append(ids[i]));
    ASSIGN_OR_RETURN(const float* logits, steps.NextLogits());
    if (session.cancellation().cancelled() || !on_row(i, logits))
      return CancelledError();
  }
  session.BeginAnswer(session.sequence().tokens().size());
  std::move(forget).Cancel();
  return absl::OkStatus();
}

}  // namespace tiercel
