#include "apps/cli/check_together.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "apps/cli/error.h"
#include "apps/cli/numbers.h"
#include "apps/cli/policies.h"
#include "include/tiercel.h"
#include "lib/grammar/grammar.h"
#include "lib/reader/text.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel::cli {

namespace {

// A flag, and whether it has an effect beside the others.
struct Heeded {
  const char* flag;
  bool given;
  bool heeded;
  std::string why_not;  // "without --x" or "with --y"
};

absl::Status CheckHeeded(absl::Span<const Heeded> flags) {
  for (const Heeded& flag : flags) {
    if (!flag.given || flag.heeded) continue;
    return UsageError(
        absl::StrCat(flag.flag, ": it has no effect ", flag.why_not));
  }
  return absl::OkStatus();
}

// Checks the choice of a drafter, and that each flag of drafting has an effect.
absl::Status CheckDrafts(const Options& options) {
  const SessionOptions& session = options.session;
  const SamplingOptions& sampling = options.sampling;
  const std::string& draft = sampling.draft;
  if (draft == "small" && sampling.draft_path.empty()) {
    return UsageError(
        "--draft small: needs the model that drafts, -md,--model-draft PATH");
  }
  if (!sampling.draft_path.empty() && !draft.empty() && draft != "small") {
    return UsageError(absl::StrCat("--draft ", draft,
                                   " excludes -md,--model-draft, which is for "
                                   "--draft small"));
  }
  const bool sadas = sampling.policy == "sadas";
  const bool sfi = sampling.policy == "sfi";
  const PolicyInfo* const policy = PolicyNamed(sampling.policy);
  const bool has_plain = policy != nullptr && policy->has_plain;
  const bool has_settings = policy != nullptr && !policy->settings.empty();
  const bool drafts_over_view = sampling.policy != "full" && !sampling.plain;
  const auto heeds = [&](const char* size) {
    if (drafts_over_view || policy == nullptr) return drafts_over_view;
    const std::vector<std::string>& sizes = policy->plain_sizes;
    return std::find(sizes.begin(), sizes.end(), size) != sizes.end();
  };
  const bool drafter = std::string_view(sampling.Drafter()) != "none";
  const bool self = draft == "self";
  const bool adapts = sampling.gamma1 == TIERCEL_ADAPTIVE ||
                      sampling.gamma2 == TIERCEL_ADAPTIVE ||
                      sampling.branches == TIERCEL_ADAPTIVE;
  if (sampling.plain && !has_plain) {
    return UsageError(absl::StrCat("--plain: --policy ", sampling.policy,
                                   " has no plain form; need --policy ",
                                   PlainPolicies(" or ")));
  }
  if (sampling.plain && drafter) {
    return UsageError(
        "--plain excludes --draft and -md,--model-draft: it checks no draft");
  }
  if (!sampling.settings.empty() && !has_settings) {
    return UsageError(absl::StrCat("--set: --policy ", sampling.policy,
                                   " has no settings; need --policy ",
                                   PoliciesWithSettings(" or ")));
  }
  const bool chooses_single_tokens =
      session.chunk == 1 && sampling.policy == "triforce";
  if (session.chunk > 0 && session.chunk < 8 && !sfi &&
      !chooses_single_tokens) {
    return UsageError(absl::StrCat("--chunk: got ", session.chunk,
                                   ", need 8, 16, 32, 64 or 128; 1 with "
                                   "--policy triforce, 1, 2 or 4 with sfi"));
  }
  if (session.sink == 0 && !sadas) {
    return UsageError("--sink: got 0, need 1 or more");
  }
  const bool drafts_are_named = options.command != "eval";  // has no --draft
  const auto without = [&](const std::string& what, const char* or_draft = "") {
    return sampling.plain ? "with --plain, which neither guesses nor checks"
                          : absl::StrCat("without ", what,
                                         drafts_are_named ? or_draft : "");
  };
  const std::string named =
      absl::StrCat("--policy ", PoliciesWithViews(" or "));
  const std::string a_view = without(named);
  const std::string a_window = without(named, ", or --draft self");
  const std::string drafts =
      without(named, ", or --draft ngram, self or small");
  const Heeded kFlags[] = {
      {"--budget", session.budget > 0, heeds("budget"), a_view},
      {"--chunk", session.chunk > 0, heeds("chunk") || self, a_window},
      {"--sink", session.sink.has_value(), heeds("sink") || self, a_window},
      {"--window", session.window > 0, heeds("window") || self, a_window},
      {"--gamma1", sampling.gamma1 != 0, drafter,
       without("--draft ngram, self or small")},
      {"--gamma2", sampling.gamma2 != 0, drafts_over_view, a_view},
      {"--branches", sampling.branches != 0,
       sampling.policy == "triforce" && !sampling.plain,
       "without --policy triforce"},
      {"--draft-ahead", sampling.draft_ahead,
       sampling.policy == "triforce" && !sampling.plain &&
           std::string_view(sampling.Verify()) == "coupled",
       "without --policy triforce, or with --verify residual"},
      {"--cost-ratio", sampling.cost_ratio > 0, adapts,
       without("--gamma1 auto, --gamma2 auto or --branches auto")},
      {"--draft-layers", sampling.draft_layers > 0, self,
       without("--draft self")},
      // Without drafts both ways give the same text.
      {"--verify", !sampling.verify.empty(), sampling.HasDrafts(), drafts},
      {"--verify-against", sampling.verify_against_full, sampling.HasPolicy(),
       drafts},
  };
  return CheckHeeded(kFlags);
}

// Without --rope-scaling the checkpoint's own scaling may use these flags; the
// library checks that when it opens the model.
absl::Status CheckRope(const ModelOptions& model) {
  const bool scales = model.rope_scaling != "none";
  const bool linear = model.rope_scaling == "linear";
  return CheckHeeded(
      {{"--rope-scale", model.rope_scale > 0, scales,
        "without --rope-scaling linear or yarn"},
       {"--yarn-orig-ctx", model.yarn_orig_ctx > 0, scales,
        "without --rope-scaling yarn"},
       {"--yarn-orig-ctx", model.yarn_orig_ctx > 0,
        !linear || model.rope_scale > 0, "without --rope-scale"}});
}

// Tests without drafts draw no token: their tokens are known beforehand.
absl::Status CheckDistribution(const BenchOptions& bench,
                               const SamplingOptions& sampling) {
  const bool generates =
      std::any_of(bench.generations.begin(), bench.generations.end(),
                  [](int64_t n) { return n > 0; });
  const bool draws = generates && sampling.HasPolicy();
  const std::string by =
      generates ? absl::StrCat("without --policy ", PoliciesWithViews(" or "),
                               ", or --draft ngram, self or small")
                : "without -n,--n-gen above 0";
  return CheckHeeded(
      {{"--seed", sampling.seed.has_value(), draws, by},
       {"--temp", sampling.temperature > 0, draws, by},
       {"--top-k", sampling.top_k > 0, draws, by},
       {"--top-p", sampling.top_p < 1, draws, by},
       {"--min-p", sampling.min_p > 0, draws, by},
       {"--repeat-penalty", sampling.repeat_penalty != 1, draws, by},
       {"--dry-multiplier", sampling.dry_multiplier > 0, draws, by},
       {"--verify-against", sampling.verify_against_full, generates, by}});
}

// A cut has no effect on a greedy choice, but many scripts pass one.
void WarnOfCuts(Options* options) {
  const SamplingOptions& sampling = options->sampling;
  const bool asked_later =  // a request may have a temperature of its own
      options->command == "serve" || options->command == "batch";
  if (sampling.temperature > 0 || asked_later) return;
  const struct {
    const char* flag;
    bool given;
  } kCuts[] = {{"--top-k", sampling.top_k > 0},
               {"--top-p", sampling.top_p < 1},
               {"--min-p", sampling.min_p > 0}};
  for (const auto& [flag, given] : kCuts) {
    if (!given) continue;
    options->warnings.push_back(
        absl::StrCat(flag, ": it has no effect with --temp 0"));
  }
}

// A repeat penalty that is given replaces the default DRY penalty.
void ReplaceDefaultPenalties(SamplingOptions* sampling) {
  if (sampling->names_repeat_penalty && !sampling->names_dry_multiplier) {
    sampling->dry_multiplier = 0;
  }
}

absl::Status CheckGrammars(const SamplingOptions& sampling) {
  const bool schema = !sampling.json_schema_path.empty();
  const char* const flag = schema ? "--json-schema" : "--grammar";
  if (!schema && sampling.grammar_path.empty()) return absl::OkStatus();
  if (schema && !sampling.grammar_path.empty()) {
    return UsageError("--grammar: got --json-schema, too; need one of them");
  }
  if (const absl::Status has = CheckHasGrammars(); !has.ok()) {
    return Error(Exit::kUsage, tiercel::CodeOf(has),
                 absl::StrCat(flag, ": ", has.message()));
  }
  return CheckHeeded({{"--ignore-eos", sampling.ignore_eos, false,
                       absl::StrCat("with ", flag,
                                    ", which says where the "
                                    "answer may end")}});
}

absl::Status CheckPenalties(const SamplingOptions& sampling) {
  const bool dry = sampling.dry_multiplier > 0;
  const char* const without = "without --dry-multiplier above 0";
  return CheckHeeded(
      {{"--dry-base", sampling.dry_base.has_value(), dry, without},
       {"--dry-allowed-length", sampling.dry_allowed_length.has_value(), dry,
        without},
       {"--dry-sequence-breaker", sampling.dry_breakers.has_value(), dry,
        without}});
}

int Sources(const Options& options) {
  const InputOptions& input = options.input;
  return input.text.has_value() + input.file.has_value() +
         input.tokens_file.has_value() + !options.tokens.ids.empty();
}

absl::Status CheckSources(const Options& options) {
  const std::string& command = options.command;
  const int sources = Sources(options);
  if (sources > 1) {
    return UsageError(
        absl::StrCat(command, ": give one of -p, -f, --tokens or ids"));
  }
  if (sources == 0 && command == "generate") {
    return UsageError(
        "generate: give a text with -p TEXT, -f FILE or --tokens FILE");
  }
  if (sources == 0 && command == "eval") {
    return UsageError("eval: give a text with -f FILE or --tokens FILE");
  }
  const std::vector<std::string>& ids = options.tokens.ids;
  if (ids.size() == 1 && !ParseInt(ids[0]).has_value() &&
      access(ids[0].c_str(), F_OK) == 0) {
    return UsageError(absl::StrCat("detokenize: ID: '", ids[0],
                                   "' is a file; did you mean --tokens '",
                                   ids[0], "'?"));
  }
  for (const std::string& question : options.questions) {
    if (!reader::IsBlank(question)) continue;
    return UsageError(
        absl::StrCat("ask: QUESTION: got '", question, "', need a question"));
  }
  return absl::OkStatus();
}

// Checks the flags of a book: those of `summarize`, `ask` and `chat`.
absl::Status CheckBook(const Options& options) {
  const BookOptions& book = options.book;
  if (!book.chapters.empty() && !book.pages.empty()) {
    return UsageError("--chapters and --pages exclude each other");
  }
  if (book.restart && !book.keeps) {
    return UsageError("--restart and --no-cache exclude each other");
  }
  const bool asks = !options.questions.empty();
  if (options.command == "ask" && asks && book.toc) {
    return UsageError("ask: --toc asks nothing; leave out QUESTION");
  }
  const bool asks_in_talk = options.command == "ask" && !asks && !book.toc;
  if (asks_in_talk && IsStdin(options.document)) {
    return UsageError(
        "ask: QUESTION is required where the text is on stdin; usage: tiercel "
        "ask [FLAGS] FILE QUESTION...");
  }
  if (options.command == "chat" && IsStdin(options.document)) {
    return UsageError(
        "chat: --book: the text cannot be on stdin, where questions are typed");
  }
  if (options.command == "chat" || asks_in_talk) {
    const char* const in_chat =
        asks_in_talk ? "without QUESTION" : "in a conversation";
    const bool has_book = !options.document.empty();
    return CheckHeeded(
        {{"--json", options.json && !options.stream, false, in_chat},
         {"--stream", options.stream, false, in_chat},
         {"--verify-against", options.sampling.verify_against_full, false,
          in_chat},
         {"--output", !book.output.empty(), false, in_chat},
         {"--format", !book.format.empty(), false, in_chat},
         {"--chapters", !book.chapters.empty(), has_book, "without --book"},
         {"--pages", !book.pages.empty(), has_book, "without --book"},
         {"--chapter-pattern", !book.chapter_pattern.empty(), has_book,
          "without --book"},
         {"--effort", book.effort != 0, has_book, "without --book"},
         {"--no-cache", !book.keeps, has_book, "without --book"},
         {"--cache-size", options.session.prompt_cache_bytes != 0, has_book,
          "without --book"}});
  }
  return CheckHeeded(
      {{"--format", !book.format.empty(), !book.output.empty(),
        "without --output"},
       {"--output", !book.output.empty(), !book.toc, "with --toc"},
       {"--stream", options.stream, !book.toc, "with --toc"},
       {"--each", book.each, !book.toc, "with --toc"},
       {"--stream", options.stream, !book.each, "with --each"}});
}

// Checks the flags of `bench`, and chooses its format.
absl::Status CheckBench(Options* options) {
  BenchOptions& bench = options->bench;
  if (options->json && !bench.output.empty()) {
    return UsageError("bench: --json and --output exclude each other");
  }
  if (bench.output.empty()) bench.output = options->json ? "json" : "md";
  options->json = bench.output == "json" || bench.output == "jsonl";
  const auto is_zero = [](int64_t n) { return n == 0; };
  if (std::all_of(bench.prompts.begin(), bench.prompts.end(), is_zero) &&
      std::all_of(bench.generations.begin(), bench.generations.end(),
                  is_zero)) {
    return UsageError("bench: -p and -n are 0, no test is left");
  }
  // The last tokens of a depth are computed.
  constexpr int64_t kComputed = 64;
  if (bench.fill &&
      std::any_of(bench.depths.begin(), bench.depths.end(),
                  [](int64_t depth) { return depth <= kComputed; })) {
    return UsageError(absl::StrCat(
        "--fill: every depth -d,--n-depth must be above ", kComputed));
  }
  if (bench.fill && options->sampling.policy == "speed") {
    return UsageError("--fill: not for --policy speed, in this version");
  }
  const bool parallel =
      std::any_of(bench.parallel.begin(), bench.parallel.end(),
                  [](int64_t texts) { return texts > 1; });
  if (parallel &&
      std::any_of(bench.depths.begin(), bench.depths.end(), is_zero)) {
    return UsageError(
        "--parallel: texts that are generated at once follow a text; need -d "
        "above 0");
  }
  if (parallel && options->sampling.verify_against_full) {
    return UsageError("--parallel and --verify-against exclude each other");
  }
  RETURN_IF_ERROR(CheckDistribution(bench, options->sampling));
  if (!options->sampling.HasPolicy()) return absl::OkStatus();
  if (options->sampling.HasDrafts() && Sources(*options) == 0 && !bench.fill) {
    return UsageError(
        "bench: drafts go on from a text; give one with -f FILE or --tokens "
        "FILE");
  }
  if (std::any_of(bench.depths.begin(), bench.depths.end(), is_zero)) {
    return UsageError(
        "bench: drafts and plain forms go on from a text; every depth "
        "-d,--n-depth must be 1 or more");
  }
  return absl::OkStatus();
}

absl::Status CheckBestOf(const Options& options) {
  const SamplingOptions& sampling = options.sampling;
  if (sampling.best_of == 0) return absl::OkStatus();
  if (sampling.seeds.has_value()) {
    return UsageError("--best-of and --seeds exclude each other");
  }
  if (options.stream) {
    return UsageError(
        "--best-of: the best text is known at the end, --stream writes tokens "
        "as they come");
  }
  if (sampling.verify_against_full) {
    return UsageError("--best-of and --verify-against exclude each other");
  }
  if (sampling.best_of > 1 && sampling.temperature == 0) {
    return UsageError(
        "--best-of: all texts are the same at --temp 0; need --temp above 0");
  }
  if (sampling.seed.value_or(0) > std::numeric_limits<uint64_t>::max() -
                                      static_cast<uint64_t>(sampling.best_of)) {
    return UsageError(absl::StrCat("--best-of: there are not ",
                                   sampling.best_of, " seeds from --seed ",
                                   *sampling.seed, " on"));
  }
  return absl::OkStatus();
}

}  // namespace

bool IsStdin(const std::string& path) {
  if (path == "-") return true;
  struct stat named = {};
  struct stat typed = {};
  return stat(path.c_str(), &named) == 0 && fstat(STDIN_FILENO, &typed) == 0 &&
         named.st_dev == typed.st_dev && named.st_ino == typed.st_ino;
}

absl::Status CheckTogether(Options* options) {
  const SamplingOptions& sampling = options->sampling;
  if (sampling.seeds.has_value() && sampling.seed.has_value()) {
    return UsageError("--seeds and --seed exclude each other");
  }
  RETURN_IF_ERROR(CheckBestOf(*options));
  RETURN_IF_ERROR(CheckDrafts(*options));
  RETURN_IF_ERROR(CheckRope(options->model));
  WarnOfCuts(options);
  ReplaceDefaultPenalties(&options->sampling);
  RETURN_IF_ERROR(CheckPenalties(sampling));
  RETURN_IF_ERROR(CheckGrammars(sampling));
  RETURN_IF_ERROR(CheckSources(*options));
  if (options->session.prompt_cache_bytes != 0 &&
      options->session.prompt_cache_dir.empty()) {
    return UsageError("--cache-size and --no-cache exclude each other");
  }
  if (options->command == "bench") return CheckBench(options);
  if (options->command == "batch" && options->requests.output.empty()) {
    return UsageError("batch: give the file of the answers with -o OUT.jsonl");
  }
  RETURN_IF_ERROR(CheckBook(*options));
  if (options->command == "eval" && sampling.HasPolicy() &&
      options->eval.rows_per_step > 1) {
    return UsageError(absl::StrCat("-ub,--ubatch-size: got ",
                                   options->eval.rows_per_step,
                                   ", under a policy tokens go one at a time"));
  }
  const std::string& action = options->cache_action;
  if (options->command == "cache" && action != "list" && action != "clear") {
    return UsageError(
        absl::StrCat("cache: got '", action, "', need list or clear"));
  }
  if (options->command == "inspect" && !options->document.empty()) {
    if (!options->model.path.empty()) {
      return UsageError("inspect: MODEL and --model exclude each other");
    }
    options->model.path = options->document;
  }
  return absl::OkStatus();
}

}  // namespace tiercel::cli
