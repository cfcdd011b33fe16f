#ifndef TIERCEL_APPS_CLI_OPTIONS_H_
#define TIERCEL_APPS_CLI_OPTIONS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/cli/numbers.h"

namespace tiercel {
class Grammar;
}  // namespace tiercel

namespace tiercel::cli {

// The request of one command line; every value is checked for type and range.
// Fields that a command does not take keep their defaults.

// Stands for the number of ranks that the plan says is best.
inline constexpr int64_t kBestRanks = 0;

struct ModelOptions {
  std::string path;  // as given, or the default
  bool from_environment = false;
  std::string device = "auto";
  std::string compute = "q8";
  int32_t threads = 0;  // 0: all
  bool check_tensors = false;
  bool deterministic = false;
  std::string rope_scaling;  // empty, and 0 below: the checkpoint's value
  double rope_scale = 0;
  double rope_freq_base = 0;
  int64_t yarn_orig_ctx = 0;
  std::optional<Simulation> simulation;
  uint64_t device_memory_bytes = 0;  // 0: all that is free
  uint64_t host_memory_bytes = 0;    // 0: all that is free
  int64_t tensor_parallel = 1;       // ranks, or kBestRanks
  int64_t host_layers = 0;
  std::string think;            // on, off; else as the template does by itself
  std::string template_kwargs;  // a JSON object; empty: none
};

// The most bytes of the prompt cache where a session names none.
inline constexpr uint64_t kUsualCacheBytes = uint64_t{16} << 30;

struct SessionOptions {
  int64_t context = 0;  // tokens; 0: the checkpoint's
  std::string kv_type_k = "f16";
  std::string kv_type_v = "f16";
  std::string cache_dir;  // folder of measured rates; empty: no predictions
  std::string
      prompt_cache_dir;  // folder of the prompt cache; empty: nothing is kept
  std::string
      prompt_cache_name;  // name of the text, shown by `tiercel cache list`
  uint64_t prompt_cache_bytes = 0;  // most that it takes; 0: kUsualCacheBytes
  // The prompt cache keeps only prompts that are still being read or answered.
  bool keeps_prompts_alone = false;
  int64_t at_once = 0;  // most texts that are made at once; 0: the plan's
  // Texts that are made at once beside the first, and the tokens that each of
  // them may add to what they share.
  int64_t forks = 0;
  int64_t fork_tokens = 0;
  // The view that drafts read; 0: none, or the library's choice.
  int64_t budget = 0;
  std::optional<int64_t> sink;
  int64_t window = 0;
  int32_t chunk = 0;
};

struct SamplingOptions {
  int64_t max_tokens = -1;       // -1: until the end or the context is full
  std::optional<uint64_t> seed;  // absent: 0
  std::optional<SeedRange> seeds;
  int64_t best_of = 0;  // texts of which the best is written; 0: one is made
  double temperature = 0;
  int32_t top_k = 0;
  double top_p = 1;
  double min_p = 0;
  double repeat_penalty = 1;
  bool names_repeat_penalty = false;  // the flag was given
  double dry_multiplier = 0;
  bool names_dry_multiplier = false;
  std::optional<double> dry_base;  // absent: the library's choice
  std::optional<int32_t> dry_allowed_length;
  std::optional<std::vector<std::string>> dry_breakers;
  std::vector<std::string> stops;
  std::vector<int32_t> stop_ids;
  bool ignore_eos = false;
  // The texts that are allowed as an answer: the file that names them, and its
  // grammar once the model is open. Empty, null: all are.
  std::string json_schema_path;
  std::string grammar_path;
  std::shared_ptr<const Grammar> grammar;
  bool split_thought = false;  // a thought is no part of the answer
  // Tokens come with their log-probabilities, and those of so many of the
  // likeliest beside each; absent: without.
  std::optional<int64_t> top_log_probs;
  std::string policy = "full";
  bool plain = false;
  bool baseline = false;   // the policy without its savings
  std::string settings;    // KEY=VALUE,... settings that only the policy knows
  std::string draft;       // empty: the draft model, or the policy's own
  std::string draft_path;  // path of the draft model; empty: none
  std::string verify;      // empty: see Verify
  int32_t gamma1 = 0;      // 0: the library's choice
  int32_t gamma2 = 0;
  int64_t branches = 0;
  bool draft_ahead = false;
  double cost_ratio = 0;     // 0: predicted
  int32_t draft_layers = 0;  // 0: all
  bool verify_against_full = false;

  // The drafter that --draft names, or the default where it is absent.
  const char* Drafter() const {
    if (!draft.empty()) return draft.c_str();
    if (!draft_path.empty()) return "small";
    return policy == "full" || plain || baseline ? "none" : "ngram";
  }
  // The check that --verify names, or the default where it is absent: coupled
  // with --draft-ahead, which needs it.
  const char* Verify() const {
    if (!verify.empty()) return verify.c_str();
    return draft_ahead ? "coupled" : "residual";
  }
  // Returns true if a proposer or the policy's view drafts.
  bool HasDrafts() const {
    return (policy != "full" && !plain && !baseline) ||
           std::string_view(Drafter()) != "none";
  }
  // Returns false if the model alone writes the text, token by token.
  bool HasPolicy() const { return plain || HasDrafts(); }
};

// The source of a text or of its tokens; exactly one is set.
struct InputOptions {
  std::optional<std::string> text;
  std::optional<std::string> file;         // "-": stdin
  std::optional<std::string> tokens_file;  // "-": stdin
};

struct TokenOptions {
  bool add_bos = false;
  bool parse_special = false;
  std::vector<std::string> ids;  // arguments of `detokenize 1 2 3`
};

struct EvalOptions {
  int64_t prefill = 0;        // tokens read as a prompt
  int64_t rows_per_step = 0;  // 0: the library's choice
  std::string logits_path;    // empty: not wanted
};

// The parts of a book that are read, how they are summarized, and the file of
// the notes.
struct BookOptions {
  bool toc = false;             // write the table of contents instead
  std::string chapters;         // as typed; empty: all
  std::string pages;            // likewise
  std::string chapter_pattern;  // likewise
  int64_t effort = 0;    // most tokens that a question reads in parts; 0: all
  bool each = false;     // each chapter by itself
  int64_t words = 0;     // about those of the answer; 0: not said
  std::string language;  // the answer's; empty: not said
  std::string instruction;  // asked of a text; empty: ours
  std::string output;       // notes; empty: none
  std::string format;       // text, md or html; empty: as `output` ends
  bool keeps = true;        // finished parts are kept on disk
  bool restart = false;     // parts kept by earlier runs are not used
};

// The requests that `serve` and `batch` answer.
struct RequestOptions {
  int64_t parallel = 4;  // most that are answered at once
  // `serve` alone heeds these.
  std::string host = "127.0.0.1";
  int64_t port = 8080;       // 0: any that is free
  std::string api_key_file;  // empty: no key is asked for
  int64_t queue = 64;        // most that wait
  // The file of the answers, which `batch` alone writes.
  std::string output;
};

struct BenchOptions {
  std::vector<int64_t> prompts = {512};
  std::vector<int64_t> generations = {128};
  std::vector<int64_t> depths = {0};
  std::vector<int64_t> threads = {0};
  std::vector<int64_t> parallel = {1};  // texts that are generated at once
  int64_t repetitions = 5;
  bool warms_up = true;  // a test runs once more, before it is timed
  bool fill = false;     // depths hold random KV instead of computed KV
  std::string output;    // md, csv, json or jsonl
};

struct Options {
  std::string command;
  ModelOptions model;
  SessionOptions session;
  SamplingOptions sampling;
  InputOptions input;
  TokenOptions tokens;
  EvalOptions eval;
  BookOptions book;
  BenchOptions bench;
  RequestOptions requests;
  std::string document;                // FILE of `summarize`, `ask`, `batch`
  std::vector<std::string> questions;  // for `ask`, one or more
  std::string cache_action;            // for `cache`: list, clear
  bool json = false;
  bool stream = false;
  bool progress = true;
  bool statistics = true;  // tell people the cost of a generation
  bool talk = true;        // take questions after a summary, on a terminal
  std::vector<std::string> warnings;  // flags of no effect
};

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_CLI_OPTIONS_H_
