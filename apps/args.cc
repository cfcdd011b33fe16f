#include "apps/args.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "apps/error.h"
#include "apps/flags.h"
#include "apps/sampling.h"
#include "include/tiercel.h"

namespace tiercel::cli {
namespace {

constexpr int64_t kMaxTokens = std::numeric_limits<int32_t>::max();
constexpr int64_t kMaxThreads = 1024;
constexpr uint64_t kMaxSeeds = 1'000'000;
constexpr int64_t kMaxDraftTokens = 63;
constexpr size_t kMaxStops = 64;
constexpr size_t kMaxStopBytes = 4096;

struct Command {
  const char* name;
  const char* description;
  void (*add_flags)(FlagSet& flags, Options* options);  // null: not built
};

void AddModelFlags(FlagSet& flags, ModelOptions* model) {
  flags.Text("-m,--model", "PATH",
             "GGUF file (the first of a split), or a safetensors directory; "
             "default $TIERCEL_MODEL, then what demo.sh installed",
             [=](const std::string& path) { model->path = path; });
}

// For commands that compute.
void AddRunFlags(FlagSet& flags, ModelOptions* model) {
  flags.Text("--device", "auto|cpu|ref",
             "where to compute; ref: every operation in plain loops",
             [=](const std::string& device) {
               if (device == "cuda") FlagSet::RejectNotBuilt("--device cuda");
               if (device != "auto" && device != "cpu" && device != "ref") {
                 FlagSet::Reject("--device", "auto, cpu, ref", device);
               }
               model->device = device;
             });
  flags.Choice("--compute", {"q8", "f32"},
               "activations that meet quantised weights (default q8)",
               &model->compute);
  flags.Switch("--deterministic",
               "results independent of threads and timing; on the CPU they "
               "always are",
               [] {});
  flags.Switch("--check-tensors", "refuse weights with NaN or infinity",
               [=] { model->check_tensors = true; });
  flags.Text("--simulate", "device=SIZE,link=RATE[,latency=US]",
             "a device of this size behind a link of this rate "
             "(24GiB, 25GB/s), played by the CPU",
             [=](const std::string& text) {
               model->simulation = ParseSimulation(text);
               if (!model->simulation.has_value()) {
                 FlagSet::Reject("--simulate",
                                 "device=SIZE,link=SIZE/s[,latency=US]", text);
               }
             });
  flags.Text("--device-memory", "SIZE",
             "most memory to take (8GiB); default: what is free",
             [=](const std::string& text) {
               const std::optional<double> bytes = ParseSize(text);
               if (!bytes.has_value() || *bytes < 1) {
                 FlagSet::Reject("--device-memory", "a size as 8GiB", text);
               }
               model->memory_bytes = static_cast<uint64_t>(*bytes);
             });
  flags.Choice("--rope-scaling", {"none", "linear", "yarn"},
               "instead of the checkpoint's", &model->rope_scaling);
  flags.Real("--rope-scale", "the context is longer by this factor", 1,
             FlagSet::Low::kIncluded, 4096, &model->rope_scale);
  flags.Real("--rope-freq-base", "instead of the checkpoint's", 0,
             FlagSet::Low::kExcluded, 1e12, &model->rope_freq_base);
  flags.Int("--yarn-orig-ctx", "the context the model was trained with", 1,
            kMaxTokens, [=](int64_t n) { model->yarn_orig_ctx = n; });
}

void AddThreadsFlag(FlagSet& flags, ModelOptions* model) {
  flags.Int("-t,--threads", "default: all CPUs this process may use", 1,
            kMaxThreads,
            [=](int64_t n) { model->threads = static_cast<int32_t>(n); });
}

void AddContextFlag(FlagSet& flags, SessionOptions* session) {
  flags.Int("-c,--ctx-size", "most tokens in the context; 0: the checkpoint's",
            0, kMaxTokens, [=](int64_t n) { session->context = n; });
}

void AddCacheTypeFlags(FlagSet& flags, SessionOptions* session) {
  const std::vector<std::string> types = {"f16", "bf16", "f32", "q8_0"};
  flags.Choice("--cache-type-k", types,
               "-ctk: type of cached keys (default f16)", &session->kv_type_k);
  flags.Choice("--cache-type-v", types,
               "-ctv: type of cached values (default f16)",
               &session->kv_type_v);
}

void RejectPolicy(const std::string& policy, const char* allowed) {
  for (const char* known : {"triforce", "sfi", "sadas", "speed"}) {
    if (policy == known) FlagSet::RejectNotBuilt("--policy " + policy);
  }
  FlagSet::Reject("--policy", allowed, policy);
}

// Of a command that knows no other policy.
void AddFullPolicyFlag(FlagSet& flags) {
  flags.Text("--policy", "full", "what each step reads: everything",
             [](const std::string& policy) {
               if (policy != "full") RejectPolicy(policy, "full");
             });
}

// What each step reads.
void AddPolicyFlags(FlagSet& flags, SessionOptions* session,
                    SamplingOptions* sampling) {
  flags.Text("--policy", "full|triforce",
             "what each step reads: everything (default); or a view of what "
             "matters, whose tokens everything then checks",
             [=](const std::string& policy) {
               if (policy != "full" && policy != "triforce") {
                 RejectPolicy(policy, "full, triforce");
               }
               sampling->policy = policy;
             });
  flags.Int("--budget", "tokens that the view chooses (default 1024)", 1,
            kMaxTokens, [=](int64_t n) { session->budget = n; });
  flags.Int("--chunk", "... in runs of 8, 16, 32 (default), 64 or 128", 8, 128,
            [=](int64_t n) {
              if ((n & (n - 1)) != 0) {
                FlagSet::Reject("--chunk", "8, 16, 32, 64 or 128",
                                std::to_string(n));
              }
              session->chunk = static_cast<int32_t>(n);
            });
  flags.Int("--sink", "of them, the first of the text (default 32)", 1,
            kMaxTokens, [=](int64_t n) { session->sink = n; });
  flags.Int("--window", "newest tokens, besides (default 64)", 1, kMaxTokens,
            [=](int64_t n) { session->window = n; });
}

// Who proposes tokens and how they are checked.
void AddSpeculationFlags(FlagSet& flags, SamplingOptions* sampling) {
  flags.Choice("--draft", {"none", "ngram", "self", "small"},
               "who proposes tokens that the model then checks: nobody "
               "(default with full), the text itself where it repeats (default "
               "with triforce), the model over the newest tokens, another "
               "model (default with -md)",
               &sampling->draft);
  flags.Text(
      "--model-draft", "PATH",
      "-md: a faster model with the same tokens, for --draft small; what "
      "it takes is in no plan, and on no simulated device",
      [=](const std::string& path) { sampling->draft_path = path; });
  flags.Int(
      "--draft-layers",
      "of --draft self: its first N layers draft (default: all)", 1, kMaxTokens,
      [=](int64_t n) { sampling->draft_layers = static_cast<int32_t>(n); });
  flags.Choice("--verify", {"residual", "coupled"},
               "residual (default): most proposals hold; coupled: the text is "
               "that of --policy full --draft none for the same seed",
               &sampling->verify);
  const auto length = [&](const char* name, const char* help, int32_t* to) {
    flags.Text(name, "N|auto", help, [=](const std::string& text) {
      if (text == "auto") {
        *to = TIERCEL_ADAPTIVE;
        return;
      }
      const std::optional<int64_t> n = ParseInt(text);
      if (!n.has_value() || *n < 1 || *n > kMaxDraftTokens) {
        FlagSet::Reject(name, "1 to 63, or auto", text);
      }
      *to = static_cast<int32_t>(*n);
    });
  };
  length("--gamma1",
         "propose at most N tokens at a time (default 8; 4 with triforce)",
         &sampling->draft_tokens);
  length("--gamma2", "triforce: check N tokens at a time (default 16)",
         &sampling->block_tokens);
  flags.Real("--cost-ratio",
             "of auto: a check costs as much as so many drafted tokens "
             "(default: as predicted)",
             0, FlagSet::Low::kExcluded, 1e6, &sampling->cost_ratio);
}

void AddVerifyAgainstFlag(FlagSet& flags, SamplingOptions* sampling) {
  flags.Text("--verify-against", "full",
             "also run without drafts, and say whether the texts agree and how "
             "much slower that was",
             [=](const std::string& policy) {
               if (policy != "full") {
                 FlagSet::Reject("--verify-against", "full", policy);
               }
               sampling->verify_against_full = true;
             });
}

// The law of a token, and the seed of its draw.
void AddLawFlags(FlagSet& flags, SamplingOptions* sampling) {
  flags.Text("-s,--seed", "N", "default 0", [=](const std::string& value) {
    const std::optional<uint64_t> seed = ParseUnsigned(value);
    if (!seed.has_value()) {
      FlagSet::Reject("-s,--seed", "an integer from 0 to 2^64-1", value);
    }
    sampling->seed = seed;
  });
  flags.Real("--temp,--temperature", "0 (default): greedy", 0,
             FlagSet::Low::kIncluded, 100, &sampling->temperature);
  flags.Int("--top-k", "keep the k likeliest; 0 (default): all", 0, kMaxTokens,
            [=](int64_t k) { sampling->top_k = static_cast<int32_t>(k); });
  flags.Real("--top-p",
             "keep the likeliest up to this probability, with the one that "
             "crosses; 1 (default): all",
             0, FlagSet::Low::kExcluded, 1, &sampling->top_p);
  flags.Real("--min-p",
             "drop what is less likely than this times the likeliest; "
             "0 (default): nothing",
             0, FlagSet::Low::kIncluded, 1, &sampling->min_p);
  flags.Real("--repeat-penalty", "over the last 64 tokens; 1 (default): none",
             0, FlagSet::Low::kExcluded, 100, &sampling->repeat_penalty);
}

void AddSamplingFlags(FlagSet& flags, SamplingOptions* sampling) {
  flags.Int("-n,--n-predict,--predict",
            absl::StrCat("most tokens to generate; -1: no limit (default ",
                         sampling->max_tokens, ")"),
            -1, kMaxTokens, [=](int64_t n) {
              if (n == 0) {
                FlagSet::Reject("-n,--n-predict", "-1, or a number above 0",
                                "0");
              }
              sampling->max_tokens = n;
            });
  AddLawFlags(flags, sampling);
  flags.RepeatableText(
      "--stop", "TEXT", "end the output before this text; repeatable",
      [=](const std::string& stop) {
        if (stop.size() > kMaxStopBytes) {
          FlagSet::Reject("--stop",
                          absl::StrCat("at most ", kMaxStopBytes, " bytes"),
                          absl::StrCat(stop.substr(0, 20), "..."));
        }
        if (sampling->stops.size() == kMaxStops) {
          FlagSet::Reject("--stop",
                          absl::StrCat("at most ", kMaxStops, " texts"), stop);
        }
        sampling->stops.push_back(stop);
      });
  flags.Switch("--ignore-eos", "go on after the end-of-text token",
               [=] { sampling->ignore_eos = true; });
}

void AddSeedsFlag(FlagSet& flags, SamplingOptions* sampling) {
  flags.Text(
      "--seeds", "A:B", "one output for each seed from A to B",
      [=](const std::string& value) {
        sampling->seeds = ParseSeedRange(value);
        if (!sampling->seeds.has_value() ||
            sampling->seeds->last - sampling->seeds->first >= kMaxSeeds) {
          FlagSet::Reject(
              "--seeds",
              absl::StrCat("FIRST:LAST, at most ", kMaxSeeds, " seeds"), value);
        }
      });
}

void AddJsonFlag(FlagSet& flags, Options* options) {
  flags.Switch("--json", "one JSON document on stdout, errors too",
               [=] { options->json = true; });
}

void AddStreamFlag(FlagSet& flags, Options* options) {
  flags.Switch("--stream", "JSON Lines: a line per token, then the document",
               [=] { options->json = options->stream = true; });
}

void AddProgressFlag(FlagSet& flags, Options* options) {
  flags.Switch("--no-progress", "draw no progress on the terminal",
               [=] { options->progress = false; });
}

void AddPromptFlag(FlagSet& flags, InputOptions* input) {
  flags.Text("-p,--prompt", "TEXT", "the text itself",
             [=](const std::string& text) { input->text = text; });
}

void AddFileFlag(FlagSet& flags, InputOptions* input) {
  flags.Text("-f,--file", "FILE", "a text file; - is stdin",
             [=](const std::string& path) { input->file = path; });
}

void AddTokensFlag(FlagSet& flags, InputOptions* input) {
  flags.Text("--tokens", "FILE", "a file of token ids; - is stdin",
             [=](const std::string& path) { input->tokens_file = path; });
}

// A model and a session on it.
void AddSessionFlags(FlagSet& flags, Options* options) {
  AddModelFlags(flags, &options->model);
  AddThreadsFlag(flags, &options->model);
  AddContextFlag(flags, &options->session);
  AddCacheTypeFlags(flags, &options->session);
  AddRunFlags(flags, &options->model);
}

// Where this program keeps what it can make again; empty where the environment
// names no home. The XDG rule: what is not absolute is ignored.
std::string CacheFolder() {
  const auto absolute = [](const char* name) -> std::string {
    const char* value = std::getenv(name);
    return value != nullptr && *value == '/' ? value : "";
  };
  if (const std::string cache = absolute("XDG_CACHE_HOME"); !cache.empty()) {
    return cache + "/tiercel";
  }
  const std::string home = absolute("HOME");
  return home.empty() ? "" : home + "/.cache/tiercel";
}

// What `summarize` and `generate` share.
void AddGenerationFlags(FlagSet& flags, Options* options) {
  options->session.cache_dir = CacheFolder();
  AddSessionFlags(flags, options);
  AddPolicyFlags(flags, &options->session, &options->sampling);
  AddSpeculationFlags(flags, &options->sampling);
  AddVerifyAgainstFlag(flags, &options->sampling);
  AddSamplingFlags(flags, &options->sampling);
  AddJsonFlag(flags, options);
  AddStreamFlag(flags, options);
  AddProgressFlag(flags, options);
}

void AddSummarize(FlagSet& flags, Options* options) {
  flags.Positional("FILE", "text, HTML, EPUB or PDF", FlagSet::Need::kRequired,
                   &options->document);
  options->sampling.max_tokens = 512;
  AddGenerationFlags(flags, options);
}

void AddAsk(FlagSet& flags, Options* options) {
  flags.Positional("FILE", "text, HTML, EPUB or PDF", FlagSet::Need::kRequired,
                   &options->document);
  flags.Positionals("QUESTION", "one or more, each in quotes",
                    &options->questions);
  options->sampling.max_tokens = 256;
  AddGenerationFlags(flags, options);
}

void AddGenerate(FlagSet& flags, Options* options) {
  AddPromptFlag(flags, &options->input);
  AddFileFlag(flags, &options->input);
  AddTokensFlag(flags, &options->input);
  AddGenerationFlags(flags, options);
  AddSeedsFlag(flags, &options->sampling);
}

void AddEval(FlagSet& flags, Options* options) {
  AddFileFlag(flags, &options->input);
  AddTokensFlag(flags, &options->input);
  AddSessionFlags(flags, options);
  AddFullPolicyFlag(flags);
  flags.Int("--ubatch-size", "-ub: rows at a time; 1 is the decode path", 1,
            kMaxTokens, [=](int64_t n) { options->eval.rows_per_step = n; });
  flags.Text(
      "--logits", "OUT.npy", "write all logits, float32 [tokens, vocab]",
      [=](const std::string& path) { options->eval.logits_path = path; });
  AddJsonFlag(flags, options);
  AddProgressFlag(flags, options);
}

void AddParseSpecial(FlagSet& flags, Options* options) {
  flags.Switch("--parse-special",
               "<|im_start|> and its like are tokens, not their letters",
               [=] { options->tokens.parse_special = true; });
}

void AddTokenize(FlagSet& flags, Options* options) {
  AddPromptFlag(flags, &options->input);
  AddFileFlag(flags, &options->input);
  AddModelFlags(flags, &options->model);
  flags.Switch("--add-bos", "begin with BOS where the checkpoint says so",
               [=] { options->tokens.add_bos = true; });
  AddParseSpecial(flags, options);
  AddJsonFlag(flags, options);
  AddProgressFlag(flags, options);
}

void AddDetokenize(FlagSet& flags, Options* options) {
  flags.Positionals("ID", "token ids; default: from stdin",
                    &options->tokens.ids);
  AddTokensFlag(flags, &options->input);
  AddModelFlags(flags, &options->model);
  AddParseSpecial(flags, options);
  AddJsonFlag(flags, options);
  AddProgressFlag(flags, options);
}

void AddInspect(FlagSet& flags, Options* options) {
  flags.Positional("MODEL", "the same as --model", FlagSet::Need::kOptional,
                   &options->document);
  AddModelFlags(flags, &options->model);
  AddJsonFlag(flags, options);
  AddProgressFlag(flags, options);
}

void AddPlan(FlagSet& flags, Options* options) {
  options->session.cache_dir = CacheFolder();
  AddSessionFlags(flags, options);
  AddPolicyFlags(flags, &options->session, &options->sampling);
  AddJsonFlag(flags, options);
  AddProgressFlag(flags, options);
}

void AddBench(FlagSet& flags, Options* options) {
  BenchOptions* bench = &options->bench;
  flags.IntList("-p,--n-prompt", "tokens to prefill (default 512; 0: no test)",
                0, kMaxTokens, &bench->prompts);
  flags.IntList("-n,--n-gen", "tokens to decode (default 128; 0: no test)", 0,
                kMaxTokens, &bench->generations);
  flags.IntList("-d,--n-depth", "tokens before them (default 0)", 0, kMaxTokens,
                &bench->depths);
  flags.IntList("-t,--threads", "default: all CPUs", 1, kMaxThreads,
                &bench->threads);
  flags.Int("-r,--repetitions", "of every test (default 5)", 1, 10'000,
            [=](int64_t n) { bench->repetitions = n; });
  flags.Choice("-o,--output", {"md", "csv", "json", "jsonl"}, "default md",
               &bench->output);
  AddFileFlag(flags, &options->input);
  AddTokensFlag(flags, &options->input);
  AddModelFlags(flags, &options->model);
  AddCacheTypeFlags(flags, &options->session);
  AddRunFlags(flags, &options->model);
  AddPolicyFlags(flags, &options->session, &options->sampling);
  AddSpeculationFlags(flags, &options->sampling);
  AddLawFlags(flags, &options->sampling);
  AddVerifyAgainstFlag(flags, &options->sampling);
  flags.Switch("--json", "the same as -o json", [=] { options->json = true; });
  AddProgressFlag(flags, options);
}

constexpr std::array<Command, 11> kCommands = {{
    {"summarize", "read a whole document and print a summary", AddSummarize},
    {"ask", "answer questions about a document, read once", AddAsk},
    {"chat", "a conversation", nullptr},
    {"generate", "continue a text, no template", AddGenerate},
    {"eval", "log-likelihood and perplexity of a text", AddEval},
    {"tokenize", "text to token ids", AddTokenize},
    {"detokenize", "token ids to text", AddDetokenize},
    {"inspect", "what a checkpoint is", AddInspect},
    {"plan", "memory and time, before anything is loaded", AddPlan},
    {"bench", "prefill and decode speed, as llama-bench", AddBench},
    {"cache", "saved state on disk", nullptr},
}};

std::string Usage() {
  std::string usage =
      "Reads whole books on small machines.\n"
      "Usage: tiercel COMMAND [FLAGS]\n\nCommands:\n";
  for (const Command& command : kCommands) {
    if (command.add_flags == nullptr) continue;
    const std::string pad(12 - std::string(command.name).size(), ' ');
    absl::StrAppend(&usage, "  ", command.name, pad, command.description, "\n");
  }
  return usage +
         "\ntiercel COMMAND --help lists the flags of a command;\n"
         "tiercel --version prints version, commit, build and ISA.\n";
}

// Puts the default model where none was named.
absl::Status ChooseModel(ModelOptions* model) {
  if (!model->path.empty()) return absl::OkStatus();
  if (const char* path = std::getenv("TIERCEL_MODEL"); path != nullptr) {
    if (*path == '\0') {
      return Error(Exit::kUsage, "usage",
                   "TIERCEL_MODEL: it is set but empty; need a path");
    }
    model->path = path;
    model->from_environment = true;
    return absl::OkStatus();
  }
  const std::string cache = CacheFolder();
  const std::string installed =
      cache + "/models/SmolLM2-135M-Instruct.Q4_1.gguf";
  struct stat info;
  if (cache.empty() || stat(installed.c_str(), &info) != 0) {
    return Error(Exit::kUsage, "no_model",
                 "no model: give -m PATH, set TIERCEL_MODEL, or run demo.sh, "
                 "which installs one");
  }
  model->path = installed;
  return absl::OkStatus();
}

// What no single flag can tell.
absl::Status CheckTogether(Options* options) {
  const SamplingOptions& sampling = options->sampling;
  if (sampling.seeds.has_value() && sampling.seed.has_value()) {
    return Error(Exit::kUsage, "usage",
                 "--seeds and --seed exclude each other");
  }
  const std::string& draft = sampling.draft;
  if (draft == "small" && sampling.draft_path.empty()) {
    return Error(
        Exit::kUsage, "usage",
        "--draft small: needs the model that drafts, -md,--model-draft "
        "PATH");
  }
  if (!sampling.draft_path.empty() && !draft.empty() && draft != "small") {
    return Error(Exit::kUsage, "usage",
                 absl::StrCat("--draft ", draft,
                              " excludes -md,--model-draft, which is for "
                              "--draft small"));
  }
  if (sampling.draft_layers > 0 && draft != "self") {
    return Error(Exit::kUsage, "usage",
                 "--draft-layers: it is for --draft self alone");
  }
  const InputOptions& input = options->input;
  const int sources = input.text.has_value() + input.file.has_value() +
                      input.tokens_file.has_value() +
                      !options->tokens.ids.empty();
  if (sources > 1) {
    return Error(Exit::kUsage, "usage",
                 absl::StrCat(options->command,
                              ": give one of -p, -f, --tokens or ids"));
  }
  if (sources == 0 && options->command == "generate") {
    return Error(
        Exit::kUsage, "usage",
        "generate: give a text with -p TEXT, -f FILE or --tokens FILE");
  }
  if (sources == 0 && options->command == "eval") {
    return Error(Exit::kUsage, "usage",
                 "eval: give a text with -f FILE or --tokens FILE");
  }
  if (options->command == "ask") {
    const std::vector<std::string>& questions = options->questions;
    if (questions.empty() ||
        std::find(questions.begin(), questions.end(), "") != questions.end()) {
      return Error(Exit::kUsage, "usage",
                   "ask: needs a FILE and one or more questions, none empty");
    }
  }
  if (options->command == "inspect" && !options->document.empty()) {
    if (!options->model.path.empty()) {
      return Error(Exit::kUsage, "usage",
                   "inspect: MODEL and --model exclude each other");
    }
    options->model.path = options->document;
  }
  if (options->command == "bench") {
    std::string& output = options->bench.output;
    if (options->json && !output.empty()) {
      return Error(Exit::kUsage, "usage",
                   "bench: --json and --output exclude each other");
    }
    if (output.empty()) output = options->json ? "json" : "md";
    options->json = output == "json" || output == "jsonl";
    const auto is_zero = [](int64_t n) { return n == 0; };
    const auto& bench = options->bench;
    if (std::all_of(bench.prompts.begin(), bench.prompts.end(), is_zero) &&
        std::all_of(bench.generations.begin(), bench.generations.end(),
                    is_zero)) {
      return Error(Exit::kUsage, "usage",
                   "bench: -p and -n are 0, no test is left");
    }
    if (HasDrafts(sampling)) {
      if (sources == 0) {
        return Error(Exit::kUsage, "usage",
                     "bench: drafts go on from a text; give one with -f FILE "
                     "or --tokens FILE");
      }
      if (std::any_of(bench.depths.begin(), bench.depths.end(), is_zero)) {
        return Error(Exit::kUsage, "usage",
                     "bench: drafts go on from a text; every depth "
                     "-d,--n-depth must be 1 or more");
      }
      options->session.cache_dir = CacheFolder();
    } else if (sampling.verify_against_full) {
      return Error(Exit::kUsage, "usage",
                   "bench: --verify-against: nobody drafts; give --policy or "
                   "--draft");
    }
  }
  return absl::OkStatus();
}

}  // namespace

bool WantsJson(const std::vector<std::string>& args) {
  const auto end = std::find(args.begin(), args.end(), "--");
  return std::any_of(args.begin(), end, [](const std::string& arg) {
    return arg == "--json" || arg == "--stream";
  });
}

absl::StatusOr<CommandLine> ParseArgs(const std::vector<std::string>& args) {
  CommandLine line;
  if (args.empty()) {
    return Error(Exit::kUsage, "usage", "no command\n" + Usage());
  }
  if (args[0] == "--help" || args[0] == "-h" || args[0] == "help") {
    line.print = Usage();
    return line;
  }
  if (args[0] == "--version") {
    line.print = absl::StrCat("tiercel ", tiercel_version(), "\n");
    return line;
  }
  for (const Command& command : kCommands) {
    if (args[0] != command.name) continue;
    if (command.add_flags == nullptr) {
      return NotInThisVersion(absl::StrCat("tiercel ", command.name));
    }
    line.options.command = command.name;
    FlagSet flags(command.name, command.description);
    command.add_flags(flags, &line.options);
    if (absl::Status s = flags.Parse({args.begin() + 1, args.end()}); !s.ok()) {
      return s;
    }
    if (flags.help_wanted()) {
      line.print = flags.Help();
      return line;
    }
    if (absl::Status s = CheckTogether(&line.options); !s.ok()) return s;
    if (absl::Status s = ChooseModel(&line.options.model); !s.ok()) return s;
    return line;
  }
  return Error(Exit::kUsage, "usage",
               absl::StrCat("unknown command '", args[0],
                            "'; tiercel --help lists them"));
}

}  // namespace tiercel::cli
