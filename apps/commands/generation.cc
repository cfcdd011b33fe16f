#include "apps/commands/generation.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "apps/cli/error.h"
#include "apps/commands/at_once.h"
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

size_t LongestOf(const std::vector<Prompt>& prompts) {
  size_t longest = 0;
  for (const Prompt& prompt : prompts) {
    longest = std::max(longest, prompt.tokens.size());
  }
  return longest;
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
        Forecast(options, model)
            .Of({prompt_tokens}, static_cast<size_t>(answer));
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
  WriteNewWarnings(report.at("warnings").get<std::vector<std::string>>());
  return absl::OkStatus();
}

absl::StatusOr<Json> Generator::Decode(uint64_t seed, const TokenFn& on_token) {
  text_.clear();
  thought_.clear();
  RETURN_IF_ERROR(session_.Truncate(prompt_));
  ApiTexts texts;
  const absl::Status generated = session_.Generate(
      ToApi(options_->sampling, seed, &texts), [&](const Token& token) {
        text_.append(token.text);
        thought_.append(token.thought);
        return on_token(token);
      });
  if (!generated.ok()) return generated;
  return session_.Report();
}

absl::StatusOr<Json> Generator::Continue(const std::string& question,
                                         uint64_t seed,
                                         std::optional<size_t> index) {
  RETURN_IF_ERROR(SayWarnings());
  TokenWriter writer(*options_, as_ids_, question, seed, index);
  RETURN_IF_ERROR(writer.Begin());
  absl::StatusOr<Json> report = Decode(seed, [&](const Token& token) {
    return writer.Write(token.id, token.text, token.thought);
  });
  const absl::Status ended = writer.End();
  if (!report.ok()) return report;
  if (!ended.ok()) return ended;
  SayCuts(*report);
  return report;
}

void Generator::SayCuts(const Json& report) {
  const std::string cut = CutShortOf(report, *options_);
  if (!cut.empty() && cut != said_cut_) WriteWarnings({cut});
  said_cut_ = cut;
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
  std::vector<ApiTexts> kept(texts.size());
  std::vector<BatchEntry> all;
  all.reserve(texts.size());
  for (AtOnce& text : texts) {
    writers.emplace_back(options, first.as_ids_, text.prompt.question,
                         text.seed, text.index);
  }
  // A text for which there was no room beside the others is made after them.
  const auto found_no_room = [&](size_t text) {
    return all[text].result == TIERCEL_OUT_OF_MEMORY &&
           !texts[text].generator.began_;
  };
  InOrder in_order(std::move(writers), [&](size_t text) {
    return all[text].ended() && !found_no_room(text);
  });
  for (size_t i = 0; i < texts.size(); ++i) {
    Generator& own = texts[i].generator;
    const std::vector<int32_t>& prompt = texts[i].prompt.tokens;
    own.text_.clear();
    own.thought_.clear();
    own.began_ = false;
    own.prompt_ = prompt.size();
    all.push_back({&own.session_, texts[i].reads ? &prompt : nullptr,
                   ToApi(options.sampling, texts[i].seed, &kept[i]),
                   [&in_order, &own, i](const Token& token) {
                     own.text_.append(token.text);
                     own.thought_.append(token.thought);
                     own.began_ = true;
                     return in_order.Write(i, token.id, token.text,
                                           token.thought);
                   }});
  }
  absl::Status made = GenerateBatch(all);
  const bool none = ExitOf(made) == Exit::kMemory;  // there were no threads
  if (none) made = absl::OkStatus();
  for (size_t i = 0; i < texts.size() && made.ok(); ++i) {
    Generator& own = texts[i].generator;
    if (!none && !found_no_room(i)) continue;
    absl::Status alone = own.Read(texts[i].prompt.tokens, nullptr);
    if (alone.ok()) alone = own.Decode(texts[i].seed, all[i].on_token).status();
    all[i].status = alone;
    all[i].result = TIERCEL_OK;
    if (IsInterrupted(alone)) break;
    made = alone;
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

absl::Status Generator::ContinueIn(Queue& queue, uint64_t seed,
                                   Queue::Results* results) {
  RETURN_IF_ERROR(session_.Truncate(prompt_));
  return queue.Add(session_, /*prompt=*/nullptr,
                   ToApi(options_->sampling, seed, &in_queue_), results);
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

absl::StatusOr<tiercel::Attention> Generator::Attended(
    const tiercel::Reading& reading) {
  Progress progress(options_->progress, "looking where it read", "tokens",
                    "tok/s");
  return session_.Attended(reading, progress.Callback());
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
  // The mean log-probability of its tokens; absent: it is not asked for, or
  // there are none.
  std::optional<double> likely = {};
};

// Tokens a second of all runs, over the seconds in which any of them decoded;
// null: none did.
Json RateOfAll(const std::vector<Run>& runs) {
  double tokens = 0;
  double seconds = 0;
  for (size_t first = 0; first < runs.size();) {
    const size_t end = std::min(runs.size(), first + runs[first].at_once);
    double longest = 0;
    for (; first < end; ++first) {
      const Json& report = runs[first].report;
      const Json& rate = report.at("decode_tok_s");
      if (!rate.is_number() || rate.get<double>() <= 0) continue;
      const auto decoded = static_cast<double>(
          report.at("output").at(0).at("tokens").size() - 1);
      tokens += decoded;
      longest = std::max(longest, decoded / rate.get<double>());
    }
    seconds += longest;
  }
  return seconds > 0 ? Json(tokens / seconds) : Json();
}

SeedRange SeedsOf(const Options& options) {
  const uint64_t seed = options.sampling.seed.value_or(0);
  const auto more =
      static_cast<uint64_t>(std::max<int64_t>(options.sampling.best_of, 1) - 1);
  return options.sampling.seeds.value_or(SeedRange{seed, seed + more});
}

// Calls `each` for every prompt, once it is read, and every seed, in a session
// of `options` that is freed at the end.
absl::Status InOneSession(
    const Options& options, const Model& model,
    const std::vector<Prompt>& prompts,
    absl::FunctionRef<absl::Status(Generator&, const Prompt&, uint64_t)> each) {
  ASSIGN_OR_RETURN(Generator generator,
                   Generator::Open(options, model, LongestOf(prompts)));
  const SeedRange seeds = SeedsOf(options);
  for (const Prompt& prompt : prompts) {
    RETURN_IF_ERROR(generator.Read(prompt.tokens));
    for (uint64_t i = 0; i <= seeds.last - seeds.first; ++i) {
      RETURN_IF_ERROR(each(generator, prompt, seeds.first + i));
    }
  }
  return absl::OkStatus();
}

// The mean log-probability of the tokens that `report` gave behind `prompt`;
// absent: there are none.
absl::StatusOr<std::optional<double>> MeanLogProbability(Generator& generator,
                                                         const Prompt& prompt,
                                                         const Json& report) {
  const auto ids =
      report.at("output").at(0).at("tokens").get<std::vector<int32_t>>();
  if (ids.empty()) return std::nullopt;
  ASSIGN_OR_RETURN(const std::vector<double> likely,
                   generator.LogProbabilities(prompt.tokens, ids));
  return std::accumulate(likely.begin(), likely.end(), 0.0) /
         static_cast<double>(likely.size());
}

// Leaves the run whose tokens are the likeliest, of equals the first, and
// writes its text.
absl::Status KeepBest(const Options& options, bool as_ids,
                      std::vector<Run>* runs) {
  const auto best = std::max_element(
      runs->begin(), runs->end(),
      [](const Run& a, const Run& b) { return a.likely < b.likely; });
  *runs = {*best};
  const Run& run = runs->front();
  const Json& output = run.report.at("output").at(0);
  TokenWriter writer(options, as_ids, run.question, run.seed);
  RETURN_IF_ERROR(writer.Begin());
  if (as_ids) {
    for (const Json& id : output.at("tokens")) {
      RETURN_IF_ERROR(writer.Write(id.get<int32_t>(), "", ""));
    }
  } else {
    RETURN_IF_ERROR(writer.Write(0, output.at("text").get<std::string>(), ""));
  }
  RETURN_IF_ERROR(writer.End());
  if (!options.json && options.statistics && run.likely.has_value()) {
    WriteNote(absl::StrFormat(
        "best of %d: seed %d, mean log-probability of a token %.3f\n",
        options.sampling.best_of, run.seed, *run.likely));
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
        ASSIGN_OR_RETURN(const Json report,
                         generator.ContinueUnseen(seed, [&](const Token&) {
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
    if (ended.ok() && options.sampling.best_of > 0) {
      ASSIGN_OR_RETURN(
          runs.back().likely,
          MeanLogProbability(generator, prompt, runs.back().report));
    }
    if (!ended.ok() || !prompt.read_here) return ended;
    ASSIGN_OR_RETURN(Json passages, prompt.read_here(generator));
    runs.back().read_here = std::move(passages);
    return absl::OkStatus();
  };
  const SeedRange seeds = SeedsOf(options);
  const size_t texts = prompts.size() * (seeds.last - seeds.first + 1);
  const bool best = options.sampling.best_of > 0;
  Options unseen = options;
  unseen.json = options.json || best;  // the best is written once it is known
  absl::Status done =
      MakesAtOnce(options, texts)
          ? MakeAtOnce(unseen, model, prompts, seeds, begin, add)
          : InOneSession(
                unseen, model, prompts,
                [&](Generator& generator, const Prompt& prompt, uint64_t seed) {
                  begin(generator);
                  const std::optional<size_t> index =
                      texts > 1 ? std::optional(runs.size()) : std::nullopt;
                  return add(generator, prompt, seed, /*at_once=*/1,
                             generator.Continue(prompt.question, seed, index));
                });
  if (best && !runs.empty() && (done.ok() || IsInterrupted(done))) {
    RETURN_IF_ERROR(KeepBest(options, model.info().has_tokenizer == 0, &runs));
  }
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
    const std::string cut = CutShortOf(run.report, options);
    if (cut.empty() || (!warnings.empty() && cut == warnings.back())) continue;
    warnings.push_back(cut);
  }
  document["warnings"] = std::move(warnings);
  if (many) document["decode_tok_s"] = RateOfAll(runs);
  Json outputs = Json::array();
  for (const Run& run : runs) {
    Json output = OutputOf(run, several || best);
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
    if (best) {
      output["best_of"] = options.sampling.best_of;
      output["mean_logprob"] =
          run.likely.has_value() ? Json(*run.likely) : Json();
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
