#include "apps/check_together.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "apps/default_paths.h"
#include "apps/error.h"
#include "apps/sampling.h"

namespace tiercel::cli {

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

}  // namespace tiercel::cli
