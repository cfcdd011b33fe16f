// Models and tokens: the part of tiercel.h that needs no session.

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "include/tiercel_lab.h"
#include "kernels/device/cuda/cuda_driver.h"
#include "kernels/system/system_pages.h"
#include "lib/status/status_macros.h"
#include "models/chat/chat_tokens.h"
#include "models/format/json.h"
#include "runtime/api/boundary.h"
#include "runtime/api/build_identity.h"
#include "runtime/api/version.h"

namespace tiercel {
namespace {

absl::StatusOr<DeviceKind> ParseDevice(const char* name) {
  const std::string_view device = name == nullptr ? "auto" : name;
  if (device == "auto" || device == "cpu") return DeviceKind::kCpu;
  if (device == "ref") return DeviceKind::kRef;
  if (device == "cuda") return DeviceKind::kCuda;
  return UsageError("invalid_device",
                    absl::StrCat("device: got \"", std::string(device),
                                 "\", need auto, cpu, cuda or ref"));
}

absl::StatusOr<Compute> ParseCompute(const char* name) {
  const std::string_view compute = name == nullptr ? "q8" : name;
  if (compute == "q8") return Compute::kQ8;
  if (compute == "f32") return Compute::kF32;
  return UsageError("invalid_compute",
                    absl::StrCat("compute: got \"", std::string(compute),
                                 "\", need q8 or f32"));
}

absl::StatusOr<std::optional<RopeScaling::Type>> ParseRopeScaling(
    const char* name) {
  if (name == nullptr) return std::nullopt;
  const std::string_view type = name;
  if (type == "none") return RopeScaling::Type::kNone;
  if (type == "linear") return RopeScaling::Type::kLinear;
  if (type == "yarn") return RopeScaling::Type::kYarn;
  return UsageError("invalid_rope",
                    absl::StrCat("rope scaling: got \"", name,
                                 "\", need none, linear or yarn"));
}

template <typename T>
std::optional<T> UnlessZero(T value) {
  return value == T{} ? std::nullopt : std::optional<T>(value);
}

absl::Status SimulationError(std::string_view field, double got,
                             std::string_view need) {
  return UsageError("invalid_simulation",
                    absl::StrCat("simulation.", std::string(field), ": got ",
                                 got, ", need ", std::string(need)));
}

// True for a rate that a simulated link, or host, may have.
bool IsRate(double rate) { return rate >= 1e3 && rate <= 1e15; }

absl::StatusOr<std::optional<DeviceLimits>> LimitsOf(
    const tiercel_simulation& s) {
  const double rate = s.link_bytes_per_s;
  const double latency = s.link_latency_us;
  const double host = s.host_bytes_per_s;
  if (s.device_bytes == 0) {
    if (rate == 0 && latency == 0 && host == 0) return std::nullopt;
    return SimulationError("device_bytes", 0,
                           "a size, since there is a link or a host");
  }
  constexpr uint64_t kMostBytes = uint64_t{1} << 46;
  if (s.device_bytes > kMostBytes) {
    return UsageError(
        "invalid_simulation",
        absl::StrCat("simulation.device_bytes: got ", s.device_bytes,
                     ", need at most ", kMostBytes));
  }
  if (!IsRate(rate)) {
    return SimulationError("link_bytes_per_s", rate, "1e3 to 1e15");
  }
  if (!(latency >= 0 && latency <= 1e6)) {
    return SimulationError("link_latency_us", latency, "0 to 1e6");
  }
  if (host != 0 && !IsRate(host)) {
    return SimulationError("host_bytes_per_s", host, "1e3 to 1e15, or 0");
  }
  return DeviceLimits{.bytes = static_cast<int64_t>(s.device_bytes),
                      .link = {rate, latency * 1e-6},
                      .host_bytes_per_s = host};
}

absl::Status ReadSimulation(const tiercel_simulation* simulation,
                            Machine::Options* machine) {
  if (simulation == nullptr) return absl::OkStatus();
  tiercel_simulation s;
  RETURN_IF_ERROR(ReadStruct("simulation", simulation, &s));
  ASSIGN_OR_RETURN(machine->simulation, LimitsOf(s));
  if (s.strict_seed == 0) return absl::OkStatus();
  if (machine->device != DeviceKind::kCpu) {
    return UsageError("invalid_simulation",
                      absl::StrCat("simulation.strict_seed: got one on device ",
                                   NameOf(machine->device), ", need cpu"));
  }
  machine->device = DeviceKind::kSim;
  machine->sim_seed = s.strict_seed;
  return absl::OkStatus();
}

absl::StatusOr<Model::Options> ReadOptions(const tiercel_model_params& p) {
  Model::Options options;
  if (p.path == nullptr || *p.path == '\0') {
    return UsageError("null_argument", "path: got none");
  }
  options.path = p.path;
  int load = 0;  // an enum of C may hold any number
  static_assert(sizeof(load) == sizeof(p.load));
  std::memcpy(&load, &p.load, sizeof(load));
  if (load != TIERCEL_LOAD_ALL && load != TIERCEL_LOAD_HEADER &&
      load != TIERCEL_LOAD_DESCRIPTION) {
    return UsageError("invalid_argument",
                      absl::StrCat("load: got ", load,
                                   ", need TIERCEL_LOAD_ALL, "
                                   "TIERCEL_LOAD_HEADER or "
                                   "TIERCEL_LOAD_DESCRIPTION"));
  }
  options.weights = load == TIERCEL_LOAD_ALL;
  options.describes = load == TIERCEL_LOAD_DESCRIPTION;
  options.check_tensors = p.check_tensors != 0;
  if (p.beside != nullptr) {
    if (p.device != nullptr || p.threads != 0 || p.device_memory_bytes != 0 ||
        p.host_memory_bytes != 0 || p.tensor_parallel != 0 ||
        p.deterministic != 0 || p.host_layers != 0 || p.simulation != nullptr) {
      return UsageError("invalid_argument",
                        "beside: device, threads, device_memory_bytes, "
                        "host_memory_bytes, tensor_parallel, deterministic, "
                        "host_layers and simulation are those of that model: "
                        "leave them zero");
    }
    options.beside = p.beside->model->machine;
  }
  if (p.threads < 0 || p.threads > 1024) {
    return UsageError(
        "invalid_threads",
        absl::StrCat("threads: got ", p.threads, ", need 0 to 1024"));
  }
  options.machine.threads = p.threads;
  ASSIGN_OR_RETURN(options.machine.device, ParseDevice(p.device));
  options.machine.fast_prompts = p.deterministic == 0;
  if (p.tensor_parallel < 0 || p.tensor_parallel > ModelSplit::kMostRanks) {
    return UsageError("invalid_argument",
                      absl::StrCat("tensor_parallel: got ", p.tensor_parallel,
                                   ", need 0 to ", ModelSplit::kMostRanks));
  }
  options.ranks = std::max(1, static_cast<int>(p.tensor_parallel));
  if (p.host_layers < 0 || p.host_layers > ConfigLimits::kLayers) {
    return UsageError(
        "invalid_host_layers",
        absl::StrCat("host layers: got ", p.host_layers, ", need 0 to ",
                     int64_t{ConfigLimits::kLayers}));
  }
  options.host_layers = static_cast<int>(p.host_layers);
  ASSIGN_OR_RETURN(options.compute, ParseCompute(p.compute));
  ASSIGN_OR_RETURN(options.rope_scaling, ParseRopeScaling(p.rope_scaling));
  options.rope_scale = UnlessZero(p.rope_scale);
  options.rope_freq_base = UnlessZero(p.rope_freq_base);
  options.yarn_orig_ctx = UnlessZero(p.yarn_orig_ctx);
  RETURN_IF_ERROR(ReadSimulation(p.simulation, &options.machine));
  for (const auto& [name, bytes, to] :
       {std::tuple("device_memory_bytes", p.device_memory_bytes,
                   &options.machine.device_memory_bytes),
        std::tuple("host_memory_bytes", p.host_memory_bytes,
                   &options.machine.host_memory_bytes)}) {
    if (bytes > static_cast<uint64_t>(PTRDIFF_MAX)) {
      return UsageError(
          "invalid_argument",
          absl::StrCat(name, ": got ", bytes, ", need at most ", PTRDIFF_MAX));
    }
    *to = static_cast<int64_t>(bytes);
  }
  return options;
}

void NoteOpened(const tiercel_model& opened) {
  const Model& model = *opened.model;
  const Machine& machine = *model.machine;
  opened.log->Note(
      TIERCEL_LOG_INFO,
      absl::StrCat(model.FileName(), ": ", model.config.architecture, ", ",
                   model.config.layers, " layers, ", model.WeightBytes(),
                   " bytes of weights in memory, on ",
                   NameOf(machine.device().kind()), " with ",
                   machine.threads_in_use(), " threads"));
  opened.log->NoteWarnings(model.warnings);
}

Tokenizer::Special SpecialOf(uint32_t flags) {
  return (flags & TIERCEL_PARSE_SPECIAL) != 0 ? Tokenizer::Special::kParse
                                              : Tokenizer::Special::kPlain;
}

absl::StatusOr<EncodeLimits> ReadLimits(const tiercel_text_limits* limits,
                                        CallersThread& thread) {
  EncodeLimits read;
  if (limits == nullptr) return read;
  tiercel_text_limits l;
  RETURN_IF_ERROR(ReadStruct("limits", limits, &l));
  if (l.most_tokens != 0) {
    read.most_ids = std::min(read.most_ids, l.most_tokens);
  }
  if (l.progress != nullptr) {
    read.progress = [l, &thread](uint64_t done, uint64_t total) {
      return thread.GoesOn(l.progress, l.user_data, done, total);
    };
  }
  return read;
}

absl::StatusOr<nlohmann::ordered_json> ReadVariables(const char* text) {
  constexpr std::string_view kWho = "template_kwargs";
  absl::StatusOr<nlohmann::ordered_json> variables =
      ParseOrderedJson(kWho, text);
  if (!variables.ok()) {
    return UsageError("invalid_argument",
                      std::string(variables.status().message()));
  }
  if (variables->is_object()) return variables;
  return UsageError(
      "invalid_argument",
      absl::StrCat(std::string(kWho), ": got ", variables->type_name(),
                   ", need a JSON object"));
}

absl::StatusOr<ChatSettings> ReadChatSettings(
    const tiercel_chat_settings* settings) {
  ChatSettings read;
  if (settings == nullptr) return read;
  tiercel_chat_settings s;
  RETURN_IF_ERROR(ReadStruct("settings", settings, &s));
  if (s.think < TIERCEL_THINK_AUTO || s.think > TIERCEL_THINK_OFF) {
    return UsageError("invalid_argument",
                      absl::StrCat("think: got ", s.think,
                                   ", need a TIERCEL_THINK_ constant"));
  }
  if (s.think != TIERCEL_THINK_AUTO) read.think = s.think == TIERCEL_THINK_ON;
  if (s.template_kwargs != nullptr) {
    ASSIGN_OR_RETURN(read.variables, ReadVariables(s.template_kwargs));
  }
  read.continue_last = s.continue_last != 0;
  return read;
}

absl::Status CheckFlags(uint32_t flags) {
  if ((flags & ~uint32_t{TIERCEL_ADD_BOS | TIERCEL_PARSE_SPECIAL}) == 0) {
    return absl::OkStatus();
  }
  return UsageError("invalid_argument",
                    absl::StrCat("flags: got ", flags,
                                 ", need TIERCEL_ADD_BOS and "
                                 "TIERCEL_PARSE_SPECIAL only"));
}

}  // namespace
}  // namespace tiercel

extern "C" {

const char* tiercel_version(void) { return tiercel::VersionText(); }

const char* tiercel_build_id(void) {
  try {
    return tiercel::BuildIdentity().c_str();
  } catch (const std::bad_alloc&) {
    return "";  // the next call can return it
  }
}

tiercel_status tiercel_model_open(const tiercel_model_params* params,
                                  tiercel_model** model, tiercel_error* error) {
  return tiercel::AtBoundary(error, [&](auto& thread) -> absl::Status {
    RETURN_IF_ERROR(tiercel::NeedArgument("model", model));
    *model = nullptr;
    tiercel_model_params p;
    RETURN_IF_ERROR(tiercel::ReadStruct("params", params, &p));
    ASSIGN_OR_RETURN(const tiercel::Model::Options options,
                     tiercel::ReadOptions(p));
    ASSIGN_OR_RETURN(
        std::unique_ptr<tiercel::Model> opened,
        tiercel::Model::Open(options, [&](uint64_t done, uint64_t total) {
          return thread.GoesOn(p.progress, p.user_data, done, total);
        }));
    auto made = std::make_unique<tiercel_model>(std::move(opened));
    if (p.log != nullptr) {
      made->log = std::make_shared<tiercel::Log>(p.log, p.log_user_data);
      tiercel::NoteOpened(*made);
    }
    *model = made.release();
    return tiercel::Told((*model)->log, thread, absl::OkStatus());
  });
}

tiercel_status tiercel_model_load(tiercel_model* model,
                                  tiercel_progress progress, void* user_data,
                                  tiercel_error* error) {
  return tiercel::AtBoundary(error, [&](auto& thread) -> absl::Status {
    RETURN_IF_ERROR(tiercel::NeedArgument("model", model));
    const tiercel_model held = *model;
    RETURN_IF_ERROR(held.model->Load([&](uint64_t done, uint64_t total) {
      return thread.GoesOn(progress, user_data, done, total);
    }));
    if (held.log != nullptr) tiercel::NoteOpened(held);
    return tiercel::Told(held.log, thread, absl::OkStatus());
  });
}

tiercel_status tiercel_model_set_threads(tiercel_model* model, int32_t threads,
                                         tiercel_error* error) {
  return tiercel::AtBoundary(error, [&]() -> absl::Status {
    RETURN_IF_ERROR(tiercel::NeedArgument("model", model));
    const tiercel::Model& m = *model->model;
    for (int rank = 0; rank < m.ranks(); ++rank) {
      RETURN_IF_ERROR(m.machine_of(rank).UseThreads(threads));
    }
    return absl::OkStatus();
  });
}

tiercel_status tiercel_trim(tiercel_model* model, tiercel_error* error) {
  return tiercel::AtBoundary(error, [&]() -> absl::Status {
    RETURN_IF_ERROR(tiercel::NeedArgument("model", model));
    model->model->Workspaces()->Trim();
    tiercel::TrimHeap();
    return absl::OkStatus();
  });
}

void tiercel_model_free(tiercel_model* model) {
  const tiercel::CallersThread thread;
  delete model;
}

tiercel_status tiercel_model_describe(const tiercel_model* model, char* json,
                                      size_t* size, tiercel_error* error) {
  return tiercel::AtBoundary(error, [&]() -> absl::Status {
    RETURN_IF_ERROR(tiercel::NeedArgument("model", model));
    RETURN_IF_ERROR(tiercel::NeedPlace("json", json, size));
    return tiercel::FillJson(model->model->Describe(), json, size);
  });
}

tiercel_status tiercel_model_get_info(const tiercel_model* model,
                                      tiercel_model_info* info,
                                      tiercel_error* error) {
  return tiercel::AtBoundary(error, [&]() -> absl::Status {
    RETURN_IF_ERROR(tiercel::NeedArgument("model", model));
    tiercel_model_info out;
    RETURN_IF_ERROR(tiercel::ReadStruct("info", info, &out));
    const tiercel::Model& m = *model->model;
    out.vocab = m.config.vocab > 0 || m.tokenizer == nullptr
                    ? m.config.vocab
                    : m.tokenizer->vocab();
    out.context = m.config.context;
    out.has_tokenizer = m.tokenizer != nullptr;
    out.has_template = m.chat_template != nullptr;
    out.adds_bos = m.tokenizer != nullptr && m.tokenizer->adds_bos();
    out.bytes_per_token = m.BytesPerToken();
    out.weight_bytes = m.WeightBytes();
    out.threads = m.machine->threads_in_use();
    out.layers = m.config.layers;
    out.ranks = m.ranks();
    out.sliding_window = m.config.sliding_window;
    out.bos_id = out.eos_id = -1;
    if (m.tokenizer != nullptr) {
      out.bos_id = m.tokenizer->bos().value_or(-1);
      out.eos_id = m.tokenizer->eos().value_or(-1);
    }
    out.chat_template = m.chat_template == nullptr
                            ? nullptr
                            : m.chat_template->source().c_str();
    out.end_ids = m.config.eos_ids.data();
    out.num_end_ids = m.config.eos_ids.size();
    tiercel::WriteStruct(out, info);
    return absl::OkStatus();
  });
}

tiercel_status tiercel_tokenize(const tiercel_model* model, const char* text,
                                size_t text_bytes, uint32_t flags,
                                const tiercel_text_limits* limits, int32_t* ids,
                                size_t* size, tiercel_error* error) {
  return tiercel::AtBoundary(error, [&](auto& thread) -> absl::Status {
    RETURN_IF_ERROR(tiercel::NeedTokenizer(model));
    RETURN_IF_ERROR(tiercel::NeedPlace("ids", ids, size));
    if (text_bytes > 0) {
      RETURN_IF_ERROR(tiercel::NeedArgument("text", text));
    }
    RETURN_IF_ERROR(tiercel::CheckFlags(flags));
    ASSIGN_OR_RETURN(const tiercel::EncodeLimits read,
                     tiercel::ReadLimits(limits, thread));
    const std::shared_ptr<const tiercel::Model> held = model->model;
    const tiercel::Tokenizer& tokenizer = *held->tokenizer;
    std::vector<int32_t> out;
    if ((flags & TIERCEL_ADD_BOS) != 0 && tokenizer.adds_bos()) {
      out.push_back(*tokenizer.bos());
    }
    RETURN_IF_ERROR(tokenizer.Encode({text_bytes > 0 ? text : "", text_bytes},
                                     tiercel::SpecialOf(flags), &out, read));
    return tiercel::Fill(out.data(), out.size(), ids, size);
  });
}

tiercel_status tiercel_detokenize(const tiercel_model* model,
                                  const int32_t* ids, size_t count,
                                  uint32_t flags, char* text, size_t* size,
                                  tiercel_error* error) {
  return tiercel::AtBoundary(error, [&]() -> absl::Status {
    RETURN_IF_ERROR(tiercel::NeedTokenizer(model));
    RETURN_IF_ERROR(tiercel::NeedPlace("text", text, size));
    if (count > 0) {
      RETURN_IF_ERROR(tiercel::NeedArgument("ids", ids));
    }
    RETURN_IF_ERROR(tiercel::CheckFlags(
        flags & ~static_cast<uint32_t>(TIERCEL_WITHIN_TEXT)));
    if (count > std::vector<int32_t>().max_size()) {
      return tiercel::UsageError("invalid_argument",
                                 absl::StrCat("count: got ", count));
    }
    const tiercel::Tokenizer& tokenizer = *model->model->tokenizer;
    const tiercel::Tokenizer::Special special = tiercel::SpecialOf(flags);
    const std::vector<int32_t> tokens(ids, ids + count);
    ASSIGN_OR_RETURN(const std::string out,
                     (flags & TIERCEL_WITHIN_TEXT) != 0
                         ? tokenizer.Pieces(tokens, special)
                         : tokenizer.Decode(tokens, special));
    return tiercel::Fill(out.data(), out.size(), text, size);
  });
}

tiercel_status tiercel_chat_tokens(const tiercel_model* model,
                                   const tiercel_message* messages,
                                   size_t count,
                                   const tiercel_text_limits* limits,
                                   int32_t* ids, size_t* size,
                                   tiercel_error* error) {
  return tiercel_chat_tokens_with(model, messages, count, /*settings=*/nullptr,
                                  limits, ids, size, error);
}

tiercel_status tiercel_chat_tokens_with(
    const tiercel_model* model, const tiercel_message* messages, size_t count,
    const tiercel_chat_settings* settings, const tiercel_text_limits* limits,
    int32_t* ids, size_t* size, tiercel_error* error) {
  return tiercel::AtBoundary(error, [&](auto& thread) -> absl::Status {
    RETURN_IF_ERROR(tiercel::NeedTokenizer(model));
    RETURN_IF_ERROR(tiercel::NeedPlace("ids", ids, size));
    if (count > 0) {
      RETURN_IF_ERROR(tiercel::NeedArgument("messages", messages));
    }
    if (model->model->chat_template == nullptr) {
      return tiercel::InputError("no_chat_template",
                                 "the checkpoint has no chat template to use");
    }
    ASSIGN_OR_RETURN(const tiercel::ChatSettings chat,
                     tiercel::ReadChatSettings(settings));
    ASSIGN_OR_RETURN(const tiercel::EncodeLimits read,
                     tiercel::ReadLimits(limits, thread));
    std::vector<tiercel::ChatMessage> conversation;
    for (size_t i = 0; i < count; ++i) {
      tiercel_message m;
      RETURN_IF_ERROR(tiercel::ReadElement("message", messages, i, &m));
      if (m.role == nullptr || (m.content == nullptr && m.content_bytes > 0) ||
          (m.reasoning == nullptr && m.reasoning_bytes > 0)) {
        return tiercel::UsageError(
            "null_argument",
            absl::StrCat("message ", i,
                         ": role, content or reasoning is NULL"));
      }
      const auto text = [](const char* begin, size_t bytes) {
        return std::string(bytes > 0 ? begin : "", bytes);
      };
      conversation.push_back({m.role, text(m.content, m.content_bytes),
                              text(m.reasoning, m.reasoning_bytes)});
    }
    std::vector<int32_t> out;
    const std::shared_ptr<const tiercel::Model> held = model->model;
    RETURN_IF_ERROR(tiercel::EncodeChat(*held->chat_template, *held->tokenizer,
                                        std::move(conversation), chat, read,
                                        &out));
    return tiercel::Fill(out.data(), out.size(), ids, size);
  });
}

}  // extern "C"
