"""Reads and writes GGUF files for the scripts beside this one.

Keys stay encoded, so that copies have the same bytes. A tensor is a name, a
shape, a type and bytes: nothing here depends on what a model is. The reader
refuses files that it cannot copy; `tiercel inspect` says if a file is right.

Layout: github.com/ggml-org/ggml, docs/gguf.md. Standard library only.
"""

import concurrent.futures
import contextlib
import os
import pathlib
import struct
import typing

ALIGNMENT = 32  # if a file does not say

# The numbers of value types, and the codes of the struct module for those of
# one size.
U32, F32_VALUE, STRING, ARRAY = 4, 6, 8, 9
CODES = {0: "B", 1: "b", 2: "H", 3: "h", U32: "I", 5: "i", F32_VALUE: "f",
         7: "?", 10: "Q", 11: "q", 12: "d"}

# The numbers of tensor types, and the elements and bytes of a block.
F32, F16, Q4_0, Q8_0 = 0, 1, 2, 8
BLOCKS = {F32: (1, 4), F16: (1, 2), Q4_0: (32, 18), 3: (32, 20), 6: (32, 22),
          7: (32, 24), Q8_0: (32, 34), 12: (256, 144), 13: (256, 176),
          14: (256, 210), 30: (1, 2), 20: (32, 18), 23: (256, 136),
          39: (32, 17), 11: (256, 110), 10: (256, 84)}


class Error(Exception):
    """A file cannot be used; the message has the file, what was found and what
    is needed."""


class Tensor(typing.NamedTuple):
    name: str
    dims: tuple  # innermost first: a row's elements, then the rows
    kind: int  # one of BLOCKS

    @property
    def size(self):
        """The bytes of the tensor, without padding."""
        elements, size = BLOCKS[self.kind]
        for dim in self.dims[1:]:
            size *= dim
        return (self.dims[0] if self.dims else 1) // elements * size


def padded(size, alignment):
    return -(-size // alignment) * alignment


# ---- Writing -----------------------------------------------------------------


def text(value):
    value = value.encode(errors="surrogateescape")
    return struct.pack("<Q", len(value)) + value


def string(value):
    return struct.pack("<I", STRING) + text(value)


def u32(value):
    return struct.pack("<II", U32, value)


def f32(value):
    return struct.pack("<If", F32_VALUE, value)


def array(kind, values):
    """Encodes an array; `kind` is the number of the elements' type, which has
    one size."""
    return struct.pack(f"<IIQ{len(values)}{CODES[kind]}", ARRAY, kind,
                       len(values), *values)


def write_header(file, keys, tensors, alignment=ALIGNMENT):
    """Writes keys {name: encoded value} and the list of tensors; returns the
    bytes of data that must follow. A key must give the alignment if it is not
    the usual one."""
    header = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys))
    header += b"".join(text(key) + value for key, value in keys.items())
    offset = 0
    for tensor in tensors:
        dims = len(tensor.dims)
        header += text(tensor.name)
        header += struct.pack(f"<I{dims}QIQ", dims, *tensor.dims, tensor.kind,
                              offset)
        offset += padded(tensor.size, alignment)
    file.write(header.ljust(padded(len(header), alignment), b"\0"))
    return offset


class Tiled(typing.NamedTuple):
    """A tensor's bytes, `size` of them: a piece repeated again and again."""
    piece: bytes
    size: int

    def write(self, file):
        """Writes them with a thread for each CPU: in /dev/shm new memory costs
        a thread more time than the copy does."""
        file.flush()
        begin = file.tell()

        def write_from(offset):
            piece = self.piece[:self.size - offset]
            while piece:  # a write may be cut short
                done = os.pwrite(file.fileno(), piece, begin + offset)
                piece, offset = piece[done:], offset + done

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
            for _ in threads.map(write_from,
                                 range(0, self.size, len(self.piece))):
                pass  # iterating raises the exception of a thread
        file.seek(begin + self.size)


def write(file, keys, tensors, data, alignment=ALIGNMENT):
    """Writes a whole file; `data` yields the bytes, or a Tiled, of one tensor
    after the other."""
    write_header(file, keys, tensors, alignment)
    for tensor, values in zip(tensors, data, strict=True):
        if isinstance(values, Tiled):
            size = values.size
            values.write(file)
        else:
            size = len(values)
            file.write(values)
        assert size == tensor.size, tensor
        file.write(bytes(padded(size, alignment) - size))


@contextlib.contextmanager
def replacing(path):
    """Yields a file that becomes `path` once it is whole, or else is
    removed."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise Error(f"{path}: exists and is no file; need one to write")
    part = pathlib.Path(f"{path}.part")
    try:
        with open(part, "wb") as file:
            yield file
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


# ---- Reading -----------------------------------------------------------------


class Reader:
    """A file's `keys`, {name: encoded value}, its `tensors`, both in its order,
    and its `alignment`. A context manager."""

    def __init__(self, path):
        self.path = path
        if not os.path.exists(path) or os.path.isfile(path):
            self._file = open(path, "rb")
        else:
            raise Error(f"{path}: no file; need a GGUF file")
        try:
            self._size = os.fstat(self._file.fileno()).st_size
            self._read_header()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()

    def value(self, key):
        """A key's value, arrays as lists; None if the file lacks it."""
        return self._values.get(key)

    def integer(self, key):
        value = self.value(key)
        if type(value) is not int:
            raise Error(f"{self.path}: {key} is {value!r}; need an integer")
        return value

    def data(self, tensor):
        self._at = self._offsets[tensor.name]
        self._file.seek(self._at)
        return self._take(tensor.size)

    def _read_header(self):
        self._at = 0
        if self._size < 4 or self._take(4) != b"GGUF":
            raise Error(f"{self.path}: no GGUF file; need one")
        version = self._number("I")
        if version not in (2, 3):
            raise Error(f"{self.path}: GGUF version {version}; need 2 or 3, "
                        "little-endian")
        tensors, keys = self._number("Q"), self._number("Q")
        self.keys, self._values = {}, {}
        for _ in range(keys):
            key = self._text()
            if key in self.keys:
                raise Error(f"{self.path}: key {key} is there twice")
            begin = self._at
            self._values[key] = self._value()
            self._file.seek(begin)
            self.keys[key] = self._file.read(self._at - begin)
        self.alignment = ALIGNMENT
        if "general.alignment" in self.keys:
            self.alignment = self.integer("general.alignment")
            if self.alignment < 1:
                raise Error(f"{self.path}: general.alignment is "
                            f"{self.alignment}; need 1 or more")
        self.tensors, self._offsets = [], {}
        for _ in range(tensors):
            tensor, offset = self._tensor()
            if tensor.name in self._offsets:
                raise Error(f"{self.path}: tensor {tensor.name} is there "
                            "twice")
            self.tensors.append(tensor)
            self._offsets[tensor.name] = offset
        begin = padded(self._at, self.alignment)
        for tensor in self.tensors:
            self._offsets[tensor.name] += begin
            end = self._offsets[tensor.name] + tensor.size
            if end > self._size:
                raise Error(f"{self.path}: tensor {tensor.name} ends at {end}; "
                            f"the file has {self._size} bytes")

    def _tensor(self):
        name = self._text()
        dims = self._number("I")
        if dims > 4:
            raise Error(f"{self.path}: tensor {name} has {dims} dimensions; "
                        "need at most 4")
        dims = tuple(self._number("Q") for _ in range(dims))
        kind, offset = self._number("I"), self._number("Q")
        if kind not in BLOCKS:
            raise Error(f"{self.path}: tensor {name} has the type of number "
                        f"{kind}; need one of {sorted(BLOCKS)}")
        return Tensor(name, dims, kind), offset

    def _value(self):
        kind = self._number("I")
        if kind != ARRAY:
            return self._element(kind)
        kind, count = self._number("I"), self._number("Q")
        if kind in CODES:
            size = count * struct.calcsize("<" + CODES[kind])
            return list(struct.unpack(f"<{count}{CODES[kind]}",
                                      self._take(size)))
        return [self._element(kind) for _ in range(count)]

    def _element(self, kind):
        if kind == STRING:
            return self._text()
        if kind in CODES:
            return self._number(CODES[kind])
        raise Error(f"{self.path}: a value of type {kind} at byte {self._at}; "
                    "need 0 to 12, and no array in an array")

    def _text(self):
        # Names are only compared and written: bytes that are no UTF-8 survive.
        return self._take(self._number("Q")).decode(errors="surrogateescape")

    def _number(self, code):
        return struct.unpack("<" + code,
                             self._take(struct.calcsize("<" + code)))[0]

    def _take(self, size):
        if size > self._size - self._at:
            raise Error(f"{self.path}: needs {size} bytes at byte {self._at}; "
                        f"the file has {self._size}")
        self._at += size
        return self._file.read(size)
