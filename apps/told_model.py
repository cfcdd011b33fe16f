"""Writes models that say what they are told, for the tests beside this file.

Their layers add nothing, and each row of the output matrix is the sum of the
embeddings of the tokens that its token follows. So an answer shows what was
read, where the model stopped, and what its prompt ended with. They come as a
GGUF file or as a folder as Hugging Face lays it out, with keys and files that
a test adds, changes or leaves out.

Standard library only.
"""

import json
import os
import random
import struct

import gguf_file

HIDDEN, FFN = 32, 32
NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = 1, 2, 3, 4, 5, 6


def _byte_alphabet():
    """The characters for the 256 bytes in byte-level vocabularies."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(b if b in shown else next(others)) for b in range(256)]


ALPHABET = _byte_alphabet()
CHATML = ("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
          "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}"
          "<|im_start|>assistant\n{% endif %}")
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def tokens(special=SPECIAL):
    """Special tokens, then a token for each byte."""
    return [*special, *ALPHABET]


def path_of(*texts):
    """The tokens that follow each other: [("\\n", "O"), ("O", "K")] of "\\n",
    "O", "K"."""
    return list(zip(texts, texts[1:]))


def _symbol(text):
    return ALPHABET[ord(text)] if len(text) == 1 and ord(text) < 256 else text


def _weights(names, follows, rows):
    """The embedding and the output matrix, with `rows` rows."""
    chance = random.Random(1)
    embedding = [[chance.choice((-1.0, 1.0)) for _ in range(HIDDEN)]
                 for _ in range(rows)]
    output = [[0.0] * HIDDEN for _ in range(rows)]
    for before, after in follows:
        row = output[names.index(_symbol(after))]
        for i, value in enumerate(embedding[names.index(_symbol(before))]):
            row[i] += value
    return embedding, output


def _tensors(names, follows, rows):
    """Pairs of a shape and values by a name for each of both formats."""
    embedding, output = _weights(names, follows, rows)
    zeros = [[0.0] * HIDDEN] * HIDDEN
    ones = [1.0] * HIDDEN
    layer = {("attn_q", "self_attn.q_proj"): zeros,
             ("attn_k", "self_attn.k_proj"): zeros,
             ("attn_v", "self_attn.v_proj"): zeros,
             ("attn_output", "self_attn.o_proj"): zeros,
             ("ffn_gate", "mlp.gate_proj"): zeros,
             ("ffn_up", "mlp.up_proj"): zeros,
             ("ffn_down", "mlp.down_proj"): zeros,
             ("attn_norm", "input_layernorm"): ones,
             ("ffn_norm", "post_attention_layernorm"): ones}
    named = {("token_embd", "model.embed_tokens"): embedding,
             ("output", "lm_head"): output,
             ("output_norm", "model.norm"): ones}
    for (gguf, hf), values in layer.items():
        named["blk.0." + gguf, "model.layers.0." + hf] = values
    return named


def _packed(values):
    flat = ([x for row in values for x in row] if isinstance(values[0], list)
            else values)
    return struct.pack(f"<{len(flat)}f", *flat)


def gguf_strings(values):
    return struct.pack("<IIQ", gguf_file.ARRAY, gguf_file.STRING,
                       len(values)) + b"".join(map(gguf_file.text, values))


def write_gguf(path, follows, names=None, types=None, rows=None, **more):
    """Writes a file with `names` as tokens. Keys in `more` have "__" for a dot
    and encoded values; None leaves one out."""
    names = names or tokens()
    types = types or [CONTROL] * (len(names) - 256) + [NORMAL] * 256
    keys = {"general.architecture": gguf_file.string("llama"),
            "llama.context_length": gguf_file.u32(2048),
            "llama.embedding_length": gguf_file.u32(HIDDEN),
            "llama.block_count": gguf_file.u32(1),
            "llama.feed_forward_length": gguf_file.u32(FFN),
            "llama.attention.head_count": gguf_file.u32(2),
            "llama.attention.layer_norm_rms_epsilon": gguf_file.f32(1e-5),
            "tokenizer.ggml.model": gguf_file.string("gpt2"),
            "tokenizer.ggml.pre": gguf_file.string("gpt-2"),
            "tokenizer.ggml.tokens":
                gguf_strings(names),
            "tokenizer.ggml.token_type":
                gguf_file.array(5, types),
            "tokenizer.ggml.merges": gguf_strings([]),
            "tokenizer.ggml.eos_token_id": gguf_file.u32(0),
            "tokenizer.chat_template": gguf_file.string(CHATML)}
    for key, value in more.items():
        keys[key.replace("__", ".")] = value
    keys = {key: value for key, value in keys.items() if value is not None}
    named = {name + ".weight": values for (name, _), values in
             _tensors(names, follows, rows or len(names)).items()}
    tensors = [gguf_file.Tensor(name, (HIDDEN, len(values))
                                if isinstance(values[0], list) else (HIDDEN,),
                                gguf_file.F32)
               for name, values in named.items()]
    with open(path, "wb") as file:
        gguf_file.write(file, keys, tensors, map(_packed, named.values()))
    return path


def write_saying(path, words, **more):
    """Writes a file whose model answers with these words, whatever it reads."""
    return write_gguf(path, path_of("\n", words, "<|im_end|>"),
                      names=tokens([*SPECIAL, words]),
                      types=len(SPECIAL) * [CONTROL] + [USER] + 256 * [NORMAL],
                      **more)


def added(content, index, special=True):
    return {"id": index, "content": content, "special": special,
            "lstrip": False, "rstrip": False, "single_word": False,
            "normalized": False}


def tokenizer_json(names, special):
    return {"version": "1.0",
            "added_tokens": [added(text, names.index(text))
                             for text in special],
            "normalizer": None,
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False,
                              "trim_offsets": True, "use_regex": True},
            "post_processor": None,
            "decoder": {"type": "ByteLevel"},
            "model": {"type": "BPE", "dropout": None, "unk_token": None,
                      "continuing_subword_prefix": None,
                      "end_of_word_suffix": None, "fuse_unk": False,
                      "byte_fallback": False, "ignore_merges": False,
                      "vocab": {name: i for i, name in enumerate(names)},
                      "merges": []}}


CONFIG = {"model_type": "llama", "hidden_size": HIDDEN,
          "intermediate_size": FFN, "num_hidden_layers": 1,
          "num_attention_heads": 2, "hidden_act": "silu",
          "max_position_embeddings": 2048, "rms_norm_eps": 1e-5,
          "tie_word_embeddings": False, "eos_token_id": 2}


def write_folder(path, follows, names=None, rows=None, config=None, files=None,
                 rename=lambda name: name):
    """Writes a folder. `config` changes fields of config.json, `files` whole
    files; None leaves one out. `rename` changes the names of tensors."""
    names = names or tokens()
    rows = rows or len(names)
    described = {**CONFIG, "vocab_size": rows, **(config or {})}
    texts = {"config.json": {key: value for key, value in described.items()
                             if value is not None or key in (config or {})},
             "tokenizer.json": tokenizer_json(names, SPECIAL),
             "tokenizer_config.json": {"eos_token": "<|im_end|>",
                                       "chat_template": CHATML},
             **(files or {})}
    os.makedirs(path)
    for name, content in texts.items():
        if content is None:
            continue
        mode = "wb" if isinstance(content, bytes) else "w"
        with open(os.path.join(path, name), mode) as file:
            file.write(content if isinstance(content, (str, bytes))
                       else json.dumps(content))
    header, data = {}, b""
    for (_, name), values in _tensors(names, follows, rows).items():
        packed = _packed(values)
        shape = ([len(values), HIDDEN] if isinstance(values[0], list)
                 else [HIDDEN])
        header[rename(name + ".weight")] = {
            "dtype": "F32", "shape": shape,
            "data_offsets": [len(data), len(data) + len(packed)]}
        data += packed
    text = json.dumps(header).encode()
    with open(os.path.join(path, "model.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)
    return path
