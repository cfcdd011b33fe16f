#include "runtime/plan/known_rates.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/device/cpu/probe.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"
#include "models/decoder/weights.h"
#include "runtime/plan/disk_rate.h"

namespace tiercel {
namespace {

// Measures with the model's weights, if one rank has them all, or with those of
// `few` layers. The rates are those of a single rank on one rank's threads;
// several ranks each compute a part of that.
absl::StatusOr<std::optional<Measurement>> Measure(const Model& model,
                                                   const KvLayout& layout,
                                                   const MeasuringAgain& again,
                                                   RatesProgress progress) {
  if (model.machine->device().apart()) {
    return UsageError(
        "unsupported_device",
        absl::StrCat("rates of device ", NameOf(model.machine->device().kind()),
                     " are not measured, in this version"));
  }
  ASSIGN_OR_RETURN(const WeightSizes sizes,
                   MeasureWeights(*model.checkpoint, model.config));
  ASSIGN_OR_RETURN(const std::unique_ptr<Stream> stream,
                   model.machine->NewStream(SystemMemory()));
  const int layers = LayersToMeasure(model.config, sizes);
  ModelConfig few = model.config;
  absl::StatusOr<LoadedWeights> loaded;
  const bool whole = model.weights != nullptr && model.ranks() == 1 &&
                     model.streamed == nullptr;
  if (!whole) {
    few.layers = layers;
    loaded = LoadWeights(*model.checkpoint, few, *stream,
                         [&](uint64_t, uint64_t) { return progress(0, 1); });
    if (!loaded.ok()) return loaded.status();
  }
  return SteadiestOf(again, [&](int attempt) {
    return MeasureRates({.config = few,
                         .weights = whole ? *model.weights : loaded->weights,
                         .layers = layers,
                         .weight_bytes_per_token = sizes.bytes_per_token,
                         .compute = model.options.compute,
                         .layout = layout},
                        *stream, [&](uint64_t done, uint64_t total) {
                          const auto before =
                              static_cast<uint64_t>(attempt) * total;
                          return progress(before + done, before + total);
                        });
  });
}

}  // namespace

absl::StatusOr<nlohmann::json> RatesKey(const Model& model,
                                        const KvLayout& layout,
                                        const PromptCacheFolder* texts) {
  constexpr int kFormat = 5;  // version of what is measured, and how
  ASSIGN_OR_RETURN(const Isa isa, ChooseIsa());
  const Machine& machine = *model.machine;
  const ModelConfig& config = model.config;
  nlohmann::json weights = nlohmann::json::object();
  for (const TensorInfo& tensor : model.checkpoint->tensors()) {
    nlohmann::json& bytes = weights[std::string(InfoOf(tensor.type).name)];
    bytes =
        bytes.is_null() ? tensor.bytes : bytes.get<uint64_t>() + tensor.bytes;
  }
  nlohmann::json key = {
      {"format", kFormat},
      {"cpu", CpuName()},
      {"isa", std::string(NameOf(isa))},
      {"device", NameOf(machine.device().kind())},
      {"threads", machine.threads_in_use()},
      {"compute", model.options.compute == Compute::kQ8 ? "q8" : "f32"},
      {"architecture", config.architecture},
      {"layers", config.layers},
      {"hidden", config.hidden},
      {"heads", config.heads},
      {"kv_heads", config.kv_heads},
      {"head_dim", config.head_dim},
      {"ffn", config.ffn},
      {"vocab", config.vocab},
      {"weights", std::move(weights)},
      {"type_k", std::string(InfoOf(layout.type_k).name)},
      {"type_v", std::string(InfoOf(layout.type_v).name)}};
  if (config.experts.count > 0) {
    key["experts"] = DescribeExperts(config);
  }
  if (texts != nullptr) key["disk"] = texts->path;
  return key;
}

std::optional<KeptRates> KnownRates(const Model& model, const KvLayout& layout,
                                    const std::string& folder,
                                    const PromptCacheFolder* texts) {
  const absl::StatusOr<nlohmann::json> key = RatesKey(model, layout, texts);
  return key.ok() ? RatesCache(folder).Get(*key) : std::nullopt;
}

absl::StatusOr<KeptRates> MeasureKnownRates(
    const Model& model, const KvLayout& layout, const std::string& folder,
    double again_s, RatesProgress progress, const PromptCacheFolder* texts) {
  ASSIGN_OR_RETURN(const nlohmann::json key, RatesKey(model, layout, texts));
  const RatesCache cache(folder);
  const std::optional<KeptRates> kept = cache.Get(key);
  const MeasuringAgain again = kept.has_value()
                                   ? kept->Again(again_s)
                                   : MeasuringAgain{.seconds = again_s};
  if (kept.has_value() &&
      (!kept->wants_more() || again.first_s > again.seconds)) {
    return *kept;
  }
  // Fails here rather than after the seconds that measuring takes.
  RETURN_IF_ERROR(cache.CheckWritable());
  ASSIGN_OR_RETURN(const std::optional<Measurement> made,
                   Measure(model, layout, again, progress));
  Measurement measured = *made;
  if (texts != nullptr) {
    ASSIGN_OR_RETURN(const int file, texts->Folder().OpenNameless());
    ASSIGN_OR_RETURN(const DiskRate rate,
                     MeasureDiskRate(texts->Disk(), file, layout,
                                     [&] { return !progress(0, 1); }));
    measured.rates.disk_bytes_per_s = rate.bytes_per_s;
    measured.rates.disk_bytes_per_cpu_s = rate.bytes_per_cpu_s;
  }
  return cache.Add(key, model.FileName(), measured);
}

}  // namespace tiercel
