"""The oracle of the golden files: transformers on a CPU, float32 or float64.

A model comes from a safetensors directory or from a GGUF file. Quantised GGUF
tensors are dequantised by the gguf package first, so the reference is exact
arithmetic on the weights that the file stands for.

Needs torch, transformers, numpy and gguf.
"""

import contextlib
from unittest import mock

import gguf
import numpy as np
import torch
import transformers

# GGUF name -> transformers name, inside `blk.N.` and `model.layers.N.`.
LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "ffn_gate_inp": "mlp.gate",
}
# Of all experts of a layer; transformers has gate and up in one tensor.
EXPERT_NAMES = {
    "ffn_gate_exps": "gate",
    "ffn_up_exps": "up",
    "ffn_down_exps": "down_proj",
}
# Matrices that phi3 has in one.
PHI3_NAMES = {
    "attn_qkv": "self_attn.qkv_proj",
    "ffn_up": "mlp.gate_up_proj",
}
TOP_NAMES = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
}


# The families whose GGUF files have Q and K rows in the order of adjacent pairs.
PAIRS_ROWS = ("llama", "smollm3", "granite", "ministral3")


def load_directory(path, dtype=torch.float32):
    """A safetensors directory as a model; weights are widened to `dtype`."""
    model = transformers.AutoModelForCausalLM.from_pretrained(
        path,
        dtype=dtype,
        attn_implementation="eager",
        experts_implementation="eager",
    )
    return model.eval()


def load_gguf(path, config=None, dtype=torch.float32):
    """A GGUF file as a model; `config` replaces what the header says."""
    reader = gguf.GGUFReader(path)
    config = config or config_of_gguf(reader)
    config._attn_implementation = "eager"
    config._experts_implementation = "eager"
    state = {}
    for tensor in reader.tensors:
        name = transformers_name(tensor.name, config.model_type)
        if name is None:
            continue
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        shape = [int(n) for n in reversed(tensor.shape)]
        values = torch.from_numpy(values.astype(np.float32).reshape(shape))
        pairs = config.model_type in PAIRS_ROWS
        if pairs and ".attn_q." in tensor.name:
            values = split_halves(values, config.num_attention_heads)
        if pairs and ".attn_k." in tensor.name:
            values = split_halves(values, config.num_key_value_heads)
        state[name] = values
    for name in [name for name in state if name.endswith(".experts.gate")]:
        halves = state.pop(name), state.pop(name[: -len("gate")] + "up")
        state[f"{name}_up_proj"] = torch.cat(halves, dim=1)
    if config.tie_word_embeddings:
        state["lm_head.weight"] = state["model.embed_tokens.weight"]
    model = transformers.AutoModelForCausalLM.from_config(config)
    model.load_state_dict(state, strict=True)
    return model.to(dtype).eval()


def transformers_name(name, model_type):
    """The transformers name of a GGUF tensor; None for RoPE factors."""
    stem, suffix = name.rsplit(".", 1)
    if stem in TOP_NAMES:
        return f"{TOP_NAMES[stem]}.{suffix}"
    if stem.startswith("rope_f"):
        return None
    _, layer, stem = stem.split(".")
    if model_type == "phi3" and stem in PHI3_NAMES:
        return f"model.layers.{layer}.{PHI3_NAMES[stem]}.{suffix}"
    if stem in EXPERT_NAMES:
        return f"model.layers.{layer}.mlp.experts.{EXPERT_NAMES[stem]}"
    return f"model.layers.{layer}.{LAYER_NAMES[stem]}.{suffix}"


def split_halves(rows, heads):
    """Rows for adjacent RoPE pairs -> rows for split halves.

    Some families' GGUF files keep the two numbers of a pair side by side;
    transformers keeps them half a head apart.
    """
    shape = rows.shape
    rows = rows.reshape(heads, -1, 2, *shape[1:])
    return rows.swapaxes(1, 2).reshape(shape).contiguous()


def config_of_gguf(reader):
    """The config of a llama file without RoPE scaling."""

    def field(key, default=None):
        found = reader.get_field(key)
        return default if found is None else found.contents()

    if field("general.architecture") != "llama":
        raise ValueError("without a config only llama files can be read")
    if field("llama.rope.scaling.type", "none") != "none":
        raise ValueError("without a config RoPE scaling cannot be read")
    names = [tensor.name for tensor in reader.tensors]
    heads = field("llama.attention.head_count")
    hidden = field("llama.embedding_length")
    return transformers.LlamaConfig(
        vocab_size=len(field("tokenizer.ggml.tokens")),
        hidden_size=hidden,
        intermediate_size=field("llama.feed_forward_length"),
        num_hidden_layers=field("llama.block_count"),
        num_attention_heads=heads,
        num_key_value_heads=field("llama.attention.head_count_kv", heads),
        head_dim=field("llama.attention.key_length", hidden // heads),
        rms_norm_eps=field("llama.attention.layer_norm_rms_epsilon"),
        max_position_embeddings=field("llama.context_length"),
        rope_theta=field("llama.rope.freq_base", 10000.0),
        tie_word_embeddings="output.weight" not in names,
    )


@torch.inference_mode()
def logits(model, tokens):
    """The logits of every position, [n, vocab], in the model's dtype."""
    return model(torch.tensor([tokens]), use_cache=False).logits[0].numpy()


def to_double(model):
    """Makes the whole model float64, its RoPE frequencies too."""
    model.double()
    rotary = model.model.rotary_emb
    with double_precision():
        model.model.rotary_emb = type(rotary)(model.config)
    return model


@contextlib.contextmanager
def double_precision():
    """Turns transformers' own float32 islands into float64.

    Whatever the model's dtype, it computes norms, softmax and RoPE angles in
    float32; at position 6,000 such an angle is off by 4e-4 rad.
    """
    with contextlib.ExitStack() as stack:
        for name in ("float32", "float"):
            stack.enter_context(mock.patch.object(torch, name, torch.float64))
        stack.enter_context(
            mock.patch.object(torch.Tensor, "float", torch.Tensor.double)
        )
        yield


def write_tokens(path, tokens):
    """Whitespace-separated decimal ids, sixteen to a line."""
    rows = [tokens[i : i + 16] for i in range(0, len(tokens), 16)]
    text = "".join(" ".join(map(str, row)) + "\n" for row in rows)
    path.write_text(text)


def read_tokens(path):
    """The ids of a token file."""
    return [int(word) for word in path.read_text().split()]
