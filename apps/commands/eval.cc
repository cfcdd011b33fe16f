#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "apps/cli/error.h"
#include "apps/commands/command.h"
#include "apps/commands/input.h"
#include "apps/commands/npy.h"
#include "apps/commands/text_length.h"
#include "apps/terminal/output.h"
#include "apps/terminal/progress.h"
#include "apps/terminal/signals.h"

namespace tiercel::cli {
namespace {

// -ln softmax(logits)[id], in double. With the greatest logit taken out no
// exponential overflows, and the sum is at least 1.
double NegativeLogLikelihood(const float* logits, int64_t vocab, int32_t id) {
  const double greatest = *std::max_element(logits, logits + vocab);
  double sum = 0;
  for (int64_t i = 0; i < vocab; ++i) {
    sum += std::exp(static_cast<double>(logits[i]) - greatest);
  }
  return std::log(sum) + greatest - static_cast<double>(logits[id]);
}

std::string Table(const Json& result, double seconds) {
  const auto show = [&](const char* key, int digits) {
    return result[key].is_null() ? std::string("-")
                                 : Fixed(result[key].get<double>(), digits);
  };
  return absl::StrCat("tokens      ", result["tokens"].get<int64_t>(),
                      "\nscored      ", result["scored"].get<int64_t>(),
                      "\nnll         ", show("nll", 6), " nats per token",
                      "\nperplexity  ", show("perplexity", 4), "\nseconds     ",
                      Fixed(seconds, 2), "\n");
}

}  // namespace

absl::Status Eval(const Options& options) {
  absl::StatusOr<Model> model = OpenModel(options, TIERCEL_LOAD_HEADER);
  if (!model.ok()) return model.status();
  absl::StatusOr<std::vector<int32_t>> ids = WithinContext(
      options, *model, Answer::kNone, [&](const Model::TextLimits& limits) {
        return ReadPrompt(*model, options.input, limits);
      });
  if (!ids.ok()) return ids.status();
  if (absl::Status s = LoadModel(options, &*model); !s.ok()) return s;
  absl::StatusOr<Session> session =
      OpenSession(options, *model, std::nullopt, ids->size());
  if (!session.ok()) return session.status();

  const int64_t vocab = model->info().vocab;
  const auto tokens = static_cast<int64_t>(ids->size());
  std::optional<KeepOnSignal> keep;  // the file goes where it is not whole
  std::optional<NpyWriter> npy;
  if (!options.eval.logits_path.empty()) {
    keep.emplace();
    absl::StatusOr<NpyWriter> created =
        NpyWriter::Create(options.eval.logits_path, tokens, vocab);
    if (!created.ok()) return created.status();
    npy.emplace(*std::move(created));
  }

  double total = 0;  // nats
  const auto begin = std::chrono::steady_clock::now();
  {
    Progress progress(options.progress, "reading", "tokens", "tok/s");
    const ProgressFn draw = progress.Callback(tokens);
    const absl::Status scored = session->Score(
        *ids, static_cast<size_t>(options.eval.rows_per_step),
        [&](size_t row, const float* logits) -> absl::Status {
          if (draw) draw(row + 1, ids->size());
          // The row after the last token has nothing to be compared with.
          if (row + 1 < ids->size()) {
            total += NegativeLogLikelihood(logits, vocab, (*ids)[row + 1]);
          }
          if (!std::isfinite(total)) {
            return Error(Exit::kFailed, "non_finite_logits",
                         absl::StrCat("the logits after token ", row,
                                      " are not finite"));
          }
          return npy.has_value() ? npy->WriteRow(logits) : absl::OkStatus();
        });
    if (!scored.ok()) return scored;
  }
  const std::chrono::duration<double> elapsed =
      std::chrono::steady_clock::now() - begin;
  if (npy.has_value()) {
    if (absl::Status s = npy->Finish(); !s.ok()) return s;
  }

  Json result = {{"tokens", tokens},
                 {"scored", tokens - 1},
                 {"nll", nullptr},
                 {"perplexity", nullptr}};
  if (options.model.simulation.has_value()) result["simulated"] = true;
  if (tokens > 1) {
    const double mean = total / static_cast<double>(tokens - 1);
    result["nll"] = mean;
    result["perplexity"] = std::exp(mean);
  }
  return options.json ? WriteJson(result)
                      : WriteOut(Table(result, elapsed.count()));
}

}  // namespace tiercel::cli
