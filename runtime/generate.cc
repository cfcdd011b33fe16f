#include "runtime/generate.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "kernels/base/error.h"

namespace tiercel {
namespace {

using Clock = Report::Clock;

// The repeat penalty looks this far back, as is usual in the field.
constexpr size_t kRepeatWindow = 64;

constexpr auto kNoProgress = [](uint64_t, uint64_t) { return true; };

constexpr size_t kMostStops = 64;
constexpr size_t kMostStopBytes = 4096;

Report NewReport(const Session& session) {
  Report report;
  report.plan = session.plan();
  report.simulated = session.model().options.simulation.has_value();
  return report;
}

absl::Status Validate(const GenerateParams& params) {
  if (absl::Status s = ValidateLawParams(params.law); !s.ok()) return s;
  if (params.max_tokens < 0) {
    return UsageError("invalid_sampling",
                      absl::StrCat("max_tokens: got ", params.max_tokens,
                                   ", need 0 or more"));
  }
  if (params.stops.size() > kMostStops) {
    return UsageError("invalid_stop",
                      absl::StrCat("stop texts: got ", params.stops.size(),
                                   ", at most ", kMostStops));
  }
  for (const std::string& stop : params.stops) {
    if (stop.empty() || stop.size() > kMostStopBytes) {
      return UsageError("invalid_stop",
                        absl::StrCat("stop text: got ", stop.size(),
                                     " bytes, need 1 to ", kMostStopBytes));
    }
  }
  return absl::OkStatus();
}

bool IsEndOfText(const Model& model, int32_t id) {
  const std::vector<int32_t>& ends = model.config.eos_ids;
  return std::find(ends.begin(), ends.end(), id) != ends.end() ||
         (model.tokenizer != nullptr && model.tokenizer->eos() == id);
}

// The next token of the session by its true distribution.
absl::StatusOr<int32_t> NextToken(Session& session,
                                  const GenerateParams& params) {
  if (absl::Status s = session.CatchUp(Station::kVerify); !s.ok()) return s;
  const std::vector<int32_t>& tokens = session.tokens();
  const size_t recent = std::min(tokens.size(), kRepeatWindow);
  const absl::StatusOr<Law> law = MakeLaw(
      session.stream(), {.logits = session.NextLogits().data(),
                         .vocab = session.model().config.vocab,
                         .recent = tokens.data() + tokens.size() - recent,
                         .num_recent = static_cast<int64_t>(recent),
                         .law = params.law});
  if (!law.ok()) return law.status();
  return Draw(*law, params.seed,
              session.first_position() + static_cast<int64_t>(tokens.size()));
}

// Pulls tokens until something ends the text; returns why.
absl::StatusOr<std::string> Decode(Session& session,
                                   const GenerateParams& params,
                                   Transcript& transcript) {
  const int64_t most = params.max_tokens > 0
                           ? std::min(params.max_tokens, session.room())
                           : session.room();
  Report& report = session.report();
  Clock::time_point last = Clock::now();
  for (int64_t count = 0; count < most; ++count) {
    const Clock::time_point start = Clock::now();
    const absl::StatusOr<int32_t> token = NextToken(session, params);
    if (!token.ok()) return token.status();
    if (count == 0) {
      report.ttft_seconds = report.prefill_seconds + SecondsSince(last);
    } else {
      report.gap_seconds.push_back(SecondsSince(last));
      report.verify_seconds += SecondsSince(start);
      ++report.sweeps;
    }
    last = Clock::now();
    if (!params.ignore_eos && IsEndOfText(session.model(), *token)) {
      return "stop";
    }
    if (absl::Status s = session.Append(&*token, 1); !s.ok()) return s;
    const absl::StatusOr<bool> more = transcript.Push(*token);
    if (!more.ok()) return more.status();
    if (transcript.refused() || session.cancelled()) return CancelledError();
    if (!*more) return "stop";
  }
  return "length";
}

}  // namespace

absl::Status Prefill(Session& session, const int32_t* ids, size_t count,
                     Session::Progress progress) {
  const size_t before = session.tokens().size();
  const Clock::time_point start = Clock::now();
  const Traffic traffic = session.traffic();
  // However this ends, by an exception of a callback too.
  absl::Cleanup forget = [&] { session.Truncate(before); };
  if (absl::Status s = session.Append(ids, count); !s.ok()) return s;
  const int64_t rows = session.pending();
  if (count > 0) {
    if (absl::Status s = session.CatchUp(Station::kPrefill, progress); !s.ok())
      return s;
  }
  std::move(forget).Cancel();
  Report& report = session.report();
  report = NewReport(session);
  report.cached_tokens = static_cast<int64_t>(session.tokens().size()) - rows;
  report.prefilled_tokens = rows;
  report.prefill_seconds = SecondsSince(start);
  report.prefill_traffic = session.traffic();
  report.prefill_traffic -= traffic;
  return absl::OkStatus();
}

absl::Status Generate(Session& session, const GenerateParams& params,
                      const Transcript::OnToken& on_token) {
  if (absl::Status s = Validate(params); !s.ok()) return s;
  const size_t prompt = session.tokens().size();
  // A second generation from one prefill keeps what that prefill reported.
  Report& report = session.report();
  Report fresh = NewReport(session);
  fresh.prompt_tokens = static_cast<int64_t>(prompt);
  fresh.cached_tokens = report.cached_tokens;
  fresh.prefilled_tokens = report.prefilled_tokens;
  fresh.prefill_seconds = report.prefill_seconds;
  fresh.prefill_traffic = report.prefill_traffic;
  report = std::move(fresh);
  const Traffic traffic = session.traffic();

  Transcript transcript(session.model().tokenizer.get(), params.stops,
                        on_token);
  absl::Cleanup forget = [&] {
    session.Truncate(prompt + transcript.tokens().size());
  };
  absl::StatusOr<std::string> reason = Decode(session, params, transcript);
  transcript.Finish();
  report.decode_traffic = session.traffic();
  report.decode_traffic -= traffic;
  if (reason.ok() && transcript.refused()) reason = CancelledError();
  report.text = transcript.text();
  report.tokens = transcript.tokens();
  report.memory = session.memory();
  report.predicted = session.Predicted(
      {.cached = report.cached_tokens,
       .prompt = report.prompt_tokens,
       .generated = static_cast<int64_t>(report.tokens.size())});
  if (!reason.ok()) return reason.status();
  report.finish_reason = *std::move(reason);
  return absl::OkStatus();
}

absl::Status Score(Session& session, const int32_t* ids, size_t count,
                   size_t rows_per_step,
                   absl::FunctionRef<bool(size_t, const float*)> on_row) {
  // Logits are wide: rows are computed many at a time, looked at few at a time.
  constexpr int64_t kRowsPerStep = 512;
  constexpr int64_t kLogitRows = 32;
  const int64_t step =
      rows_per_step == 0
          ? kRowsPerStep
          : static_cast<int64_t>(std::min<size_t>(rows_per_step, 1u << 20));
  const int64_t vocab = session.model().config.vocab;
  const size_t before = session.tokens().size();

  absl::Cleanup forget = [&] { session.Truncate(before); };
  if (before > 0) {
    if (absl::Status s = session.CatchUp(Station::kPrefill); !s.ok()) return s;
  }
  if (absl::Status s = session.Append(ids, count); !s.ok()) return s;
  std::vector<float> logits;
  size_t index = 0;
  while (session.pending() > 0) {
    const int64_t rows = std::min(step, session.pending());
    if (absl::Status s = session.Forward(rows, Station::kPrefill, kNoProgress);
        !s.ok()) {
      return s;
    }
    for (int64_t row = 0; row < rows; row += kLogitRows) {
      const int64_t some = std::min(kLogitRows, rows - row);
      logits.resize(static_cast<size_t>(some * vocab));
      if (absl::Status s = session.RowLogits(row, some, logits.data());
          !s.ok()) {
        return s;
      }
      for (int64_t i = 0; i < some; ++i) {
        if (session.cancelled() ||
            !on_row(index++, logits.data() + i * vocab)) {
          return CancelledError();
        }
      }
    }
  }
  std::move(forget).Cancel();
  return absl::OkStatus();
}

}  // namespace tiercel
