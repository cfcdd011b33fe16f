#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "apps/cli/error.h"
#include "apps/commands/command.h"
#include "apps/commands/input.h"
#include "apps/commands/likelihood.h"
#include "apps/commands/npy.h"
#include "apps/commands/sampling.h"
#include "apps/commands/text_length.h"
#include "apps/terminal/output.h"
#include "apps/terminal/progress.h"
#include "apps/terminal/signals.h"
#include "lib/status/status_macros.h"

namespace tiercel::cli {
namespace {

using Ids = std::vector<int32_t>;

// Says the session's warnings, and adds them to `warnings`.
absl::Status SayWarnings(const Session& session,
                         std::vector<std::string>* warnings) {
  ASSIGN_OR_RETURN(const Json report, session.Report());
  const auto said = report.at("warnings").get<std::vector<std::string>>();
  WriteWarnings(said);
  warnings->insert(warnings->end(), said.begin(), said.end());
  return absl::OkStatus();
}

// Reads `ids` in a session of its own, the first options.eval.prefill of them
// as a prompt, and gives `on_row` the logits of every other row with its index
// in `ids`. The session's warnings are said before them, and added to
// `warnings`; null: neither.
absl::Status ScoreText(const Options& options, const Model& model,
                       const Ids& ids, const char* what, const RowFn& on_row,
                       std::vector<std::string>* warnings) {
  ASSIGN_OR_RETURN(Session session,
                   OpenSession(options, model, std::nullopt, ids.size()));
  const auto prompt = static_cast<size_t>(options.eval.prefill);
  Progress progress(options.progress, what, "tokens", "tok/s");
  const ProgressFn draw = progress.Callback(static_cast<int64_t>(ids.size()));
  if (prompt > 0) {
    const Ids first(ids.begin(), ids.begin() + options.eval.prefill);
    RETURN_IF_ERROR(session.Prefill(first, nullptr));
  }
  if (warnings != nullptr) {
    RETURN_IF_ERROR(SayWarnings(session, warnings));
  }
  const Ids rest(ids.begin() + options.eval.prefill, ids.end());
  return session.Score(rest, static_cast<size_t>(options.eval.rows_per_step),
                       [&](size_t row, const float* logits) {
                         if (draw) draw(prompt + row + 1, ids.size());
                         return on_row(prompt + row, logits);
                       });
}

absl::Status CheckPrefill(const Options& options, const Ids& ids) {
  if (options.eval.prefill < static_cast<int64_t>(ids.size())) {
    return absl::OkStatus();
  }
  return Error(
      Exit::kInput, "text_too_short",
      absl::StrCat("--prefill ", options.eval.prefill, ": the text has ",
                   ids.size(), " tokens, it needs one more"));
}

Json MeanOf(double total, int64_t count) {
  return count > 0 ? Json(total / static_cast<double>(count)) : Json(nullptr);
}

Json PerplexityOf(const Json& nll) {
  return nll.is_null() ? Json(nullptr) : Json(std::exp(nll.get<double>()));
}

// The figures of `result` as a table, with those of --verify-against if any.
std::string Table(const Json& result, double seconds) {
  const auto show = [](const Json& figure, int digits) {
    return figure.is_null() ? std::string("-")
                            : Fixed(figure.get<double>(), digits);
  };
  std::string table = absl::StrCat(
      "tokens      ", result["tokens"].get<int64_t>(), "\nscored      ",
      result["scored"].get<int64_t>(), "\nnll         ", show(result["nll"], 6),
      " nats per token\nperplexity  ", show(result["perplexity"], 4), "\n");
  if (result.contains("kl")) {
    absl::StrAppend(&table, "... of full  ", show(result["perplexity_full"], 4),
                    "\nmean KL     ", show(result["kl"]["mean"], 6),
                    "\np99 KL      ", show(result["kl"]["p99"], 6),
                    "\ntop-1       ", show(result["top1"], 4), "\n");
  }
  return absl::StrCat(table, "seconds     ", Fixed(seconds, 2), "\n");
}

// Adds the divergence of the rows of `distributions` from those of the full
// model.
absl::Status Compare(const Options& options, const Model& model, const Ids& ids,
                     LogitsFile& distributions, Json* result) {
  Options full = BaselineOf(options, {{"context", options.session.context}});
  full.eval.rows_per_step = 0;
  Divergence divergence(model.info().vocab);
  double total = 0;
  int64_t scored = 0;
  const absl::Status status = ScoreText(
      full, model, ids, "comparing",
      [&](size_t row, const float* logits) -> absl::Status {
        ASSIGN_OR_RETURN(const float* other, distributions.Next());
        divergence.Add(logits, other);
        if (row + 1 < ids.size()) {
          total +=
              NegativeLogLikelihood(logits, model.info().vocab, ids[row + 1]);
          ++scored;
        }
        return absl::OkStatus();
      },
      /*warnings=*/nullptr);
  if (!status.ok()) return status;
  (*result)["kl"] = {{"mean", divergence.MeanKl()},
                     {"p99", divergence.P99Kl()}};
  (*result)["top1"] = divergence.Top1();
  (*result)["perplexity_full"] = PerplexityOf(MeanOf(total, scored));
  return absl::OkStatus();
}

}  // namespace

absl::Status Eval(const Options& asked) {
  ASSIGN_OR_RETURN(Model model, OpenModel(asked, TIERCEL_LOAD_HEADER));
  ASSIGN_OR_RETURN(
      Ids ids,
      WithinContext(asked, model, Answer::kNone, [&](const TextLimits& limits) {
        return ReadPrompt(model, asked.input, limits);
      }));
  ASSIGN_OR_RETURN(const Options options,
                   ForLength(asked, model, static_cast<int64_t>(ids.size())));
  RETURN_IF_ERROR(CheckPrefill(options, ids));
  RETURN_IF_ERROR(LoadModel(options, &model));

  const int64_t vocab = model.info().vocab;
  const auto tokens = static_cast<int64_t>(ids.size());
  const int64_t prefill = options.eval.prefill;
  std::optional<KeepOnSignal> keep;  // so that an unfinished file goes
  std::optional<NpyWriter> npy;
  if (!options.eval.logits_path.empty()) {
    keep.emplace();
    ASSIGN_OR_RETURN(
        NpyWriter created,
        NpyWriter::Create(options.eval.logits_path, tokens - prefill, vocab));
    npy.emplace(std::move(created));
  }
  std::optional<LogitsFile> distributions;
  if (options.sampling.verify_against_full) {
    ASSIGN_OR_RETURN(LogitsFile created, LogitsFile::Create(vocab));
    distributions.emplace(std::move(created));
  }

  std::vector<std::string> warnings = options.warnings;
  double total = 0;  // in nats
  int64_t scored = 0;
  const auto begin = std::chrono::steady_clock::now();
  const absl::Status status = ScoreText(
      options, model, ids, "reading",
      [&](size_t row, const float* logits) -> absl::Status {
        // The row of the last token has no next token to be scored with.
        if (row + 1 < ids.size()) {
          total += NegativeLogLikelihood(logits, vocab, ids[row + 1]);
          ++scored;
        }
        if (!std::isfinite(total)) {
          return Error(
              Exit::kFailed, "non_finite_logits",
              absl::StrCat("the logits after token ", row, " are not finite"));
        }
        if (distributions.has_value()) {
          RETURN_IF_ERROR(distributions->Add(logits));
        }
        return npy.has_value() ? npy->WriteRow(logits) : absl::OkStatus();
      },
      &warnings);
  if (!status.ok()) return status;
  const std::chrono::duration<double> elapsed =
      std::chrono::steady_clock::now() - begin;
  if (npy.has_value()) {
    RETURN_IF_ERROR(npy->Finish());
  }

  const Json nll = MeanOf(total, scored);
  Json result = {{"tokens", tokens},
                 {"scored", scored},
                 {"nll", nll},
                 {"perplexity", PerplexityOf(nll)},
                 {"warnings", warnings}};
  if (options.model.simulation.has_value()) result["simulated"] = true;
  if (prefill > 0) result["prefill"] = prefill;
  if (options.sampling.HasPolicy()) result["policy"] = options.sampling.policy;
  if (distributions.has_value()) {
    RETURN_IF_ERROR(Compare(options, model, ids, *distributions, &result));
  }
  return options.json ? WriteJson(result)
                      : WriteProse(Table(result, elapsed.count()));
}

}  // namespace tiercel::cli
