"""llama.cpp's server as a process of its own: prompts, and its slots on disk."""

import json
import socket
import subprocess
import time
import urllib.error
import urllib.request


class LlamaServer:
    """A server with one slot, which it saves under `folder`. Prompts are ids;
    every call returns the seconds that it took."""

    def __init__(self, program, model, context, threads, folder):
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            port = unused.getsockname()[1]
        self.address = f"http://127.0.0.1:{port}"
        self.process = subprocess.Popen(
            [program, "-m", model, "-c", str(context), "-t", str(threads),
             "--parallel", "1", "--slot-save-path", f"{folder}/", "--host",
             "127.0.0.1", "--port", str(port)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)

    def __enter__(self):
        try:
            self._await()
        except BaseException:  # includes Ctrl-C: the server must end here
            self.__exit__()
            raise
        return self

    def _await(self):
        for _ in range(600):
            if self.process.poll() is not None:
                raise RuntimeError("llama-server ended at once")
            try:
                with urllib.request.urlopen(self.address + "/health"):
                    return
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.1)
        raise RuntimeError("llama-server does not answer")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def _post(self, path, **document):
        request = urllib.request.Request(
            self.address + path, json.dumps(document).encode(),
            {"Content-Type": "application/json"})
        begin = time.perf_counter()
        with urllib.request.urlopen(request) as answer:
            answered = json.load(answer)
        return time.perf_counter() - begin, answered

    def first_token(self, ids):
        """Returns the time to the first token after `ids`, and the number of
        ids that were computed."""
        seconds, answered = self._post(
            "/completion", prompt=ids, n_predict=1, temperature=0,
            cache_prompt=True, id_slot=0)
        return seconds, answered["timings"]["prompt_n"]

    def chat(self, message, **sampling):
        """Returns the answer to one message, through the model's template, with
        the server's defaults except `sampling`."""
        _, answered = self._post(
            "/v1/chat/completions", cache_prompt=True,
            messages=[{"role": "user", "content": message}], **sampling)
        return answered["choices"][0]["message"]["content"]

    def save(self, name):
        return self._post("/slots/0?action=save", filename=name)[0]

    def restore(self, name):
        return self._post("/slots/0?action=restore", filename=name)[0]
