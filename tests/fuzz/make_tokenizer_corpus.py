"""Writes the seeds of the tokenizer fuzzer: corpus/tokenizer_json/.

One tokenizer.json of a few tokens for each pipeline that is supported, some
of them followed by a NUL byte and a text. Run it in this folder.
"""

import json
import pathlib

HERE = pathlib.Path(__file__).parent / "corpus" / "tokenizer_json"
SPACE = "\u2581"
CASES = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|"
REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
ADDED = [{"id": 20, "content": "<e>", "special": True},
         {"id": 21, "content": "<t>", "special": False},
         {"id": 22, "content": "</t>", "special": False}]


def letters():
    """The first tokens of both kinds of vocabulary and their merges."""
    vocab = {c: i for i, c in enumerate("abcit's1234")}
    vocab |= {"ab": 11, "it": 12, "abc": 13, "'s": 14}
    return vocab, [["a", "b"], ["i", "t"], ["ab", "c"], ["'", "s"]]


def byte_level(stages, normalizer=None, spelling=list, **model):
    vocab, merges = letters()
    vocab |= {"\u0120": 15, "\u010a": 16, "\u0120it": 17}
    return {
        "normalizer": normalizer,
        "pre_tokenizer": stages,
        "decoder": {"type": "ByteLevel"},
        "added_tokens": ADDED,
        "model": {"type": "BPE", "vocab": vocab, **model,
                  "merges": [spelling(m)
                             for m in merges + [["\u0120", "it"]]]},
    }


def sequence(*stages):
    return {"type": "Sequence", "pretokenizers": list(stages)}


def split(pattern):
    return sequence(
        {"type": "Split", "pattern": {"Regex": pattern},
         "behavior": "Isolated", "invert": False},
        {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False})


def sentence_piece(normalizer, stages):
    vocab, merges = letters()
    vocab |= {SPACE: 15, SPACE + "it": 16}
    vocab |= {f"<0x{b:02X}>": 30 + b for b in range(256)}
    decoders = [{"type": "Replace", "pattern": {"String": SPACE},
                 "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
                {"type": "Strip", "content": " ", "start": 1, "stop": 0}]
    return {
        "normalizer": normalizer,
        "pre_tokenizer": stages,
        "decoder": {"type": "Sequence", "decoders": decoders},
        "added_tokens": ADDED,
        "model": {"type": "BPE", "byte_fallback": True, "vocab": vocab,
                  "merges": merges + [[SPACE, "it"]]},
    }


def main():
    byte = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}
    digits = {"type": "Digits", "individual_digits": True}
    prepend = {"type": "Sequence", "normalizers": [
        {"type": "Prepend", "prepend": SPACE},
        {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}]}
    metaspace = {"type": "Metaspace", "replacement": SPACE,
                 "prepend_scheme": "first", "split": False}
    seeds = {
        "gpt2": byte_level(byte),
        "gpt2_string_merges": byte_level(byte, spelling=" ".join),
        "smollm": byte_level(sequence(digits, byte)),
        "llama3": byte_level(split(CASES + r"\p{N}{1,3}" + REST),
                             ignore_merges=True),
        "qwen2": byte_level(split(CASES + r"\p{N}" + REST), {"type": "NFC"}),
        "spm": sentence_piece(prepend, None),
        "spm_metaspace": sentence_piece(None, metaspace),
        "spm_words": sentence_piece(None, metaspace | {"split": True}),
    }
    HERE.mkdir(parents=True, exist_ok=True)
    for name, seed in seeds.items():
        body = json.dumps(seed, separators=(",", ":")).encode()
        (HERE / name).write_bytes(body)
        (HERE / f"{name}_text").write_bytes(
            body + b"\0it's  abc <e><t>1a</t>\n\n it 12 abcab\tit")


if __name__ == "__main__":
    main()
