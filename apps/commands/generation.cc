#include "apps/commands/generation.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "apps/cli/error.h"
#include "apps/commands/command.h"
#include "apps/commands/forecast.h"
#include "apps/commands/likelihood.h"
#include "apps/commands/sampling.h"
#include "apps/commands/summary.h"
#include "apps/commands/token_writer.h"
#include "apps/terminal/output.h"
#include "apps/terminal/progress.h"
#include "apps/terminal/signals.h"
#include "lib/status/status_macros.h"

namespace tiercel::cli {
namespace {

// Makes a progress callback in tokens of one in token-layers. It says so if the
// session goes on with a prompt at a layer, and notes whether the prompt is
// kept, in case a signal ends the program.
ProgressFn InTokens(const Options& options, ProgressFn draw,
                    const Session& session, int32_t layers) {
  const auto per_token = static_cast<uint64_t>(std::max(layers, 1));
  const bool goes_on = !options.book.restart;
  return [draw = std::move(draw), &session, layers, per_token, goes_on,
          said = false](uint64_t done, uint64_t total) mutable {
    if (const int32_t resumed = session.ResumedLayers(); resumed > 0 && !said) {
      said = true;
      WriteNote(absl::StrCat("going on at layer ", resumed + 1, " of ", layers,
                             "\n"));
    }
    NoteKept(session.KeptLayers() > 0 && goes_on);
    if (draw) draw(done / per_token, total / per_token);
  };
}

}  // namespace

Json DocumentOf(const Options& options, uint64_t seed, const Json& report) {
  Json document = {{"tiercel", VersionNumber()},
                   {"model", options.model.path},
                   {"policy", options.sampling.policy},
                   {"seed", seed}};
  document.update(report);
  return document;
}

absl::StatusOr<Generator> Generator::Open(const Options& options,
                                          const Model& model,
                                          size_t prompt_tokens) {
  std::vector<std::string> warnings;
  // The draft model comes first, since the session is told how much memory is
  // left.
  ASSIGN_OR_RETURN(std::optional<Model> draft, OpenDraftModel(options, model));
  const auto job_s = [&] {
    const int64_t answer = std::max<int64_t>(options.sampling.max_tokens, 0);
    const std::optional<Forecast::Times> times =
        Forecast(options, model).Of(prompt_tokens, static_cast<size_t>(answer));
    return times.has_value() ? times->Seconds() : 0;
  };
  RETURN_IF_ERROR(MeasureRates(options, model, job_s, &warnings));
  ASSIGN_OR_RETURN(Session session,
                   OpenSession(options, model, draft, prompt_tokens));
  Generator generator(options, model, std::move(draft), std::move(session));
  generator.warnings_ = std::move(warnings);
  return generator;
}

Generator::Generator(const Options& options, const Model& model,
                     std::optional<Model> draft, Session session)
    : options_(&options),
      draft_(std::move(draft)),
      session_(std::move(session)),
      as_ids_(model.info().has_tokenizer == 0),
      layers_(model.info().layers),
      vocab_(model.info().vocab) {}

// The session of a fork keeps the draft model, and its warnings are the
// first's.
Generator::Generator(Session fork, const Generator& of)
    : options_(of.options_),
      session_(std::move(fork)),
      as_ids_(of.as_ids_),
      layers_(of.layers_),
      vocab_(of.vocab_),
      prompt_(of.prompt_),
      warned_(true) {}

absl::Status Generator::Read(const std::vector<int32_t>& prompt) {
  Progress progress(options_->progress, "reading", "tokens", "tok/s");
  return Read(prompt, progress.Callback());
}

absl::Status Generator::Read(const std::vector<int32_t>& prompt,
                             const ProgressFn& progress) {
  absl::Status read =
      session_.Read(prompt, InTokens(*options_, progress, session_, layers_));
  prompt_ = session_.Length();
  return read;
}

absl::Status Generator::SayWarnings() {
  if (std::exchange(warned_, true)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Json report, session_.Report());
  WriteWarnings(report.at("warnings").get<std::vector<std::string>>());
  return absl::OkStatus();
}

absl::StatusOr<Json> Generator::Decode(uint64_t seed, const TokenFn& on_token) {
  text_.clear();
  RETURN_IF_ERROR(session_.Truncate(prompt_));
  ApiPromptCache texts;
  const absl::Status generated =
      session_.Generate(ToApi(options_->sampling, seed, &texts),
                        [&](int32_t id, std::string_view text) {
                          text_.append(text);
                          return on_token(id, text);
                        });
  if (!generated.ok()) return generated;
  return session_.Report();
}

absl::StatusOr<Json> Generator::Continue(const std::string& question,
                                         uint64_t seed) {
  RETURN_IF_ERROR(SayWarnings());
  TokenWriter writer(*options_, as_ids_, question, seed);
  RETURN_IF_ERROR(writer.Begin());
  absl::StatusOr<Json> report =
      Decode(seed, [&](int32_t id, std::string_view text) {
        return writer.Write(id, text);
      });
  const absl::Status ended = writer.End();
  if (!report.ok()) return report;
  if (!ended.ok()) return ended;
  SayCuts(*report);
  return report;
}

void Generator::SayCuts(const Json& report) {
  const std::string full = FullContextOf(report, *options_);
  if (!full.empty() && full != full_) WriteWarnings({full});
  full_ = full;
  // `generate` continues a text, which has no end of its own, so a cut is not
  // said.
  if (!options_->json && options_->command != "generate") {
    WriteNote(CutOf(report.at("output").at(0), options_->sampling));
  }
}

absl::StatusOr<Generator> Generator::Fork() const {
  ASSIGN_OR_RETURN(Session fork, session_.Fork());
  return Generator(std::move(fork), *this);
}

absl::Status Generator::ContinueAtOnce(std::vector<AtOnce>& texts) {
  Generator& first = texts.front().generator;
  RETURN_IF_ERROR(first.SayWarnings());
  const Options& options = *first.options_;
  std::vector<TokenWriter> writers;
  std::vector<ApiPromptCache> kept(texts.size());
  std::vector<Session::Generation> all;
  all.reserve(texts.size());
  for (AtOnce& text : texts) {
    writers.emplace_back(options, first.as_ids_, text.question, text.seed);
  }
  InOrder in_order(std::move(writers),
                   [&](size_t text) { return all[text].ended(); });
  for (size_t i = 0; i < texts.size(); ++i) {
    Generator& own = texts[i].generator;
    own.text_.clear();
    RETURN_IF_ERROR(own.session_.Truncate(own.prompt_));
    all.push_back({&own.session_,
                   ToApi(options.sampling, texts[i].seed, &kept[i]),
                   [&in_order, &own, i](int32_t id, std::string_view text) {
                     own.text_.append(text);
                     return in_order.Write(i, id, text);
                   }});
  }
  absl::Status made = Session::GenerateAtOnce(all);
  if (ExitOf(made) == Exit::kMemory) {  // it began none: there are no threads
    made = absl::OkStatus();
    for (size_t i = 0; i < texts.size() && made.ok(); ++i) {
      all[i].status =
          texts[i].generator.Decode(texts[i].seed, all[i].on_token).status();
      all[i].result = TIERCEL_OK;
      if (IsInterrupted(all[i].status)) break;
      made = all[i].status;
    }
  }
  if (made.ok()) made = in_order.Advance();
  made.Update(in_order.End());
  RETURN_IF_ERROR(made);
  for (size_t i = 0; i < texts.size(); ++i) {
    absl::StatusOr<Json>& report = texts[i].report;
    if (all[i].status.ok()) {
      report = texts[i].generator.session_.Report();
    } else {
      report = all[i].status;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Json> Generator::ContinueUnseen(uint64_t seed,
                                               const TokenFn& on_token) {
  return Decode(seed, on_token);
}

absl::StatusOr<std::vector<double>> Generator::LogProbabilities(
    const std::vector<int32_t>& prompt, const std::vector<int32_t>& ids) {
  // The row of a token has the probabilities of the tokens behind it.
  std::vector<int32_t> rows = {prompt.back()};
  rows.insert(rows.end(), ids.begin(), ids.end());
  rows.pop_back();
  RETURN_IF_ERROR(session_.Read({prompt.begin(), prompt.end() - 1}, nullptr));
  std::vector<double> likely;
  absl::Status scored = session_.Score(
      rows, /*rows_per_step=*/0, [&](size_t row, const float* logits) {
        likely.push_back(-NegativeLogLikelihood(logits, vocab_, ids[row]));
        return absl::OkStatus();
      });
  if (!scored.ok()) return scored;
  return likely;
}

absl::StatusOr<std::vector<float>> Generator::Attended(size_t begin, size_t end,
                                                       size_t asked,
                                                       size_t answer) {
  Progress progress(options_->progress, "looking where it read", "tokens",
                    "tok/s");
  return session_.Attended(begin, end, asked, answer, progress.Callback());
}

namespace {

// One prompt continued for one seed.
struct Run {
  std::string question;
  uint64_t seed = 0;
  Json report;         // the session's
  Json baseline;       // null: not asked for
  Json read_here;      // null: likewise
  size_t at_once = 1;  // texts that were made at once, this one included
};

size_t Longest(const std::vector<Prompt>& prompts) {
  size_t longest = 0;
  for (const Prompt& prompt : prompts) {
    longest = std::max(longest, prompt.tokens.size());
  }
  return longest;
}

SeedRange SeedsOf(const Options& options) {
  const uint64_t seed = options.sampling.seed.value_or(0);
  return options.sampling.seeds.value_or(SeedRange{seed, seed});
}

// Calls `each` for every prompt, once it is read, and every seed, in a session
// of `options` that is freed at the end.
absl::Status InOneSession(
    const Options& options, const Model& model,
    const std::vector<Prompt>& prompts,
    absl::FunctionRef<absl::Status(Generator&, const Prompt&, uint64_t)> each) {
  ASSIGN_OR_RETURN(Generator generator,
                   Generator::Open(options, model, Longest(prompts)));
  const SeedRange seeds = SeedsOf(options);
  for (const Prompt& prompt : prompts) {
    RETURN_IF_ERROR(generator.Read(prompt.tokens));
    for (uint64_t i = 0; i <= seeds.last - seeds.first; ++i) {
      RETURN_IF_ERROR(each(generator, prompt, seeds.first + i));
    }
  }
  return absl::OkStatus();
}

// Returns true if several texts are made at once: where their steps share
// passes, and no model drafts, whose memory is planned for one text. A text
// that is compared with its baseline needs its own times.
bool MakesAtOnce(const Options& options, size_t texts) {
  const SamplingOptions& sampling = options.sampling;
  return texts > 1 && options.model.tensor_parallel == 1 && !sampling.plain &&
         std::string_view(sampling.Drafter()) != "small" &&
         !sampling.verify_against_full;
}

// The most texts that are made at once: more rows of a pass save little.
constexpr size_t kMostAtOnce = 16;

// The session of texts that are made at once, and the most of them.
struct Together {
  std::unique_ptr<Options> options;  // the generator's
  Generator generator;
  size_t most;
};

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

// `options` of a session for `count` texts of `prompts` at once.
Options OptionsFor(const Options& options, const Model& model,
                   const std::vector<Prompt>& prompts, size_t count) {
  constexpr int64_t kOpenAnswer = 1024;  // the length of an answer is not known
  Options sized = options;
  sized.session.forks = static_cast<int64_t>(count) - 1;
  if (count > 1) {
    const int64_t answer = options.sampling.max_tokens;
    const size_t own = Longest(prompts) - SharedTokens(prompts);
    sized.session.fork_tokens = std::min(
        static_cast<int64_t>(own) + (answer < 0 ? kOpenAnswer : answer),
        ContextOf(options, model));
  }
  return sized;
}

// The numbers of texts to make at once, the best first, up to 1. Memory for
// forks holds fewer pages of the text that they share, so more of these cross
// the link for all: the best number gives the most rows a second.
std::vector<size_t> CountsAtOnce(const Options& options, const Model& model,
                                 const std::vector<Prompt>& prompts,
                                 size_t texts) {
  std::vector<std::pair<double, size_t>> rates;  // rows a second, count
  for (size_t count = std::min(kMostAtOnce, texts); count > 0; count /= 2) {
    const Options sized = OptionsFor(options, model, prompts, count);
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

// Opens a session with memory for as many texts at once as it has room for, if
// need be for one.
absl::StatusOr<Together> OpenTogether(const Options& options,
                                      const Model& model,
                                      const std::vector<Prompt>& prompts,
                                      size_t texts) {
  const size_t longest = Longest(prompts);
  const int64_t needed =
      std::min<int64_t>(ContextOf(options, model),
                        static_cast<int64_t>(longest) +
                            std::max<int64_t>(options.sampling.max_tokens, 1));
  absl::Status status;
  for (const size_t most : CountsAtOnce(options, model, prompts, texts)) {
    auto sized =
        std::make_unique<Options>(OptionsFor(options, model, prompts, most));
    absl::StatusOr<Generator> generator =
        Generator::Open(*sized, model, longest);
    status = generator.status();
    if (ExitOf(status) == Exit::kMemory) continue;
    RETURN_IF_ERROR(status);
    ASSIGN_OR_RETURN(const Json report, generator->Report());
    if (most > 1 && report.at("context").get<int64_t>() < needed) continue;
    if (most < std::min(kMostAtOnce, texts)) {
      WriteNote(absl::StrCat("memory serves ", most, " texts at once best\n"));
    }
    return Together{std::move(sized), *std::move(generator), most};
  }
  return status;
}

// A prompt and a seed, the number of texts that were made at once, and the text
// that they gave, or its error.
using EachText = absl::FunctionRef<absl::Status(Generator&, const Prompt&,
                                                uint64_t seed, size_t at_once,
                                                absl::StatusOr<Json> report)>;

// Makes the texts of all prompts and seeds, several at once in forks of one
// session, and calls `each` for every text, `begin` before the first of some.
// An interruption ends all of them, and each is told of its own.
absl::Status InForks(const Options& options, const Model& model,
                     const std::vector<Prompt>& prompts, const SeedRange& seeds,
                     absl::FunctionRef<void(const Generator&)> begin,
                     EachText each) {
  std::vector<std::pair<const Prompt*, uint64_t>> jobs;
  for (const Prompt& prompt : prompts) {
    for (uint64_t i = 0; i <= seeds.last - seeds.first; ++i) {
      jobs.emplace_back(&prompt, seeds.first + i);
    }
  }
  ASSIGN_OR_RETURN(Together together,
                   OpenTogether(options, model, prompts, jobs.size()));
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
        absl::Status ready = fork.status();
        if (ready.ok()) ready = fork->Read(prompt->tokens);
        if (ExitOf(ready) == Exit::kMemory) {
          count = i;  // there is room for these
          break;
        }
        RETURN_IF_ERROR(ready);
        forks.push_back(*std::move(fork));
      }
      texts.push_back(
          {i > 0 ? forks.back() : generator, prompt->question, seed});
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

// Does all runs again as their baseline and compares them.
absl::Status AddBaseline(const Options& options, const Model& model,
                         const std::vector<Prompt>& prompts,
                         std::vector<Run>* runs) {
  const auto rate = [](const Json& report) {
    const Json& value = report.at("decode_tok_s");
    return value.is_number() ? value.get<double>() : 0.0;
  };
  auto run = runs->begin();
  return InOneSession(
      BaselineOf(options, run->report), model, prompts,
      [&](Generator& generator, const Prompt&, uint64_t seed) -> absl::Status {
        Progress progress(options.progress, "decoding without drafts", "tokens",
                          "tok/s");
        const ProgressFn draw = progress.Callback();
        const size_t expected =
            run->report.at("output").at(0).at("tokens").size();
        size_t done = 0;
        ASSIGN_OR_RETURN(
            const Json report,
            generator.ContinueUnseen(seed, [&](int32_t, std::string_view) {
              ++done;
              if (draw) draw(done, expected);
              return absl::OkStatus();
            }));
        run->baseline =
            Compared(run->report, rate(run->report), report, rate(report));
        ++run;
        return absl::OkStatus();
      });
}

// The entry in "output" of one of several runs.
Json OutputOf(const Run& run, bool has_seed) {
  Json output = run.report.at("output").at(0);
  if (has_seed) output["seed"] = run.seed;
  if (!run.question.empty()) {
    output["question"] = run.question;
    for (const char* key : {"prompt_tokens", "cached_tokens", "ttft_s"}) {
      output[key] = run.report.at(key);
    }
  }
  if (!run.read_here.is_null()) output["read_here"] = run.read_here;
  return output;
}

}  // namespace

absl::Status RunGeneration(const Options& options, const Model& model,
                           const std::vector<Prompt>& prompts,
                           std::vector<std::string> warnings,
                           const CompleteFn& complete) {
  std::optional<KeepOnSignal> keep;  // set once there may be text
  std::vector<Run> runs;
  const auto begin = [&](const Generator& generator) {
    if (keep.has_value()) return;
    keep.emplace();
    warnings.insert(warnings.end(), generator.warnings().begin(),
                    generator.warnings().end());
  };
  const auto add = [&](Generator& generator, const Prompt& prompt,
                       uint64_t seed, size_t at_once,
                       absl::StatusOr<Json> report) -> absl::Status {
    absl::Status ended = report.status();
    if (IsInterrupted(ended)) report = generator.Report();
    if (!report.ok()) return ended;
    runs.push_back(
        {prompt.question, seed, *std::move(report), Json(), Json(), at_once});
    if (!ended.ok() || !prompt.read_here) return ended;
    ASSIGN_OR_RETURN(Json passages, prompt.read_here(generator));
    runs.back().read_here = std::move(passages);
    return absl::OkStatus();
  };
  const SeedRange seeds = SeedsOf(options);
  const size_t texts = prompts.size() * (seeds.last - seeds.first + 1);
  absl::Status done =
      MakesAtOnce(options, texts)
          ? InForks(options, model, prompts, seeds, begin, add)
          : InOneSession(
                options, model, prompts,
                [&](Generator& generator, const Prompt& prompt, uint64_t seed) {
                  begin(generator);
                  return add(generator, prompt, seed, /*at_once=*/1,
                             generator.Continue(prompt.question, seed));
                });
  if (done.ok() && options.sampling.verify_against_full) {
    done = AddBaseline(options, model, prompts, &runs);
  }
  const bool told = options.json && IsInterrupted(done) && !runs.empty();
  if (!done.ok() && !told) return done;

  const bool several = options.sampling.seeds.has_value();
  const bool many = several || prompts.size() > 1;
  Json document = DocumentOf(options, runs.front().seed, runs.front().report);
  for (const Json& warning : document.at("warnings")) {
    warnings.push_back(warning.get<std::string>());
  }
  for (const Run& run : runs) {
    const std::string full = FullContextOf(run.report, options);
    if (full.empty() || (!warnings.empty() && full == warnings.back())) {
      continue;
    }
    warnings.push_back(full);
  }
  document["warnings"] = std::move(warnings);
  Json outputs = Json::array();
  for (const Run& run : runs) {
    Json output = OutputOf(run, several);
    if (many) {
      output["decode_tok_s"] = run.report.at("decode_tok_s");
      output["tbt_ms"] = run.report.at("tbt_ms");
      output["at_once"] = run.at_once;
    }
    if (!run.baseline.is_null()) {
      (many ? output : document)["baseline"] = run.baseline;
      if (many && !options.json) {
        WriteNote(absl::StrCat(
            several ? absl::StrCat("seed ", run.seed) : run.question, ": ",
            AgreementOf(run.baseline, output.at("tokens").size(),
                        options.sampling),
            "\n"));
      }
    }
    outputs.push_back(std::move(output));
  }

  if (!options.json && options.statistics) {
    WriteNote(SummaryOf(document, options.sampling));
  } else if (!options.json && document.contains("baseline")) {
    WriteNote(AgreementOf(document["baseline"],
                          outputs.at(0).at("tokens").size(), options.sampling) +
              "\n");
  }
  document["output"] = std::move(outputs);
  if (complete) {
    RETURN_IF_ERROR(complete(document));
  }
  if (!options.json) return absl::OkStatus();
  const absl::Status written = WriteJson(document);
  return written.ok() && told ? InterruptedInOutput() : written;
}

}  // namespace tiercel::cli
