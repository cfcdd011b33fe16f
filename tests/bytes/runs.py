"""Runs of the program: each case's bytes beside those of its reference.

A `Run` is one call of the program. Its `place` is where it computes: threads,
rows a step, ranks, a small device behind a link, a GPU. No place may change a
byte, so a case compares a run with its reference, which is the plain text or
the plain logits in the host's memory. References are computed once.
"""

import dataclasses
import hashlib
import json
import os
import pathlib
import random
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CHECKPOINTS = ROOT / "tests/golden/checkpoints"
# The exit codes of what is refused, by the errors' codes.
EXITS = {"does_not_fit": 4, "cannot_split": 2}
HOLDS_ALL = 4 << 30  # bytes to spare in which all KV of these cases stays


@dataclasses.dataclass(frozen=True)
class Place:
    """The devices of a run, their links and threads."""
    link: str = None  # a simulated device's, as "2GB/s"; None: no such device
    spare: int = 0  # bytes of the device beyond the least that works
    host: str = None  # the rate of a host that takes its share of sweeps
    ranks: int = 1
    gpu: bool = False  # --device cuda, its kernels run by the host executor
    flags: tuple = ()  # threads, rows a step
    env: tuple = ()  # pairs

    def simulated(self, size):
        host = f",host={self.host}" if self.host else ""
        return f"device={size},link={self.link}{host}"

    def over(self):
        return ("--tensor-parallel", self.ranks) if self.ranks > 1 else ()

    def on(self):
        """Flags that `plan` knows too."""
        threads = ()
        if "-t" in self.flags:
            at = self.flags.index("-t")
            threads = self.flags[at:at + 2]
        return (*self.over(), *threads, *(("--device", "cuda") * self.gpu))


HERE = Place()


@dataclasses.dataclass(frozen=True)
class Run:
    """One call of the program."""
    command: str  # eval, generate or ask
    session: tuple  # model, context, types of KV
    text: tuple  # the text read, the length generated, sampler, seed
    policy: tuple = ()  # as `plan` reads it too
    verify: tuple = ()  # the making and checking of its drafts
    place: Place = HERE

    def at(self, place):
        return dataclasses.replace(self, place=place)

    def by(self, policy, verify=()):
        return dataclasses.replace(self, policy=tuple(policy),
                                   verify=tuple(verify))


@dataclasses.dataclass(frozen=True)
class Case:
    """A run whose bytes are those of `reference`, or that is `refused` with
    this code. A check takes the document, the reference's and the run; it may
    return a sentence to print."""
    run: Run
    reference: Run = None
    checks: tuple = ()
    refused: str = None


def book():
    """The text of the prompts."""
    path = pathlib.Path(os.environ["TIERCEL_BOOKS"]) / "policy.txt"
    return path.read_text(encoding="utf-8", errors="replace")


def tokens_of(document):
    """The generated ids; a text that is asked one question is its answer."""
    return document.get("answers", [document])[0]["output"][0]["tokens"]


class Program:
    """The program, a folder for its files, and the results so far."""

    def __init__(self, path, scratch):
        self.path = os.path.abspath(path)
        self.scratch = pathlib.Path(scratch)
        self.model = pathlib.Path(os.environ["TIERCEL_MODEL"])
        self.results = {}
        self.plans = {}
        self.configs = {}

    def call(self, *args, gpu=False, env=()):
        """Returns the exit code and the document."""
        program = self.path + ("_hosted" if gpu else "")
        done = subprocess.run(
            [program, *map(str, args), "--json", "--no-progress"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env={**os.environ, **dict(env)})
        assert done.returncode >= 0, (args, done.returncode, done.stderr)
        return done.returncode, json.loads(done.stdout)

    # ---- Files ----

    def file(self, text):
        """The path of a file of this text."""
        name = hashlib.sha256(text.encode()).hexdigest()[:16]
        path = self.scratch / f"{name}.txt"
        if not path.exists():
            path.write_text(text)
        return path

    def ids(self, ids):
        return self.file(" ".join(map(str, ids)))

    def drawn_ids(self, count, vocab, seed=0):
        draws = random.Random(seed)
        return self.ids(draws.randrange(vocab) for _ in range(count))

    def config(self, path):
        if path not in self.configs:
            code, document = self.call("inspect", path)
            assert code == 0, document
            self.configs[path] = document["config"]
        return self.configs[path]

    # ---- Runs ----

    def least_device(self, run):
        """The least device memory of a run, as `plan` says."""
        place = run.place
        args = ("plan", "--simulate", place.simulated("1kB"),
                *run.session, *run.policy, *place.on())
        if args not in self.plans:
            code, plan = self.call(*args, gpu=place.gpu)
            assert code == 4, (args, plan)
            self.plans[args] = plan["min_device_bytes"]
        return self.plans[args]

    def device(self, run):
        place = run.place
        if place.link is None:
            return ()
        size = self.least_device(run) + place.spare
        return ("--simulate", place.simulated(size))

    def start(self, run, *more):
        place = run.place
        return self.call(run.command, *run.session, *run.text, *run.policy,
                         *run.verify, *self.device(run), *place.over(),
                         *place.flags, *(("--device", "cuda") * place.gpu),
                         *more, gpu=place.gpu, env=place.env)

    def compute(self, run):
        """Returns the bytes, or the tokens, and the document."""
        out = self.scratch / "logits.npy"
        more = ("--logits", out) if run.command == "eval" else ()
        code, document = self.start(run, *more)
        assert code == 0, (run, document)
        if run.command != "eval":
            assert document["simulated"] == (run.place.link is not None), run
            return tokens_of(document), document
        digest = hashlib.sha256(out.read_bytes()).hexdigest()
        out.unlink()
        return digest, document

    def reference(self, run):
        if run not in self.results:
            self.results[run] = self.compute(run)
        return self.results[run]

    def check(self, case):
        """Runs a case; an AssertionError says what differs."""
        if case.refused is not None:
            code, document = self.start(case.run)
            assert code == EXITS[case.refused], (case.run, document)
            assert document["error"]["code"] == case.refused, document
            plain = None
        else:
            wanted, plain = self.reference(case.reference)
            found, document = self.compute(case.run)
            assert found == wanted, (
                f"{case.run}\ngave {found}\n{case.reference}\ngave {wanted}")
        for check in case.checks:
            said = check(document, plain, case.run)
            if said:
                print(f"  {said}", flush=True)


def measure_nothing():
    """Leaves programs no folder for rates, so that adaptive lengths are the
    same on any machine, and the user's rates are left alone."""
    os.environ.update(HOME="", XDG_CACHE_HOME="")
