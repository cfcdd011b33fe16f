#!/usr/bin/env python3
"""Many clients of one `tiercel serve` for some minutes.

  bench/load.py                    ten minutes of 32 clients
  bench/load.py --minutes 2 --clients 8
  bench/load.py --save             also writes
                                   bench/results/<date>-<cpu>-load.md
  bench/load.py -- FLAG...         more flags of `tiercel serve`

Each client sends one request after the other, on a connection of its own: of
those below --cancelled it leaves some before their end, and of --malformed are
wrong in some way; the others are whole or streamed chats and completions, from
a list of a few, so that the same request comes many times. Nothing may be
lost: each request has its answer, or a refusal that says why (429 is tried
again after Retry-After), and the same request always has the same text, also
where a client left behind the beginning of it. If not, the exit code is 1.

TTFT is from the request to the first text of a stream, a gap from one chunk
with text to the next, as the clients see them. They share this machine with
the server.

Standard library only.
"""

import argparse
import collections
import json
import math
import pathlib
import random
import sys
import threading
import time

import pages
from program import MODEL
from serving import CHATS, TEXTS, Server, Stream, talk

REQUESTS = 24  # different ones
SUBJECTS = ("falcons", "the sea", "an old house", "bread", "a long winter")
WRONG = (
    # Bodies, with the status and the code that they must have.
    ("{", 400, "invalid_json"),
    ("[1]", 400, "invalid_json"),
    (json.dumps({"messages": []}), 400, "invalid_request"),
    (json.dumps(talk("a", temperature="hot")), 400, "invalid_request"),
    (json.dumps(talk("a", logprobs=True, top_logprobs=99)), 400,
     "invalid_request"),
    (json.dumps(talk("a", tools=[{"type": "function"}])), 400,
     "unsupported_parameter"),
    (json.dumps(talk("word " * 20000)), 400, "context_length_exceeded"),
)


def request_of(number):
    """One of the requests: its path, its body, and the name of its text."""
    subject = SUBJECTS[number % len(SUBJECTS)]
    drawn = {"max_tokens": 8 + 8 * (number % 5), "seed": number,
             "temperature": 0.8 * (number % 2)}
    if number % 3 == 0:
        return TEXTS, {"prompt": f"The story of {subject} begins", **drawn}
    told = f"{number}. " + f"Tell me more about {subject}. " * (number % 7 + 1)
    wanted = {"logprobs": True, "top_logprobs": 2} if number % 4 == 1 else {}
    return CHATS, talk(told, **drawn, **wanted)


def text_of(path, choice):
    said = choice.get("message", choice.get("delta", choice))
    return said.get("text" if path == TEXTS else "content") or ""


class Tally:
    """Counts the outcomes of all requests, from all threads."""

    def __init__(self):
        self.lock = threading.Lock()
        self.outcomes = collections.Counter()
        self.faults = []
        self.first_s, self.gaps_s = [], []
        self.texts = {}  # by the number of the request
        self.beginnings = collections.defaultdict(set)

    def count(self, outcome):
        with self.lock:
            self.outcomes[outcome] += 1

    def fault(self, what):
        with self.lock:
            self.faults.append(what)

    def take(self, number, text):
        """Takes a whole text, which must be the request's."""
        with self.lock:
            expected = self.texts.setdefault(number, text)
        if text != expected:
            self.fault(f"request {number}: {text!r} is not {expected!r}")

    def take_beginning(self, number, text):
        with self.lock:
            self.beginnings[number].add(text)

    def take_times(self, begin, stamps):
        with self.lock:
            self.first_s.append(stamps[0] - begin)
            self.gaps_s.extend(b - a for a, b in zip(stamps, stamps[1:]))

    def check_beginnings(self):
        """Compares what those who left had read with the whole texts."""
        for number, texts in self.beginnings.items():
            whole = self.texts.get(number)
            for text in texts:
                if whole is not None and not whole.startswith(text):
                    self.fault(f"request {number}: {text!r} is no beginning "
                               f"of {whole!r}")


class Client:
    """A thread that sends requests until it is told to stop."""

    def __init__(self, server, tally, args, seed):
        self.server, self.tally, self.args = server, tally, args
        self.chance = random.Random(seed)
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.stopped.is_set():
            try:
                self.once()
            except Exception as error:  # a request is lost
                self.tally.fault(f"{type(error).__name__}: {error}")
                time.sleep(0.1)

    def once(self):
        drawn = self.chance.random()
        if drawn < self.args.malformed:
            self.send_wrong()
        elif drawn < self.args.malformed + self.args.cancelled:
            self.leave_early()
        elif self.chance.random() < 0.5:
            self.ask_whole()
        else:
            self.ask_stream()

    def refused(self, status, headers, text, number):
        """Notes an answer that is none; returns True if it may be tried
        again."""
        if status == 429 and headers.get("Retry-After"):
            self.tally.count("refused: queue full, tried again")
            self.stopped.wait(float(headers["Retry-After"]))
            return not self.stopped.is_set()
        self.tally.fault(f"request {number}: {status} {text[:200]!r}")
        return False

    def ask_whole(self):
        number = self.chance.randrange(REQUESTS)
        path, body = request_of(number)
        while True:
            status, headers, text = self.server.ask("POST", path,
                                                    json.dumps(body))
            if status == 200:
                break
            if not self.refused(status, headers, text, number):
                return
        self.tally.take(number, text_of(path, json.loads(text)["choices"][0]))
        self.tally.count("answered whole")

    def begin(self, number):
        """The events of a stream, its path and when it was asked for; None
        where there is no answer."""
        path, body = request_of(number)
        while True:
            asked = time.monotonic()
            stream = Stream(self.server, path, {**body, "stream": True})
            if stream.status == 200:
                return stream, path, asked
            headers = dict(stream.response.getheaders())
            text = stream.response.read()
            stream.leave()
            if not self.refused(stream.status, headers, text, number):
                return None

    def ask_stream(self):
        number = self.chance.randrange(REQUESTS)
        begun = self.begin(number)
        if begun is None:
            return
        stream, path, asked = begun
        text, stamps, done = "", [], False
        for event in stream:
            done = event == "[DONE]"
            if done:
                continue
            said = text_of(path, event["choices"][0])
            if said:
                stamps.append(time.monotonic())
                text += said
        if not done:
            self.tally.fault(f"request {number}: a stream without an end")
            return
        if stamps:
            self.tally.take_times(asked, stamps)
        self.tally.take(number, text)
        self.tally.count("answered as a stream")

    def leave_early(self):
        number = self.chance.randrange(REQUESTS)
        if self.chance.random() < 0.3:
            self.leave_whole(number)
            return
        begun = self.begin(number)
        if begun is None:
            return
        stream, path, _ = begun
        text, left = "", self.chance.randrange(6)
        for event in stream:
            if event == "[DONE]":
                break
            text += text_of(path, event["choices"][0])
            left -= 1
            if left <= 0:
                break
        stream.leave()
        self.tally.take_beginning(number, text)
        self.tally.count("left by the client")

    def leave_whole(self, number):
        """Leaves before there is an answer."""
        path, body = request_of(number)
        connection = self.server.connect()
        connection.request("POST", path, json.dumps(body))
        self.stopped.wait(self.chance.random() / 5)
        connection.close()
        self.tally.count("left by the client")

    def send_wrong(self):
        choice = self.chance.randrange(len(WRONG) + 3)
        if choice < len(WRONG):
            body, expected, code = WRONG[choice]
            status, _, text = self.server.ask("POST", CHATS, body)
        elif choice == len(WRONG):
            expected, code = 404, "not_found"
            status, _, text = self.server.ask("GET", "/none")
        else:
            expected, code = 400, None
            data = (b"hello\r\n\r\n" if choice == len(WRONG) + 1 else
                    b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                    b"Content-Length: -5\r\n\r\n")
            head, _, text = self.server.raw(data).partition(b"\r\n\r\n")
            status = int(head.split()[1])
        found = json.loads(text)["error"]["code"]
        if status != expected or code not in (None, found):
            self.tally.fault(f"wrong request {choice}: {status} {found}")
        self.tally.count("refused: wrong in itself")


def resident_mib(pid):
    """Resident memory, threads and open files of a process."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    fields = dict(line.split(":\t", 1) for line in status.splitlines()
                  if ":\t" in line)
    files = sum(1 for _ in pathlib.Path(f"/proc/{pid}/fd").iterdir())
    return (int(fields["VmRSS"].split()[0]) / 1024, int(fields["Threads"]),
            files)


def quantile(values, share):
    """The least value that `share` of them do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def times_row(name, seconds):
    if not seconds:
        return [name, "0", "-", "-", "-"]
    return [name, str(len(seconds)),
            *(f"{1000 * quantile(seconds, share):.0f}"
              for share in (0.5, 0.99, 1))]


def drive(server, args):
    """Lets the clients work. Returns the tally and a row for each minute."""
    tally = Tally()
    rows = []

    def look(minute):
        mib, threads, files = resident_mib(server.process.pid)
        rows.append([minute, str(sum(tally.outcomes.values())), f"{mib:.1f}",
                     str(threads), str(files)])

    look("before")
    clients = [Client(server, tally, args, seed)
               for seed in range(args.clients)]
    for client in clients:
        client.thread.start()
    begin = time.monotonic()
    left_s = 60 * args.minutes
    while left_s > 0 and server.process.poll() is None:
        time.sleep(min(left_s, 60))
        left_s = begin + 60 * args.minutes - time.monotonic()
        look(f"{(time.monotonic() - begin) / 60:.1f}")
    for client in clients:
        client.stopped.set()
    for client in clients:
        client.thread.join()
    # The server soon forgets the clients that left, and has no other.
    for gauge in "tiercel_requests_running", "tiercel_requests_waiting":
        server.await_gauge(gauge, 0)
    look("after")
    tally.check_beginnings()
    return tally, rows


def body_of(tally, rows):
    faults = collections.Counter(tally.faults)
    return [
        *pages.table(["outcome", "requests"],
                     [[name, str(count)] for name, count
                      in sorted(tally.outcomes.items())]
                     + [["lost, or another text", str(len(tally.faults))]]),
        "",
        *pages.table(["ms", "count", "p50", "p99", "most"],
                     [times_row("TTFT", tally.first_s),
                      times_row("gap", tally.gaps_s)]),
        "",
        *pages.table(["minute", "requests", "resident MiB", "threads", "files"],
                     rows),
        *(f"- {count} times: {what}" for what, count in faults.items())]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tiercel", type=pathlib.Path,
                        default=pages.ROOT / "build/cpu/apps/tiercel")
    parser.add_argument("--model", type=pathlib.Path, default=MODEL)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--cancelled", type=float, default=0.2)
    parser.add_argument("--malformed", type=float, default=0.1)
    parser.add_argument("--save", action="store_true")
    parser.add_argument("flags", nargs="*", help="flags of `tiercel serve`")
    args = parser.parse_args()
    flags = args.flags or ["-c", "2048", "--parallel", "4", "--queue", "24",
                           "--no-cache"]
    server = Server([args.tiercel, "serve", "-m", args.model, *flags])
    try:
        tally, rows = drive(server, args)
    finally:
        server.end()
    pages.publish(
        "Load on a server",
        f"{pages.version_of(args.tiercel)}; {args.model.name}; {args.clients} "
        f"clients for {args.minutes:g} minutes; {pages.load_now()}; flags: "
        f"{' '.join(flags)}",
        body_of(tally, rows), args.save and "load")
    sys.exit(1 if tally.faults else 0)


if __name__ == "__main__":
    main()
