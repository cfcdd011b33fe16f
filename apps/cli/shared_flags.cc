#include "apps/cli/shared_flags.h"

#include <stdlib.h>

#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "apps/cli/default_paths.h"
#include "apps/cli/numbers.h"
#include "apps/cli/policies.h"
#include "include/tiercel.h"

namespace tiercel::cli {
namespace {

constexpr uint64_t kMaxSeeds = 1'000'000;
constexpr int64_t kMaxDraftTokens = 63;
constexpr int64_t kMaxRanks = 64;
constexpr int64_t kMaxLayers = 512;
constexpr size_t kMaxStops = 64;
constexpr size_t kMaxStopBytes = 4096;
constexpr int64_t kMaxTokenId = std::numeric_limits<int32_t>::max();
constexpr size_t kMaxBreakers = 64;
constexpr size_t kMaxBreakerBytes = 40;

void AddPenaltyFlags(FlagSet& flags, SamplingOptions* sampling) {
  flags.Real("--repeat-penalty",
             absl::StrCat("makes what the last 256 tokens hold less likely "
                          "(default ",
                          sampling->repeat_penalty,
                          "); 1: no. Where it is given, there is no DRY unless "
                          "that is named, too"),
             0, FlagSet::Low::kExcluded, 100, [=](double penalty) {
               sampling->repeat_penalty = penalty;
               sampling->names_repeat_penalty = true;
             });
  flags.Real("--dry-multiplier",
             absl::StrCat("DRY: what would repeat a run of tokens of the "
                          "answer becomes less likely (default ",
                          sampling->dry_multiplier, "); 0: no"),
             0, FlagSet::Low::kIncluded, 100, [=](double multiplier) {
               sampling->dry_multiplier = multiplier;
               sampling->names_dry_multiplier = true;
             });
  flags.Real("--dry-base",
             "by so many times more for each token that the run is longer "
             "(default 1.75)",
             1, FlagSet::Low::kIncluded, 100,
             [=](double base) { sampling->dry_base = base; });
  flags.Int("--dry-allowed-length",
            "from a run of so many tokens on (default 2)", 1, kMaxTokens,
            [=](int64_t tokens) {
              sampling->dry_allowed_length = static_cast<int32_t>(tokens);
            });
  flags.RepeatableText(
      "--dry-sequence-breaker", "TEXT",
      "no run goes over this text; repeatable (default a new line, :, \" and "
      "*); none: over any",
      [=](const std::string& text) {
        if (text.size() > kMaxBreakerBytes) {
          FlagSet::Reject("--dry-sequence-breaker",
                          absl::StrCat("at most ", kMaxBreakerBytes, " bytes"),
                          absl::StrCat(text.substr(0, 20), "..."));
        }
        if (!sampling->dry_breakers.has_value()) {
          sampling->dry_breakers.emplace();
        }
        if (text == "none") {
          sampling->dry_breakers->clear();
          return;
        }
        if (sampling->dry_breakers->size() == kMaxBreakers) {
          FlagSet::Reject("--dry-sequence-breaker",
                          absl::StrCat("at most ", kMaxBreakers, " texts"),
                          text);
        }
        sampling->dry_breakers->push_back(text);
      });
}

void AddThreadsFlag(FlagSet& flags, ModelOptions* model) {
  flags.Int("-t,--threads", "default: all CPUs this process may use", 1,
            kMaxThreads,
            [=](int64_t n) { model->threads = static_cast<int32_t>(n); });
}

void AddContextFlag(FlagSet& flags, SessionOptions* session) {
  flags.Tokens("-c,--ctx-size",
               "the most tokens that text and answer may have; 4k is 4,096; 0 "
               "(default): as many as the model was made for",
               0, kMaxTokens, [=](int64_t n) { session->context = n; });
}

// Their values replace what the checkpoint says.
void AddLongContextFlags(FlagSet& flags, ModelOptions* model) {
  flags.Group("Longer texts than the model was made for");
  flags.Choice("--rope-scaling", {"none", "linear", "yarn"},
               "how positions are stretched; default: as the checkpoint says",
               &model->rope_scaling);
  flags.Real("--rope-scale", "by this factor", 1, FlagSet::Low::kIncluded,
             kMaxRopeScale, &model->rope_scale);
  flags.Real("--rope-freq-base", "the base of their frequencies", 0,
             FlagSet::Low::kExcluded, 1e12, &model->rope_freq_base);
  flags.Tokens("--yarn-orig-ctx", "the context the model was trained with", 1,
               kMaxTokens, [=](int64_t n) { model->yarn_orig_ctx = n; });
}

void AddSamplingFlags(FlagSet& flags, SamplingOptions* sampling) {
  flags.Group("The answer");
  flags.Tokens("-n,--n-predict,--predict",
               absl::StrCat("the most tokens to generate (default ",
                            sampling->max_tokens, "; -1: no limit)"),
               -1, kMaxTokens, [=](int64_t n) {
                 if (n == 0) {
                   FlagSet::Reject("-n,--n-predict", "-1, or a number above 0",
                                   "0");
                 }
                 sampling->max_tokens = n;
               });
  flags.LastCounts("-n");
  flags.NotBuilt({"--json-schema", "--grammar", "-sys"});
  AddDistributionFlags(flags, sampling);
  flags.RepeatableText(
      "--stop", "TEXT",
      "end the output before this text, which may be that of a control token; "
      "repeatable",
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
  flags.RepeatableText(
      "--stop-id", "N", "end the output before this token; repeatable",
      [=](const std::string& text) {
        const std::optional<int64_t> id = ParseInt(text);
        if (!id.has_value() || *id < 0 || *id > kMaxTokenId) {
          FlagSet::Reject("--stop-id", "a token's number", text);
        }
        if (sampling->stop_ids.size() == kMaxStops) {
          FlagSet::Reject("--stop-id", absl::StrCat("at most ", kMaxStops),
                          text);
        }
        sampling->stop_ids.push_back(static_cast<int32_t>(*id));
      });
  flags.Switch("--ignore-eos", "go on where the model would end the text",
               [=] { sampling->ignore_eos = true; });
}

void AddStreamFlag(FlagSet& flags, Options* options) {
  flags.Switch("--stream", "JSON Lines: a line per token, then the document",
               [=] { options->json = options->stream = true; });
}

// Adds a flag that takes `least` to `most`, or auto.
template <typename T>
void NumberOrAuto(FlagSet& flags, const char* name, const std::string& help,
                  int64_t least, int64_t most, T* to) {
  flags.Text(name, "N|auto", help, [=](const std::string& text) {
    if (text == "auto") {
      *to = TIERCEL_ADAPTIVE;
      return;
    }
    const std::optional<int64_t> n = ParseInt(text);
    if (!n.has_value() || *n < least || *n > most) {
      FlagSet::Reject(name, absl::StrCat(least, " to ", most, ", or auto"),
                      text);
    }
    *to = static_cast<T>(*n);
  });
}

}  // namespace

void AddModelFlags(FlagSet& flags, ModelOptions* model) {
  flags.Group("Model");
  flags.Text("-m,--model", "PATH",
             "GGUF file (the first of a split), or a safetensors directory; "
             "default: $TIERCEL_MODEL, then what demo.sh installed",
             [=](const std::string& path) { model->path = path; });
}

namespace {

void AddSizeFlag(FlagSet& flags, const char* name, const char* what,
                 uint64_t* to) {
  flags.Text(name, "SIZE", what, [=](const std::string& text) {
    const std::optional<double> bytes = ParseSize(text);
    if (!bytes.has_value() || *bytes < 1 || ParseReal(text).has_value()) {
      FlagSet::Reject(name, "a size in kB, MB, GB, KiB, MiB or GiB, as 8GiB",
                      text);
    }
    *to = static_cast<uint64_t>(*bytes);
  });
}

}  // namespace

void AddCacheSizeFlag(FlagSet& flags, SessionOptions* session) {
  AddSizeFlag(flags, "--cache-size",
              "the most room on disk for texts that are kept, as 40GiB; those "
              "unused for longest make room (default 16GiB)",
              &session->prompt_cache_bytes);
}

void AddRunFlags(FlagSet& flags, ModelOptions* model) {
  flags.Choice("--device", {"auto", "cpu", "cuda", "ref"},
               "where to compute; auto: the CPU; for tests, and slow: ref, "
               "every operation in plain loops",
               &model->device);
  flags.Choice("--compute", {"q8", "f32"},
               "numbers between the layers that meet compressed weights: 8 "
               "bits (default), or 32, slower and exact",
               &model->compute);
  flags.Switch("--deterministic",
               "the CPU's bytes on a GPU too: prompts without its matrix unit "
               "and without libraries (TIERCEL_CUBLASLT), many times as slowly",
               [=] {
                 model->deterministic = true;
                 unsetenv("TIERCEL_CUBLASLT");
               });
  flags.Switch("--check-tensors", "refuse weights with NaN or infinity",
               [=] { model->check_tensors = true; });
  AddSizeFlag(flags, "--device-memory",
              "the most memory to take, as 8GiB; default: what is free",
              &model->device_memory_bytes);
  AddSizeFlag(flags, "--host-memory",
              "the most memory for keys and values behind a link, or without "
              "one for all; with -c and kept texts the rest is on disk; of "
              "`plan --simulate` what the machine has that is simulated",
              &model->host_memory_bytes);
  flags.Text(
      "--simulate",
      "device=SIZE,link=RATE[,latency=US][,host=RATE][,strict=SEED]",
      "simulate a device with memory of this size behind a link of this "
      "rate, as device=24GiB,link=25GB/s; host: the rate at which the host "
      "itself attends to pages, when it takes a share of a sweep; strict, "
      "which may stand alone: "
      "for tests, its memory is closed to the host and its work is late, "
      "by delays of the seed",
      [=](const std::string& text) {
        model->simulation = ParseSimulation(text);
        if (model->simulation.has_value()) return;
        FlagSet::Reject("--simulate",
                        "device=SIZE,link=SIZE/s[,latency=US]"
                        "[,host=SIZE/s][,strict=SEED], or strict=SEED",
                        text);
      });
  flags.Text("--tensor-parallel", "N|auto",
             "compute with so many devices, each a part of the model, and with "
             "the same results (default 1): those that --simulate names, "
             "GPUs, or parts of the CPU; auto: with as many GPUs as leave one "
             "link the fewest bytes to bring in a step, by the plan",
             [=](const std::string& text) {
               if (text == "auto") {
                 model->tensor_parallel = kBestRanks;
                 return;
               }
               const std::optional<int64_t> n = ParseInt(text);
               if (!n.has_value() || *n < 1 || *n > kMaxRanks) {
                 FlagSet::Reject("--tensor-parallel",
                                 absl::StrCat("1 to ", kMaxRanks, ", or auto"),
                                 text);
               }
               model->tensor_parallel = *n;
             });
  flags.Int("--host-layers",
            "layers whose weights stay in the host's memory, because the "
            "device has no room for them, and cross the link for every pass "
            "(default 0); 3 or more",
            0, kMaxLayers, [=](int64_t n) { model->host_layers = n; });
  AddLongContextFlags(flags, model);
}

void AddCacheTypeFlags(FlagSet& flags, SessionOptions* session) {
  const std::vector<std::string> types = {"f16", "bf16", "f32", "q8_0", "q4_0"};
  flags.Choice("--cache-type-k", types,
               "how the keys of the text are kept in memory (default f16)",
               &session->kv_type_k);
  flags.Choice("--cache-type-v", types, "... and its values (default f16)",
               &session->kv_type_v);
}

void AddSessionFlags(FlagSet& flags, Options* options) {
  AddModelFlags(flags, &options->model);
  AddThreadsFlag(flags, &options->model);
  AddContextFlag(flags, &options->session);
  AddCacheTypeFlags(flags, &options->session);
  AddRunFlags(flags, &options->model);
}

void AddPolicyFlags(FlagSet& flags, SessionOptions* session,
                    SamplingOptions* sampling) {
  flags.Group(
      "Guessing ahead: several tokens are guessed, then checked at once");
  flags.Text("--policy", AllPolicies("|"),
             absl::StrCat("what each step reads; ", PoliciesHelp()),
             [=](const std::string& policy) {
               if (PolicyNamed(policy) == nullptr) {
                 FlagSet::Reject("--policy", AllPolicies(", "), policy);
               }
               sampling->policy = policy;
             });
  flags.Switch("--plain",
               absl::StrCat(PlainPolicies(", "),
                            ": do not check: faster, and not the model's own "
                            "text"),
               [=] { sampling->plain = true; });
  flags.Text(
      "--set", "KEY=VALUE,...",
      absl::StrCat("what only ", PoliciesWithSettings(" or "),
                   " has, as interval=32,gap=8: see the list below"),
      [=](const std::string& settings) { sampling->settings = settings; });
  flags.Tokens("--budget", "tokens of those parts (default 1024)", 1,
               kMaxTokens, [=](int64_t n) { session->budget = n; });
  flags.Int("--chunk",
            "... in runs of 8, 16, 32 (default), 64 or 128; sfi: also 1 "
            "(default), 2, 4; triforce: also 1",
            1, 128, [=](int64_t n) {
              if ((n & (n - 1)) != 0) {
                FlagSet::Reject("--chunk", "a power of two from 1 to 128",
                                std::to_string(n));
              }
              session->chunk = static_cast<int32_t>(n);
            });
  flags.Tokens(
      "--sink",
      "... with the first N of the text (default 32, sfi: 4, at most the "
      "budget; sadas, where it thinks: 0)",
      0, kMaxTokens, [=](int64_t n) { session->sink = n; });
  flags.Tokens(
      "--window",
      "... and the newest N, besides (default 64; sfi: 256; sadas, where it "
      "thinks: 4096)",
      1, kMaxTokens, [=](int64_t n) { session->window = n; });
}

void AddDraftFlags(FlagSet& flags, SamplingOptions* sampling) {
  flags.Choice(
      "--draft", {"none", "ngram", "self", "small"},
      absl::StrCat("who guesses: nobody (default with full), the text "
                   "itself where it repeats (default with ",
                   PoliciesWithViews(", "),
                   "), the model over the newest tokens, another model "
                   "(default with -md)"),
      &sampling->draft);
  flags.Text("--model-draft", "PATH",
             "a faster model with the same tokens, for --draft small",
             [=](const std::string& path) { sampling->draft_path = path; });
  NumberOrAuto(
      flags, "--branches",
      "of --policy triforce: also check second choices for up to N tokens of a "
      "block, each with up to 7 behind it (default 0; auto: 4 if a check costs "
      "as much as 64 guesses)",
      0, 16, &sampling->branches);
  flags.Switch(
      "--draft-ahead",
      "of --policy triforce: while a check waits for the link, guess on "
      "(--verify coupled, which it takes if none is named)",
      [=] { sampling->draft_ahead = true; });
}

void AddSpeculationFlags(FlagSet& flags, SamplingOptions* sampling) {
  AddDraftFlags(flags, sampling);
  flags.Int(
      "--draft-layers",
      "of --draft self: its first N layers guess (default: all)", 1, kMaxTokens,
      [=](int64_t n) { sampling->draft_layers = static_cast<int32_t>(n); });
  flags.Choice("--verify", {"residual", "coupled"},
               "residual (default): most guesses hold; coupled: the text is "
               "the one without guesses, for the same seed",
               &sampling->verify);
  NumberOrAuto(
      flags, "--gamma1",
      absl::StrCat("guess at most N tokens at a time (default 8; 4 with ",
                   PoliciesWithViews(", "), ")"),
      1, kMaxDraftTokens, &sampling->gamma1);
  NumberOrAuto(flags, "--gamma2",
               absl::StrCat(PoliciesWithViews(", "),
                            ": check N tokens at a time against the whole "
                            "text (default 16)"),
               1, kMaxDraftTokens, &sampling->gamma2);
  flags.Real("--cost-ratio",
             "of auto: a check costs as much as so many guesses (default: as "
             "first measured, 8 without)",
             0, FlagSet::Low::kExcluded, 1e6, &sampling->cost_ratio);
}

void AddVerifyAgainstFlag(FlagSet& flags, SamplingOptions* sampling) {
  flags.Text("--verify-against", "full",
             "also run without guesses, and say whether the texts agree and "
             "how much slower that was",
             [=](const std::string& policy) {
               if (policy != "full") {
                 FlagSet::Reject("--verify-against", "full", policy);
               }
               sampling->verify_against_full = true;
             });
}

void AddDistributionFlags(FlagSet& flags, SamplingOptions* sampling) {
  flags.Group("The answer");
  flags.Text("-s,--seed", "N",
             "another seed, another text; the same seed, the same text "
             "(default 0)",
             [=](const std::string& value) {
               const std::optional<uint64_t> seed = ParseUnsigned(value);
               if (!seed.has_value()) {
                 FlagSet::Reject("-s,--seed", "an integer from 0 to 2^64-1",
                                 value);
               }
               sampling->seed = seed;
             });
  flags.Real("--temp,--temperature",
             absl::StrCat("how much is left to chance (default ",
                          sampling->temperature,
                          "); 0: nothing, always the likeliest token"),
             0, FlagSet::Low::kIncluded, 100, &sampling->temperature);
  flags.Int("--top-k", "choose among the k likeliest; 0 (default): all", 0,
            kMaxTokens,
            [=](int64_t k) { sampling->top_k = static_cast<int32_t>(k); });
  flags.Real("--top-p",
             "choose among the likeliest up to this probability, with the one "
             "that crosses it; 1 (default): all",
             0, FlagSet::Low::kExcluded, 1, &sampling->top_p);
  flags.Real("--min-p",
             "drop what is less likely than this times the likeliest; 0 "
             "(default): nothing",
             0, FlagSet::Low::kIncluded, 1, &sampling->min_p);
  AddPenaltyFlags(flags, sampling);
}

void AddSeedsFlag(FlagSet& flags, SamplingOptions* sampling) {
  flags.Group("The answer");
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
  flags.Int("--best-of",
            "of N texts, for the seed and those after it, the one whose tokens "
            "have the greatest mean log-probability",
            1, kMaxSeeds, [=](int64_t n) { sampling->best_of = n; });
}

void AddPromptFlag(FlagSet& flags, InputOptions* input) {
  flags.Group("Text");
  flags.Text("-p,--prompt", "TEXT", "the text itself",
             [=](const std::string& text) { input->text = text; });
}

void AddFileFlag(FlagSet& flags, InputOptions* input) {
  flags.Group("Text");
  flags.Text("-f,--file", "FILE",
             "a text file in UTF-8, 64 MiB at most; - is stdin",
             [=](const std::string& path) { input->file = path; });
}

void AddTokensFlag(FlagSet& flags, InputOptions* input) {
  flags.Group("Text");
  flags.Text("--tokens", "FILE", "a file of token ids; - is stdin",
             [=](const std::string& path) { input->tokens_file = path; });
}

void AddJsonFlag(FlagSet& flags, Options* options) {
  flags.Group("Output");
  flags.Switch("--json", "one JSON document on stdout, errors too",
               [=] { options->json = true; });
}

void AddProgressFlag(FlagSet& flags, Options* options) {
  flags.Group("Output");
  flags.Switch("--no-progress", "draw no progress on the terminal",
               [=] { options->progress = false; });
}

void AddGenerationFlags(FlagSet& flags, Options* options) {
  options->session.cache_dir = CacheFolder();
  AddSamplingFlags(flags, &options->sampling);
  AddJsonFlag(flags, options);
  AddStreamFlag(flags, options);
  flags.Switch("--quiet", "say nothing of times, speed and memory",
               [=] { options->statistics = false; });
  AddProgressFlag(flags, options);
  AddSessionFlags(flags, options);
  AddPolicyFlags(flags, &options->session, &options->sampling);
  AddSpeculationFlags(flags, &options->sampling);
  AddVerifyAgainstFlag(flags, &options->sampling);
}

void AddGrammarFlags(FlagSet& flags, SamplingOptions* sampling) {
  flags.Group("The answer");
  flags.Text(
      "--json-schema", "FILE", "the answer is JSON that this schema allows",
      [=](const std::string& path) { sampling->json_schema_path = path; });
  flags.Text("--grammar", "FILE",
             "the answer is a text that this grammar (GBNF) allows",
             [=](const std::string& path) { sampling->grammar_path = path; });
}

void AddTemplateFlags(FlagSet& flags, Options* options) {
  options->sampling.split_thought = true;
  flags.Group("The answer");
  flags.Choice("--think", {"on", "off", "auto"},
               "have the model think before it answers, if it can (default: as "
               "its template does by itself)",
               &options->model.think);
  flags.Text(
      "--template-kwargs", "JSON",
      "an object of variables for the model's chat template",
      [=](const std::string& text) { options->model.template_kwargs = text; });
}

void AddAnsweringFlags(FlagSet& flags, Options* options) {
  options->session.cache_dir = CacheFolder();
  options->session.prompt_cache_dir = PromptCacheFolder();
  AddSamplingFlags(flags, &options->sampling);
  AddTemplateFlags(flags, options);
  AddProgressFlag(flags, options);
  AddSessionFlags(flags, options);
  flags.Group("Model");
  flags.Int("--parallel",
            "answer at most N requests at once (default 4), each as if alone; "
            "fewer where memory has no room",
            1, kMaxParallel,
            [=](int64_t n) { options->requests.parallel = n; });
  flags.Switch("--no-cache", "neither look on disk for prompts nor keep them",
               [=] { options->session.prompt_cache_dir.clear(); });
  AddCacheSizeFlag(flags, &options->session);
  AddPolicyFlags(flags, &options->session, &options->sampling);
  AddSpeculationFlags(flags, &options->sampling);
}

void AddAtOnceFlag(FlagSet& flags, SessionOptions* session) {
  flags.Group("Model");
  flags.Int("--at-once",
            "make at most N texts or parts of a book at once (default: as "
            "memory serves best, at most 16); each is the same text",
            1, kMaxParallel, [=](int64_t n) { session->at_once = n; });
}

}  // namespace tiercel::cli
