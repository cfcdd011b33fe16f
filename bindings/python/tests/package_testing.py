"""Shared by the tests of the package: models for them, and the program.

For scripts that are called with TIERCEL CHECKPOINTS, the program and the small
models of tests/golden, by a Python that finds the package `tiercel`.
"""

import os
import signal
import sys
import threading
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)),
                             "../../../apps"))
import cli_testing
import told_model

import tiercel

CHAT = cli_testing.CHAT
# A shell lets programs in the background ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)
FOREVER = {"max_tokens": 1_000_000, "ignore_eos": True}  # as good as


class Case(cli_testing.Case):
    """Cases with a small model, and sessions of it."""

    def setUp(self):
        super().setUp()
        self.model = tiercel.Model(CHAT)
        self.addCleanup(self.model.close)

    def session(self, **params):
        session = tiercel.Session(self.model, **params)
        self.addCleanup(session.close)
        return session

    def says(self, *texts, template=told_model.CHATML, special=(), **more):
        """A session of a model that says `texts` one after the other."""
        names = told_model.tokens([*told_model.SPECIAL, *special])
        path = self.path("says.gguf")
        told_model.write_gguf(
            path, told_model.path_of(*texts), names,
            tokenizer__chat_template=told_model.gguf_file.string(template),
            **more)
        session = tiercel.Session(tiercel.Model(path))
        self.addCleanup(session.close)
        return session

    def refused(self, kind, pattern, function, *args, **kwargs):
        """Returns the error, whose message has `pattern`."""
        with self.assertRaisesRegex(kind, pattern) as caught:
            function(*args, **kwargs)
        return caught.exception


def once_longer(session, tokens, action):
    """Does `action` in a thread once the session holds `tokens` tokens, so that
    what comes behind a prompt has begun or is about to."""
    def wait():
        while session.length < tokens:
            time.sleep(0.0005)
        action()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def interrupt():
    """Ctrl-C."""
    os.kill(os.getpid(), signal.SIGINT)
