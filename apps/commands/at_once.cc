#include "apps/commands/at_once.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "apps/cli/error.h"
#include "apps/commands/command.h"
#include "apps/terminal/output.h"
#include "lib/status/status_macros.h"

namespace tiercel::cli {
namespace {

// The most texts that are made at once: more rows of a pass save little.
constexpr size_t kMostAtOnce = 16;

// The number of tokens that all prompts begin with.
size_t SharedTokens(const std::vector<Prompt>& prompts) {
  const std::vector<int32_t>& first = prompts.front().tokens;
  size_t shared = first.size();
  for (const Prompt& prompt : prompts) {
    const auto& own = prompt.tokens;
    const auto ends =
        std::mismatch(first.begin(), first.end(), own.begin(), own.end());
    shared = std::min(shared, static_cast<size_t>(ends.first - first.begin()));
  }
  return shared;
}

}  // namespace

bool MakesAtOnce(const Options& options, size_t texts) {
  const SamplingOptions& sampling = options.sampling;
  return texts > 1 && options.session.at_once != 1 &&
         std::string_view(sampling.Drafter()) != "small" &&
         !sampling.verify_against_full;
}

Options OptionsFor(const Options& options, const Model& model,
                   const TextSizes& texts, size_t at_once) {
  constexpr int64_t kOpenAnswer = 1024;  // the length of an answer is not known
  Options sized = options;
  sized.session.forks = static_cast<int64_t>(at_once) - 1;
  if (at_once > 1) {
    const int64_t answer = options.sampling.max_tokens;
    sized.session.fork_tokens = std::min(
        static_cast<int64_t>(texts.own) + (answer < 0 ? kOpenAnswer : answer),
        ContextOf(options, model));
  }
  return sized;
}

size_t MostAtOnce(const Options& options, const TextSizes& texts) {
  if (!MakesAtOnce(options, texts.count)) return 1;
  const int64_t asked = options.session.at_once;
  return std::min(asked > 0 ? static_cast<size_t>(asked) : kMostAtOnce,
                  texts.count);
}

std::vector<size_t> CountsAtOnce(const Options& options, const Model& model,
                                 const TextSizes& texts) {
  std::vector<std::pair<double, size_t>> rates;  // rows a second, count
  for (size_t count = MostAtOnce(options, texts); count > 0; count /= 2) {
    const Options sized = OptionsFor(options, model, texts, count);
    const absl::StatusOr<Json> plan =
        model.Plan(SessionParams(sized, nullptr).session);
    if (count > 1 && (!plan.ok() || !plan->at("fits").get<bool>())) continue;
    const bool known = plan.ok() && plan->at("tbt_ms").is_number();
    const double ms = known ? plan->at("tbt_ms").get<double>() : 1;
    rates.emplace_back(static_cast<double>(count) / std::max(ms, 1e-3), count);
  }
  std::stable_sort(
      rates.begin(), rates.end(),
      [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<size_t> counts;
  for (const auto& rate : rates) {
    counts.push_back(rate.second);
    if (rate.second == 1) break;
  }
  return counts;
}

absl::StatusOr<Together> OpenTogether(const Options& options,
                                      const Model& model,
                                      const TextSizes& texts) {
  const int64_t needed =
      std::min<int64_t>(ContextOf(options, model),
                        static_cast<int64_t>(texts.longest) +
                            std::max<int64_t>(options.sampling.max_tokens, 1));
  absl::Status status;
  for (const size_t most : CountsAtOnce(options, model, texts)) {
    auto sized =
        std::make_unique<Options>(OptionsFor(options, model, texts, most));
    absl::StatusOr<Generator> generator =
        Generator::Open(*sized, model, texts.longest);
    status = generator.status();
    if (ExitOf(status) == Exit::kMemory) continue;
    RETURN_IF_ERROR(status);
    ASSIGN_OR_RETURN(const Json report, generator->Report());
    if (most > 1 && report.at("context").get<int64_t>() < needed) continue;
    return Together{std::move(sized), *std::move(generator), most};
  }
  return status;
}

absl::Status MakeAtOnce(const Options& options, const Model& model,
                        const std::vector<Prompt>& prompts,
                        const SeedRange& seeds,
                        absl::FunctionRef<void(const Generator&)> begin,
                        EachText each) {
  std::vector<std::pair<const Prompt*, uint64_t>> jobs;
  for (const Prompt& prompt : prompts) {
    for (uint64_t i = 0; i <= seeds.last - seeds.first; ++i) {
      jobs.emplace_back(&prompt, seeds.first + i);
    }
  }
  const size_t longest = LongestOf(prompts);
  const TextSizes sizes = {jobs.size(), longest,
                           longest - SharedTokens(prompts)};
  ASSIGN_OR_RETURN(Together together, OpenTogether(options, model, sizes));
  if (together.most < MostAtOnce(options, sizes)) {
    WriteNote(absl::StrCat(together.most,
                           together.most == 1 ? " text" : " texts",
                           " at a time, as memory serves best\n"));
  }
  Generator& generator = together.generator;
  size_t count = 0;
  for (size_t first = 0; first < jobs.size(); first += count) {
    count = std::min(together.most, jobs.size() - first);
    std::deque<Generator> forks;
    std::vector<Generator::AtOnce> texts;
    RETURN_IF_ERROR(generator.Read(jobs[first].first->tokens));
    for (size_t i = 0; i < count; ++i) {
      const auto& [prompt, seed] = jobs[first + i];
      if (i > 0) {
        absl::StatusOr<Generator> fork = generator.Fork();
        if (ExitOf(fork.status()) == Exit::kMemory) {
          count = i;  // there is room for these
          break;
        }
        RETURN_IF_ERROR(fork.status());
        forks.push_back(*std::move(fork));
      }
      const bool forked = i > 0;
      texts.push_back({forked ? forks.back() : generator, *prompt,
                       /*reads=*/forked, seed, first + i});
    }
    begin(generator);
    RETURN_IF_ERROR(Generator::ContinueAtOnce(texts));
    absl::Status done;
    for (size_t i = 0; i < count; ++i) {
      const auto& [prompt, seed] = jobs[first + i];
      // Its notes come behind all texts.
      if (!options.json && !prompt->question.empty()) {
        WriteNote(absl::StrCat("# ", prompt->question, "\n"));
      }
      Generator& own = texts[i].generator;
      if (texts[i].report.ok()) generator.SayCuts(*texts[i].report);
      done.Update(each(own, *prompt, seed, count, std::move(texts[i].report)));
      if (!done.ok() && !IsInterrupted(done)) return done;
    }
    if (!done.ok()) return done;
  }
  return absl::OkStatus();
}

}  // namespace tiercel::cli
