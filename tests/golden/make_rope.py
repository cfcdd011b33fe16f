"""Writes rope.json: rotary frequencies as transformers computes them.

Run with a Python that has torch and transformers (5.x):
    python make_rope.py > rope.json
"""

import json

import transformers
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

LONG_ROPE = dict(rope_type="longrope",
                 short_factor=[1.0, 1.02, 1.1, 1.3, 1.5, 2.0, 2.6, 2.8],
                 long_factor=[1.0, 1.2, 3.1, 6.3, 12.5, 21.0, 33.6, 61.8],
                 original_max_position_embeddings=4096)
CASES = {
    "linear": dict(head_dim=64, theta=100000.0, context=16384,
                   rope=dict(rope_type="linear", factor=4.0)),
    "llama3.1": dict(head_dim=128, theta=500000.0, context=131072,
                     rope=dict(rope_type="llama3", factor=8.0,
                               low_freq_factor=1.0, high_freq_factor=4.0,
                               original_max_position_embeddings=8192)),
    "llama3.2": dict(head_dim=64, theta=500000.0, context=131072,
                     rope=dict(rope_type="llama3", factor=32.0,
                               low_freq_factor=1.0, high_freq_factor=4.0,
                               original_max_position_embeddings=8192)),
    "yarn qwen": dict(head_dim=128, theta=1000000.0, context=131072,
                      rope=dict(rope_type="yarn", factor=4.0,
                                original_max_position_embeddings=32768)),
    "yarn llama": dict(head_dim=128, theta=10000.0, context=131072,
                       rope=dict(rope_type="yarn", factor=32.0,
                                 original_max_position_embeddings=4096)),
    "yarn betas": dict(head_dim=64, theta=10000.0, context=65536,
                       rope=dict(rope_type="yarn", factor=16.0,
                                 beta_fast=16.0, beta_slow=2.0,
                                 attention_factor=1.25,
                                 original_max_position_embeddings=4096)),
    "yarn not truncated": dict(head_dim=64, theta=150000.0, context=131072,
                               rope=dict(rope_type="yarn", factor=32.0,
                                         truncate=False,
                                         original_max_position_embeddings=4096)),
    "yarn mscale": dict(head_dim=64, theta=10000.0, context=163840,
                        rope=dict(rope_type="yarn", factor=40.0,
                                  mscale=0.707, mscale_all_dim=1.4,
                                  original_max_position_embeddings=4096)),
    # No dimension is blended: both ends of the range are 0.
    "yarn step": dict(head_dim=64, theta=10000.0, context=48,
                      rope=dict(rope_type="yarn", factor=8.0,
                                beta_fast=1.2, beta_slow=1.0,
                                original_max_position_embeddings=6)),
    # Both ends of the blend are cut off: few dimensions, a short context.
    "yarn clamped": dict(head_dim=8, theta=10000.0, context=64,
                         rope=dict(rope_type="yarn", factor=2.0,
                                   original_max_position_embeddings=16)),
    # The frequencies of the next depend on the length of a text.
    "longrope, short": dict(head_dim=16, theta=10000.0, context=131072,
                            rope=LONG_ROPE, length=4096),
    "longrope, long": dict(head_dim=16, theta=10000.0, context=131072,
                           rope=LONG_ROPE, length=4097),
    "longrope, its own factor": dict(head_dim=16, theta=10000.0, context=65536,
                                     rope=dict(LONG_ROPE, factor=8.0),
                                     length=65536),
    "dynamic, short": dict(head_dim=64, theta=10000.0, context=2048,
                           rope=dict(rope_type="dynamic", factor=4.0),
                           length=2048),
    "dynamic, long": dict(head_dim=64, theta=10000.0, context=2048,
                          rope=dict(rope_type="dynamic", factor=4.0),
                          length=5000),
}


def main():
    golden = {"transformers": transformers.__version__, "cases": []}
    for name, case in CASES.items():
        config = LlamaConfig(
            hidden_size=case["head_dim"] * 2, num_attention_heads=2,
            head_dim=case["head_dim"],
            max_position_embeddings=case["context"],
            rope_parameters=dict(case["rope"], rope_theta=case["theta"]))
        function = ROPE_INIT_FUNCTIONS[case["rope"]["rope_type"]]
        length = case.get("length")
        arguments = {} if length is None else dict(seq_len=length)
        inv_freq, attention = function(config, "cpu", **arguments)
        golden["cases"].append({
            "name": name,
            "head_dim": case["head_dim"],
            "context": case["context"],
            "rope_parameters": dict(case["rope"], rope_theta=case["theta"]),
            "attention_factor": attention,
            "inv_freq": [float(f) for f in inv_freq],
        } | ({} if length is None else {"length": length}))
    text = json.dumps(golden, indent=1)
    # One line for each list of numbers.
    head, *rest = text.split('"inv_freq": [')
    for part in rest:
        numbers, tail = part.split("]", 1)
        head += '"inv_freq": [' + " ".join(numbers.split()) + "]" + tail
    print(head)


main()
