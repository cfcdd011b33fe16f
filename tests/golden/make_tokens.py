#!/usr/bin/env python3
"""Makes the golden token ids: what Hugging Face tokenizers say about our texts.

  make_tokens.py --model SMOLLM2.gguf --books DIR [--policy POLICY.txt]
                 [--out DIR] [--train] [--only NAME,...]

Writes into tokens/:
  corpus.json      short awkward texts, as hexadecimal bytes, and the code
                   points that Unicode gave a class after version 15
  NAME.json        the ids of tokenizer NAME: every text of the corpus, each
                   code point, the books and the policy manual
  NAME/            with --train: a small vocabulary of family NAME
                   (tokenizer.json), of a thousand tokens from the first book
                   and some numbers
With --only, the files of these tokenizers alone.

Of books nothing is kept but ids and checksums. A hash is FNV-1a with 64 bits
over ids (or bytes) as units.
"""

import argparse
import json
import pathlib
import unicodedata

import gguf
import tokenizers
from tokenizers import AddedToken, decoders, models, normalizers
from tokenizers import pre_tokenizers, processors, trainers

from make_smollm2 import tokenizer_of

UNICODE = pathlib.Path("/usr/share/unicode/UnicodeData.txt")  # 15.0
CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|"
SYMBOLS = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
NUMBERS = " 100 365 1999 2000 12345" * 400  # books have few
CASED = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*"
    r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]+{suffix}|[^\r\n\p{L}\p{N}]?"
    r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*{suffix}|")
CASED_SYMBOLS = SYMBOLS.replace(r"[\r\n]*", r"[\r\n/]*", 1)
# Families whose patterns Tiercel leaves to a library, which knows Unicode 14.
BY_LIBRARY = ["tekken", "gpt-4o", "qwen35", "deepseek-v3"]
FAMILIES = ["gpt-2", "llama-bpe", "qwen2", "smollm", "spm", "spm-metaspace",
            *BY_LIBRARY]

WORDS = [
    "", " ", "  ", "   ", "\t", "\n", "\n\n", "\n\n\n", "\t\n", " \n", "\n ",
    "Hello world", " Hello world", "Hello, world!", "   Hello", "Hello   ",
    "a  b   c\n d\n\n  e", "I'm you're we've he'll she'd it's can't",
    "I'M YOU'RE WE'VE HE'LL SHE'D IT'S CAN'T 'S 's", "'\u017f '\u017fo", "''s",
    "1 12 123 1234 12345 123456 1a2b3c 3.14159 1,000,000 \u0661\u0662\u0663",
    "\u00bd \u2167 \u00b2\u00b3 \u4e09\u5341 \u0bef\u0bf0\u0bf1",
    "snake_case camelCase kebab-case a.b(c)[d]{e} x=1; y+=2 // z",
    "\x00", "a\x00b", "\x01\x02\x03 \x7f", "\ufeffBOM first", "mid\ufeffdle",
    "line\r\nline\rline\n\r\n\r", "\u2028line\u2029paragraph\u0085next",
    "\u180e\u180e a\u180eb", "\u200b\u200c\u200d\u2060 zero \u200b width",
    "\u202eright to left\u202c \u2066isolate\u2069 \u200e\u200f",
    "\u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627 "
    "\u0928\u092e\u0938\u094d\u0924\u0947",
    "\u1780\u17b6\u1793\u17cb\u178f\u17c2 \u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35",
    "\u6211\u60f3\u5728apple\u5de5\u4f5c1314151\u5929\uff5e",
    "\u3053\u3093\u306b\u3061\u306f\u3000"
    "\u4e16\u754c\uff01\u3000\u3000\u304c\u304b\u3099",
    "\uc548\ub155\ud558\uc138\uc694 \u1112\u1161\u11ab",
    "caf\u00e9 cafe\u0301 \u212b \u00c5 A\u030a \u1e9b\u0323 \u0340 \u2126",
    "a\u0301\u0316\u0301\u0316\u0327 \u0f71\u0f74 q\u0307\u0323",
    "\U0001f600\U0001f999 "
    "\U0001f468\u200d\U0001f469\u200d\U0001f467 "
    "\U0001f1eb\U0001f1f7 \u2708\ufe0f",
    "\U0001f636\u200d\U0001f32b\ufe0f\U0001f44d\U0001f3fd!",
    "\U0001d400\U0001d7d9 \U00020000",
    "\U0010ffff \ue000 \U000f0000", "\u2581 \u2581a a\u2581b \u2581\u2581",
    "!!!!!! ??? ... \u2026 --- \u2014\u2014 *** ___ ~~~~ ////",
    "!\n!\r\n !\n\n a!\n",
    "<|im_start|>user\nhi<|im_end|>", "<s>a</s> <unk> <0x41> <0xZZ> <0x-1>",
    "<tool>x</tool>y<tool><tool>", "x <tool> y", " <tool> ", "<too<tool>l>",
    "<|im_start|<|im_start|>|>", "<tool></tool><tools>",
    "a" * 300, "ab" * 200, " " * 300, "'" * 100, "\u3000" * 100, "\n" * 200,
    "e\u0301" * 100, "\u0301" * 100, "\U0001f469\u200d" * 60, "0" * 100,
    "the " * 100, " the" * 100, "The quick brown fox jumps over the lazy dog.",
]
BYTES = [  # no UTF-8: kept as they are, so no oracle has a say
    "80", "bf", "c0 80", "c1 bf", "e0 80 80", "ed a0 80", "f4 90 80 80", "ff",
    "f0 9f 98", "41 e2 82", "e2 82 41", "c3 28", "ff fe 41 00",
    "f8 88 80 80 80", "20 ff 20", "61 ff 62", "fe fe fe fe 20 20 fe", "e2 96",
    "cc 81 cc",
]


def split_by(*patterns):
    return pre_tokenizers.Sequence([
        *(pre_tokenizers.Split(tokenizers.Regex(pattern), "isolated")
          for pattern in patterns),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])


def byte_level_stages(family):
    if family == "gpt-2":
        return None, pre_tokenizers.ByteLevel(add_prefix_space=False)
    if family == "smollm":
        return None, pre_tokenizers.Sequence([
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ])
    if family == "tekken":
        return None, split_by(CASED.replace("{suffix}", "") + r"\p{N}"
                              + CASED_SYMBOLS)
    if family == "gpt-4o":
        return None, split_by(
            CASED.replace("{suffix}", r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?")
            + r"\p{N}{1,3}" + CASED_SYMBOLS)
    if family == "qwen35":
        return None, split_by(
            CONTRACTIONS.replace(r"\p{L}+", r"[\p{L}\p{M}]+") + r"\p{N}"
            + SYMBOLS.replace(r"\s\p{L}\p{N}", r"\s\p{L}\p{M}\p{N}"))
    if family == "deepseek-v3":
        return None, split_by(
            r"\p{N}{1,3}",
            "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
            r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|"""
            r"[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|"
            r"\s*[\r\n]+|\s+(?!\S)|\s+")
    if family == "qwen2":
        return normalizers.NFC(), split_by(
            CONTRACTIONS + r"\p{N}" + SYMBOLS)
    return None, split_by(CONTRACTIONS + r"\p{N}{1,3}" + SYMBOLS)


def train_byte_level(family, text):
    normalizer, pre_tokenizer = byte_level_stages(family)
    result = tokenizers.Tokenizer(
        models.BPE(ignore_merges=family in ("llama-bpe", "tekken")))
    if normalizer:
        result.normalizer = normalizer
    result.pre_tokenizer = pre_tokenizer
    result.decoder = decoders.ByteLevel()
    result.train_from_iterator([text], trainers.BpeTrainer(
        vocab_size=1000, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    result.add_special_tokens(["<|im_start|>", "<|im_end|>", "<|im_start"])
    result.add_tokens([AddedToken("<tool>", normalized=False),
                       AddedToken("</tool>", normalized=False)])
    if family == "llama-bpe":
        bos = "<|im_start|>"
        result.post_processor = processors.Sequence([
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing(
                single=f"{bos} $A", pair=f"{bos} $A {bos} $B",
                special_tokens=[(bos, result.token_to_id(bos))]),
        ])
    return result


def train_sentence_piece(family, text):
    """Merges are learned inside words; byte tokens are put before them."""
    trained = tokenizers.Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.Metaspace()
    trained.train_from_iterator([text], trainers.BpeTrainer(
        vocab_size=900, show_progress=False, limit_alphabet=80))
    learned = json.loads(trained.to_str())["model"]
    names = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
    names += sorted(learned["vocab"], key=learned["vocab"].get)
    # Runs of spaces and a word that goes on past a space.
    merges = [tuple(pair) for pair in learned["merges"]]
    if family == "spm":
        for left, right in [("\u2581", "\u2581"), ("\u2581\u2581",) * 2,
                            (",", "\u2581")]:
            names.append(left + right)
            merges.append((left, right))
    result = tokenizers.Tokenizer(models.BPE(
        vocab={name: i for i, name in enumerate(names)}, merges=merges,
        unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    if family == "spm":
        result.normalizer = normalizers.Sequence([
            normalizers.Prepend("\u2581"),
            normalizers.Replace(" ", "\u2581")])
        result.decoder = decoders.Sequence([
            decoders.Replace("\u2581", " "), decoders.ByteFallback(),
            decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    else:
        result.pre_tokenizer = pre_tokenizers.Metaspace(
            prepend_scheme="first", split=False)
        result.decoder = decoders.Sequence([
            decoders.Replace("\u2581", " "), decoders.ByteFallback(),
            decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    result.add_special_tokens([AddedToken(name, normalized=False, special=True)
                               for name in ["<unk>", "<s>", "</s>"]])
    result.add_tokens([AddedToken("<tool>", normalized=False),
                       AddedToken("</tool>", normalized=False)])
    result.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)])
    return result


def fnv(units):
    value = 0xcbf29ce484222325
    for unit in units:
        value = (value ^ unit) * 0x100000001b3 & 0xffffffffffffffff
    return f"{value:016x}"


def later_than_unicode_15():
    """Ranges of code points that are letters or numbers to the oracle, but not
    yet in Unicode 15."""
    known = set()
    first = None
    for line in UNICODE.read_text("ascii").splitlines():
        code, name, category = line.split(";")[:3]
        if name.endswith(", First>"):
            first = int(code, 16)
        elif category[0] in "LN":
            last = int(code, 16)
            known.update(range(last if first is None else first, last + 1))
            first = None
        else:
            first = None
    keep = pre_tokenizers.Split(tokenizers.Regex(r"[^\p{L}\p{N}]"), "removed")
    digits = pre_tokenizers.Digits(individual_digits=True)
    later = [code for code in scalar_values()
             if code not in known
             and (keep.pre_tokenize_str(chr(code))
                  or len(digits.pre_tokenize_str(f"a{chr(code)}")) > 1)]
    return ranges_of(later)


def ranges_of(codes):
    ranges = []
    for code in codes:
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return ranges


def unassigned_in_unicode_14():
    assert unicodedata.unidata_version == "14.0.0"
    return ranges_of([code for code in scalar_values()
                      if unicodedata.category(chr(code)) == "Cn"])


def scalar_values():
    return [c for c in range(0x110000) if not 0xd800 <= c < 0xe000]


class Oracle:
    """A tokenizer and the bytes that it cannot spell and leaves out."""

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer
        vocab = tokenizer.get_vocab()
        model = json.loads(tokenizer.to_str())["model"]
        printable = [*range(0x21, 0x7f), *range(0xa1, 0xad),
                     *range(0xae, 0x100)]
        others = [b for b in range(256) if b not in printable]
        alphabet = {b: chr(b) for b in printable}
        alphabet |= {b: chr(0x100 + i) for i, b in enumerate(others)}
        self.missing = [] if model.get("byte_fallback") else [
            b for b in range(256) if alphabet[b] not in vocab]

    def spells(self, text):
        return not any(b in self.missing for b in text.encode())

    def ids(self, text, special=False):
        """None for a text that the vocabulary cannot spell."""
        if not self.spells(text):
            return None
        self.tokenizer.encode_special_tokens = not special
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def code_points(self, later):
        skip = {c for a, b in later for c in range(a, b + 1)}
        codes = [c for c in scalar_values()
                 if c not in skip and self.spells(chr(c))]
        self.tokenizer.encode_special_tokens = True
        count = 0
        value = []
        for begin in range(0, len(codes), 4096):
            texts = [t for c in codes[begin:begin + 4096]
                     for t in (chr(c), f" {chr(c)} ")]
            for encoding in self.tokenizer.encode_batch(
                    texts, add_special_tokens=False):
                value.extend(encoding.ids)
            count += len(texts)
        return {"texts": count, "ids": len(value), "hash": fnv(value)}

    def book(self, path):
        data = path.read_bytes()
        ids = self.ids(data.decode())
        return {"file": path.name, "bytes": len(data), "bytes_hash": fnv(data),
                "ids": len(ids), "hash": fnv(ids), "first": ids[:64],
                "last": ids[-64:]}

    def chapter(self, path):
        """All ids of 12,000 characters in the middle of a book."""
        text = path.read_bytes().decode()
        half = len(text) // 2
        chapter = text[half:half + 12000]
        return {"file": path.name, "begin": len(text[:half].encode()),
                "bytes": len(chapter.encode()), "ids": self.ids(chapter)}


def golden(tokenizer, later, texts):
    oracle = Oracle(tokenizer)
    return {
        "unspellable_bytes": oracle.missing,
        "plain": [oracle.ids(word) for word in WORDS],
        "parse": [oracle.ids(word, special=True) for word in WORDS],
        "code_points": oracle.code_points(later),
        "books": [oracle.book(path) for path in texts],
    }


def write(path, document):
    path.write_text(json.dumps(document, separators=(",", ":")) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", type=pathlib.Path, required=True)
    parser.add_argument("--books", type=pathlib.Path, required=True)
    parser.add_argument("--policy", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path,
                        default=pathlib.Path(__file__).parent / "tokens")
    parser.add_argument("--train", action="store_true")
    parser.add_argument("--only", default="")
    args = parser.parse_args()

    books = sorted(args.books.glob("*.txt"))
    texts = books + ([args.policy] if args.policy else [])
    later = later_than_unicode_15()
    if not args.only:
        write(args.out / "corpus.json", {
            "texts": [word.encode().hex() for word in WORDS],
            "not_utf8": [b.replace(" ", "") for b in BYTES],
            "later_than_unicode_15": later,
        })
    for family in args.only.split(",") if args.only else FAMILIES:
        path = args.out / family / "tokenizer.json"
        if args.train:
            train = (train_sentence_piece if family.startswith("spm")
                     else train_byte_level)
            path.parent.mkdir(exist_ok=True)
            path.write_text(
                train(family, books[0].read_text() + NUMBERS).to_str() + "\n")
        tokenizer = tokenizers.Tokenizer.from_file(str(path))
        by_library = family in BY_LIBRARY
        skipped = unassigned_in_unicode_14() if by_library else later
        write(args.out / f"{family}.json", golden(tokenizer, skipped, texts))
    if args.only:
        return
    tokenizer = tokenizer_of(gguf.GGUFReader(args.model))
    write(args.out / "smollm2.json",
          golden(tokenizer, later, texts)
          | {"chapter": Oracle(tokenizer).chapter(books[0])})


if __name__ == "__main__":
    main()
