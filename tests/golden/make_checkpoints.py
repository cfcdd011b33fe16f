#!/usr/bin/env python3
"""Makes the tiny checkpoints and their golden logits.

  make_checkpoints.py --llama-cpp DIR [--quantize FILE] [--out DIR]
                      [--only NAME,NAME...]

DIR is a llama.cpp source tree: its converter writes the GGUF twin of every
safetensors directory, its llama-quantize writes the quantised files. Both are
run as they are; the golden logits come from transformers (reference.py).

The weights are random, from a fixed seed, and scaled so that logits spread by
one to three and attention is neither flat nor one-hot. README.md says what is
written. The script checks what it wrote: every GGUF file must give the logits of
its directory. With --only the other checkpoints stay as they are.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import safetensors.torch
import torch
import transformers

import reference

NUM_TOKENS = 160  # past one KV page (128) and every original context below

# Differences from LLAMA_BASE, by checkpoint. Shapes are small and awkward:
# rows that are no multiple of a SIMD width, an odd vocabulary, a head_dim that
# is not hidden_size / num_attention_heads.
LLAMA_BASE = dict(
    architectures=["LlamaForCausalLM"],
    model_type="llama",
    vocab_size=67,
    hidden_size=32,
    intermediate_size=40,
    num_hidden_layers=2,
    num_attention_heads=2,
    num_key_value_heads=2,
    head_dim=16,
    hidden_act="silu",
    max_position_embeddings=1024,
    rms_norm_eps=1e-5,
    rope_theta=10000.0,
    rope_scaling=None,
    tie_word_embeddings=False,
    attention_bias=False,
    mlp_bias=False,
    bos_token_id=1,
    eos_token_id=2,
    torch_dtype="float32",
)
CHECKPOINTS = {
    "llama_mha": dict(vocab_size=131),
    "llama_gqa": dict(
        hidden_size=36,
        num_attention_heads=9,
        num_key_value_heads=3,
        head_dim=8,
        tie_word_embeddings=True,
    ),
    "llama_mqa": dict(
        hidden_size=24,
        num_attention_heads=3,
        num_key_value_heads=1,
        head_dim=40,
    ),
    "llama_bias": dict(
        hidden_size=24,
        num_key_value_heads=1,
        head_dim=48,
        attention_bias=True,
        mlp_bias=True,
        rms_norm_eps=1e-6,
    ),
    "llama_rope_llama3": dict(
        head_dim=32,
        num_key_value_heads=1,
        max_position_embeddings=512,
        rope_scaling=dict(
            rope_type="llama3",
            factor=8.0,
            low_freq_factor=1.0,
            high_freq_factor=4.0,
            original_max_position_embeddings=64,
        ),
    ),
    "llama_rope_yarn": dict(
        head_dim=32,
        num_key_value_heads=1,
        max_position_embeddings=512,
        rope_scaling=dict(
            rope_type="yarn",
            factor=16.0,
            original_max_position_embeddings=32,
        ),
    ),
    # An old key (`type`) and float16 weights.
    "llama_rope_linear": dict(
        head_dim=32,
        num_key_value_heads=1,
        rope_scaling=dict(type="linear", factor=4.0),
        torch_dtype="float16",
    ),
    "qwen2": dict(
        architectures=["Qwen2ForCausalLM"],
        model_type="qwen2",
        num_attention_heads=4,
        head_dim=8,
        rope_theta=1000000.0,
        tie_word_embeddings=True,
        torch_dtype="bfloat16",
    ),
    # Written as transformers 5 writes it: `rope_parameters`, `dtype`.
    "qwen3": dict(
        architectures=["Qwen3ForCausalLM"],
        model_type="qwen3",
        head_dim=32,
        num_key_value_heads=1,
        rope_theta=None,
        rope_parameters=dict(rope_type="default", rope_theta=1000000.0),
        torch_dtype=None,
        dtype="float32",
    ),
    # The one that reads and writes text.
    "llama_chat": dict(
        vocab_size=384,
        num_key_value_heads=1,
        tie_word_embeddings=True,
        max_position_embeddings=16384,
        bos_token_id=1,
        eos_token_id=2,
    ),
    # The fourth layer is not rotated; nothing is said of the output matrix.
    "smollm3": dict(
        architectures=["SmolLM3ForCausalLM"],
        model_type="smollm3",
        hidden_size=24,
        num_hidden_layers=5,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        rope_theta=5000000.0,
        no_rope_layers=[1, 1, 1, 0, 1],
        no_rope_layer_interval=4,
        use_sliding_window=False,
        sliding_window=64,
        tie_word_embeddings=None,
        pad_token_id=0,
        torch_dtype="bfloat16",
    ),
    "granite": dict(
        architectures=["GraniteForCausalLM"],
        model_type="granite",
        num_attention_heads=4,
        head_dim=None,
        embedding_multiplier=3.0,
        attention_multiplier=0.2,
        residual_multiplier=0.6,
        logits_scaling=0.7,
        attention_bias=True,
        tie_word_embeddings=True,
    ),
    # Queries grow at 40, 80, 120: within pages.
    "ministral3": dict(
        architectures=["Ministral3ForCausalLM"],
        model_type="ministral3",
        num_attention_heads=4,
        head_dim=24,
        max_position_embeddings=640,
        rope_theta=None,
        rope_parameters=dict(
            rope_type="yarn",
            rope_theta=1000000.0,
            factor=16.0,
            original_max_position_embeddings=40,
            beta_fast=32.0,
            beta_slow=1.0,
            mscale=1.0,
            mscale_all_dim=1.0,
            llama_4_scaling_beta=0.3,
        ),
        pad_token_id=0,
    ),
    # Q, K and V in one matrix, the feed-forward's two in another; 12 of 16
    # elements are rotated, by one list of factors or the other.
    "phi3": dict(
        architectures=["Phi3ForCausalLM"],
        model_type="phi3",
        hidden_size=48,
        num_attention_heads=3,
        num_key_value_heads=1,
        head_dim=None,
        partial_rotary_factor=0.75,
        max_position_embeddings=256,
        original_max_position_embeddings=64,
        sliding_window=512,
        rope_scaling=dict(
            type="longrope",
            short_factor=[1.0, 1.0625, 1.125, 1.25, 1.5, 2.0],
            long_factor=[1.0, 1.5, 2.5, 4.0, 6.5, 9.0],
        ),
        pad_token_id=0,
    ),
    # transformers takes the length of the text, 160 tokens: all that there are.
    "llama_rope_dynamic": dict(
        head_dim=32,
        num_key_value_heads=1,
        max_position_embeddings=64,
        rope_scaling=dict(rope_type="dynamic", factor=2.5),
    ),
    # A hybrid's dense kind: its feed-forward is a mixture's shared expert.
    "granite4": dict(
        architectures=["GraniteMoeHybridForCausalLM"],
        model_type="granitemoehybrid",
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        head_dim=None,
        intermediate_size=40,
        shared_intermediate_size=24,
        num_local_experts=0,
        num_experts_per_tok=0,
        layer_types=["attention", "attention"],
        position_embedding_type="rope",
        embedding_multiplier=3.0,
        attention_multiplier=0.2,
        residual_multiplier=0.6,
        logits_scaling=0.7,
        mamba_n_heads=8,
        mamba_n_groups=1,
        tie_word_embeddings=True,
        mlp_bias=None,
    ),
}
# Mixtures of experts: shares that are normed, one tensor for each expert; and
# shares that are not, dense layers in between, one tensor for all experts.
QWEN3MOE = dict(
    architectures=["Qwen3MoeForCausalLM"],
    model_type="qwen3_moe",
    num_attention_heads=3,
    num_key_value_heads=1,
    moe_intermediate_size=24,
    mlp_bias=None,
    rope_theta=1000000.0,
)
EXPERTS = {
    "qwen3moe": dict(
        **QWEN3MOE,
        num_experts=6,
        num_experts_per_tok=2,
        norm_topk_prob=True,
        decoder_sparse_step=1,
        mlp_only_layers=[],
    ),
    "qwen3moe_mixed": dict(
        **QWEN3MOE,
        num_hidden_layers=4,
        num_experts=5,
        num_experts_per_tok=3,
        norm_topk_prob=False,
        decoder_sparse_step=2,
        mlp_only_layers=[1],
    ),
}
# GGUF has no dynamic scaling and Granite's architecture for granite4, and
# llama.cpp's converter knows no dense layers between those with experts.
WITHOUT_TWIN = ("llama_rope_dynamic", "granite4", "qwen3moe_mixed")
SHARDED = {"llama_bias": 3}  # safetensors shards; the GGUF is also split

# Only their quantised GGUF files are kept. Blocks of 32 and super-blocks of
# 256 weights: every row is a multiple.
QUANTISED = {
    "quant32": (
        dict(
            hidden_size=64,
            intermediate_size=96,
            num_hidden_layers=1,
            num_key_value_heads=1,
            head_dim=32,
        ),
        ["F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "IQ4_NL",
         "MXFP4_MOE"],
    ),
    "quant256": (
        dict(
            hidden_size=256,
            intermediate_size=256,
            num_hidden_layers=1,
            num_attention_heads=4,
            num_key_value_heads=1,
            head_dim=64,
            tie_word_embeddings=True,
        ),
        ["Q4_K_S", "Q5_K_S", "Q6_K", "IQ4_XS", "Q3_K_S", "Q2_K"],
    ),
    "quant_experts": (
        dict(
            EXPERTS["qwen3moe"],
            hidden_size=256,
            num_hidden_layers=1,
            num_attention_heads=4,
            head_dim=64,
            num_experts=3,
            moe_intermediate_size=256,
            tie_word_embeddings=True,
        ),
        ["Q4_K_S"],
    ),
}

# What the tokenizer of llama_chat is trained on.
TOKENIZER_TEXT = """
A tiercel is the male of the falcon. It is smaller than the female by a third,
and it is quick. The falconer keeps the bird on the glove, lets it go, and
waits. He reads the sky as other people read a book: from the first page to the
last, and then again from the beginning. What was the story about? It was about
a long winter in 1847, about 26 letters that came too late, and about the
people who did not read them. They said: "It is all one to us." The end of the
chapter is the beginning of another. Please give a short summary of the book.
"""
SPECIAL_TOKENS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content']"
    " + '<|im_end|>' + '\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)

# llama.cpp's converter names a pre-tokeniser by hashing what it does to a
# sample text, so it knows no tokenizer of ours, and it insists on one where a
# directory has none (then qwen files do not say the vocabulary's size, and
# llama.cpp could not load them). Both answers are given here; the rest is its
# own.
CONVERT = """
import pathlib, runpy, sys
root, pre = pathlib.Path(sys.argv[1]), sys.argv[2]
sys.argv = sys.argv[2:]
sys.path[:0] = [str(root), str(root / "gguf-py")]
from conversion import base, llama, phi, qwen
base.TextModel.get_vocab_base_pre = lambda self, tokenizer: pre

def no_vocabulary(self):
    self._set_vocab_none()
    if not isinstance(self, llama.LlamaModel):
        self.gguf_writer.add_vocab_size(self.hparams["vocab_size"])

if pre == "none":
    for model in (llama.LlamaModel, phi.Phi3MiniModel, qwen.Qwen2Model,
                  qwen.Qwen3Model, qwen.Qwen3MoeModel):
        model.set_vocab = no_vocabulary
runpy.run_path(str(root / "convert_hf_to_gguf.py"), run_name="__main__")
"""


def config_of(changes):
    """A config.json as a dictionary; None takes a key away."""
    config = {**LLAMA_BASE, **changes}
    return {key: value for key, value in config.items() if value is not None}


def random_weights(config, seed):
    """Draws every weight of a model; the names are transformers'."""
    torch.manual_seed(seed)
    config = transformers.AutoConfig.for_model(**config)
    model = transformers.AutoModelForCausalLM.from_config(
        config, dtype=torch.float32
    )
    state = {}
    for name, parameter in model.named_parameters():
        noise = torch.randn(parameter.shape)
        if name.endswith("bias"):
            state[name] = 0.3 * noise
        elif "norm" in name:
            state[name] = 1 + 0.2 * noise
        elif "embed" in name and not config.tie_word_embeddings:
            state[name] = noise
        else:
            # Scores have a deviation of the product of q's and k's gains.
            gain = 1.0
            if any(key in name for key in ("q_proj", "k_proj", "qkv_proj")):
                gain = 1.4
            if "lm_head" in name or "embed" in name or "mlp.gate." in name:
                gain = 2.0
            state[name] = noise * (gain / parameter.shape[-1] ** 0.5)
    return state


def by_expert(state):
    """The state with a tensor for each matrix of each expert."""
    parts = {}
    for name, tensor in state.items():
        stem, _, matrix = name.partition("mlp.experts.")
        for expert, own in enumerate(tensor if matrix else ()):
            halves = own.chunk(2) if matrix == "gate_up_proj" else (own,)
            names = ("gate", "up") if matrix == "gate_up_proj" else ("down",)
            for part, half in zip(names, halves):
                one = f"{stem}mlp.experts.{expert}.{part}_proj.weight"
                parts[one] = half.contiguous()
        if not matrix:
            parts[name] = tensor
    return parts


def write_directory(path, config, state, shards=1):
    """config.json and the weights, as one file or as an index and shards."""
    path.mkdir(parents=True)
    (path / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    dtype = getattr(torch, config.get("torch_dtype") or config["dtype"])
    state = {name: tensor.to(dtype) for name, tensor in state.items()}
    if shards == 1:
        save_file(state, path / "model.safetensors")
        return
    weight_map = {}
    for shard in range(shards):
        file = f"model-{shard + 1:05d}-of-{shards:05d}.safetensors"
        part = {name: state[name] for name in sorted(state)[shard::shards]}
        save_file(part, path / file)
        weight_map.update({name: file for name in part})
    size = sum(tensor.nbytes for tensor in state.values())
    index = {"metadata": {"total_size": size}, "weight_map": weight_map}
    file = path / "model.safetensors.index.json"
    file.write_text(json.dumps(index, indent=2, sort_keys=True) + "\n")


def save_file(state, file):
    """Writes one safetensors file, readable by all as other files are."""
    safetensors.torch.save_file(state, file, {"format": "pt"})
    file.chmod(0o644)


def write_tokenizer(path, vocab_size):
    """A byte-level BPE as SmolLM2's: single digits, then the GPT-2 pattern."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=SPECIAL_TOKENS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([TOKENIZER_TEXT], trainer)
    if tokenizer.get_vocab_size() != vocab_size:
        raise ValueError(f"trained {tokenizer.get_vocab_size()} tokens")
    tokenizer.save(str(path / "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": "<|im_start|>",
        "eos_token": "<|im_end|>",
        "unk_token": "<|endoftext|>",
        "add_bos_token": False,
        "add_prefix_space": False,
        "chat_template": CHAT_TEMPLATE,
        "clean_up_tokenization_spaces": False,
    }
    file = path / "tokenizer_config.json"
    file.write_text(json.dumps(config, indent=2) + "\n")
    ends = {"bos_token_id": 1, "eos_token_id": [2, 0]}
    file = path / "generation_config.json"
    file.write_text(json.dumps(ends, indent=2) + "\n")


def convert(llama_cpp, directory, out, split=False):
    """Runs llama.cpp's converter: float32, whatever the directory holds."""
    has_tokenizer = (directory / "tokenizer.json").exists()
    command = [sys.executable, "-c", CONVERT, str(llama_cpp)]
    command += ["smollm" if has_tokenizer else "none", str(directory)]
    command += ["--outtype", "f32", "--outfile", str(out)]
    if split:
        command += ["--split-max-tensors", "10"]
    run(command)


def run(command):
    """Runs a tool quietly; its output is shown when it fails."""
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True
    )
    if done.returncode != 0:
        sys.exit(f"{command[0]} failed\n{done.stdout}{done.stderr}")


def golden(model, tokens, out):
    """Writes the logits, computed in float64 and rounded; describes them."""
    single = reference.logits(model, tokens)
    reference.to_double(model)
    with reference.double_precision():
        double = reference.logits(model, tokens)
    np.save(out, double.astype(np.float32))
    return {
        "positions": len(tokens),
        "vocab_size": double.shape[1],
        "logit_deviation": round(float(double.std()), 3),
        "float32_noise": float(f"{np.abs(single - double).max():.1e}"),
    }


def make_checkpoint(name, seed, args):
    """One directory, its GGUF twin and its golden logits."""
    config = config_of({**CHECKPOINTS, **EXPERTS}[name])
    shards = SHARDED.get(name, 1)
    directory = args.out / name
    state = random_weights(config, seed)
    if name not in WITHOUT_TWIN:
        state = by_expert(state)
    write_directory(directory, config, state, shards)
    if name == "llama_chat":
        write_tokenizer(directory, config["vocab_size"])
    rng = np.random.default_rng(seed)
    tokens = rng.integers(config["vocab_size"], size=NUM_TOKENS).tolist()
    reference.write_tokens(directory / "tokens.txt", tokens)
    model = reference.load_directory(directory)
    entry = golden(model, tokens, directory / "golden.npy")
    if config["model_type"] == "phi3":  # the other factors
        short = tokens[: config["original_max_position_embeddings"]]
        golden(model, short, directory / "short.npy")
    if name in WITHOUT_TWIN:
        return entry
    twin = args.out / f"{name}.gguf"
    convert(args.llama_cpp, directory, twin)
    if shards > 1:
        convert(args.llama_cpp, directory, twin, split=True)
    loaded = reference.load_gguf(twin, model.config)
    difference = np.abs(
        reference.logits(loaded, tokens) - np.load(directory / "golden.npy")
    ).max()
    if difference > 1e-4:
        sys.exit(f"{twin}: the GGUF file differs by {difference}")
    return entry


def make_quantised(family, seed, args):
    """The GGUF files of one family, one per type, each with its golden."""
    changes, types = QUANTISED[family]
    config = config_of(changes)
    directory = args.out / family
    directory.mkdir(parents=True)
    rng = np.random.default_rng(seed)
    tokens = rng.integers(config["vocab_size"], size=NUM_TOKENS).tolist()
    reference.write_tokens(directory / "tokens.txt", tokens)
    entries = {}
    with tempfile.TemporaryDirectory() as scratch:
        source = pathlib.Path(scratch) / family
        write_directory(source, config, by_expert(random_weights(config, seed)))
        wide = pathlib.Path(scratch) / "f32.gguf"
        convert(args.llama_cpp, source, wide)
        config = reference.load_directory(source).config
        for kind in types:
            stem = kind.lower().removesuffix("_s").removesuffix("_moe")
            file = directory / f"{stem}.gguf"
            run([args.quantize, "--pure", wide, file, kind, "1"])
            model = reference.load_gguf(file, config)
            entries[f"{family}/{stem}"] = golden(
                model, tokens, directory / f"{stem}.npy"
            )
    return entries


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--llama-cpp",
        type=pathlib.Path,
        required=True,
        help="llama.cpp's source tree (tests/setup/peer.sh fetches one)",
    )
    parser.add_argument(
        "--quantize",
        type=pathlib.Path,
        help="llama-quantize (default: build/bin/ of that tree)",
    )
    parser.add_argument(
        "--out",
        type=pathlib.Path,
        default=pathlib.Path(__file__).parent / "checkpoints",
        help="where to write; what is there is replaced",
    )
    parser.add_argument("--only", help="some checkpoints alone")
    args = parser.parse_args()
    default = args.llama_cpp / "build/bin/llama-quantize"
    args.quantize = args.quantize or default
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()

    every = [*CHECKPOINTS, *EXPERTS, *QUANTISED]
    only = args.only.split(",") if args.only else every
    if unknown := set(only) - set(every):
        parser.error(f"no such checkpoint: {', '.join(sorted(unknown))}")
    manifest = {}
    if args.only:
        manifest = json.loads((args.out / "manifest.json").read_text())
        for name in only:
            shutil.rmtree(args.out / name, ignore_errors=True)
    else:
        shutil.rmtree(args.out, ignore_errors=True)
        args.out.mkdir(parents=True)
    seeds = [*enumerate(CHECKPOINTS), *enumerate(EXPERTS, start=200)]
    for seed, name in seeds:
        if name not in only:
            continue
        manifest[name] = make_checkpoint(name, seed, args)
        print(name, manifest[name], flush=True)
    for seed, family in enumerate(QUANTISED, start=100):
        if family not in only:
            continue
        for name, entry in make_quantised(family, seed, args).items():
            manifest[name] = entry
            print(name, entry, flush=True)
    entries = sorted(
        manifest.items(), key=lambda entry: every.index(entry[0].split("/")[0])
    )
    text = json.dumps(dict(entries), indent=2) + "\n"
    (args.out / "manifest.json").write_text(text)


if __name__ == "__main__":
    main()
