#!/usr/bin/env python3
"""The page of `tiercel serve`, used as a reader uses it, in Chromium.

    browser_test.py TIERCEL CHECKPOINTS [TEST...]

The browser is driven over a pipe, by the protocol of its developer tools. The
model is TIERCEL_MODEL; where an answer must have certain words, they are put in
its place on the way to the page. With BROWSER_PICTURES, a folder, pictures of
the page are left there.
"""

import base64
import fcntl
import json
import os
import subprocess
import sys
import time
import unittest

from cli_testing import CHAT, Case, environment, epub_of, run
from cli_serve_test import CHATS, Server

DEADLINE_S = 120
MODEL = os.environ.get("TIERCEL_MODEL")
HOSTILE = '<img src=x onerror="document.title = 1">'
PARAGRAPH = ("The old lighthouse stood on a rock far from the coast. A keeper "
             "named Edith Marlow lived in it with her grey cat. Every evening "
             "she climbed the hundred steps and lit the lamp.")


class Browser:
    """Chromium without a window, with one page."""

    def __init__(self, case):
        (theirs, ours), (mine, other) = os.pipe(), os.pipe()
        # The browser reads from 3 and writes to 4.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (theirs, other)]
        os.close(theirs)
        os.close(other)
        self.process = subprocess.Popen(
            ["bash", "-c", 'exec "$@" 3<&%d 4>&%d' % tuple(ends), "bash",
             "chromium", "--headless", "--no-sandbox", "--disable-gpu",
             "--no-first-run", "--disable-dev-shm-usage",
             "--force-prefers-reduced-motion",
             "--user-data-dir=" + case.path("profile"),
             "--remote-debugging-pipe", "about:blank"],
            pass_fds=ends, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for end in ends:
            os.close(end)
        self.to, self.back = os.fdopen(ours, "wb"), os.fdopen(mine, "rb")
        case.addCleanup(self.end)
        self.last_id, self.session, self.events, self.waiting = 0, None, [], b""
        (page,) = (one for one in self.call("Target.getTargets")["targetInfos"]
                   if one["type"] == "page")
        self.session = self.call("Target.attachToTarget", flatten=True,
                                 targetId=page["targetId"])["sessionId"]
        for domain in "Page", "Runtime", "Log", "DOM":
            self.call(domain + ".enable")

    def end(self):
        self.to.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.back.close()

    def receive(self):
        while b"\0" not in self.waiting:
            more = os.read(self.back.fileno(), 1 << 20)
            if not more:
                raise AssertionError("the browser has ended")
            self.waiting += more
        message, _, self.waiting = self.waiting.partition(b"\0")
        return json.loads(message)

    def send(self, method, params):
        self.last_id += 1
        message = {"id": self.last_id, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        self.to.write(json.dumps(message).encode() + b"\0")
        self.to.flush()
        return self.last_id

    def call(self, method, **params):
        sent = self.send(method, params)
        while True:
            message = self.receive()
            if message.get("id") == sent:
                if "error" in message:
                    raise AssertionError(method, message["error"])
                return message["result"]
            if "method" in message:
                self.take(message)

    def take(self, event):
        """Keeps an event, and answers a request for which an answer is put in
        the place of the server's."""
        self.events.append(event)
        if event["method"] == "Fetch.requestPaused":
            self.send("Fetch.fulfillRequest", {
                "requestId": event["params"]["requestId"],
                "responseCode": 200,
                "responseHeaders": [{"name": "Content-Type",
                                     "value": "text/event-stream"}],
                "body": base64.b64encode(self.told).decode()})

    def answer_with(self, *deltas, reason="stop"):
        """Lets every request for an answer have this one."""
        events = [{"choices": [{"delta": delta, "finish_reason": None}]}
                  for delta in deltas]
        events.append({"choices": [{"delta": {}, "finish_reason": reason}]})
        self.told = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n"
                             for event in events) + b"data: [DONE]\n\n"
        self.call("Fetch.enable",
                  patterns=[{"urlPattern": "*/v1/chat/completions"}])

    def run(self, script):
        """Returns the value of an expression on the page."""
        result = self.call("Runtime.evaluate", expression=script,
                           awaitPromise=True, returnByValue=True,
                           userGesture=True)
        if "exceptionDetails" in result:
            raise AssertionError(script, result["exceptionDetails"])
        return result["result"].get("value")

    def await_true(self, script):
        end = time.monotonic() + DEADLINE_S
        while not self.run(script):
            if time.monotonic() > end:
                raise AssertionError(script, self.run(
                    "document.body.innerText.slice(0, 200)"))
            time.sleep(0.05)

    def open(self, url):
        self.call("Page.navigate", url=url)
        self.await_true("document.readyState === 'complete'")

    def type(self, identifier, text):
        self.run(f"$('{identifier}').focus(), $('{identifier}').value = ''")
        self.call("Input.insertText", text=text)

    def press(self, key, code):
        for kind in "keyDown", "keyUp":
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key,
                      windowsVirtualKeyCode=code, nativeVirtualKeyCode=code,
                      text="\r" if key == "Enter" and kind == "keyDown" else "")

    def choose(self, path):
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        node = self.call("DOM.querySelector", nodeId=root, selector="#file")
        self.call("DOM.setFileInputFiles", nodeId=node["nodeId"], files=[path])

    def window(self, width, height=900, dark=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width,
                  height=height, deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme",
             "value": "dark" if dark else "light"}])

    def picture(self, name):
        folder = os.environ.get("BROWSER_PICTURES")
        if folder:
            data = self.call("Page.captureScreenshot")["data"]
            with open(os.path.join(folder, name + ".png"), "wb") as file:
                file.write(base64.b64decode(data))

    def complaints(self):
        """Returns what the page did wrong, in the browser's words."""
        return [event["params"] for event in self.events
                if event["method"] == "Runtime.exceptionThrown"
                or event["method"] == "Log.entryAdded"
                and event["params"]["entry"]["source"] != "network"]


ANSWERED = "running === null && $('answers').firstChild !== null"


class BrowserTest(Case):
    def setUp(self):
        super().setUp()
        self.cache = self.path("cache")

    def begin(self, *flags, model=CHAT + ".gguf"):
        self.server = Server(self, *flags, model=["-m", model],
                             env=environment(XDG_CACHE_HOME=self.cache))
        self.browser = Browser(self)
        self.browser.window(1280)
        self.browser.open("http://127.0.0.1:%d/" % self.server.port)
        return self.browser

    def tearDown(self):
        super().tearDown()
        if hasattr(self, "browser"):
            self.assertEqual(self.browser.complaints(), [])

    def read(self, *book):
        self.browser.choose(self.path("book.epub", epub_of(*book)))
        self.browser.await_true("!$('reading').hidden")

    def read_three(self):
        self.read("The Lamp", "A. Writer", [
            (1, "Part One", []),
            (2, "The Rock", [PARAGRAPH, "“It is a quiet life,” she said."]),
            (2, "The Storm", ["A storm broke the great window of the tower."]),
            (1, "Part Two", ["Long after that the lamp was taken to a museum "
                             "by the sea."])])

    def ask(self, question):
        self.browser.type("question", question)
        self.browser.press("Enter", 13)

    @unittest.skipUnless(MODEL, "no TIERCEL_MODEL")
    def test_a_reader(self):
        browser = self.begin("-n", "24", "-c", "2k", model=MODEL)
        browser.picture("start")
        browser.window(1280, dark=True)
        browser.picture("start-dark")
        browser.window(1280)
        self.read_three()
        self.assertEqual(browser.run("document.title"), "The Lamp – Tiercel")
        self.assertEqual(browser.run("$('author').textContent"), "A. Writer")
        self.assertEqual(
            browser.run("""(function tree(list) {
                return [...list.children].map((item) => [
                    item.firstChild.textContent,
                    ...[...item.children].slice(1).map(tree)]);
            })($('outline').firstChild)"""),
            [["Part One", [["The Rock"], ["The Storm"]]], ["Part Two"]])
        # A section is looked up with the keyboard.
        browser.run("$('outline').querySelectorAll('a')[2].focus()")
        browser.press("Enter", 13)
        browser.await_true("/^H[23]$/.test(document.activeElement.tagName)")
        self.assertEqual(browser.run("document.activeElement.textContent")
                         .strip(), "The Storm")
        # The text is whole, whatever was filled.
        browser.run("blocks.forEach(fill)")
        text = browser.run("book.text")
        self.assertEqual(
            "".join(browser.run("$('text').textContent").split()),
            "".join(text.split()))
        # The whole text is what is asked about.
        browser.await_true("$('fit').textContent.endsWith(' tokens.')")
        self.ask("Who lived in the lighthouse?")
        browser.await_true(ANSWERED)
        shown = browser.run("document.querySelector('.said').textContent")
        content = ("Read the following text.\n\n" + text.strip() +
                   "\n\nAnswer from the text above: "
                   "Who lived in the lighthouse?")
        told = self.server.answer(CHATS, {
            "messages": [{"role": "user", "content": content}],
            "dry_multiplier": 0.8})["choices"][0]["message"]["content"]
        self.assertEqual(shown, told)
        asked = run("ask", self.path("book.epub"), "-m", MODEL, "-n", "24",
                    "-c", "2k", "--quiet", "Who lived in the lighthouse?")
        self.assertEqual(
            shown.strip(), asked.stdout.decode().partition("\n")[2].strip())
        self.assertNotEqual(shown, "")
        self.assertEqual(
            browser.run("document.querySelector('.from').textContent"),
            "From: The whole text")
        self.assertEqual(browser.run("model.then(({drawn}) => drawn)"),
                         {"dry_multiplier": 0.8, "max_tokens": 24})
        # The second question finds the text.
        self.ask("What broke the window?")
        browser.await_true(ANSWERED + " && $('answers').children.length === 2")
        state = browser.run("document.querySelector('.answer .row p')"
                            ".textContent")
        self.assertRegex(state, r"^(Cut at the length that the server allows\. )?"
                         r"\d+ tokens read, \d+ of them remembered, \d+ "
                         r"written\.$")
        browser.run("$('scope').value = 2, $('scope').onchange()")
        browser.run("$('summarize').click()")
        browser.await_true(ANSWERED + " && $('answers').children.length === 3")
        self.assertEqual(browser.run("document.querySelector('.answer h2')"
                                     ".textContent"), "Summary: The Rock")
        browser.picture("reading")
        browser.window(1280, dark=True)
        browser.picture("reading-dark")
        browser.window(390, 800)
        browser.picture("phone-text")
        for pane in "outline", "talk":
            browser.run(f"$('panes').querySelector('[data-pane={pane}]')"
                        ".click()")
            browser.picture("phone-" + pane)
        self.assertEqual(browser.run("document.documentElement.scrollWidth"),
                         390)

    @unittest.skipUnless(MODEL, "no TIERCEL_MODEL")
    def test_an_answer_is_stopped(self):
        browser = self.begin("-n", "24", "-c", "8k", model=MODEL)
        self.read("Long", "", [(1, "One", [PARAGRAPH] * 140)])
        browser.await_true("!$('send').disabled")
        self.ask("Who lived in the lighthouse?")
        browser.await_true("document.querySelector('.answer .row p')"
                           "?.textContent.startsWith('Reading')")
        self.assertFalse(browser.run("document.querySelector('progress')"
                                     ".hidden"))
        browser.run("document.querySelector('.answer button').click()")
        browser.await_true(ANSWERED)
        self.assertEqual(browser.run("document.querySelector('.answer .row p')"
                                     ".textContent"), "Stopped.")
        self.server.await_gauge("tiercel_requests_running", 0)
        self.server.await_said(b", stopped\n", 1)
        self.assertFalse(browser.run("$('send').disabled"))

    def test_quotations_are_links(self):
        browser = self.begin()
        self.read_three()
        browser.answer_with(
            {"reasoning_content": "Who was it? " + HOSTILE},
            {"content": 'It says "it is a quiet life," and \'She climbed\nthe '
             "hundred steps', and \"a storm broke the great ship of it\", and "
             '"storm broke the great window of the tower." '},
            {"content": HOSTILE}, reason="length")
        browser.await_true("!$('send').disabled")
        self.ask("Which?")
        browser.await_true(ANSWERED)
        self.assertEqual(
            browser.run("[...document.querySelectorAll('.said a')].map("
                        "(link) => link.textContent)"),
            ["it is a quiet life,", "She climbed\nthe hundred steps",
             "storm broke the great window of the tower."])
        self.assertEqual(
            browser.run("document.querySelector('.from').textContent"),
            "From: The whole text; The Rock; The Storm")
        self.assertEqual(
            browser.run("document.querySelector('details p').textContent"),
            "Who was it? " + HOSTILE)
        self.assertFalse(browser.run("document.querySelector('details').open"))
        self.assertIn("Cut at the length",
                      browser.run("$('answers').textContent"))
        self.assertTrue(browser.run("document.querySelector('.said')"
                                    ".textContent").endswith(HOSTILE))
        self.assertEqual(browser.run("document.querySelectorAll('img').length"),
                         0)
        browser.window(390, 800)
        browser.run("choosePane('talk'), "
                    "document.querySelectorAll('.said a')[0].click()")
        browser.await_true("CSS.highlights.has('place')")
        self.assertEqual(browser.run("$('reading').dataset.pane"), "text")
        self.assertEqual(
            browser.run("[...CSS.highlights.get('place')][0].toString()"),
            "It is a quiet life,")
        self.assertIn("quiet", browser.run("document.activeElement"
                                           ".textContent"))
        browser.picture("phone-quotation")

    def test_words_are_found_however_they_are_set(self):
        browser = self.begin()
        twice = "So it was—they said—a well-known café."
        self.read("Twice", "", [
            (1, "One", [twice]), (1, "Two", ["Ah! " + twice, "And he can't go "
                                             "there… 吾輩は猫が好き"])])

        def found(words, scope=0):
            return browser.run(f"""(() => {{
                const place = findWords({json.dumps(words)}, scopes[{scope}]);
                return place && [book.text.slice(place.begin, place.end),
                                 place.begin >= scopes[2].begin];
            }})()""")
        known = twice[:-1]
        for words in (known, known.replace("—", " -- "), "s" + known[1:],
                      known.upper()[:2] + known[2:], known + "!?",
                      known.replace(" ", "\u00a0"), "[...] " + known,
                      known.replace("w", "w\u00ad"), known + ",'",
                      known.replace("é", "e\u0301"),
                      known.replace("-", "\u2011"), "_" + known + "_ . . ."):
            for scope in (0, 1, 2):
                self.assertEqual(found(words, scope), [known, scope == 2],
                                 words)
        self.assertEqual(found("he can't go there...", 1),
                         ["he can't go there…", True])
        for words in ("and he can", "And He can't go", "an well-known café it",
                      "a well-known cafe", "it was they said", "吾輩は猫か",
                      "So it was—they said—a well-known café and"):
            self.assertIsNone(found(words), words)

    def test_a_hostile_document(self):
        browser = self.begin()
        script = "<script>document.title = 2</script>"
        self.read(HOSTILE, script, [(1, HOSTILE, [script, HOSTILE])])
        self.assertEqual(browser.run("document.title"),
                         HOSTILE + " – Tiercel")
        for place in "$('title')", "$('outline').querySelector('a')":
            self.assertEqual(browser.run(place + ".textContent"), HOSTILE)
        self.assertEqual(browser.run("$('author').textContent"), script)
        self.assertEqual(browser.run("document.scripts.length"), 1)
        self.assertEqual(browser.run("document.querySelectorAll('img').length"),
                         0)
        # Even a page that would take markup does not run it.
        self.assertEqual(browser.run("""(() => {
            try {
              document.body.innerHTML = '<b>';
            } catch (error) {
              return error.name;
            }
        })()"""), "TypeError")
        browser.events.clear()  # the browser told of that

    def test_a_key(self):
        browser = self.begin("--api-key-file", self.path("keys", b"sk-1\n"))
        browser.await_true("$('key-dialog').open")
        # Without one it asks once.
        browser.press("Escape", 27)
        browser.await_true("$('model').textContent.includes('again')")
        browser.call("Page.reload")
        browser.await_true("document.readyState === 'complete' && "
                           "$('key-dialog').open")
        for key, asks_again in ("sk-2", "true"), ("sk-1", "false"):
            browser.type("key", key)
            browser.press("Enter", 13)
            browser.await_true(f"sessionStorage.getItem('key') === '{key}' && "
                               f"$('key-dialog').open === {asks_again}")
        browser.await_true("$('model').textContent.startsWith('llama_chat')")
        self.read_three()

    def test_a_text_that_is_too_long(self):
        browser = self.begin("-c", "600", "-n", "8")
        self.read("Long", "", [(1, "First", ["One two three four. " * 100]),
                               (1, "Second", ["Five."])])
        browser.await_true("$('fit').textContent.includes('too many')")
        self.assertIn("takes 600 at once", browser.run("$('fit').textContent"))
        self.assertTrue(browser.run("$('send').disabled"))
        browser.picture("too-long")
        # The outline chooses what fits.
        browser.run("$('outline').querySelectorAll('a')[1].click()")
        browser.await_true("!$('send').disabled")
        self.assertEqual(browser.run("scopeChosen().name"), "Second")

    def test_wrong_documents(self):
        browser = self.begin()
        browser.choose(self.path("a.txt", b"a\0b"))
        browser.await_true("$('state').classList.contains('bad')")
        self.assertIn("a.txt", browser.run("$('state').textContent"))
        # A text that is pasted is a document, and so is one that is dropped.
        browser.type("pasted", "CHAPTER 1\n\nA fox.\n\nCHAPTER 2\n\nA dog.")
        browser.run("$('paste').requestSubmit()")
        browser.await_true("!$('reading').hidden")
        self.assertEqual(browser.run("book.sections.length"), 2)
        browser.run("""(() => {
            const dataTransfer = new DataTransfer();
            dataTransfer.items.add(new File(['A bird, dropped.'], 'b.txt'));
            for (const name of ['dragover', 'drop']) {
              dispatchEvent(new DragEvent(name, {dataTransfer,
                                                 cancelable: true}));
            }
        })()""")
        browser.await_true("$('title').textContent === 'b.txt'")
        self.assertTrue(browser.run("document.body.classList.contains("
                                    "'plain')"))

    def test_a_novel_is_filled_as_it_is_read(self):
        browser = self.begin()
        self.read("Novel", "", [
            (1, f"Chapter {i}", [f"Paragraph {j} of {i}: ünï𝄞. " + PARAGRAPH
                                 for j in range(30)]) for i in range(1, 181)])
        self.assertGreater(browser.run("book.text.length"), 1_000_000)
        browser.await_true("blocks[0].filled")
        filled = browser.run("blocks.filter((one) => one.filled).length")
        self.assertLess(filled, 20)
        browser.run("$('outline').querySelectorAll('a')[119].click()")
        browser.await_true("/^H[23]$/.test(document.activeElement.tagName)")
        self.assertEqual(browser.run("document.activeElement.textContent")
                         .strip(), "Chapter 120")
        browser.await_true("$('outline').querySelector('[aria-current]')"
                           "?.textContent === 'Chapter 120'")
        self.assertLess(browser.run("blocks.filter((one) => one.filled)"
                                    ".length"), filled + 20)
        # It goes on where the reader does.
        at = browser.run("$('text').scrollTop += 9000, lastBefore(blocks, "
                         "$('text').scrollTop, (one) => one.element.offsetTop "
                         "- $('text').offsetTop)")
        self.assertGreater(at, 120)
        browser.await_true(f"blocks[{at}].filled")


if __name__ == "__main__":
    unittest.main(argv=["browser_test", *sys.argv[3:]])
