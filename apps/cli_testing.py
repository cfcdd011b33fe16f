"""Shared by the tests of the program: runs it, and checks its output.

For scripts that are called with TIERCEL CHECKPOINTS, the program and the small
models of tests/golden. Needs only the standard library.
"""

import atexit
import fcntl
import glob
import html
import io
import json
import os
import re
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest
import zipfile

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)),
                             "../bench"))
import gguf_file

TIERCEL, CHECKPOINTS = map(os.path.abspath, sys.argv[1:3])
IDS_ONLY = os.path.join(CHECKPOINTS, "llama_mha")  # has no tokenizer
CHAT = os.path.join(CHECKPOINTS, "llama_chat")
# Many short texts: the longer a text is, the slower its tokens come.
FOREVER = ["--seeds", "0:999999", "-n", "500", "--temp", "1", "--ignore-eos"]


def environment(**changes):
    """The user's environment without a place for caches, so that no rates are
    measured."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("TIERCEL_")
           and k not in ("HOME", "XDG_CACHE_HOME")}
    for name, value in changes.items():
        env.pop(name, None)
        if value is not None:
            env[name] = value
    return env


def run_until(ready, number, *args, env, deadline_s=300):
    """Runs the program and sends it signal `number` once `ready()`, at the
    latest after `deadline_s`. Returns the process, which has ended, and its
    stdout and stderr; it ended by itself if the exit code is 0."""
    process = subprocess.Popen([TIERCEL, *args], env=env,
                               stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + deadline_s
    while process.poll() is None and not ready():
        if time.monotonic() > deadline:
            process.kill()
            process.communicate()
            raise AssertionError("the program was not ready in time")
    process.send_signal(number)
    return process, *process.communicate(timeout=60)


def run(*args, env=None, **kwargs):
    kwargs.setdefault("stdin", subprocess.DEVNULL)
    if "input" in kwargs:
        del kwargs["stdin"]
    return subprocess.run([TIERCEL, *args], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=600,
                          env=env or environment(), **kwargs)


def without_peak_warnings(said):
    """Removes warnings that depend on other work on this machine."""
    return re.sub(rb"warning: read peak: [^\n]*\n", b"", said)


def without_rates_warnings(warnings):
    """Removes warnings that depend on other work on this machine."""
    return [said for said in warnings if not said.startswith("rates: ")]


def lend_rates(case, cache):
    """Puts earlier rates of this machine into a cache, as if measured steadily,
    and keeps those that a test measures there. Measuring takes seconds each
    time, and only cli_rates_test.py tests it."""
    if not lend_rates.folder:
        lend_rates.folder = tempfile.mkdtemp()
        atexit.register(shutil.rmtree, lend_rates.folder)
        measured = os.path.join(lend_rates.folder, "first")
        done = run("plan", "-m", CHAT, "-c", "1000",
                   env=environment(XDG_CACHE_HOME=measured))
        assert done.returncode == 0, done.stderr
        _remember_rates(os.path.join(measured, "tiercel"))
    os.makedirs(cache, exist_ok=True)
    for path in glob.glob(os.path.join(lend_rates.folder, "rates-*")):
        shutil.copy(path, cache)
    case.addCleanup(_remember_rates, cache)


lend_rates.folder = None  # a folder with all rates files


def _remember_rates(cache):
    for path in glob.glob(os.path.join(cache, "rates-*.json")):
        with open(path) as file:
            measured = json.load(file)
        measured["spread"] = 0.0
        name = os.path.basename(path)
        with open(os.path.join(lend_rates.folder, name), "w") as file:
            json.dump(measured, file)


def read_npy(path):
    """Returns the shape and the float32 values of a NumPy file."""
    with open(path, "rb") as file:
        data = file.read()
    assert data[:8] == b"\x93NUMPY\x01\x00", data[:8]
    (length,) = struct.unpack_from("<H", data, 8)
    header = eval(data[10:10 + length], {"False": False, "True": True})
    assert header["descr"] == "<f4" and not header["fortran_order"], header
    count = 1
    for n in header["shape"]:
        count *= n
    values = struct.unpack_from("<%df" % count, data, 10 + length)
    assert len(data) == 10 + length + 4 * count
    return header["shape"], values


def write_deeper(path, times):
    """Writes CHAT with its layers `times` times over: golden models have two
    layers, of which a simulated device keeps all pages or none."""
    with gguf_file.Reader(CHAT + ".gguf") as source:
        layers = source.integer("llama.block_count")
        tensors, sources = [], []
        for tensor in source.tensors:
            head, *rest = tensor.name.split(".", 2)
            if head != "blk":
                tensors.append(tensor)
                sources.append(tensor)
                continue
            for i in range(times):
                layer = int(rest[0]) + i * layers
                tensors.append(tensor._replace(name=f"blk.{layer}.{rest[1]}"))
                sources.append(tensor)
        keys = dict(source.keys)
        keys["llama.block_count"] = gguf_file.u32(times * layers)
        with open(path, "wb") as file:
            gguf_file.write(file, keys, tensors, map(source.data, sources),
                            source.alignment)


def write_faulty(path, token):
    """Writes CHAT with NaN for the embedding of a token, so that texts with it
    cannot be continued, and with an output matrix of its own, as it was."""
    with gguf_file.Reader(CHAT + ".gguf") as source:
        tensors, data = [], []
        for tensor in source.tensors:
            values = bytes(source.data(tensor))
            if tensor.name == "token_embd.weight":
                tensors.append(tensor._replace(name="output.weight"))
                data.append(values)
                row = tensor.size // tensor.dims[1]
                values = (values[:token * row] + b"\xff" * row
                          + values[(token + 1) * row:])
            tensors.append(tensor)
            data.append(values)
        with open(path, "wb") as file:
            gguf_file.write(file, source.keys, tensors, data, source.alignment)


def epub_of(title, author, chapters):
    """The bytes of an EPUB of (level, heading, paragraphs), in one page, with
    a navigation that is as deep as the levels."""
    body, navigation, depth = "", "", 0
    for i, (level, heading, paragraphs) in enumerate(chapters):
        heading = html.escape(heading)
        body += f'<h{level} id="c{i}">{heading}</h{level}>' + "".join(
            f"<p>{html.escape(paragraph)}</p>" for paragraph in paragraphs)
        navigation += ("<ol>" if level > depth else
                       "</li>" + "</ol></li>" * (depth - level))
        navigation += f'<li><a href="p.xhtml#c{i}">{heading}</a>'
        depth = level
    navigation += "</li></ol>" * depth
    page = ('<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub='
            '"http://www.idpf.org/2007/ops"><head><title>-</title></head>'
            "<body>%s</body></html>")
    files = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml":
            '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"'
            '><rootfiles><rootfile full-path="b.opf" media-type='
            '"application/oebps-package+xml"/></rootfiles></container>',
        "b.opf":
            '<package xmlns="http://www.idpf.org/2007/opf" version="3.0">'
            '<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>'
            f"{html.escape(title)}</dc:title><dc:creator>{html.escape(author)}"
            "</dc:creator><dc:language>en</dc:language></metadata><manifest>"
            '<item id="n" href="n.xhtml" properties="nav" media-type='
            '"application/xhtml+xml"/><item id="p" href="p.xhtml" media-type='
            '"application/xhtml+xml"/></manifest><spine><itemref idref="p"/>'
            "</spine></package>",
        "n.xhtml": page % f'<nav epub:type="toc">{navigation}</nav>',
        "p.xhtml": page % body}
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as book:
        for name, text in files.items():
            book.writestr(name, text)
    return target.getvalue()


class Screen:
    """The lines that a terminal of `columns` columns shows of `written`."""

    def __init__(self, columns, written=""):
        self.columns = columns
        self.lines = [[]]
        self.column = 0
        self.show(written)

    def show(self, written):
        for token in re.findall("\x1b\\[[0-9]*[A-Za-z]|.", written, re.DOTALL):
            if token == "\x1b[K":
                del self.lines[-1][self.column:]
            elif token == "\r":
                self.column = 0
            elif token == "\n":
                self.lines.append([])
            elif token == "\b":
                self.column -= 1
            elif token[0] < " ":
                raise AssertionError("%r is written" % token)
            else:
                self._put(token)

    def _put(self, character):
        if self.column == self.columns:  # the terminal breaks the line
            self.lines.append([])
            self.column = 0
        line = self.lines[-1]
        line.extend(" " * (self.column - len(line)))
        line[self.column:self.column + 1] = character
        self.column += 1

    def text(self):
        return ["".join(line) for line in self.lines]


class Terminal:
    """The program on a terminal of its own, of `columns` columns if not 0."""

    def __init__(self, case, *args, columns=0, **changes):
        self.master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ,
                    struct.pack("4H", 24 if columns else 0, columns, 0, 0))
        case.addCleanup(os.close, self.master)
        self.case = case
        self.seen = b""  # output that no call below has taken yet

        def own_terminal():  # so that Ctrl-C reaches it
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen(
            [TIERCEL, *args], stdin=slave, stdout=slave, stderr=slave,
            start_new_session=True, preexec_fn=own_terminal,
            env=environment(**{"TERM": "xterm", **changes}))
        os.close(slave)
        case.addCleanup(self.process.wait)
        case.addCleanup(self.process.kill)

    def read(self):
        """Reads more output; returns False at the end."""
        if not select.select([self.master], [], [], 60)[0]:
            self.case.fail(b"nothing more after %r" % self.seen[-400:])
        try:
            data = os.read(self.master, 1 << 16)
        except OSError:  # Linux says EIO once no process has it open
            data = b""
        self.seen += data
        return data != b""

    def until(self, pattern):
        """Takes the output up to and with `pattern`; returns the match."""
        while True:
            found = re.search(pattern, self.seen, re.DOTALL)
            if found:
                self.seen = self.seen[found.end():]
                return found
            if not self.read():
                self.case.fail(b"%r ended with %r" % (pattern,
                                                      self.seen[-400:]))

    def type(self, text):
        os.write(self.master, text)

    def prompt(self):
        self.until(rb"> (\x1b\[\w+)?$")

    def note(self):
        """Takes the note behind an answer; returns the tokens of its prompt,
        and the number of them that were cached."""
        # The lines of the note break where the terminal ends.
        found = self.until(rb"prompt\s+(\d+)\s+tokens(?:,\s+(\d+)\s+cached)?,"
                           rb"\s+TTFT[^>]*,\s+seed\s+0\r\n")
        return int(found[1]), int(found[2] or 0)

    def end(self):
        """Returns the exit code; the rest of the output is in `seen`."""
        while self.read():
            pass
        return self.process.wait(60)


class Case(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def spawn(self, *args, **kwargs):
        """Starts the program, with pipes for its output."""
        process = subprocess.Popen([TIERCEL, *args], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=environment(),
                                   **kwargs)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def path(self, name, content=None):
        path = os.path.join(self.directory, name)
        if content is not None:
            with open(path, "wb") as file:
                file.write(content)
        return path

    def without_weights(self):
        """Returns a copy of CHAT with NaN weights, which --check-tensors finds
        if the weights are read."""
        model = self.path("without_weights")
        shutil.copytree(CHAT, model)
        weights = os.path.join(model, "model.safetensors")
        with open(weights, "r+b") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            file.seek(8 + length)
            file.write(b"\xff" * (os.path.getsize(weights) - 8 - length))
        return model

    def succeed(self, *args, **kwargs):
        result = run(*args, **kwargs)
        self.assertEqual(result.returncode, 0, result.stderr.decode())
        return result.stdout

    def document(self, *args, **kwargs):
        out = self.succeed(*args, "--json", **kwargs)
        self.assertEqual(out.count(b"\n"), 1, out)
        return json.loads(out)

    def needs_to_start(self, limit):
        """Skips a test if not even --version runs within the limit."""
        if run("--version", preexec_fn=limit).returncode != 0:
            self.skipTest("a sanitizer reserves more before main")

    def refuse(self, exit_code, code, *args, **kwargs):
        """Returns the message, which must be the same with and without
        --json."""
        plain = run(*args, **kwargs)
        self.assertEqual(plain.returncode, exit_code, plain.stderr.decode())
        self.assertEqual(plain.stdout, b"")
        if "--" in args:
            return plain.stderr.decode()
        machine = run(*args, "--json", **kwargs)
        self.assertEqual(machine.returncode, exit_code)
        self.assertEqual(machine.stderr, b"")
        error = json.loads(machine.stdout)["error"]
        self.assertEqual(error["code"], code)
        self.assertEqual("tiercel: " + error["message"] + "\n",
                         plain.stderr.decode())
        return error["message"]


BOOK = b"".join(b"Part %d of it. One two three, four five. Six!\n\n" % i
                for i in range(200))
SMALL = ["-m", CHAT, "-c", "700", "-n", "24"]


class BookCase(Case):
    """A book that the context does not hold, and a cache of its own."""

    def setUp(self):
        super().setUp()
        self.cache = self.path("cache")
        self.env = environment(XDG_CACHE_HOME=self.cache)
        lend_rates(self, os.path.join(self.cache, "tiercel"))
        self.readings = os.path.join(self.cache, "tiercel", "readings")
        self.book = self.path("book.txt", BOOK)
        self.command = ["summarize", self.book, *SMALL]

    def summary(self, *flags, **kwargs):
        return self.document(*self.command, *flags,
                             **{"env": self.env, **kwargs})

    def kept(self):
        """The number of parts on the disk."""
        listed = json.loads(run("cache", "list", "--json",
                                env=self.env).stdout)["readings"]
        return sum(file["parts"] for file in listed)

    def file(self):
        # A process that was killed may have left another, half written.
        (name,) = (name for name in os.listdir(self.readings)
                   if name.endswith(".txt"))
        return os.path.join(self.readings, name)
