#include "apps/commands/command.h"

#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "apps/cli/error.h"
#include "apps/commands/text_length.h"
#include "apps/terminal/output.h"
#include "apps/terminal/progress.h"
#include "lib/status/status_macros.h"

namespace tiercel::cli {
namespace {

// Adds the variable or flag that named the model to an error, unless the device
// is at fault.
absl::Status Blame(const absl::Status& status, const char* who) {
  if (IsInterrupted(status) || ExitOf(status) == Exit::kDevice) return status;
  return Error(ExitOf(status), CodeOf(status),
               absl::StrCat(who, ": ", status.message()));
}

void Warn(std::string warning, std::vector<std::string>* warnings) {
  WriteNewWarnings({warning});
  if (warnings != kOnStderrAlone) warnings->push_back(std::move(warning));
}

// Returns a callback of bytes that draws megabytes; an empty one stays empty.
ProgressFn InMegabytes(ProgressFn draw) {
  if (!draw) return draw;
  return [draw = std::move(draw)](uint64_t done, uint64_t total) {
    draw(done / 1'000'000, total / 1'000'000);
  };
}

absl::StatusOr<Model> Read(const tiercel_model_params& params,
                           bool show_progress) {
  Progress progress(show_progress, "loading", "MB", "MB/s");
  return Model::Open(params, InMegabytes(progress.Callback()));
}

absl::StatusOr<Model> Open(const ModelOptions& from, int64_t ranks,
                           tiercel_load load, bool show_progress) {
  auto params = defaults<tiercel_model_params>();
  params.path = from.path.c_str();
  params.load = load;
  params.device = from.device.c_str();
  params.compute = from.compute.c_str();
  params.threads = from.threads;
  params.check_tensors = from.check_tensors;
  params.deterministic = from.deterministic;
  params.rope_scaling =
      from.rope_scaling.empty() ? nullptr : from.rope_scaling.c_str();
  params.rope_scale = from.rope_scale;
  params.rope_freq_base = from.rope_freq_base;
  params.yarn_orig_ctx = from.yarn_orig_ctx;
  params.device_memory_bytes = from.device_memory_bytes;
  params.host_memory_bytes = from.host_memory_bytes;
  params.tensor_parallel = ranks;
  params.host_layers = from.host_layers;
  auto simulation = defaults<tiercel_simulation>();
  if (from.simulation.has_value()) {
    simulation.device_bytes = from.simulation->device_bytes;
    simulation.link_bytes_per_s = from.simulation->link_bytes_per_s;
    simulation.link_latency_us = from.simulation->latency_us;
    simulation.host_bytes_per_s = from.simulation->host_bytes_per_s;
    if (from.simulation->strict_seed.has_value()) {
      // The library takes 0 for none, so the seed 0 is another here.
      const uint64_t seed = *from.simulation->strict_seed;
      simulation.strict_seed = seed != 0 ? seed : UINT64_MAX;
    }
    params.simulation = &simulation;
  }
  return Read(params, show_progress);
}

// Checks that flags of RoPE scaling have a scale to act on, the flag's or the
// checkpoint's. Errors: kUsage.
absl::Status CheckScale(const ModelOptions& from, const Model& model) {
  const bool type = !from.rope_scaling.empty() && from.rope_scaling != "none";
  const bool original = from.yarn_orig_ctx > 0;
  if (from.rope_scale > 0 || !(type || original)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Json described, model.Describe());
  const Json scaling = described.value("config", Json::object())
                           .value("rope_scaling", Json(nullptr));
  const double factor = scaling.is_null() ? 1 : scaling.value("factor", 1.0);
  const bool linear =
      !scaling.is_null() && scaling.value("type", "") == "linear";
  if (factor > 1 && !(original && linear)) return absl::OkStatus();
  return UsageError(
      absl::StrCat(original ? "--yarn-orig-ctx" : "--rope-scaling",
                   ": it has no effect without --rope-scale: the checkpoint "
                   "has no scale that it acts on"));
}

// Opens the model that -md names, if any, as the draft model of `model`.
absl::StatusOr<std::optional<Model>> OpenDraft(const Options& options,
                                               const Model& model,
                                               tiercel_load load) {
  if (options.sampling.draft_path.empty()) return std::nullopt;
  auto params = defaults<tiercel_model_params>();
  params.path = options.sampling.draft_path.c_str();
  params.load = load;
  params.compute = options.model.compute.c_str();
  params.check_tensors = options.model.check_tensors;
  params.beside = model.handle().get();
  absl::StatusOr<Model> draft = Read(params, options.progress);
  if (!draft.ok()) return Blame(draft.status(), "-md");
  if (absl::Status s = model.CheckDraft(*draft); !s.ok()) {
    return Blame(s, "-md");
  }
  return std::optional<Model>(*std::move(draft));
}

int32_t ThinkOf(const ModelOptions& options) {
  return options.think == "on"    ? TIERCEL_THINK_ON
         : options.think == "off" ? TIERCEL_THINK_OFF
                                  : TIERCEL_THINK_AUTO;
}

// Does as OpenModel, over `ranks` ranks.
absl::StatusOr<Model> OpenOver(int64_t ranks, const Options& options,
                               tiercel_load load) {
  absl::StatusOr<Model> model =
      Open(options.model, ranks, load, options.progress);
  if (!model.ok() && options.model.from_environment) {
    return Blame(model.status(), "TIERCEL_MODEL");
  }
  if (!model.ok()) return model;
  model->SetTemplate(ThinkOf(options.model), options.model.template_kwargs);
  RETURN_IF_ERROR(CheckScale(options.model, *model));
  const int32_t draft_layers = options.sampling.draft_layers;
  if (draft_layers > model->info().layers) {
    return Error(Exit::kUsage, "invalid_argument",
                 absl::StrCat("--draft-layers: got ", draft_layers,
                              ", the model has ", model->info().layers));
  }
  ASSIGN_OR_RETURN(std::optional<Model> draft,
                   OpenDraft(options, *model, TIERCEL_LOAD_HEADER));
  if (draft.has_value()) model->SetDraft(*std::move(draft));
  return model;
}

}  // namespace

absl::StatusOr<Model> OpenModel(const Options& options, tiercel_load load) {
  int64_t ranks = options.model.tensor_parallel;
  if (ranks == kBestRanks) {
    absl::StatusOr<Model> header = OpenOver(1, options, TIERCEL_LOAD_HEADER);
    if (!header.ok()) return header;
    ASSIGN_OR_RETURN(
        const int64_t best,
        header->ChooseRanks(SessionParams(options, header->draft()).session));
    if (best == 1 && load == TIERCEL_LOAD_HEADER) return header;
    ranks = best;
  }
  return OpenOver(ranks, options, load);
}

absl::StatusOr<Model> OpenTalker(const Options& options) {
  ASSIGN_OR_RETURN(Model model, OpenModel(options, TIERCEL_LOAD_HEADER));
  const int32_t asked = ThinkOf(options.model);
  if (asked == TIERCEL_THINK_AUTO) return model;
  const std::vector<Message> talk = {{"user", "?"}};
  const absl::StatusOr<std::vector<int32_t>> as_asked =
      model.ChatTokens(talk, {});
  model.SetTemplate(
      asked == TIERCEL_THINK_ON ? TIERCEL_THINK_OFF : TIERCEL_THINK_ON,
      options.model.template_kwargs);
  const absl::StatusOr<std::vector<int32_t>> otherwise =
      model.ChatTokens(talk, {});
  model.SetTemplate(asked, options.model.template_kwargs);
  // A template that fails says so when it writes the prompt.
  if (as_asked.ok() && otherwise.ok() && *as_asked == *otherwise) {
    WriteNote(absl::StrCat("--think ", options.model.think,
                           " changes nothing: the model's chat template writes "
                           "the same without it\n"));
  }
  return model;
}

absl::Status CheckSession(const Options& options, const Model& model) {
  SessionParams params(options, model.draft());
  params.session.cache_dir = nullptr;  // no times are needed
  return model.Plan(params.session).status();
}

absl::Status LoadModel(const Options& options, Model* model) {
  RETURN_IF_ERROR(CheckSession(options, *model));
  Progress progress(options.progress, "loading", "MB", "MB/s");
  absl::Status loaded = model->Load(InMegabytes(progress.Callback()));
  return loaded.ok() || !options.model.from_environment
             ? loaded
             : Blame(loaded, "TIERCEL_MODEL");
}

absl::StatusOr<std::optional<Model>> OpenDraftModel(const Options& options,
                                                    const Model& model) {
  return OpenDraft(options, model, TIERCEL_LOAD_ALL);
}

SessionParams::SessionParams(const Options& options, const Model* draft) {
  const SessionOptions& from = options.session;
  session.context = from.context;
  session.kv_type_k = from.kv_type_k.c_str();
  session.kv_type_v = from.kv_type_v.c_str();
  session.cache_dir = from.cache_dir.empty() ? nullptr : from.cache_dir.c_str();
  session.prompt_cache_dir =
      from.prompt_cache_dir.empty() ? nullptr : from.prompt_cache_dir.c_str();
  if (session.prompt_cache_dir != nullptr) {
    session.prompt_cache_bytes = from.prompt_cache_bytes;
    session.prompt_cache_flags =
        (options.book.restart ? TIERCEL_PROMPT_CACHE_BEGIN_ANEW : 0) |
        (from.keeps_prompts_alone ? TIERCEL_PROMPT_CACHE_UNFINISHED_ALONE : 0);
  }
  if (!from.prompt_cache_name.empty())
    session.prompt_cache_name = from.prompt_cache_name.c_str();
  session.forks = from.forks;
  session.fork_tokens = from.fork_tokens;
  session.policy = &policy;
  const SamplingOptions& sampling = options.sampling;
  policy.name = sampling.policy.c_str();
  policy.draft = sampling.Drafter();
  policy.draft_model = draft != nullptr ? draft->handle().get() : nullptr;
  policy.verify = sampling.Verify();
  policy.gamma1 = sampling.gamma1;
  policy.gamma2 = sampling.gamma2;
  policy.branches = sampling.branches;
  policy.draft_ahead = sampling.draft_ahead ? 1 : 0;
  policy.cost_ratio = sampling.cost_ratio;
  policy.draft_layers = sampling.draft_layers;
  policy.budget = from.budget;
  policy.sink = from.sink.value_or(0);
  policy.window = from.window;
  policy.chunk = from.chunk;
  policy.form = sampling.plain      ? "plain"
                : sampling.baseline ? "baseline"
                                    : nullptr;
  policy.settings =
      sampling.settings.empty() ? nullptr : sampling.settings.c_str();
}

absl::Status MeasureRates(const Options& options, const Model& model,
                          const JobSecondsFn& job_s,
                          std::vector<std::string>* warnings) {
  if (options.session.cache_dir.empty()) return absl::OkStatus();
  const auto measure = [&](double again_s) {
    Progress progress(options.progress,
                      "measuring this machine, once a model:", "parts", "");
    return model.Measure(SessionParams(options, model.draft()).session, again_s,
                         progress.Callback());
  };
  constexpr double kNotAgain = -1;
  absl::StatusOr<tiercel_measurement> measurement = measure(kNotAgain);
  if (measurement.ok() && measurement->steady == 0 && job_s) {
    if (const double seconds = job_s(); seconds > 0) {
      measurement = measure(seconds);
    }
  }
  if (measurement.ok()) return absl::OkStatus();
  const Exit exit = ExitOf(measurement.status());
  if (exit != Exit::kIo && exit != Exit::kMemory &&
      CodeOf(measurement.status()) != "unsupported_device") {
    return measurement.status();
  }
  Warn(absl::StrCat("no times are predicted: ", measurement.status().message()),
       warnings);
  return absl::OkStatus();
}

int64_t ContextOf(const Options& options, const Model& model) {
  return options.session.context > 0 ? options.session.context
                                     : model.info().context;
}

absl::StatusOr<Options> ForLength(const Options& options, const Model& model,
                                  int64_t tokens) {
  Options sized = options;
  if (options.session.context > 0) return sized;
  ASSIGN_OR_RETURN(const Json described, model.Describe());
  const Json& scaling = described.at("config").at("rope_scaling");
  if (scaling.is_null()) return sized;
  const auto type = scaling.at("type").get<std::string>();
  if (type != "dynamic" && type != "longrope") return sized;
  const auto original = scaling.at("original_context").get<int64_t>();
  if (tokens <= original || type == "dynamic") {
    sized.session.context =
        std::min<int64_t>(std::max(tokens, original), model.info().context);
  }
  return sized;
}

absl::StatusOr<Options> ForPrompts(const Options& options, const Model& model,
                                   size_t longest) {
  const int64_t answer = options.sampling.max_tokens;
  if (answer < 0) return options;
  return ForLength(options, model, static_cast<int64_t>(longest) + answer);
}

absl::StatusOr<Session> OpenSession(const Options& options, const Model& model,
                                    const std::optional<Model>& draft,
                                    size_t prompt_tokens) {
  RETURN_IF_ERROR(CheckLength(options, model, prompt_tokens));
  const SessionParams params(options, draft.has_value() ? &*draft : nullptr);
  return Session::Create(model, params.session);
}

std::string VersionNumber() {
  const std::string_view version = tiercel_version();
  return std::string(version.substr(0, version.find(' ')));
}

}  // namespace tiercel::cli
