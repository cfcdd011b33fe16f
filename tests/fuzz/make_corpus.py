"""Writes the seeds of the model file fuzzers: corpus/{gguf,safetensors}/.

Everything here is made up. Run it in this folder.
"""

import json
import pathlib
import struct

HERE = pathlib.Path(__file__).parent / "corpus"

# The format of one value, by the number of its type.
FORMATS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f",
           7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
# Tensor types: (number, elements of a block, bytes of a block).
TYPES = {"f32": (0, 1, 4), "f16": (1, 1, 2), "bf16": (30, 1, 2),
         "q8_0": (8, 32, 34), "q4_0": (2, 32, 18), "q4_1": (3, 32, 20),
         "q5_0": (6, 32, 22), "q5_1": (7, 32, 24), "q4_K": (12, 256, 144),
         "q5_K": (13, 256, 176), "q6_K": (14, 256, 210),
         "iq4_nl": (20, 32, 18), "iq4_xs": (23, 256, 136),
         "mxfp4": (39, 32, 17), "q3_K": (11, 256, 110),
         "q2_K": (10, 256, 84)}


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def one(kind, value):
    return text(value) if kind == 8 else struct.pack(FORMATS[kind], value)


def key(name, kind, value):
    if isinstance(value, list):
        body = struct.pack("<IIQ", 9, kind, len(value))
        return text(name) + body + b"".join(one(kind, v) for v in value)
    return text(name) + struct.pack("<I", kind) + one(kind, value)


def gguf(keys, tensors=(), version=3, alignment=32):
    infos, data = b"", b""
    for name, dims, kind in tensors:
        number, block, size = TYPES[kind]
        elements = 1
        for dim in dims:
            elements *= dim
        data += bytes(-len(data) % alignment)
        infos += text(name) + struct.pack("<I", len(dims))
        infos += struct.pack("<%dQ" % len(dims), *dims)
        infos += struct.pack("<IQ", number, len(data))
        data += bytes(elements // block * size)
    out = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(keys))
    out += b"".join(key(*k) for k in keys) + infos
    return out + bytes(-len(out) % alignment) + data


def model(architecture="llama", more=()):
    a = architecture + "."
    return [("general.architecture", 8, architecture),
            (a + "context_length", 4, 64), (a + "embedding_length", 4, 32),
            (a + "block_count", 4, 1), (a + "feed_forward_length", 4, 32),
            (a + "attention.head_count", 4, 4),
            (a + "attention.head_count_kv", 4, 2),
            (a + "attention.layer_norm_rms_epsilon", 6, 1e-5),
            ("tokenizer.ggml.tokens", 8, ["a", "b", "ab", "</s>"]),
            ("tokenizer.ggml.eos_token_id", 4, 3), *more]


GGUF = {
    "vocabulary": gguf(model()),
    "version2": gguf(model("qwen2"), version=2),
    "tensors": gguf(model(), [("token_embd.weight", (32, 4), "f16"),
                              ("output_norm.weight", (32,), "f32")]),
    "types": gguf([], [(t, (256,), t) for t in TYPES]),
    "values": gguf([("k%d" % t, t, 1) for t in FORMATS]
                   + [("a%d" % t, t, [1, 0]) for t in FORMATS]
                   + [("s", 8, "text"), ("as", 8, ["", "x"])]),
    "alignment": gguf([("general.alignment", 4, 1)],
                      [("a", (3,), "f16"), ("b", (3,), "f16")], alignment=1),
    "part": gguf([("split.no", 2, 0), ("split.count", 2, 2),
                  ("split.tensors.count", 5, 2)], [("a", (8,), "f32")]),
    "yarn": gguf(model("qwen3", [
        ("qwen3.rope.freq_base", 6, 1e6),
        ("qwen3.rope.scaling.type", 8, "yarn"),
        ("qwen3.rope.scaling.factor", 6, 4.0),
        ("qwen3.rope.scaling.original_context_length", 4, 16)])),
    "per_layer": gguf([k for k in model() if "head_count" not in k[0]]
                      + [("llama.attention.head_count", 5, [4])]),
    "lfs": b"version https://git-lfs.github.com/spec/v1\n",
}


def safetensors(header, data_bytes, padding=0):
    data = json.dumps(header).encode() + b" " * padding
    return struct.pack("<Q", len(data)) + data + bytes(data_bytes)


def entry(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


LLAMA = {"model_type": "llama", "hidden_size": 32, "intermediate_size": 32,
         "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 8,
         "max_position_embeddings": 64, "eos_token_id": [1, 2]}

SAFETENSORS = {
    "two": safetensors({"a": entry("F32", [2, 3], 0, 24),
                        "b": entry("BF16", [], 24, 26)}, 26, 3),
    "metadata": safetensors({"__metadata__": {"format": "pt"},
                             "ids": entry("I64", [1], 0, 8),
                             "none": entry("F16", [3, 0], 8, 8)}, 8),
    "empty": safetensors({}, 0),
    "config_llama3.json": json.dumps(dict(LLAMA, rope_scaling={
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 16})).encode(),
    "config_yarn.json": json.dumps(dict(LLAMA, model_type="qwen3", head_dim=8,
                                        rope_parameters={
        "rope_type": "yarn", "factor": 4.0, "rope_theta": 1e6,
        "mscale": 1.0, "mscale_all_dim": 0.5, "truncate": False})).encode(),
    "index.json": json.dumps(dict(LLAMA, weight_map={
        "a": "one.safetensors"})).encode(),
}


def main():
    for folder, seeds in (("gguf", GGUF), ("safetensors", SAFETENSORS)):
        (HERE / folder).mkdir(parents=True, exist_ok=True)
        for name, data in seeds.items():
            (HERE / folder / name).write_bytes(data)


main()
