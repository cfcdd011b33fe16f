#include "apps/command_flags.h"

#include <string>
#include <vector>

#include "apps/default_paths.h"
#include "apps/shared_flags.h"

namespace tiercel::cli {
namespace {

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

}  // namespace

const std::array<CommandFlags, 11> kCommands = {{
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

}  // namespace tiercel::cli
