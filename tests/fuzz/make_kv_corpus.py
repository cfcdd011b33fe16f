"""Writes the seeds of the fuzzer of prompt cache files: corpus/kv_format/.

The checksums are 0: the fuzzer corrects that of the front. Run it in this
folder.
"""

import pathlib
import struct

HERE = pathlib.Path(__file__).parent / "corpus" / "kv_format"
F32, F16, BF16, Q8_0 = range(4)
BLOCKS = {F32: (1, 4), F16: (1, 2), BF16: (1, 2), Q8_0: (32, 34)}


def row(kind, head_dim):
    elements, size = BLOCKS[kind]
    return head_dim // elements * size


def text(positions, layers=1, heads=1, head_dim=1, kinds=(F16, F16),
         fingerprint=b"{}", title=b"m.gguf", version=1):
    pages = -(-positions // 128)
    page = heads * 128 * sum(row(kind, head_dim) for kind in kinds)
    rest = fingerprint + title + struct.pack(
        "<%di" % positions, *range(positions)) + bytes(8 * layers * pages + 8)
    begin = -(-(80 + len(rest)) // 4096) * 4096
    size = begin + layers * pages * page + 32
    front = b"\x89TKV\r\n\x1a\n" + struct.pack(
        "<IIQQQQ8I", version, 0x01020304, size, begin, page, positions, 128,
        layers, heads, head_dim, *kinds, len(fingerprint), len(title)) + rest
    end = b"TKV end\n" + struct.pack("<Q", size) + bytes(16)
    return front + bytes(begin - len(front)) + bytes(
        layers * pages * page) + end


HERE.mkdir(parents=True, exist_ok=True)
for name, content in {
        "one": text(1),
        "page": text(128),
        "more": text(129, layers=2, heads=2),
        "blocks": text(3, head_dim=32, kinds=(Q8_0, Q8_0)),
        "mixed": text(3, kinds=(F32, BF16), fingerprint=b"", title=b""),
        "later": text(3, version=2),
        "cut": text(3)[:200]}.items():
    (HERE / name).write_bytes(content)
