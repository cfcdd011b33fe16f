"""Calls that are stopped, interrupted, wrong, or made by several threads.

    calls_test.py TIERCEL CHECKPOINTS
"""

import gc
import os
import pickle
import subprocess
import sys
import threading
import time
import unittest
import weakref

from package_testing import CHAT, FOREVER, Case, interrupt, once_longer

import tiercel

TEXT = "The cat sat on the mat. " * 100


class UpkeepTest(Case):
    def test_the_log(self):
        with self.assertLogs("tiercel", "INFO") as logged:
            model = tiercel.Model(CHAT)
            tiercel.Session(model).read([1, 2, 3])
        opened, read = logged.output
        self.assertRegex(opened, "INFO:tiercel:llama_chat: llama, ")
        self.assertRegex(read, "INFO:tiercel:read 3 tokens, 0 of which ")
        with self.assertLogs("tiercel", "ERROR") as logged:
            error = self.refused(tiercel.InvalidInput, "",
                                 tiercel.Session(model).read, [1 << 30])
        self.assertEqual(logged.output,
                         [f"ERROR:tiercel:{error.code}: {error}"])

    def test_threads_and_memory(self):
        model = tiercel.Model(CHAT, threads=2)
        session = tiercel.Session(model)
        expected = session.generate("a", max_tokens=8)
        model.set_threads(1)
        self.assertEqual(model.info["threads"], 1)
        self.assertEqual(session.generate("a", max_tokens=8), expected)
        error = self.refused(tiercel.Usage, "3", model.set_threads, 3)
        self.assertEqual(error.code, "invalid_threads")
        self.refused(ValueError, "-1", model.set_threads, -1)
        held = session.ids
        session.trim()
        model.trim()
        self.assertEqual(session.ids, held)
        self.assertEqual(session.generate("a", max_tokens=8), expected)


class StopTest(Case):
    def works(self, session):
        """The session gives the text of a new one."""
        self.assertEqual(session.generate("a", max_tokens=8),
                         self.session().generate("a", max_tokens=8))

    def test_stop(self):
        session = self.session()
        session.stop()
        self.works(session)  # a stop without a call has no effect
        for begin in range(1, 4):
            ids = [1] * begin
            session.truncate(0)
            thread = once_longer(session, begin, session.stop)
            error = self.refused(tiercel.Cancelled, "", session.generate, ids,
                                 **FOREVER)
            thread.join()
            self.assertEqual(error.status, 7)
            self.assertTrue(self.model.detokenize(session.ids[begin:])
                            .startswith(error.text))
        self.works(session)

    def test_stop_of_a_stream(self):
        session = self.session()
        stream = session.chat("a", stream=True, **FOREVER)
        said = next(stream)
        session.stop()

        def rest():
            nonlocal said
            for piece in stream:
                said += piece

        self.refused(tiercel.Cancelled, "", rest)
        self.assertEqual(session.messages[-1]["content"], said)
        self.works(session)

    def test_interrupts(self):
        session = self.session()
        thread = once_longer(session, 1, interrupt)
        self.assertRaises(KeyboardInterrupt, session.generate, [1], **FOREVER)
        thread.join()
        self.works(session)
        # A signal that comes while a prompt is read.
        self.assertRaises(KeyboardInterrupt, session.read, TEXT,
                          progress=lambda done, total: interrupt())
        self.works(session)
        stream = session.chat("a", stream=True, **FOREVER)
        next(stream)
        with self.assertRaises(KeyboardInterrupt):
            threading.Timer(0.01, interrupt).start()
            for _ in stream:
                pass
        self.works(session)
        self.refused(tiercel.Cancelled, "closed", list, stream)

    def test_exceptions_of_callbacks(self):
        def fail(*_):
            raise LookupError("mine")

        self.refused(LookupError, "mine", tiercel.Model, CHAT, progress=fail)
        self.refused(LookupError, "mine", self.model.measure,
                     self.path("cache"), context=500, progress=fail)
        session = self.session()
        self.refused(LookupError, "mine", session.read, TEXT, progress=fail)
        self.assertEqual(session.length, 0)
        try:
            self.refused(LookupError, "mine", session.score, "a", on_row=fail)
        except ImportError:  # numpy's
            pass
        talk = session.messages
        self.refused(LookupError, "mine", session.chat, "a", progress=fail)
        self.assertIs(session.messages, talk)
        thinks = self.says("\n", "<think>", "h", "m", "</think>", "Y",
                           "<|im_end|>", special=["<think>", "</think>"])
        self.refused(LookupError, "mine", thinks.chat, "?", on_thought=fail)
        self.assertEqual(thinks.messages, [])
        self.works(session)

    def test_progress(self):
        seen = []
        session = self.session()
        session.read(TEXT, progress=lambda *counts: seen.append(counts))
        self.assertEqual(seen[-1], (session.length, session.length))
        self.assertEqual(seen, sorted(seen))
        seen.clear()
        tiercel.Model(CHAT, progress=lambda *counts: seen.append(counts))
        self.assertEqual(seen[-1][0], seen[-1][1])
        # tqdm draws if it is there, to stderr.
        said = self.python("import sys, tiercel\n"
                           "tiercel.Model(sys.argv[1], progress=True)\n")
        try:
            import tqdm  # noqa: F401
        except ImportError:
            self.assertEqual(said, b"")
        else:
            self.assertIn(b"loading: 100%", said)

    def test_the_interpreter_is_free(self):
        counts = [0]
        ended = threading.Event()

        def count():
            while not ended.is_set():
                counts[0] += 1

        thread = threading.Thread(target=count)
        thread.start()
        before = counts[0]
        tokens = self.model.tokenize(TEXT * 400)
        during = counts[0] - before
        ended.set()
        thread.join()
        self.assertGreater(during, 100)
        self.assertGreater(len(tokens), 1000)

    # ---- Threads, processes --------------------------------------------------

    def test_calls_within_calls(self):
        session = self.session()
        errors = []

        def use(*_):
            if not errors:
                errors.append(self.refused(tiercel.Usage, "", getattr, session,
                                           "ids"))

        session.read(TEXT, progress=use)
        self.assertEqual(errors[0].code, "session_in_use")
        # Closing within a call ends it, and takes nothing away from it.
        self.refused(tiercel.Cancelled, "", session.read, TEXT * 2,
                     progress=lambda *_: session.close())
        self.refused(tiercel.Usage, "the session is closed", session.read, "a")
        session.stop()
        session.close()

    def test_closing(self):
        session = self.session()
        self.model.close()
        self.model.close()
        self.refused(tiercel.Usage, "the model is closed", self.model.tokenize,
                     "a")
        self.refused(tiercel.Usage, "the model is closed", tiercel.Session,
                     self.model)
        self.assertIn("closed", repr(self.model))
        self.assertTrue(session.chat("a", max_tokens=3))
        with session.fork() as copy:
            self.assertTrue(copy.chat("b", max_tokens=3))
        fork = session.fork
        session.close()
        for call in (session.generate, session.report, fork,
                     lambda: session.ids, lambda: session.length,
                     lambda: session.chat("a")):
            error = self.refused(tiercel.Usage, "closed", call)
            self.assertEqual(error.code, "closed")
        self.assertIn("closed", repr(session))

    def test_many_threads(self):
        expected = self.session().generate("a", max_tokens=20)
        wrong = []

        def work():
            with tiercel.Session(self.model) as session:
                for _ in range(5):
                    text = "".join(session.generate("a", max_tokens=20,
                                                    stream=True))
                    if text != expected:
                        wrong.append(text)

        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_close_while_others_use(self):
        for _ in range(30):
            session = tiercel.Session(self.model)
            thread = threading.Thread(target=session.close)
            try:
                thread.start()
                session.generate([1], **FOREVER)
            except tiercel.Error as error:
                self.assertIn(error.code, ("closed", "cancelled"))
            thread.join()

    def test_forked(self):
        session = self.session()
        text = session.generate("a", max_tokens=8)
        stream = session.generate("a", stream=True, max_tokens=8)
        "".join(stream)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                session.generate("a")
            except tiercel.Usage as error:
                fresh = self.session().generate("a", max_tokens=8)
                code = 0 if (error.code, fresh) == ("forked", text) else 2
            finally:
                os._exit(code)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.works(session)

    def python(self, code, returns=0):
        """Runs a script that is given CHAT; returns its stderr."""
        done = subprocess.run([sys.executable, "-B", "-c", code, CHAT],
                              stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=60)
        self.assertEqual(done.returncode, returns, done.stderr.decode())
        return done.stderr

    def test_objects_are_freed_once(self):
        def drop():
            model = tiercel.Model(CHAT)
            session = tiercel.Session(model)
            circle = [session]
            circle.append(circle)
            model.close()
            stream = session.generate("a", stream=True, **FOREVER)
            next(stream)
            return weakref.ref(session)

        gc.collect()
        gc.disable()
        self.addCleanup(gc.enable)
        for _ in range(20):
            dropped = drop()
            gc.collect()
            for _ in range(2000):  # until the stream's thread has ended
                if dropped() is None:
                    break
                time.sleep(0.001)
                gc.collect()
            self.assertIsNone(dropped())
        # Without a circle there is nothing to collect.
        session = tiercel.Session(self.model)
        "".join(session.generate("a", stream=True, max_tokens=3))
        dropped = weakref.ref(session)
        del session
        self.assertIsNone(dropped())

    def test_a_program_may_end_at_any_time(self):
        begin = ("import sys, tiercel\n"
                 "model = tiercel.Model(sys.argv[1])\n"
                 "session = tiercel.Session(model)\n"
                 "stream = session.generate([1], stream=True,\n"
                 "                          ignore_eos=True)\n"
                 "next(stream)\n")
        self.assertEqual(self.python(begin), b"")
        self.assertIn(b"KeyError: 'mine'",
                      self.python(begin + "raise KeyError('mine')\n", 1))

    # ---- Wrong arguments -----------------------------------------------------

    def test_wrong_parameters(self):
        session = self.session(context=64)
        for kind, pattern, call in (
                (TypeError, "Model: there is no parameter 'thread'; there are "
                 ".*threads", lambda: tiercel.Model(CHAT, thread=1)),
                (TypeError, "threads is of type str; need an integer",
                 lambda: tiercel.Model(CHAT, threads="4")),
                (TypeError, "threads is of type float; need an integer",
                 lambda: tiercel.Model(CHAT, threads=4.0)),
                (ValueError, "threads is 4294967296, which is no int32_t",
                 lambda: tiercel.Model(CHAT, threads=1 << 32)),
                (ValueError, "load is 'none'; need one of all, header, descr",
                 lambda: tiercel.Model(CHAT, load="none")),
                (TypeError, "beside is of type str; need a Model",
                 lambda: tiercel.Model(CHAT, beside=CHAT)),
                (TypeError, "path is of type int; need a str",
                 lambda: tiercel.Model(5)),
                (ValueError, "path contains a NUL",
                 lambda: tiercel.Model("a\0b")),
                (TypeError, "progress is of type str",
                 lambda: tiercel.Model(CHAT, progress="yes")),
                (TypeError, "model is of type str; need a Model",
                 lambda: tiercel.Session(CHAT)),
                (TypeError, "policy: there is no parameter 'drafts'",
                 lambda: self.session(policy={"drafts": "ngram"})),
                (TypeError, "policy is of type int; need a name or a dict",
                 lambda: self.session(policy=1)),
                (TypeError, "draft_model is of type Session; need a Model",
                 lambda: self.session(policy={"draft_model": session})),
                (TypeError, "there is no parameter 'top_q'; .*top_p.*stop",
                 lambda: session.generate("a", top_q=1)),
                (TypeError, "generate: there is no parameter 'stops'",
                 lambda: session.generate("a", stops=["b"])),
                (TypeError, "temperature is of type str; need a number",
                 lambda: session.generate("a", temperature="hot")),
                (ValueError, "seed is -1, which is no uint64_t",
                 lambda: session.generate("a", seed=-1)),
                (TypeError, "generate: stop is of type int; need a sequence of "
                 "texts",
                 lambda: session.generate("a", stop=1)),
                (TypeError, "generate: stop is of type int; need a str",
                 lambda: session.generate("a", stop=[1])),
                (TypeError, "stop_ids: a token id is an integer",
                 lambda: session.generate("a", stop_ids=["a"])),
                (TypeError, "prompt is of type bytes; need a sequence of token "
                 "ids",
                 lambda: session.generate(b"a")),
                (ValueError, "a token id is wrong",
                 lambda: session.generate([1 << 40])),
                (ValueError, "surrogates", lambda: session.generate("\ud800")),
                (TypeError, "a message has no 'content'",
                 lambda: session.chat([{"role": "user"}])),
                (TypeError, "need a dict in each place",
                 lambda: session.chat(["a"])),
                (TypeError, "there is no parameter 'name'",
                 lambda: session.chat([{"name": "a"}])),
                (TypeError, "need a str", lambda: session.chat(
                    [{"role": "user", "content": 5}])),
                (ValueError, "a role contains a NUL", lambda: session.chat(
                    [{"role": "us\0er", "content": ""}])),
                (ValueError, "length is -1", lambda: session.truncate(-1)),
                (TypeError, "text is of type bytes; need a str",
                 lambda: self.model.tokenize(b"a")),
                (TypeError, "plan: there is no parameter 'tokens'",
                 lambda: tiercel.plan(CHAT, tokens=5))):
            with self.subTest(pattern):
                self.refused(kind, pattern, call)
        # The library refuses these.
        small = tiercel.Model(CHAT, device_memory_bytes=1 << 19)
        refuses = self.says("a", template="{{ raise_exception('no') }}")
        for kind, code, call in (
                (tiercel.IO, "file_not_found",
                 lambda: tiercel.Model(self.path("none"))),
                (tiercel.InvalidInput, "context_length_exceeded",
                 lambda: session.generate(TEXT)),
                (tiercel.OutOfMemory, "does_not_fit",
                 lambda: tiercel.Session(small)),
                (tiercel.InvalidInput, "invalid_token",
                 lambda: session.generate([1 << 30])),
                (tiercel.Usage, "empty_prompt",
                 lambda: self.session().generate([])),
                (tiercel.InvalidInput, "template_error",
                 lambda: refuses.chat("a"))):
            with self.subTest(code):
                error = self.refused(kind, "", call)
                self.assertIsInstance(error, RuntimeError)
                self.assertEqual((error.code, error.status),
                                 (code, kind.status))
                copy = pickle.loads(pickle.dumps(error))
                self.assertEqual((type(copy), str(copy), copy.code),
                                 (kind, str(error), code))
        self.works(session)


class HeaderTest(unittest.TestCase):
    """All of the header that the package hands on has a place in it."""

    def test_statuses(self):
        from tiercel._errors import _CLASSES
        from tiercel._library import ffi
        inside = {"TIERCEL_OK", "TIERCEL_BUFFER_TOO_SMALL"}
        for number, name in ffi.typeof("tiercel_status").elements.items():
            if name not in inside:
                words = name.partition("_")[2].split("_")
                named = "".join(word if word == "IO" else word.title()
                                for word in words)
                self.assertEqual(_CLASSES[number].__name__, named)
                self.assertIs(getattr(tiercel, named), _CLASSES[number])

    def test_every_field_can_be_given(self):
        from tiercel._library import ffi
        from tiercel._structs import _HANDLES, parameters
        for struct in ("model_params", "session_params", "policy", "sampling",
                       "chat_settings"):
            for name, kind in parameters("tiercel_" + struct).items():
                self.assertTrue(
                    kind.kind in ("primitive", "enum")
                    or kind.cname in ("char *", "char * *", "int32_t *")
                    or kind.cname in _HANDLES
                    or kind.item.kind == "struct", (struct, name, kind))
        from tiercel._model import _MESSAGE
        fields = [name for name, _ in ffi.typeof("tiercel_message").fields
                  if name != "struct_size" and not name.endswith("_bytes")]
        self.assertEqual(fields, list(_MESSAGE))


if __name__ == "__main__":
    unittest.main(argv=["calls_test.py"])
