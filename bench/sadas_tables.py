"""Tables of SADAS (State-Aware Dynamic Attention Scheduling), in the paper's
form: window against quality (its Table 3), speed by context (Table 4), views of
the answer (Tables 9, 10 and 12), lengths of outputs (Fig. 3). bench/policies.py
prints them.

The paper scores answers to mathematics. The model here was not trained to
think, and a score of so small a model would say nothing. So a book goes on
token by token, a part of it as thinking, and the tables give the distance from
the rows of the full view. Thinking is forced, and its length is always stated.
Standard library only.
"""

import functools
import math
import statistics

import by_context
import chart


def sadas(tokens, sink, *settings):
    """The flags of the plain form over a window of `tokens`."""
    return ["--policy", "sadas", "--plain", "--window", tokens, "--sink", sink,
            "--set", ",".join(settings)]


def window(tokens, sink):
    """The flags with which all decoded rows read the window."""
    return sadas(tokens, sink, "gate=always")


# ---- Quality ----

PROMPT = 4500  # tokens
THOUGHT = 256  # tokens of thinking, and some more until the closing tag
ANSWER = 256  # tokens
TAG = 3  # tokens


class Sums:
    """The measures of `eval` for some rows, as sums, so that those of a part of
    them are a difference."""

    def __init__(self, *parts):
        (self.rows, self.scored, self.divergence, self.same, self.nll,
         self.nll_full) = self.parts = parts

    @classmethod
    def of(cls, d):
        rows, scored = d["tokens"] - d["prefill"], d["scored"]
        return cls(rows, scored, rows * d["kl"]["mean"], rows * d["top1"],
                   scored * d["nll"], scored * math.log(d["perplexity_full"]))

    def __sub__(self, other):
        return Sums(*(a - b for a, b in zip(self.parts, other.parts)))

    def kl(self):
        return self.divergence / self.rows

    def perplexity_full(self):
        return math.exp(self.nll_full / self.scored)

    def cells(self):
        """KL, top-1 and perplexity, as cells of a table."""
        return (f"{self.kl():.4f} | {self.same / self.rows:.3f} "
                f"| {math.exp(self.nll / self.scored):.2f}")


class Turn:
    """The beginning of a book as one turn: a prompt, thinking, a phrase of the
    book as the closing tag, and the answer. The row that reads the last token
    of the tag is the answer's first."""

    def __init__(self, program, text, scratch):
        self.program = program
        ids = program.document("tokenize", "-f", text)["tokens"]
        begin = self._find_tag(ids)  # sets self.tag
        thought, whole = begin + TAG - 1, begin + TAG + ANSWER
        self.thinking = scratch / "thinking.txt"
        self.thinking.write_text(" ".join(map(str, ids[:thought])))
        self.whole = scratch / "turn.txt"
        self.whole.write_text(" ".join(map(str, ids[:whole])))
        self.split = (f"{PROMPT:,} tokens read, {thought - PROMPT} rows of "
                      f"thinking, {whole - thought} of the answer, closed by "
                      f"\"{self.tag.strip()}\"")

    def _find_tag(self, ids):
        """Returns the place of the first tokens that may be the tag: a phrase
        that has these ids and did not come in the thinking before."""
        for begin in range(PROMPT + THOUGHT, len(ids) - TAG - ANSWER):
            tag = ids[begin:begin + TAG]
            if any(ids[i:i + TAG] == tag for i in range(PROMPT, begin)):
                continue
            self.tag = self.program.document("detokenize", *tag)["text"]
            letters = self.tag.replace(" ", "").isalpha()  # no comma, no =
            if letters and self.program.document(
                    "tokenize", "-p", self.tag)["tokens"] == tag:
                return begin
        raise ValueError(f"needs more than {len(ids)} tokens")

    def _eval(self, ids, flags):
        return Sums.of(self.program.document(
            "eval", "--tokens", ids, "--prefill", PROMPT, "--verify-against",
            "full", *flags))

    @functools.cache
    def thought(self, tokens, sink):
        return self._eval(self.thinking, sadas(
            tokens, sink, "think=on", f"close={self.tag}"))

    def answer(self, tokens, sink, *settings):
        """Returns the answer's rows, after thinking over the window."""
        whole = self._eval(self.whole, sadas(
            tokens, sink, *settings, f"close={self.tag}"))
        return whole - self.thought(tokens, sink)


WINDOWS = (256, 512, 1024, 2048, 4096)


def window_table(program, text, scratch, say, charts):
    """Table 3: SADAS, and the window in the answer too (the paper's SWAQwen)."""
    turn = Turn(program, text, scratch)
    columns = ["thinking", "SADAS's answer", "the window's answer"]
    series = {name: [] for name in columns}
    say()
    say(f"## SADAS: window against quality, {text.name}: {turn.split}")
    say()
    say("KL, top-1 and perplexity of rows of the book, not scores of tasks: no "
        "small model is trained for these.")
    say()
    say("| window " + "".join(f"| {name}: KL | top-1 | perplexity "
                              for name in columns) + "| of full, both |")
    say("|---:" * (2 + 3 * len(columns)) + "|")
    for tokens in WINDOWS:
        parts = [turn.thought(tokens, 0), turn.answer(tokens, 0, "think=on"),
                 turn.answer(tokens, 0, "gate=always")]
        for name, part in zip(columns, parts):
            series[name].append((tokens, part.kl()))
        say(f"| {tokens:,} | {' | '.join(part.cells() for part in parts)} "
            f"| {parts[0].perplexity_full():.2f}, "
            f"{parts[1].perplexity_full():.2f} |")
    charts["sadas-kl"] = chart.line_chart(
        f"SADAS: distance from full, {text.name}", "window", "KL, mean", series)


# Views of the answer: name, setting, and sinks.
ANSWERS = [("all (SADAS)", "all", 0), ("all, with sinks", "all", 4),
           ("kept (hybrid, truncated)", "kept", 0),
           ("kept, with sinks (hybrid, truncated + sink)", "kept", 4)]


def answer_table(program, text, scratch, say, _):
    """Tables 9, 10 and 12: views of the answer."""
    turn = Turn(program, text, scratch)
    say()
    say(f"## SADAS: what the answer reads, {text.name}: a window of 1,024, "
        f"{turn.split}")
    say()
    say("The paper's hybrid and truncated caches keep the same positions, the "
        "window as thinking ends and all since; so they are one row here. Sinks: "
        "the first 4 tokens, in thinking too.")
    say()
    say("| the answer reads | KL, mean | top-1 | perplexity | of full |")
    say("|---|---:|---:|---:|---:|")
    for name, reads, sink in ANSWERS:
        part = turn.answer(1024, sink, "think=on", f"answer={reads}")
        say(f"| {name} | {part.cells()} | {part.perplexity_full():.2f} |")


# ---- Speed ----

THINKING = 96  # tokens of thinking, out of all


def context_table(program, text, _, say, charts):
    """Table 4: speed by context."""
    close = "</think>"
    tag = len(program.document("tokenize", "-p", close)["tokens"])
    rest = by_context.TOKENS - THINKING - tag
    say()
    say(f"## SADAS: speed by context, {text.name}: {by_context.TOKENS} tokens, a "
        "window of 1,024")
    say()
    say(f"Tokens a second. SADAS thinks {THINKING}, closes with {tag} and answers "
        f"with {rest}; the window is in all rows of the other, as in the "
        "paper's SWAQwen.")
    say()
    policies = [
        (f"SADAS, {THINKING} + {tag} + {rest}",
         sadas(1024, 0, "think=on", f"most={THINKING}", f"close={close}")),
        ("window in all", window(1024, 0))]
    charts["sadas-speed"] = chart.line_chart(
        f"SADAS by context, {text.name}", "tokens before", "tokens/s",
        by_context.speed_table(program, policies, text, say))


# ---- Lengths ----

LETTERS = 10000  # letters of the text that is asked about
QUESTIONS = ["Who speaks here, and of what?", "Where does this take place?",
             "What happens at the end?", "Why was this written?"]
SEEDS = (1, 2)
MOST = (16, 64, 128)  # tokens of thinking
FORMS = [("full", ["--plain", "--window", 4096]),
         ("plain", ["--plain", "--window", 512]),
         ("verified", ["--verify", "coupled", "--window", 512])]


def split(ids, tag):
    """Returns the numbers of tokens of thinking and of the answer, the latter
    None if thinking never ended."""
    for begin in range(len(ids) - len(tag) + 1):
        if ids[begin:begin + len(tag)] == tag:
            return begin, len(ids) - begin - len(tag)
    return len(ids), None


def between(values):
    """The mean, the least and the greatest, as a cell."""
    if not values:
        return "none"
    return f"{statistics.mean(values):.0f} ({min(values)} to {max(values)})"


def length_table(program, text, scratch, say, charts):
    """Fig. 3, and Table 2 of lengths."""
    piece = scratch / "piece.txt"
    letters = text.read_text(encoding="utf-8", errors="replace")
    piece.write_text(letters[:LETTERS], encoding="utf-8")
    tag = program.document("tokenize", "-p", "</think>")["tokens"]

    def answers(most, flags):
        """Returns the ids for each question and seed, and the tokens of a
        prompt."""
        found = []
        for seed in SEEDS:
            d = program.document(
                "ask", piece, *QUESTIONS, "-n", 256, "--temp", 0.6, "--seed",
                seed, "--no-cache", "-c", 4096, "--policy", "sadas", "--set",
                f"think=on,most={most}", *flags)
            found += [one["tokens"] for one in d["output"]]
        return found, d["prompt_tokens"]

    lines = []
    series = {f"{name}, {what}": [] for name, _ in FORMS
              for what in ("thinking", "answer")}
    for most in MOST:
        for name, flags in FORMS:
            found, prompt = answers(most, flags)
            if name == "full":
                full = found
            thought, answered = zip(*(split(ids, tag) for ids in found))
            ended = [n for n in answered if n is not None]
            same = sum(map(list.__eq__, found, full))
            lines.append(
                f"| {most} | {name} | {between(thought)} | {between(ended)} "
                f"| {len(found) - len(ended)} | {same} of {len(found)} |")
            series[f"{name}, thinking"].append((most, statistics.mean(thought)))
            if ended:
                series[f"{name}, answer"].append((most, statistics.mean(ended)))
    say()
    say(f"## SADAS: lengths of outputs, {text.name}: {len(QUESTIONS)} questions "
        f"about {prompt:,} tokens, {len(SEEDS)} seeds each, 256 tokens at most")
    say()
    say("Tokens: the mean, the least and the most. Thinking is closed after so "
        f"many by the {len(tag)} tokens of \"</think>\", which count in neither "
        "part; some texts end before. Plain and verified have a window of 512; "
        "full is a window of everything, which must close its thinking too.")
    say()
    say("| may think | form | thinking | answer | ended thinking | as full |")
    say("|---:|---|---|---|---:|---:|")
    for line in lines:
        say(line)
    charts["sadas-tokens"] = chart.line_chart(
        f"SADAS: lengths of outputs, {text.name}", "may think", "tokens, mean",
        {name: points for name, points in series.items() if points})
