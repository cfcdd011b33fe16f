#include "models/decoder/families.h"

#include <cstddef>

namespace tiercel {
namespace {

constexpr Family kFamilies[] = {
    {.name = "llama", .pairs_rows = true},
    {.name = "qwen2"},
    {.name = "qwen3", .norms_heads = true},
    {.name = "qwen3moe", .norms_heads = true, .experts = true},
    {.name = "smollm3", .pairs_rows = true, .unrotated_interval = 4},
    {.name = "granite", .pairs_rows = true, .scales = true},
    {.name = "mistral3", .pairs_rows = true, .grows_queries = true},
    {.name = "phi3"},
};

constexpr HfFamily kHfFamilies[] = {
    {.model_type = "llama",
     .family = "llama",
     .context = 2048,
     .biases = BiasRule::kStated,
     .ffn_biases = true},
    // Mistral without its window is llama, tensor names included.
    {.model_type = "mistral",
     .family = "llama",
     .context = 131072,
     .window_rule = WindowRule::kAll,
     .window = 4096,
     .kv_heads = 8},
    {.model_type = "qwen2",
     .family = "qwen2",
     .context = 32768,
     .window_rule = WindowRule::kFromLayer,
     .window = 4096,
     .kv_heads = 32,
     .biases = BiasRule::kQkv},
    {.model_type = "qwen3",
     .family = "qwen3",
     .context = 32768,
     .window_rule = WindowRule::kFromLayer,
     .window = 4096,
     .head_dim = 128,
     .kv_heads = 32,
     .biases = BiasRule::kStated},
    {.model_type = "qwen3_moe",
     .family = "qwen3moe",
     .context = 32768,
     .window_rule = WindowRule::kFlag,
     .window = 4096,
     .ffn = 6144,
     .kv_heads = 4,
     .biases = BiasRule::kStated},
    {.model_type = "smollm3",
     .family = "smollm3",
     .context = 32768,
     .rope_theta = 2e6,
     .tied_embeddings = true,
     .window_rule = WindowRule::kUnrotated,
     .kv_heads = 4,
     .biases = BiasRule::kStated,
     .ffn_biases = true},
    {.model_type = "granite",
     .family = "granite",
     .context = 2048,
     .biases = BiasRule::kStated,
     .ffn_biases = true},
    {.model_type = "granitemoehybrid",  // Granite 4
     .family = "granite",
     .context = 2048,
     .ffn = 1024,
     .biases = BiasRule::kStated,
     .hybrid = true},
    {.model_type = "ministral3",
     .family = "mistral3",
     .context = 262144,
     .norm_eps = 1e-5,
     .rope_theta = 1e6,
     .window_rule = WindowRule::kAll,
     .head_dim = 128,
     .kv_heads = 8,
     .needs_rope = true},
    {.model_type = "mistral3", .nested = true},
    {.model_type = "phi3",
     .family = "phi3",
     .context = 4096,
     .norm_eps = 1e-5,
     .window_rule = WindowRule::kAll,
     .partial = true,
     .original_context = 4096},
};

// Returns the entry whose `name` is this, or null.
template <typename Entry, size_t kCount>
const Entry* FindIn(const Entry (&entries)[kCount],
                    std::string_view Entry::*name, std::string_view wanted) {
  for (const Entry& entry : entries) {
    if (entry.*name == wanted) return &entry;
  }
  return nullptr;
}

// Joins the names as in "a, b or c".
template <typename Entry, size_t kCount>
std::string NamesIn(const Entry (&entries)[kCount],
                    std::string_view Entry::*name) {
  std::string names(entries[0].*name);
  for (size_t i = 1; i < kCount; ++i) {
    names.append(i + 1 < kCount ? ", " : " or ").append(entries[i].*name);
  }
  return names;
}

}  // namespace

const Family* FindFamily(std::string_view name) {
  return FindIn(kFamilies, &Family::name, name);
}

std::string NamesOfFamilies() { return NamesIn(kFamilies, &Family::name); }

const HfFamily* FindHfFamily(std::string_view model_type) {
  return FindIn(kHfFamilies, &HfFamily::model_type, model_type);
}

std::string NamesOfHfFamilies() {
  return NamesIn(kHfFamilies, &HfFamily::model_type);
}

}  // namespace tiercel
