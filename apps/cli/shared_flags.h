#ifndef TIERCEL_APPS_CLI_SHARED_FLAGS_H_
#define TIERCEL_APPS_CLI_SHARED_FLAGS_H_

#include <cstdint>
#include <limits>

#include "apps/cli/flags.h"
#include "apps/cli/options.h"

namespace tiercel::cli {

inline constexpr int64_t kMaxTokens = std::numeric_limits<int32_t>::max();
inline constexpr int64_t kMaxThreads = 1024;
inline constexpr int64_t kMaxParallel = 64;  // texts that are made at once
inline constexpr double kMaxRopeScale = 4096;

// The flags that several commands take. Each checks its value and writes it to
// the options, which must outlive `flags`.

// These choose the model, and how it computes.
void AddModelFlags(FlagSet& flags, ModelOptions* model);
void AddRunFlags(FlagSet& flags, ModelOptions* model);
void AddCacheTypeFlags(FlagSet& flags, SessionOptions* session);
// Adds all of these, threads and a context, for a model and a session on it.
void AddSessionFlags(FlagSet& flags, Options* options);
// Bounds the texts that are kept on disk.
void AddCacheSizeFlag(FlagSet& flags, SessionOptions* session);

// These set what each step reads, which drafter proposes tokens, and how drafts
// are checked.
void AddPolicyFlags(FlagSet& flags, SessionOptions* session,
                    SamplingOptions* sampling);
void AddDraftFlags(FlagSet& flags, SamplingOptions* sampling);
void AddSpeculationFlags(FlagSet& flags, SamplingOptions* sampling);
void AddVerifyAgainstFlag(FlagSet& flags, SamplingOptions* sampling);

// These set the distribution of a token, and the seed of its draw.
void AddDistributionFlags(FlagSet& flags, SamplingOptions* sampling);
void AddSeedsFlag(FlagSet& flags, SamplingOptions* sampling);

// These name the source of a text.
void AddPromptFlag(FlagSet& flags, InputOptions* input);
void AddFileFlag(FlagSet& flags, InputOptions* input);
void AddTokensFlag(FlagSet& flags, InputOptions* input);

// These set how results are shown.
void AddJsonFlag(FlagSet& flags, Options* options);
void AddProgressFlag(FlagSet& flags, Options* options);

// These name the texts that are allowed as an answer.
void AddGrammarFlags(FlagSet& flags, SamplingOptions* sampling);

// Adds the flags that `summarize`, `ask`, `chat` and `generate` share.
void AddGenerationFlags(FlagSet& flags, Options* options);
// For commands that write a conversation by the model's template.
void AddTemplateFlags(FlagSet& flags, Options* options);

// Adds the flags of `serve` and `batch`: the model, how it answers where a
// request does not say, and how many requests it answers at once.
void AddAnsweringFlags(FlagSet& flags, Options* options);

// Bounds the texts that `summarize`, `ask` and `generate` make at once.
void AddAtOnceFlag(FlagSet& flags, SessionOptions* session);

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_CLI_SHARED_FLAGS_H_
