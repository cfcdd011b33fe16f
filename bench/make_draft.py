#!/usr/bin/env python3
"""Writes a small checkpoint that can draft for a larger one, as GGUF.

  bench/make_draft.py drop --layers 4 [--keep first|spread]
                           [--embeddings q4_0] IN.gguf OUT.gguf
  bench/make_draft.py random --layers 2 --hidden 64 --heads 2 IN.gguf OUT.gguf

It is for tests of speculative decoding, in which a draft must share IN's
vocabulary and need not be good. Neither kind was trained to draft: its
acceptance rate says nothing about a draft model that was.

  drop    IN with only some of its layers: the first ones, or (spread) evenly
          spaced ones from the first to the last. Every tensor that is kept has
          IN's bytes, every key except the number of layers IN's value. With
          all layers it is IN, whose greedy tokens are all accepted. With
          --embeddings q4_0 the embeddings (Q8_0) become Q4_0, half as large,
          and the name among the keys says so. That needs numpy.
  random  a llama of the given shape as make_random.py writes it, with IN's
          tokenizer, chat template and context length. Needs numpy.

The same arguments give the same bytes.
"""

import argparse
import pathlib
import re
import sys

import gguf_file

# Keys whose values newer files give per layer, by their names without the
# architecture.
PER_LAYER = ("attention.head_count", "attention.head_count_kv",
             "feed_forward_length")

EMBEDDINGS = "token_embd.weight"


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    kinds = parser.add_subparsers(dest="kind", required=True)
    number = dict(type=int, metavar="N")
    drop = kinds.add_parser("drop", help="IN with fewer layers")
    drop.add_argument("--layers", required=True, **number)
    drop.add_argument("--keep", choices=("first", "spread"), default="spread",
                      help="which layers; default: spread")
    drop.add_argument("--embeddings", choices=("q4_0",),
                      help="requantise them; default: as they are")
    random = kinds.add_parser("random", help="random weights, IN's vocabulary")
    for name in ("--layers", "--hidden", "--heads"):
        random.add_argument(name, required=True, **number)
    random.add_argument("--kv-heads", help="default: as many as heads",
                        **number)
    random.add_argument("--ffn", help="default: 3 x hidden", **number)
    random.add_argument("--type", choices=("f16", "q8_0"), default="q8_0",
                        help="of matrices; default: q8_0")
    random.add_argument("--seed", default=0, help="default: 0", **number)
    for kind in (drop, random):
        kind.add_argument("source", type=pathlib.Path, metavar="IN.gguf")
        kind.add_argument("out", type=pathlib.Path, metavar="OUT.gguf")
    return parser.parse_args()


def architecture_of(source):
    value = source.value("general.architecture")
    if not isinstance(value, str):
        raise gguf_file.Error(f"{source.path}: general.architecture is "
                              f"{value!r}; need a string")
    return value


# ---- drop --------------------------------------------------------------------


def kept_layers(layers, count, keep):
    """The `count` of `layers` layers that are kept, ascending."""
    if keep == "first" or count == 1:
        return list(range(count))
    steps = count - 1
    return [(i * (layers - 1) + steps // 2) // steps for i in range(count)]


def tensors_by_layer(source, layers):
    """Returns [(tensor, layer, name within the layer)]; the layer is None for
    tensors outside layers."""
    placed = []
    for tensor in source.tensors:
        match = re.fullmatch(r"blk\.(\d+)\.(.+)", tensor.name)
        layer, name = match.groups() if match else (None, tensor.name)
        placed.append((tensor, None if layer is None else int(layer), name))
    found = {layer for _, layer, _ in placed} - {None}
    if len(found) != layers or max(found) != layers - 1:
        raise gguf_file.Error(
            f"{source.path}: tensors of {len(found)} layers up to "
            f"{max(found, default='none')}; need all of 0 to {layers - 1}")
    return placed


def keys_of_dropped(source, architecture, layers, kept):
    keys = dict(source.keys)
    keys[f"{architecture}.block_count"] = gguf_file.u32(len(kept))
    for name in PER_LAYER:
        key = f"{architecture}.{name}"
        values = source.value(key)
        if not isinstance(values, list):
            continue
        if len(values) != layers or not all(
                type(value) is int for value in values):
            raise gguf_file.Error(
                f"{source.path}: {key} has {len(values)} elements; need an "
                f"integer for each of {layers} layers")
        keys[key] = gguf_file.array(5, [values[layer] for layer in kept])
    return keys


def write_dropped(args, source, file):
    architecture = architecture_of(source)
    layers = source.integer(f"{architecture}.block_count")
    if (source.value("split.count") or 1) != 1:
        raise gguf_file.Error(f"{source.path}: one part of a set of "
                              f"{source.value('split.count')}; need one file")
    if not 1 <= args.layers <= layers:
        raise gguf_file.Error(f"layers: got {args.layers}, need 1 to the "
                              f"{layers} of {source.path}")
    kept = kept_layers(layers, args.layers, args.keep)
    new_layer = {layer: i for i, layer in enumerate(kept)}
    sources, tensors = [], []
    for tensor, layer, name in tensors_by_layer(source, layers):
        if layer is None:
            tensors.append(tensor)
        elif layer in new_layer:
            tensors.append(tensor._replace(
                name=f"blk.{new_layer[layer]}.{name}"))
        else:
            continue
        sources.append(tensor)
    keys = keys_of_dropped(source, architecture, layers, kept)
    data = map(source.data, sources)
    if args.embeddings is not None:
        data = smaller_embeddings(source, keys, tensors, sources, len(kept))
    gguf_file.write(file, keys, tensors, data, source.alignment)


def smaller_embeddings(source, keys, tensors, sources, layers):
    """Returns the data of the tensors, with the embeddings as Q4_0, and changes
    `tensors` and the name among the keys accordingly."""
    make_random = module_with_numpy("--embeddings")
    names = [tensor.name for tensor in tensors]
    at = names.index(EMBEDDINGS) if EMBEDDINGS in names else None
    if at is None or tensors[at].kind != gguf_file.Q8_0:
        raise gguf_file.Error(f"{source.path}: no {EMBEDDINGS} in Q8_0; "
                              "--embeddings needs it")
    tensors[at] = tensors[at]._replace(kind=gguf_file.Q4_0)
    name = source.value("general.name") or source.path
    keys["general.name"] = gguf_file.string(
        f"{name}, {layers} layers, embeddings in Q4_0")

    def data():
        for tensor, old in zip(tensors, sources):
            values = source.data(old)
            yield (make_random.q4_0_of_q8_0(values) if tensor.kind != old.kind
                   else values)

    return data()


# ---- random ------------------------------------------------------------------


def module_with_numpy(asked_for):
    try:
        import make_random  # imported here, as most of drop needs no numpy
    except ModuleNotFoundError as error:
        raise gguf_file.Error(f"{asked_for}: {error}; need numpy (Debian: "
                              "python3-numpy)") from error
    return make_random


def write_random(args, source, file):
    make_random = module_with_numpy("random")
    tokens = source.value("tokenizer.ggml.tokens")
    if not tokens or not isinstance(tokens, list):
        raise gguf_file.Error(f"{source.path}: no tokenizer.ggml.tokens; need "
                              "a file with a tokenizer")
    args.vocab = len(tokens)
    args.context = source.integer(f"{architecture_of(source)}.context_length")
    args.head_dim = None  # hidden / heads
    args.experts = args.experts_used = args.expert_ffn = 0
    if args.ffn is None:
        args.ffn = 3 * args.hidden

    def refuse(message):
        raise gguf_file.Error(message)

    make_random.complete(args, refuse)
    make_random.write(args, file, {
        key: value for key, value in source.keys.items()
        if key.startswith("tokenizer.")})


def main():
    args = arguments()
    write = {"drop": write_dropped, "random": write_random}[args.kind]
    try:
        with gguf_file.Reader(args.source) as source:
            if args.out.exists() and args.out.samefile(args.source):
                raise gguf_file.Error(f"{args.out}: is IN; need another file")
            with gguf_file.replacing(args.out) as file:
                write(args, source, file)
    except (OSError, MemoryError, gguf_file.Error) as error:
        sys.exit(f"make_draft.py: {error}")


if __name__ == "__main__":
    main()
