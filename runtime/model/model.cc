#include "runtime/model/model.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"
#include "models/chat/chat_tokens.h"
#include "models/format/check_tensors.h"
#include "models/format/content_hash.h"

namespace tiercel {
namespace {

// Metadata arrays longer than this (a vocabulary) are described by their size.
constexpr size_t kMostShown = 16;

// Applies flags that replace the checkpoint's RoPE settings, as llama.cpp means
// them.
absl::Status OverrideRope(const Model::Options& options, ModelConfig* config) {
  RopeScaling& scaling = config->rope_scaling;
  if (options.rope_freq_base.has_value()) {
    if (!(*options.rope_freq_base > 0) ||
        !std::isfinite(*options.rope_freq_base)) {
      return UsageError("invalid_rope",
                        absl::StrCat("rope frequency base: got ",
                                     *options.rope_freq_base, ", need over 0"));
    }
    config->rope_theta = *options.rope_freq_base;
  }
  if (options.rope_scaling.has_value() &&
      *options.rope_scaling != scaling.type) {
    scaling.type = *options.rope_scaling;
    scaling.attention_factor.reset();
  }
  if (options.yarn_orig_ctx.has_value()) {
    if (*options.yarn_orig_ctx < 1 ||
        *options.yarn_orig_ctx > ConfigLimits::kContext) {
      return UsageError(
          "invalid_rope",
          absl::StrCat("original context: got ", *options.yarn_orig_ctx,
                       ", need 1 to ", ConfigLimits::kContext));
    }
    scaling.original_context = *options.yarn_orig_ctx;
  }
  if (options.rope_scale.has_value()) {
    if (!(*options.rope_scale >= 1.0 && *options.rope_scale <= 4096.0)) {
      return UsageError("invalid_rope",
                        absl::StrCat("rope scale: got ", *options.rope_scale,
                                     ", need 1 to 4096"));
    }
    if (options.rope_scaling == RopeScaling::Type::kNone) {
      return UsageError("invalid_rope",
                        absl::StrCat("rope scale: got ", *options.rope_scale,
                                     " with rope scaling none"));
    }
    if (scaling.type == RopeScaling::Type::kLongRope) {
      return UsageError("invalid_rope",
                        absl::StrCat("rope scale: got ", *options.rope_scale,
                                     ", the checkpoint has a factor for each "
                                     "frequency (longrope)"));
    }
    const int64_t original = scaling.original_context > 0
                                 ? scaling.original_context
                                 : config->context;
    if (scaling.type == RopeScaling::Type::kNone) {
      scaling.type = RopeScaling::Type::kLinear;
    }
    scaling.factor = *options.rope_scale;
    scaling.original_context = original;
    config->context =
        std::max(config->context,
                 std::min(ConfigLimits::kContext,
                          static_cast<int64_t>(static_cast<double>(original) *
                                               scaling.factor)));
  }
  if (scaling.type == RopeScaling::Type::kYarn &&
      scaling.original_context < 1) {
    scaling.original_context = config->context;
  }
  return absl::OkStatus();
}

nlohmann::json ToJson(const MetadataValue& value) {
  return std::visit(
      [](const auto& v) -> nlohmann::json {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_scalar_v<T> || std::is_same_v<T, std::string>) {
          return v;
        } else {
          if (v.size() > kMostShown) return {{"array_length", v.size()}};
          nlohmann::json array = nlohmann::json::array();
          for (const auto& element : v) {
            array.push_back(typename T::value_type(element));
          }
          return array;
        }
      },
      value);
}

nlohmann::json ToJson(const RopeScaling& scaling) {
  const char* type = "";
  switch (scaling.type) {
    case RopeScaling::Type::kNone:
      return nullptr;
    case RopeScaling::Type::kLinear:
      type = "linear";
      break;
    case RopeScaling::Type::kLlama3:
      type = "llama3";
      break;
    case RopeScaling::Type::kYarn:
      type = "yarn";
      break;
    case RopeScaling::Type::kLongRope:
      type = "longrope";
      break;
    case RopeScaling::Type::kDynamic:
      type = "dynamic";
      break;
  }
  return {{"type", type},
          {"factor", scaling.factor},
          {"original_context", scaling.original_context}};
}

// Checks that `machine` has room for weights of `bytes`; `hint` says what would
// do if `free` bytes do not.
absl::Status CheckRoom(const Machine& machine, int64_t bytes,
                       absl::FunctionRef<std::string(int64_t free)> hint) {
  int64_t budget = machine.DeviceBudget();
  int64_t free =
      budget - (machine.device().in_place() ? machine.Committed()
                                            : machine.memory().used());
  if (!machine.device().apart()) {
    const int64_t of_all = machine.MemoryBudget();
    if (of_all - machine.Committed() < free) {
      budget = of_all;
      free = of_all - machine.Committed();
    }
  }
  free = std::max<int64_t>(0, free);
  if (bytes <= free) return absl::OkStatus();
  return MemoryError(
      "out_of_memory",
      absl::StrCat("the weights need ", bytes, " bytes of memory, ", free,
                   " of ", budget, " are free", hint(free)));
}

// The most bytes that one of the layers takes.
int64_t LargestOf(const std::vector<int>& layers, const WeightSizes& size) {
  int64_t most = 0;
  for (int layer : layers) {
    most = std::max(most, size.layers[static_cast<size_t>(layer)]);
  }
  return most;
}

// Moves the weights of `count` layers to the host tier, but for two buffers.
void MoveToHost(int count, const Machine& machine, WeightSizes* size) {
  if (count == 0) return;
  const std::vector<int> layers =
      StreamedLayers::Choose(count, static_cast<int>(size->layers.size()));
  for (int layer : layers) {
    size->host_bytes += size->layers[static_cast<size_t>(layer)];
  }
  size->bytes +=
      2 * TakenBytesOn(machine, LargestOf(layers, *size)) - size->host_bytes;
}

// The fewest host layers with which `size` fits `free` bytes, as a sentence.
std::string FewestHostLayers(const WeightSizes& size, const Machine& machine,
                             int64_t free) {
  const auto all = static_cast<int>(size.layers.size());
  for (int count = StreamedLayers::kFewest; count <= all; ++count) {
    WeightSizes moved = size;
    MoveToHost(count, machine, &moved);
    if (moved.bytes > free) continue;
    return absl::StrCat("; with the weights of ", count, " of ", all,
                        " layers in the host's memory (host layers) ",
                        moved.bytes, " would be enough");
  }
  return "";
}

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> Model::Open(
    const Options& options,
    absl::FunctionRef<bool(uint64_t, uint64_t)> progress) {
  auto model = std::make_unique<Model>();
  model->options = options;
  if (options.beside != nullptr) {
    model->machine = options.beside;
  } else {
    model->MakeMachines(options.ranks);
  }
  // If the GPU is missing, this fails before anything is read.
  RETURN_IF_ERROR(model->FindDevices());
  ASSIGN_OR_RETURN(
      std::unique_ptr<Checkpoint> checkpoint,
      Checkpoint::Open(options.path, options.describes
                                         ? Checkpoint::Need::kHeaders
                                         : Checkpoint::Need::kAll));
  model->checkpoint = std::move(checkpoint);
  model->warnings = model->checkpoint->warnings();
  RETURN_IF_ERROR(model->Allow(model->checkpoint->missing()));

  // A file of a vocabulary alone serves to tokenise, whatever its architecture.
  const bool has_tensors =
      !model->checkpoint->tensors().empty() ||
      !model->checkpoint->unread().empty() ||
      model->checkpoint->format() == Checkpoint::Format::kSafetensors;
  if (has_tensors || options.weights) {
    RETURN_IF_ERROR(model->Allow(model->ReadConfig()));
  }

  absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer =
      Tokenizer::Create(*model->checkpoint);
  if (tokenizer.ok()) {
    model->tokenizer = *std::move(tokenizer);
  } else if (has_tensors || options.describes) {
    // Token ids need none.
    model->tokenizer_status = tokenizer.status();
    if (CodeOf(tokenizer.status()) != "no_tokenizer") {
      model->Warn(
          {absl::StrCat("tokenizer not used: ", tokenizer.status().message(),
                        "; only token ids can be used")});
    } else if (options.describes) {
      model->Warn({"no tokenizer: only token ids can be used"});
    }
  } else {
    return tokenizer.status();
  }
  for (const auto& [name, why] : model->checkpoint->unread_files()) {
    if (why == model->tokenizer_status) continue;
    model->Warn({absl::StrCat("not used: ", why.message())});
  }
  if (model->config.layers > 0) {
    RETURN_IF_ERROR(model->Allow(model->CheckRows()));
  }
  // A template that cannot be used matters only to those who chat.
  absl::StatusOr<std::unique_ptr<ChatTemplate>> chat_template =
      ChatTemplate::Create(*model->checkpoint);
  if (chat_template.ok()) {
    model->chat_template = *std::move(chat_template);
  } else {
    model->warnings.push_back(absl::StrCat("chat template not used: ",
                                           chat_template.status().message()));
  }
  model->FindEnds();
  if (options.weights) {
    RETURN_IF_ERROR(model->Load(progress));
  } else if (has_tensors) {
    // A checkpoint that cannot be run can still be inspected.
    if (model->config.layers == 0 || !model->checkpoint->missing().ok()) {
      return model;
    }
    const absl::StatusOr<WeightSizes> sizes =
        MeasureWeights(*model->checkpoint, model->config);
    if (sizes.ok()) {
      model->Warn(sizes->warnings);
    } else {
      model->CannotRun(sizes.status());
    }
  }
  return model;
}

absl::Status Model::Allow(const absl::Status& status) {
  if (status.ok() || !options.describes) return status;
  CannotRun(status);
  return absl::OkStatus();
}

void Model::CannotRun(const absl::Status& status) {
  if (cannot_run.empty()) cannot_run = std::string(status.message());
  Warn({absl::StrCat("cannot be run: ", status.message())});
}

absl::Status Model::CheckRows() const {
  if (tokenizer == nullptr) return absl::OkStatus();
  const std::optional<int32_t> word = tokenizer->FirstWordFrom(config.vocab);
  if (!word.has_value()) return absl::OkStatus();
  return InputError("invalid_vocab",
                    absl::StrCat("the tokenizer has ", tokenizer->vocab(),
                                 " tokens, the embedding ", config.vocab,
                                 " rows: there is none for the word ", *word));
}

absl::StatusOr<std::unique_ptr<Model>> Model::Over(int ranks) const {
  auto model = std::make_unique<Model>();
  model->options = options;
  model->options.weights = false;
  model->options.ranks = ranks;
  model->MakeMachines(ranks);
  RETURN_IF_ERROR(model->FindDevices());
  model->checkpoint = checkpoint;
  RETURN_IF_ERROR(model->ReadConfig());
  return model;
}

void Model::MakeMachines(int ranks) {
  machine = std::make_shared<Machine>(options.machine, 0, ranks);
  for (int rank = 1; rank < ranks; ++rank) {
    others.push_back(
        {std::make_shared<Machine>(options.machine, rank, ranks), nullptr});
  }
}

absl::Status Model::FindDevices() {
  for (int rank = 0; rank < ranks(); ++rank) {
    RETURN_IF_ERROR(machine_of(rank).FindDevice());
  }
  return absl::OkStatus();
}

void Model::Warn(const std::vector<std::string>& more) {
  for (const std::string& warning : more) {
    if (std::find(warnings.begin(), warnings.end(), warning) ==
        warnings.end()) {
      warnings.push_back(warning);
    }
  }
}

absl::Status Model::ReadConfig() {
  ASSIGN_OR_RETURN(ModelConfig read, ReadModelConfig(*checkpoint));
  Warn(read.warnings);
  RETURN_IF_ERROR(OverrideRope(options, &read));
  if (read.sliding_window > 0 && read.sliding_window < read.context) {
    Warn({absl::StrCat("the context ends at ", read.sliding_window,
                       " tokens, the sliding window of the model's attention; "
                       "it was made for ",
                       read.context)});
    read.context = read.sliding_window;
  } else {
    read.sliding_window = 0;
  }
  ASSIGN_OR_RETURN(split, ModelSplit::Create(read, ranks()));
  config = std::move(read);
  return absl::OkStatus();
}

void Model::FindEnds() {
  if (tokenizer == nullptr) return;
  std::vector<int32_t>& ends = config.eos_ids;
  for (const int32_t id : EndsOfTurn(*tokenizer, chat_template.get())) {
    if (id < config.vocab) ends.push_back(id);
  }
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
}

absl::Status Model::Load(absl::FunctionRef<bool(uint64_t, uint64_t)> progress) {
  if (weights != nullptr) return absl::OkStatus();
  if (config.layers == 0) {  // not read for a vocabulary alone
    RETURN_IF_ERROR(ReadConfig());
  }
  ASSIGN_OR_RETURN(const WeightSizes whole,
                   MeasureWeights(*checkpoint, config));
  ASSIGN_OR_RETURN(const std::vector<WeightSizes> sizes, MeasureRanks());
  for (int rank = 0; rank < ranks(); ++rank) {
    Machine& own = machine_of(rank);
    // Comes first: memory that others hold on a GPU does not count against the
    // device that is simulated on it.
    RETURN_IF_ERROR(own.TakeMemory());
    const WeightSizes& size = sizes[static_cast<size_t>(rank)];
    RETURN_IF_ERROR(CheckRoom(own, size.bytes, [&](int64_t free) {
      const bool may_stream =
          ranks() == 1 && options.host_layers == 0 && !own.device().in_place();
      return may_stream ? FewestHostLayers(size, own, free) : "";
    }));
  }
  if (options.check_tensors) {
    ASSIGN_OR_RETURN(const std::vector<BadTensor> bad,
                     CheckTensors(*checkpoint, progress));
    if (!bad.empty()) {
      const BadTensor& first = bad.front();
      return InputError(
          "non_finite_weights",
          absl::StrCat(first.name, ": ", first.blocks,
                       " blocks hold NaN or infinity, the first is ",
                       first.first_block, "; tensors like it: ", bad.size()));
    }
  }
  std::vector<std::unique_ptr<Stream>> streams;
  std::vector<Stream*> of_ranks;
  for (int rank = 0; rank < ranks(); ++rank) {
    ASSIGN_OR_RETURN(std::unique_ptr<Stream> stream,
                     machine_of(rank).NewStream());
    of_ranks.push_back(stream.get());
    streams.push_back(std::move(stream));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<StreamedLayers> on_host,
                   MakeStreamed(sizes.front()));
  ASSIGN_OR_RETURN(LoadedShares loaded,
                   LoadShares(*checkpoint, config, *split, of_ranks, progress,
                              on_host.get()));
  std::vector<std::unique_ptr<Weights>> ready;
  for (Weights& of_rank : loaded.weights) {
    ready.push_back(std::make_unique<Weights>(std::move(of_rank)));
  }
  streamed = std::move(on_host);
  weights = std::move(ready.front());
  for (size_t i = 0; i < others.size(); ++i) {
    others[i].weights = std::move(ready[i + 1]);
  }
  whole_ = whole;
  Warn(loaded.warnings);
  return absl::OkStatus();
}

absl::Status Model::CheckHostLayers() const {
  const int count = options.host_layers;
  if (count == 0) return absl::OkStatus();
  const auto refuse = [count](const std::string& need) {
    return UsageError(
        "invalid_host_layers",
        absl::StrCat("host layers: got ", count, ", need ", need));
  };
  if (config.layers < StreamedLayers::kFewest) {
    return refuse(absl::StrCat("0, as the model has ", config.layers));
  }
  if (count < StreamedLayers::kFewest || count > config.layers) {
    return refuse(absl::StrCat("0, or ", StreamedLayers::kFewest, " to ",
                               config.layers, ", the model's layers"));
  }
  if (ranks() > 1) return refuse("0 over several ranks, in this version");
  if (machine->device().in_place()) {
    return refuse("0 on a device that computes in the host's memory");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<WeightSizes>> Model::MeasureRanks() const {
  RETURN_IF_ERROR(CheckHostLayers());
  ASSIGN_OR_RETURN(
      std::vector<WeightSizes> sizes,
      MeasureShares(*checkpoint, config, *split, [this](int64_t bytes) {
        return TakenBytesOn(*machine, bytes);
      }));
  MoveToHost(options.host_layers, *machine, &sizes.front());
  return sizes;
}

// Takes the buffers of the layers whose weights are in the host tier; null:
// there are none.
absl::StatusOr<std::unique_ptr<StreamedLayers>> Model::MakeStreamed(
    const WeightSizes& size) const {
  if (options.host_layers == 0) return nullptr;
  std::vector<int> layers =
      StreamedLayers::Choose(options.host_layers, config.layers);
  const int64_t most = LargestOf(layers, size);
  MemoryPromise promise(machine->account(), 0);
  RETURN_IF_ERROR(promise.Grow(size.host_bytes, "the weights of host layers"));
  ASSIGN_OR_RETURN(std::unique_ptr<Link> link,
                   machine->NewLink(machine->NewPlacement()));
  return StreamedLayers::Create(std::move(layers), most, machine->memory(),
                                std::move(link), std::move(promise));
}

std::shared_ptr<WorkspacePool> Model::Workspaces() const {
  const std::lock_guard<std::mutex> lock(workspaces_mutex_);
  std::shared_ptr<WorkspacePool> pool = workspaces_.lock();
  if (pool != nullptr) return pool;
  std::vector<std::shared_ptr<MemoryAccount>> accounts;
  accounts.reserve(ranks());
  for (int rank = 0; rank < ranks(); ++rank) {
    // A GPU's memory is no part of this machine's.
    accounts.push_back(machine_of(rank).device().apart()
                           ? nullptr
                           : machine_of(rank).account());
  }
  pool =
      std::make_shared<WorkspacePool>(std::move(accounts), machine->account());
  workspaces_ = pool;
  return pool;
}

int64_t Model::WeightBytes() const {
  int64_t bytes = 0;
  for (int rank = 0; weights != nullptr && rank < ranks(); ++rank) {
    bytes += weights_of(rank).bytes();
  }
  return bytes;
}

std::string Model::FileName() const {
  const std::filesystem::path path = options.path;
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

absl::StatusOr<std::string> Model::Hash(
    absl::FunctionRef<bool()> cancelled) const {
  {
    const std::lock_guard<std::mutex> lock(hash_mutex_);
    if (!hash_.empty()) return hash_;
  }
  // The lock is not held, since `cancelled` calls the caller's code; threads
  // that ask meanwhile find the same hash.
  ASSIGN_OR_RETURN(const std::unique_ptr<Stream> stream,
                   machine->NewStream(SystemMemory()));
  absl::StatusOr<std::string> hash =
      ContentHash(*checkpoint, stream->pool(), cancelled);
  if (!hash.ok()) return hash;
  const std::lock_guard<std::mutex> lock(hash_mutex_);
  hash_ = *hash;
  return hash_;
}

std::vector<int32_t> Model::AssistantHeader() const {
  if (chat_template == nullptr || tokenizer == nullptr) return {};
  return tiercel::AssistantHeader(*chat_template, *tokenizer)
      .value_or(std::vector<int32_t>());
}

nlohmann::json DescribeExperts(const ModelConfig& config) {
  const ExpertsConfig& experts = config.experts;
  if (experts.count == 0) return nullptr;
  return {{"count", experts.count},
          {"used", experts.used},
          {"ffn", experts.ffn},
          {"normed", experts.normed},
          {"layers", experts.LayersBefore(config.layers)}};
}

nlohmann::json Model::Describe() const {
  int64_t parameters = 0;
  nlohmann::json tensors = nlohmann::json::array();
  for (const TensorInfo& tensor : checkpoint->tensors()) {
    int64_t elements = 1;
    for (int64_t dim : tensor.shape) elements *= dim;
    parameters += elements;
    tensors.push_back({{"name", tensor.name},
                       {"type", std::string(InfoOf(tensor.type).name)},
                       {"shape", tensor.shape},
                       {"bytes", tensor.bytes}});
  }
  nlohmann::json values = nlohmann::json::object();
  for (const auto& [key, value] : checkpoint->metadata().all()) {
    values[key] = ToJson(value);
  }
  if (checkpoint->side_files().contains("config.json")) {
    values = checkpoint->side_files()["config.json"];
  }
  std::string architecture = config.architecture;
  if (architecture.empty()) {  // one that is not supported
    const nlohmann::json& stated =
        values.contains("general.architecture") ? values["general.architecture"]
        : values.contains("model_type")         ? values["model_type"]
                                                : nlohmann::json();
    if (stated.is_string()) architecture = stated.get<std::string>();
  }
  nlohmann::json document = {
      {"format", checkpoint->format() == Checkpoint::Format::kGguf
                     ? "gguf"
                     : "safetensors"},
      {"architecture", architecture},
      {"name", config.name},
      {"parameters", parameters},
      {"file_bytes", checkpoint->file_bytes()},
      {"tensors", std::move(tensors)},
      {"tokenizer",
       tokenizer != nullptr ? tokenizer->Describe() : nlohmann::json(nullptr)},
      {"chat_template", chat_template != nullptr},
      {"prompt_arithmetic", machine->PromptArithmetic()},
      {"cannot_run", cannot_run.empty() ? nlohmann::json(nullptr)
                                        : nlohmann::json(cannot_run)},
      {"metadata", std::move(values)},
      {"warnings", warnings},
  };
  if (config.layers > 0) {
    document["config"] = {
        {"context", config.context},
        {"vocab", config.vocab},
        {"hidden", config.hidden},
        {"layers", config.layers},
        {"heads", config.heads},
        {"kv_heads", config.kv_heads},
        {"head_dim", config.HeadElements()},
        {"ffn", config.ffn},
        {"rope_theta", config.rope_theta},
        {"eos_ids", config.eos_ids},
    };
    document["config"]["rope_scaling"] = ToJson(config.rope_scaling);
    document["config"]["experts"] = DescribeExperts(config);
  }
  return document;
}

}  // namespace tiercel
