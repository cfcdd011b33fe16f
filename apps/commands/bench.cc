// tiercel bench: tests shaped and named as llama-bench's.
//
// ppN times tiercel_session_prefill of N tokens. tgN times
// tiercel_session_score of N tokens one row at a time: N decode steps, each
// with its logits, and no sampler. With drafts it times
// tiercel_session_generate of N tokens instead, which drafts and accepts the
// same tokens as `tiercel generate` does after the same context. All start
// after `depth` tokens that are read once, untimed, and are dropped back to
// them between repetitions; with --fill their K and V are random. Tokenizing is
// never timed. Every test runs once before it is timed, unless
// --no-warmup is given.
// --parallel generates in forks of that context at once, each with a seed of
// its own. --verify-against full then runs the generations again in the
// baseline's session.
#include <algorithm>
#include <chrono>
#include <ctime>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string_view>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "apps/cli/error.h"
#include "apps/commands/bench_table.h"
#include "apps/commands/command.h"
#include "apps/commands/input.h"
#include "apps/commands/queue.h"
#include "apps/commands/sampling.h"
#include "apps/commands/text_length.h"
#include "apps/commands/watched.h"
#include "apps/terminal/output.h"
#include "apps/terminal/progress.h"
#include "apps/terminal/signals.h"
#include "include/tiercel_lab.hpp"
#include "lib/status/status_macros.h"

namespace tiercel::cli {
namespace {

using Ids = std::vector<int32_t>;

int64_t Greatest(const std::vector<int64_t>& list) {
  return *std::max_element(list.begin(), list.end());
}

double BytesPerValue(const std::string& kv_type) {
  if (kv_type == "f32") return 4;
  // A block has 32 codes and a scale of two bytes.
  if (kv_type == "q8_0") return 34.0 / 32;
  if (kv_type == "q4_0") return 18.0 / 32;
  return 2;
}

// The number of positions that the tests take. With drafts the longest block
// has room after the last token, so that the end of the context cuts no draft.
int64_t Context(const Options& options) {
  constexpr int64_t kLongestBlock = 64;
  const BenchOptions& bench = options.bench;
  return Greatest(bench.depths) +
         std::max(Greatest(bench.prompts), Greatest(bench.generations)) +
         (options.sampling.HasDrafts() ? kLongestBlock : 0);
}

// Checks that the tests fit the model's context. Errors:
// context_length_exceeded, with the length that is asked for.
absl::Status CheckContext(const Options& options, const Model& model) {
  const int64_t needed = options.session.context;
  if (needed <= model.info().context) return absl::OkStatus();
  const BenchOptions& bench = options.bench;
  Options as_given = options;
  as_given.session.context = 0;  // `bench` has no -c
  const std::string advice = RoomAdvice(as_given, model, needed);
  return Error(
      Exit::kInput, "context_length_exceeded",
      absl::StrCat("-p ", Greatest(bench.prompts), ", -n ",
                   Greatest(bench.generations), ", -d ", Greatest(bench.depths),
                   ": these tests need ", needed, " tokens, the context holds ",
                   model.info().context, "; give less",
                   advice.empty() ? "" : ", or ", advice));
}

// Returns true if tgN is a generation, as the baseline of drafts is, too.
bool Generates(const Options& options) {
  return options.sampling.HasPolicy() || options.sampling.verify_against_full;
}

// The ids that the tests read, in order: the text's, else random ones, the same
// in every run. They do not include generated tokens.
absl::StatusOr<Ids> ContextIds(const Options& options, const Model& model) {
  const BenchOptions& bench = options.bench;
  const auto needed = static_cast<size_t>(
      Greatest(bench.depths) +
      std::max(Greatest(bench.prompts),
               options.sampling.HasPolicy() ? 0 : Greatest(bench.generations)));
  const InputOptions& input = options.input;
  if (!input.file.has_value() && !input.tokens_file.has_value()) {
    std::mt19937_64 random(/*seed=*/0);
    Ids ids(needed);
    for (int32_t& id : ids) {
      id = static_cast<int32_t>(random() %
                                static_cast<uint64_t>(model.info().vocab));
    }
    return ids;
  }
  absl::StatusOr<Ids> ids = ReadBeginning(model, input, needed);
  if (ids.ok() && ids->size() < needed) {
    return Error(Exit::kInput, "text_too_short",
                 absl::StrCat("the text has ", ids->size(),
                              " tokens, the tests need ", needed));
  }
  return ids;
}

std::string UtcNow() {
  const std::time_t now = std::time(nullptr);
  std::tm utc = {};
  gmtime_r(&now, &utc);
  char text[32];
  return {text, std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc)};
}

// Bytes of K and V of one position in all layers.
double KvBytesPerPosition(const Json& described,
                          const SessionOptions& session) {
  if (!described.contains("config")) return 0;
  const Json& config = described["config"];
  double values = 1;  // in K, and as many in V
  for (const char* key : {"layers", "kv_heads", "head_dim"}) {
    values *= config.at(key).get<double>();
  }
  return values *
         (BytesPerValue(session.kv_type_k) + BytesPerValue(session.kv_type_v));
}

absl::StatusOr<BenchContext> Describe(const Options& options,
                                      const Model& model) {
  ASSIGN_OR_RETURN(Json described, model.Describe());
  // All ranks share this machine, so all of their threads count.
  const auto threads =
      static_cast<int32_t>(model.info().threads * model.info().ranks);
  absl::StatusOr<Json> machine;
  {
    Progress progress(options.progress,
                      "measuring peaks of this machine:", "runs", "");
    const ProgressFn draw = progress.Callback();
    machine =
        TriedJson([&] { return tiercel::machine(threads, Watched(draw)); });
  }
  if (!machine.ok()) return machine.status();

  BenchContext context;
  std::map<std::string, int64_t> bytes_of_type;
  for (const Json& tensor : described.at("tensors")) {
    const auto bytes = tensor.at("bytes").get<int64_t>();
    bytes_of_type[tensor.at("type").get<std::string>()] += bytes;
    context.model_bytes += bytes;
  }
  const auto main_type = std::max_element(
      bytes_of_type.begin(), bytes_of_type.end(),
      [](const auto& a, const auto& b) { return a.second < b.second; });
  context.model = described.at("architecture").get<std::string>();
  if (main_type != bytes_of_type.end()) {
    absl::StrAppend(&context.model, " ", main_type->first);
  }
  context.model_file = options.model.path;
  context.parameters = described.at("parameters").get<int64_t>();
  context.threads = threads;
  context.backend =
      options.model.device == "auto" ? "cpu" : options.model.device;
  context.simulated = options.model.simulation.has_value();
  context.filled = options.bench.fill;
  context.warmed_up = options.bench.warms_up;
  context.kv_type_k = options.session.kv_type_k;
  context.kv_type_v = options.session.kv_type_v;
  context.policy = options.sampling.policy;
  context.draft = options.sampling.Drafter();
  context.compared = options.sampling.verify_against_full;
  context.promise = PromiseOf(options.sampling);
  context.weight_bytes_per_token =
      static_cast<double>(model.info().bytes_per_token);
  context.kv_bytes_per_position =
      KvBytesPerPosition(described, options.session);
  context.build = tiercel_version();
  context.date = UtcNow();
  context.machine = *std::move(machine);
  // The peaks are the CPU's, and say nothing of a GPU.
  if (context.backend == "cuda") {
    context.machine.erase("read_bytes_per_s");
  }
  if (context.simulated) context.backend += " simulated";
  if (context.filled) context.backend += " filled";
  context.warnings = PeakWarnings(context.machine);
  WriteWarnings(context.warnings);
  return context;
}

// Writes rows in the format wanted, each as soon as it is measured, but a JSON
// array at the end, for which a signal has to wait. Each warning of their
// sessions is said once.
class RowWriter {
 public:
  explicit RowWriter(const std::string& format) : format_(format) {}

  // Says the warnings of `row` that no earlier row had.
  void SayWarnings(const BenchRow& row) {
    for (const std::string& warning : row.warnings) {
      if (said_.insert(warning).second) WriteWarnings({warning});
    }
  }

  absl::Status Write(const BenchRow& row, const BenchContext& context) {
    const bool first = count_++ == 0;
    if (format_ == "md") {
      return WriteOut((first ? MarkdownHeader(context) : "") +
                      MarkdownLine(row, context));
    }
    if (format_ == "csv") {
      return WriteOut((first ? CsvHeader(row, context) : "") +
                      CsvLine(row, context));
    }
    if (format_ == "jsonl") return WriteJson(ToJson(row, context));
    if (first) keep_.emplace();
    array_.push_back(ToJson(row, context));
    return absl::OkStatus();
  }

  // Ends the output. After an error it writes the rows so far, and the error.
  absl::Status Finish(const BenchContext& context, const absl::Status& done) {
    if (!done.ok() && array_.empty()) return done;
    if (format_ == "json") {
      const absl::Status written = WriteJson(array_);
      if (done.ok() || !written.ok()) return written;
      WriteNote(absl::StrCat("tiercel: ", done.message(), "\n"));
      return IsInterrupted(done) ? InterruptedInOutput()
                                 : Error(ExitOf(done), CodeOf(done), "");
    }
    if (format_ == "md") {
      return WriteOut(absl::StrCat("\n", context.date, ", build ",
                                   context.build, "\nmachine ",
                                   Dump(context.machine), "\n"));
    }
    return absl::OkStatus();
  }

 private:
  const std::string format_;
  int64_t count_ = 0;
  std::set<std::string> said_;
  Json array_ = Json::array();
  std::optional<KeepOnSignal> keep_;  // set once there is a row to write
};

// Measures the seconds from lap to lap, the first from its construction.
class Stopwatch {
 public:
  double Lap() {
    const Clock::time_point now = Clock::now();
    return std::chrono::duration<double>(now - std::exchange(last_, now))
        .count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point last_ = Clock::now();
};

// A test that was run, and the report of its last generation; null if it does
// not generate.
struct Tested {
  BenchRow row;
  Json report;
};

// Runs the tests of one thread count.
class Bencher {
 public:
  Bencher(const Options& options, const Ids& ids, const BenchContext& context,
          Session session)
      : options_(options),
        ids_(ids),
        context_(context),
        session_(std::move(session)) {}

  absl::Status Run(absl::FunctionRef<absl::Status(Tested)> on_tested) {
    for (int64_t depth : options_.bench.depths) {
      RETURN_IF_ERROR(Rewind(0));
      RETURN_IF_ERROR(ReadDepth(depth));
      for (int64_t n : options_.bench.prompts) {
        if (n == 0) continue;
        Tested tested;
        tested.row.n_prompt = n;
        tested.row.n_depth = depth;
        RETURN_IF_ERROR(Measure(&tested.row));
        RETURN_IF_ERROR(AddReport(&tested));
        RETURN_IF_ERROR(on_tested(std::move(tested)));
      }
      for (const auto& [n, parallel] : Generations()) {
        Tested tested;
        tested.row.n_gen = n;
        tested.row.n_depth = depth;
        tested.row.parallel = parallel;
        RETURN_IF_ERROR(Measure(&tested.row));
        RETURN_IF_ERROR(AddReport(&tested));
        if (!Generates(options_) && parallel == 1) {
          AddBytes(context_, &tested.row);
        }
        RETURN_IF_ERROR(on_tested(std::move(tested)));
      }
    }
    return absl::OkStatus();
  }

 private:
  // The tokens of each test that generates, and its texts at once.
  std::vector<std::pair<int64_t, int64_t>> Generations() const {
    std::vector<std::pair<int64_t, int64_t>> tests;
    for (const int64_t n : options_.bench.generations) {
      for (const int64_t parallel : options_.bench.parallel) {
        if (n > 0) tests.emplace_back(n, parallel);
      }
    }
    return tests;
  }

  Ids Slice(int64_t begin, int64_t count) const {
    return {ids_.begin() + begin, ids_.begin() + begin + count};
  }

  absl::Status Rewind(int64_t length) {
    return session_.Truncate(static_cast<size_t>(length));
  }

  absl::Status ReadDepth(int64_t depth) {
    if (depth == 0) return absl::OkStatus();
    if (options_.bench.fill) {
      Progress progress(options_.progress, "filling", "tokens", "tok/s");
      return session_.Fill(Slice(0, depth), /*seed=*/0,
                           progress.Callback(depth));
    }
    Progress progress(options_.progress, "reading", "tokens", "tok/s");
    return session_.Prefill(Slice(0, depth), progress.Callback(depth));
  }

  // Generates in the sessions, several at once, each with a seed of its own.
  absl::Status Generate(int64_t count, const std::vector<Session*>& sessions) {
    SamplingOptions sampling = options_.sampling;
    sampling.max_tokens = count;
    sampling.ignore_eos = true;
    const TokenFn go_on = [](const Token&) { return absl::OkStatus(); };
    std::vector<ApiTexts> texts(sessions.size());
    std::vector<BatchEntry> all;
    for (size_t i = 0; i < sessions.size(); ++i) {
      all.push_back({sessions[i], /*prompt=*/nullptr,
                     ToApi(sampling, sampling.seed.value_or(0) + i, &texts[i]),
                     go_on});
    }
    if (all.size() == 1) return session_.Generate(all.front().sampling, go_on);
    RETURN_IF_ERROR(GenerateBatch(all));
    for (const BatchEntry& each : all) {
      RETURN_IF_ERROR(each.status);
    }
    return absl::OkStatus();
  }

  // Adds the report of the last repetition; all report the same.
  absl::Status AddReport(Tested* tested) {
    ASSIGN_OR_RETURN(Json report, session_.Report());
    BenchRow& row = tested->row;
    row.device_bytes = report.at("memory").at("device_bytes").get<int64_t>();
    row.warnings = report.at("warnings").get<std::vector<std::string>>();
    if (row.n_gen == 0 || !Generates(options_)) return absl::OkStatus();
    const Json& speculation = report.at("speculation");
    row.levels = speculation.at("levels");
    if (speculation.at("sweeps").get<int64_t>() > 0) {
      row.tokens_per_sweep = speculation.at("tokens_per_sweep").get<double>();
    }
    tested->report = std::move(report);
    return absl::OkStatus();
  }

  // Times one run: it reads `ids`, or generates in `sessions` if there are
  // none.
  absl::StatusOr<Repetition> Once(const BenchRow& row, const Ids& ids,
                                  const std::vector<Session*>& sessions) {
    Repetition once;
    std::vector<double> rows;
    Stopwatch whole;
    Stopwatch token;
    const absl::Status status =
        row.n_prompt > 0 ? session_.Prefill(ids, nullptr)
        : ids.empty()    ? Generate(row.n_gen, sessions)
                         : session_.Score(ids, /*rows_per_step=*/1,
                                          [&](size_t, const float*) {
                                         rows.push_back(token.Lap());
                                         return absl::OkStatus();
                                       });
    once.seconds = whole.Lap();
    if (!status.ok()) return status;
    if (!rows.empty()) once.token_seconds.push_back(std::move(rows));
    once.generated = ids.empty();
    if (!once.generated) return once;
    for (const Session* const session : sessions) {
      ASSIGN_OR_RETURN(once.token_seconds.emplace_back(),
                       session->TokenSeconds());
    }
    return once;
  }

  absl::Status Measure(BenchRow* row) {
    const bool generates =
        row->n_gen > 0 && (Generates(options_) || row->parallel > 1);
    const Ids ids =
        generates ? Ids() : Slice(row->n_depth, row->n_prompt + row->n_gen);
    std::vector<Session> forks;
    std::vector<Session*> sessions = {&session_};
    forks.reserve(static_cast<size_t>(row->parallel));
    while (std::ssize(sessions) < row->parallel) {
      ASSIGN_OR_RETURN(Session fork, session_.Fork());
      forks.push_back(std::move(fork));
      sessions.push_back(&forks.back());
    }
    const int64_t repetitions = options_.bench.repetitions;
    Progress progress(options_.progress, TestName(*row), "runs", "");
    const int64_t first = options_.bench.warms_up ? -1 : 0;
    for (int64_t i = first; i < repetitions; ++i) {
      progress.Show(i - first, repetitions - first);
      ASSIGN_OR_RETURN(const Repetition once, Once(*row, ids, sessions));
      RETURN_IF_ERROR(Rewind(row->n_depth));
      for (Session& fork : forks) {
        RETURN_IF_ERROR(fork.Truncate(static_cast<size_t>(row->n_depth)));
      }
      if (i >= 0) AddRepetition(once, row);
    }
    return absl::OkStatus();
  }

  const Options& options_;
  const Ids& ids_;
  const BenchContext& context_;
  Session session_;
};

// Runs the tests of `options` in a session and with a draft model of their own,
// which are freed at the end.
absl::Status RunTests(const Options& options, const Model& model,
                      const Ids& ids, const BenchContext& context,
                      absl::FunctionRef<absl::Status(Tested)> on_tested) {
  ASSIGN_OR_RETURN(const std::optional<Model> draft,
                   OpenDraftModel(options, model));
  ASSIGN_OR_RETURN(Session session,
                   OpenSession(options, model, draft,
                               static_cast<size_t>(options.session.context)));
  return Bencher(options, ids, context, std::move(session)).Run(on_tested);
}

// Runs the `generated` tests again as their baseline, and writes the rows with
// the comparison.
absl::Status WriteCompared(const Options& options, const Model& model,
                           const Ids& ids, const BenchContext& context,
                           std::vector<Tested> generated, RowWriter* writer) {
  if (generated.empty()) return absl::OkStatus();
  auto next = generated.begin();
  Options full = BaselineOf(options, next->report);
  full.bench.prompts.clear();
  return RunTests(full, model, ids, context, [&](const Tested& baseline) {
    BenchRow& row = next->row;
    row.baseline = Compared(next->report, Mean(row.samples_ts), baseline.report,
                            Mean(baseline.row.samples_ts));
    ++next;
    return writer->Write(row, context);
  });
}

// Runs the tests, those of --verify-against twice, and writes each row as soon
// as it is whole.
absl::Status WriteTests(const Options& options, const Model& model,
                        const Ids& ids, const BenchContext& context,
                        RowWriter* writer) {
  Options here = options;
  for (const int64_t depth : options.bench.depths) {
    here.bench.depths = {depth};
    std::vector<Tested> generated;
    const auto write = [&](Tested tested) {
      writer->SayWarnings(tested.row);
      if (!options.sampling.verify_against_full || tested.row.n_gen == 0) {
        return writer->Write(tested.row, context);
      }
      generated.push_back(std::move(tested));
      return absl::OkStatus();
    };
    RETURN_IF_ERROR(RunTests(here, model, ids, context, write));
    RETURN_IF_ERROR(
        WriteCompared(here, model, ids, context, std::move(generated), writer));
  }
  return absl::OkStatus();
}

// Runs the tests for each thread count; `context` ends as the last one's.
absl::Status WriteAllTests(const Options& options, BenchContext* context,
                           RowWriter* writer) {
  for (int64_t threads : options.bench.threads) {
    Options run = options;
    run.model.threads = static_cast<int32_t>(threads);
    run.session.context = Context(options);
    run.session.forks = Greatest(options.bench.parallel) - 1;
    if (run.session.forks > 0) {
      run.session.fork_tokens = Greatest(options.bench.generations);
    }
    ASSIGN_OR_RETURN(Model model, OpenModel(run, TIERCEL_LOAD_HEADER));
    RETURN_IF_ERROR(CheckContext(run, model));
    ASSIGN_OR_RETURN(Ids ids, ContextIds(run, model));
    RETURN_IF_ERROR(LoadModel(run, &model));
    RETURN_IF_ERROR(
        MeasureRates(run, model, /*job_s=*/nullptr, kOnStderrAlone));
    ASSIGN_OR_RETURN(*context, Describe(run, model));
    RETURN_IF_ERROR(WriteTests(run, model, ids, *context, writer));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Bench(const Options& options) {
  RowWriter writer(options.bench.output);
  BenchContext context;
  const absl::Status done = WriteAllTests(options, &context, &writer);
  return writer.Finish(context, done);
}

}  // namespace tiercel::cli
