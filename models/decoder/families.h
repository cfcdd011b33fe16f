#ifndef TIERCEL_MODELS_DECODER_FAMILIES_H_
#define TIERCEL_MODELS_DECODER_FAMILIES_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace tiercel {

// An architecture that the decoder serves: the differences that its files do
// not state. A family has no code of its own; a feature that several share is a
// field here or in ModelConfig.
struct Family {
  std::string_view name;  // general.architecture of GGUF; ModelConfig's
  // Rows of Q and K in its GGUF files are in the order of kernels that rotate
  // neighbours; otherwise, of those that rotate halves.
  bool pairs_rows = false;
  bool norms_heads = false;  // Q and K are normed by head, with weights
  // Every layer whose number, from 1, is a multiple of this has no RoPE, unless
  // the checkpoint lists such layers. 0: all layers have it.
  int unrotated_interval = 0;
  bool scales = false;  // its files may have the four factors of ModelConfig
  bool grows_queries = false;  // ... and ModelConfig::query_growth
  bool experts = false;        // ... and ModelConfig::experts
};

// Returns the family of this name, or null.
const Family* FindFamily(std::string_view name);
// Lists the names for an error: "llama, qwen2 or qwen3".
std::string NamesOfFamilies();

// The layers that have the sliding window of config.json, as in transformers.
enum class WindowRule {
  kNone,
  kAll,
  kFlag,  // all have it, if use_sliding_window says so
  // If that says so, layers that layer_types lists have it, or without a list
  // those from max_window_layers on.
  kFromLayer,
  // Layers that layer_types lists have it, or without a list those without
  // RoPE, if use_sliding_window says so.
  kUnrotated,
};

// The biases of attention in a folder.
enum class BiasRule {
  kNone,
  kQkv,     // Q, K and V have them
  kStated,  // Q, K, V and the output have them, if attention_bias says so
};

// A model_type of config.json, with the values that it may leave out, which are
// those of transformers.
struct HfFamily {
  std::string_view model_type;
  std::string_view family = {};  // the Family's name; none: `nested`
  int64_t context = 0;
  double norm_eps = 1e-6;
  double rope_theta = 10000;
  bool tied_embeddings = false;
  WindowRule window_rule = WindowRule::kNone;
  int64_t window = 0;            // the sliding window; 0: none
  int head_dim = 0;              // 0: hidden size / heads
  int ffn = 0;                   // 0: it must be there
  bool partial = false;          // a part of a head may be rotated
  int64_t original_context = 0;  // RopeScaling's; 0: the config's context
  int kv_heads = 0;              // 0: as many as query heads
  BiasRule biases = BiasRule::kNone;
  bool ffn_biases = false;  // the feed-forward has them, if mlp_bias says so
  bool needs_rope = false;  // its rotary settings must be there
  // Layers may have no attention, and experts beside a shared one, which is the
  // feed-forward of a dense model. Neither is served, and both are usual.
  bool hybrid = false;
  // A model that also sees: the one that writes is in text_config, which has a
  // model_type of its own.
  bool nested = false;
};

// Returns the family of this model_type, or null.
const HfFamily* FindHfFamily(std::string_view model_type);
std::string NamesOfHfFamilies();

}  // namespace tiercel

#endif  // TIERCEL_MODELS_DECODER_FAMILIES_H_
