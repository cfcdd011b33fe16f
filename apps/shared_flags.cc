#include "apps/shared_flags.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "apps/default_paths.h"
#include "apps/numbers.h"
#include "include/tiercel.h"

namespace tiercel::cli {
namespace {

constexpr uint64_t kMaxSeeds = 1'000'000;
constexpr int64_t kMaxDraftTokens = 63;
constexpr size_t kMaxStops = 64;
constexpr size_t kMaxStopBytes = 4096;

void AddThreadsFlag(FlagSet& flags, ModelOptions* model) {
  flags.Int("-t,--threads", "default: all CPUs this process may use", 1,
            kMaxThreads,
            [=](int64_t n) { model->threads = static_cast<int32_t>(n); });
}

void AddContextFlag(FlagSet& flags, SessionOptions* session) {
  flags.Int("-c,--ctx-size", "most tokens in the context; 0: the checkpoint's",
            0, kMaxTokens, [=](int64_t n) { session->context = n; });
}

void RejectPolicy(const std::string& policy, const char* allowed) {
  for (const char* known : {"triforce", "sfi", "sadas", "speed"}) {
    if (policy == known) FlagSet::RejectNotBuilt("--policy " + policy);
  }
  FlagSet::Reject("--policy", allowed, policy);
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

void AddStreamFlag(FlagSet& flags, Options* options) {
  flags.Switch("--stream", "JSON Lines: a line per token, then the document",
               [=] { options->json = options->stream = true; });
}

}  // namespace

void AddModelFlags(FlagSet& flags, ModelOptions* model) {
  flags.Text("-m,--model", "PATH",
             "GGUF file (the first of a split), or a safetensors directory; "
             "default $TIERCEL_MODEL, then what demo.sh installed",
             [=](const std::string& path) { model->path = path; });
}

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

void AddCacheTypeFlags(FlagSet& flags, SessionOptions* session) {
  const std::vector<std::string> types = {"f16", "bf16", "f32", "q8_0"};
  flags.Choice("--cache-type-k", types,
               "-ctk: type of cached keys (default f16)", &session->kv_type_k);
  flags.Choice("--cache-type-v", types,
               "-ctv: type of cached values (default f16)",
               &session->kv_type_v);
}

void AddFullPolicyFlag(FlagSet& flags) {
  flags.Text("--policy", "full", "what each step reads: everything",
             [](const std::string& policy) {
               if (policy != "full") RejectPolicy(policy, "full");
             });
}

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

void AddSessionFlags(FlagSet& flags, Options* options) {
  AddModelFlags(flags, &options->model);
  AddThreadsFlag(flags, &options->model);
  AddContextFlag(flags, &options->session);
  AddCacheTypeFlags(flags, &options->session);
  AddRunFlags(flags, &options->model);
}

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

}  // namespace tiercel::cli
