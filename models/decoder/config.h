#ifndef TIERCEL_MODELS_DECODER_CONFIG_H_
#define TIERCEL_MODELS_DECODER_CONFIG_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/format/checkpoint.h"

namespace tiercel {

// The scaling of rotary frequencies for contexts beyond the trained one.
struct RopeScaling {
  enum class Type {
    kNone,
    kLinear,    // all frequencies divided by factor (Chen et al. 2023)
    kLlama3,    // low frequencies divided, high kept, blended between
    kYarn,      // by wavelength, with an attention factor (Peng et al. 2023)
    kLongRope,  // each by its own factor, of two lists (Ding et al. 2024)
    kDynamic,   // from a greater base for a greater length (NTK-aware)
  };
  Type type = Type::kNone;
  double factor = 1.0;
  int64_t original_context = 0;
  double low_freq_factor = 1.0;   // llama3
  double high_freq_factor = 4.0;  // llama3
  double beta_fast = 32.0;        // yarn
  double beta_slow = 1.0;         // yarn
  bool truncate = true;           // yarn: whole dimensions bound the blend
  // yarn; absent: 0.1 ln(factor) + 1. longrope; absent: 1
  std::optional<double> attention_factor;
  // longrope, of config.json: [rope_dims / 2] each. GGUF has tensors.
  std::vector<double> short_factors = {};
  std::vector<double> long_factors = {};
};

// Far above every known model, and low enough that no product of a few of them
// leaves 64 bits.
struct ConfigLimits {
  static constexpr int64_t kVocab = int64_t{1} << 22;
  static constexpr int64_t kHidden = int64_t{1} << 17;
  static constexpr int64_t kLayers = 512;
  static constexpr int64_t kHeads = 1024;
  static constexpr int64_t kHeadDim = 1024;
  static constexpr int64_t kFfn = int64_t{1} << 20;
  static constexpr int64_t kContext = int64_t{1} << 30;
  static constexpr double kRopeFactor = 1e6;
  static constexpr int64_t kExperts = 1024;
};

// The experts of a model, of which each row uses some instead of one wide
// feed-forward (Shazeer et al. 2017): the router is a matrix, its softmax over
// all experts ranks them, and the results of the best ones are added by their
// shares in it.
struct ExpertsConfig {
  int count = 0;        // in each layer that has any; 0: the model has none
  int used = 0;         // by a row, of those
  int ffn = 0;          // columns of one expert's feed-forward
  bool normed = false;  // the shares of the experts that a row uses add up to 1
  // [layer]: true if the layer has experts; else its feed-forward is dense.
  std::vector<bool> layers = {};

  bool Has(int layer) const {
    const auto at = static_cast<size_t>(layer);
    return at < layers.size() && layers[at];
  }
  // The number of the layers before `end` that have experts.
  int LayersBefore(int end) const {
    int with = 0;
    for (int layer = 0; layer < end; ++layer) with += Has(layer) ? 1 : 0;
    return with;
  }
};

// The terms of a layer that are loaded if the checkpoint has their tensors: all
// in GGUF, and in a folder those that the config or the family has. Tensors of
// others are not used, as in transformers.
struct LayerTerms {
  bool qkv_bias = true;
  bool output_bias = true;  // attention's
  bool ffn_bias = true;
  bool head_norms = true;
};

// The description of a decoder: every supported architecture is this struct
// with other numbers (pre-norm, RoPE, grouped-query attention, SwiGLU).
struct ModelConfig {
  std::string architecture;  // a Family's name: llama, qwen2, ...
  std::string name;          // for people; may be empty
  int64_t vocab = 0;
  int hidden = 0;
  int layers = 0;
  int heads = 0;
  int kv_heads = 0;  // divides heads
  int head_dim = 0;  // need not be hidden / heads; a multiple of kHeadAlign
  // The elements of a head that the checkpoint has, if they are not head_dim:
  // the others are zero, and belong to the end of a head. 0: all.
  int head_elements = 0;
  int ffn = 0;
  int64_t context = 0;  // positions the checkpoint was made for; with YaRN and
                        // dynamic scaling at least original_context * factor
  // The newest positions that some layer was made to attend to; 0: all. The
  // decoder attends to all, which is the same in texts of no more positions:
  // Model cuts the context to them.
  int64_t sliding_window = 0;
  float norm_eps = 0;
  double rope_theta = 0;
  int rope_dims = 0;  // rotated elements of a head, even, <= head_dim
  RopeScaling rope_scaling;
  std::vector<bool> rotated = {};  // [layer]: it has RoPE; empty: all have it
  // The output matrix is the embedding: a folder whose tensors of the two
  // differ has both, whatever its config says.
  bool tied_embeddings = false;
  // Factors: on embeddings; on the products of queries and keys (absent: 1 /
  // sqrt of the head's elements); on what attention and the feed-forward add to
  // the hidden state; on logits.
  float embedding_scale = 1;
  std::optional<float> attention_scale = {};
  float residual_scale = 1;
  float logit_scale = 1;

  // Queries at position p are multiplied, once they are rotated, by
  // 1 + query_growth ln(1 + floor(p / query_step)) (Ministral 3).
  double query_growth = 0;
  int64_t query_step = 1;
  ExpertsConfig experts;
  LayerTerms terms;

  // The vectors of attention need heads of whole multiples of this.
  static constexpr int kHeadAlign = 8;
  int HeadElements() const {
    return head_elements > 0 ? head_elements : head_dim;
  }
  bool Rotates(int layer) const {
    return rotated.empty() || rotated[static_cast<size_t>(layer)];
  }
  float QueryScale(int64_t position) const;
  // The first position after this one whose queries have another factor.
  int64_t NextQueryScale(int64_t position) const;
  // With longrope and dynamic scaling the frequencies depend on a length. In
  // transformers it is that of the text at each step, though the keys before
  // were rotated by others. Here a session has one set of frequencies, by the
  // end of the positions that it may reach: up to original_context the short
  // list, or no scaling; else the long list, or the scaling for that end.
  // Returns a number that is the same for sessions with the same frequencies: 0
  // if they are the first of these, or depend on nothing.
  int64_t RopeLength(int64_t end) const;

  // The end-of-text ids: generation stops at any of them. From
  // generation_config.json or the GGUF's eos, eot and eom keys; Model adds
  // those that the tokenizer and the chat template end a turn with.
  std::vector<int32_t> eos_ids;

  // Notes for the user that are not errors.
  std::vector<std::string> warnings = {};
};

// Reads the description from GGUF's metadata, or from config.json and
// generation_config.json, and checks its ranges. Errors:
// unsupported_architecture, also for features of a known architecture that are
// not supported (experts of another one, another activation);
// unsupported_rope_scaling;
// unsupported_quantization (config.json only); invalid_vocab (GGUF tokens
// against embedding rows); invalid_metadata, naming the key, the value and the
// need. End-of-text ids that are no tokens are warnings.
absl::StatusOr<ModelConfig> ReadModelConfig(const Checkpoint& checkpoint);

// Divisors of rotary frequencies that a checkpoint lists, [rope_dims / 2] each,
// or empty: those of every session (the GGUF tensor rope_freqs), which replace
// llama3 scaling, and longrope's two lists.
struct RopeFactors {
  std::vector<double> all = {};
  std::vector<double> of_short = {};
  std::vector<double> of_long = {};
};

// The rotary frequencies [rope_dims / 2] and the factor on cos and sin for
// `config`, and for sessions of this RopeLength.
struct RopeFrequencies {
  std::vector<double> inv_freq;
  double attention_factor = 1.0;
};
RopeFrequencies MakeRopeFrequencies(const ModelConfig& config,
                                    const RopeFactors& factors,
                                    int64_t length = 0);

}  // namespace tiercel

#endif  // TIERCEL_MODELS_DECODER_CONFIG_H_
