"""A `tiercel serve` of one's own, on a port of its own, and plain requests.

For tests and measurements, which may use other clients beside. Standard library
only.
"""

import http.client
import json
import re
import socket
import subprocess
import threading
import time

CHATS, TEXTS = "/v1/chat/completions", "/v1/completions"
DEADLINE_S = 60


def talk(question, **members):
    return {"messages": [{"role": "user", "content": question}], **members}


class Stream:
    """The events of an answer, as they come."""

    def __init__(self, server, path, body):
        self.connection = server.connect()
        self.connection.request("POST", path, json.dumps(body))
        self.response = self.connection.getresponse()
        self.status = self.response.status
        self.comments = 0

    def __iter__(self):
        while True:
            line = self.response.readline()
            if not line:
                self.leave()
                return
            if line.startswith(b":"):
                self.comments += 1
            elif line.startswith(b"data: "):
                data = line[6:].strip().decode()
                yield data if data == "[DONE]" else json.loads(data)

    def await_text(self):
        for event in self:
            if event["choices"][0].get("text"):
                return
        raise AssertionError("the stream has no text")

    def leave(self):
        self.response.close()
        self.connection.close()


class Server:
    """The server that `command` starts, which is ready and has to be ended."""

    def __init__(self, command, env=None):
        self.process = subprocess.Popen(
            [*command, "--port", "0"], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
        self.said = b""
        self.ready = threading.Event()
        self.reader = threading.Thread(target=self.read)
        self.reader.start()
        if not self.ready.wait(DEADLINE_S) or b"\nready\n" not in self.said:
            self.end()
            raise AssertionError(self.said)
        found = re.search(rb"listening at http://([^\n]*):(\d+)\n", self.said)
        self.host, self.port = found[1].decode(), int(found[2])

    def read(self):
        for line in self.process.stderr:
            self.said += line
            if line == b"ready\n":
                self.ready.set()
        self.ready.set()

    def end(self):
        self.process.kill()
        self.wait()

    def wait(self):
        """Returns the exit code."""
        code = self.process.wait(DEADLINE_S)
        self.reader.join(DEADLINE_S)
        self.process.stderr.close()
        self.process.stdout.close()
        return code

    def connect(self):
        return http.client.HTTPConnection(self.host, self.port,
                                          timeout=DEADLINE_S)

    def ask(self, method, path, body=None, **headers):
        """Returns the status, the headers, and the body."""
        connection = self.connect()
        connection.request(method, path, body, {
            name.replace("_", "-"): value for name, value in headers.items()})
        response = connection.getresponse()
        answer = (response.status, dict(response.getheaders()),
                  response.read())
        connection.close()
        return answer

    def get(self, path, **headers):
        return json.loads(self.ask("GET", path, **headers)[2])

    def post(self, path, body, **headers):
        status, _, text = self.ask("POST", path, json.dumps(body), **headers)
        return status, json.loads(text)

    def answer(self, path, body):
        status, document = self.post(path, body)
        if status != 200:
            raise AssertionError(document)
        return document

    def raw(self, data):
        """Sends bytes; returns what comes until the end."""
        with socket.create_connection((self.host, self.port),
                                      DEADLINE_S) as client:
            client.sendall(data)
            received = b""
            while True:
                more = client.recv(1 << 16)
                if not more:
                    return received
                received += more

    def gauge(self, name):
        text = self.ask("GET", "/metrics")[2].decode()
        return float(re.search(r"^%s (\S+)$" % name, text, re.M)[1])

    def await_gauge(self, name, value):
        self.await_that(lambda: self.gauge(name) == value,
                        f"{name} does not become {value}")

    def await_said(self, words, times):
        """Waits until stderr has the words so many times, and no more."""
        self.await_that(lambda: self.said.count(words) == times,
                        f"{words} is not said {times} times")

    def await_that(self, holds, complaint):
        end = time.monotonic() + DEADLINE_S
        while not holds():
            if time.monotonic() > end:
                raise AssertionError(complaint)
            time.sleep(0.01)
