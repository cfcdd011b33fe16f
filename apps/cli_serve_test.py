#!/usr/bin/env python3
"""A server in OpenAI's form, asked as its clients ask it.

    cli_serve_test.py TIERCEL CHECKPOINTS
"""

import json
import math
import os
import signal
import socket
import threading
import time
import unittest
import urllib.parse

from cli_testing import (CHAT, TIERCEL, Case, environment, epub_of,
                         lend_rates, read_npy, run)
import gguf_file
from serving import CHATS, DEADLINE_S, TEXTS, Stream, talk
import serving
import told_model
from told_model import CONTROL, NORMAL, USER, path_of

MODEL = ["-m", CHAT + ".gguf"]


def long_text(tokens, **members):
    """A request whose answer has so many tokens."""
    return {"prompt": "The falcon", "max_tokens": tokens, "ignore_eos": True,
            "stream": True, **members}


class Server(serving.Server):
    def __init__(self, case, *flags, model=MODEL, env=None):
        super().__init__([TIERCEL, "serve", *model, *flags],
                         env or environment())
        case.addCleanup(self.end)


def joined(stream, member="text"):
    """The text of a stream, and its last finish_reason."""
    text, reason = "", None
    done = False
    for event in stream:
        done = event == "[DONE]"
        if done:
            continue
        for choice in event["choices"]:
            text += choice.get("delta", choice).get(member) or ""
            reason = choice["finish_reason"] or reason
    if not done:
        raise AssertionError("no [DONE]")
    return text, reason


class EndpointsTest(Case):
    def test_what_clients_look_for(self):
        server = Server(self, "-c", "600", "--parallel", "2")
        for path in "/v1/models", "/models", "//v1//models", "/v1/models?x=1":
            (model,) = server.get(path)["data"]
            self.assertEqual(model["id"], "llama_chat")
            self.assertEqual(model["object"], "model")
            self.assertIsInstance(model["created"], int)
            self.assertEqual(model["max_model_len"], 600)
            self.assertEqual(model["meta"]["n_ctx"], 600)
            self.assertGreater(model["meta"]["n_ctx_train"], 600)
            for name in "n_params", "size", "n_vocab":
                self.assertGreater(model["meta"][name], 0)
        self.assertEqual(server.get("/health"), {"status": "ok"})
        props = server.get("/props")
        self.assertEqual(props["default_generation_settings"]["n_ctx"], 600)
        self.assertIn("message", props["chat_template"])
        self.assertEqual(props["total_slots"], 2)
        status, tokens = server.post("/tokenize", {"content": "The falcon"})
        self.assertEqual(status, 200)
        self.assertEqual(tokens["tokens"], json.loads(self.succeed(
            "tokenize", *MODEL, "-p", "The falcon", "--json"))["tokens"])
        self.assertEqual(server.post("/detokenize", tokens),
                         (200, {"content": "The falcon"}))
        body = {"content": "<|im_end|>", "parse_special": True}
        self.assertEqual(server.post("/tokenize", body)[1]["count"], 1)
        self.assertGreater(server.post("/tokenize", {"content": "<|im_end|>"})
                           [1]["count"], 1)
        for body in {"content": 7}, {"content": "a", "add_special": 1}:
            self.assertEqual(server.post("/tokenize", body)[0], 400)
        for tokens in 7, [-1], [1 << 40], ["a"]:
            self.assertEqual(server.post("/detokenize", {"tokens": tokens})[0],
                             400)
        status, headers, text = server.ask("HEAD", "/health")
        self.assertEqual((status, text), (200, b""))
        self.assertEqual(headers["Content-Length"], "15")
        server.answer(TEXTS, {"prompt": "a", "max_tokens": 3})
        status, headers, text = server.ask("GET", "/metrics")
        self.assertTrue(headers["Content-Type"].startswith("text/plain"))
        for line in (b'tiercel_requests_total{path="/health",status="200"} 2',
                     b"tiercel_output_tokens_total 3",
                     b"tiercel_time_to_first_token_seconds_count 1",
                     b'tiercel_time_to_first_token_seconds_bucket{le="+Inf"} '
                     b"1"):
            self.assertIn(line + b"\n", text)

    def test_what_is_not_there_is_an_error_in_json(self):
        server = Server(self)
        for method, path in ("GET", "/page"), ("POST", "/v1/models/load"):
            status, headers, text = server.ask(method, path)
            self.assertEqual((status, headers["Content-Type"]),
                             (404, "application/json"))
            self.assertEqual(json.loads(text)["error"]["code"], "not_found")
        status, headers, _ = server.ask("GET", CHATS)
        self.assertEqual((status, headers["Allow"]), (405, "POST, OPTIONS"))
        status, headers, _ = server.ask("POST", "/props")
        self.assertEqual((status, headers["Allow"]),
                         (405, "GET, HEAD, OPTIONS"))
        for path in CHATS, "/health", "/none":
            status, headers, text = server.ask("OPTIONS", path)
            self.assertEqual((status, text), (204, b""))
            self.assertIn("OPTIONS", headers["Allow"])
            self.assertNotIn("Access-Control-Allow-Origin", headers)
        for body in b"", b"{", b"[]", b'{"messages":"a"}':
            status, _, text = server.ask("POST", CHATS, body)
            self.assertEqual(status, 400)
            error = json.loads(text)["error"]
            self.assertEqual(error["type"], "invalid_request_error")
        status, document = server.post(CHATS, talk("a", n=2))
        self.assertEqual((status, document["error"]["param"]), (400, "n"))
        status, document = server.post(CHATS, talk("a", tiercel={
            "document": "/etc/passwd"}))
        self.assertEqual((status, document["error"]["param"]),
                         (400, "tiercel.document"))
        # A connection goes on after an error.
        connection = server.connect()
        for _ in range(2):
            connection.request("POST", CHATS, "{")
            self.assertEqual(connection.getresponse().read()[:9], b'{"error":')
        connection.close()

    def test_who_may_ask(self):
        server = Server(self)
        own = "http://localhost:%d" % server.port
        host = own[7:]
        self.assertEqual(server.ask("GET", "/health", Host=host)[0], 200)
        self.assertEqual(server.ask("GET", "/health", Host="a.com")[0], 403)
        self.assertEqual(server.ask("OPTIONS", CHATS, Host="a.com")[0], 403)
        status, headers, _ = server.ask("OPTIONS", CHATS, Host=host,
                                        Origin=own)
        self.assertEqual((status, headers["Access-Control-Allow-Origin"]),
                         (204, own))
        for origin in "http://a.com", "null":
            status, headers, _ = server.ask("OPTIONS", CHATS, Origin=origin)
            self.assertEqual(status, 403)
            self.assertNotIn("Access-Control-Allow-Origin", headers)
        # Any key is taken where there is none.
        self.assertEqual(server.post(CHATS, talk("a", max_tokens=1),
                                     Authorization="Bearer any")[0], 200)
        self.assertTrue(server.raw(b"GET /health HTTP/1.0\r\n\r\n").startswith(
            b"HTTP/1.0 403 "))

    def test_keys(self):
        keys = self.path("keys", b"sk-1\n\n  sk-2 \n")
        server = Server(self, "--api-key-file", keys)
        self.assertEqual(server.ask("GET", "/health")[0], 200)
        for path in "/v1/models", "/props", "/metrics":
            status, headers, _ = server.ask("GET", path)
            self.assertEqual((status, headers["WWW-Authenticate"]),
                             (401, "Bearer"))
            self.assertEqual(server.ask("GET", path,
                                        Authorization="Bearer sk-2")[0], 200)
        status, document = server.post(TEXTS, {"prompt": "a"},
                                       Authorization="Bearer sk-3")
        self.assertEqual((status, document["error"]["code"]),
                         (401, "invalid_api_key"))
        for content in b"", b"\n \n":
            self.path("keys", content)
            result = run("serve", *MODEL, "--port", "0", "--api-key-file", keys)
            self.assertEqual(result.returncode, 3, result.stderr)
        result = run("serve", *MODEL, "--api-key-file", self.path("none"))
        self.assertEqual(result.returncode, 6, result.stderr)

    def test_addresses(self):
        server = Server(self, "--host", "0.0.0.0")
        self.assertIn(b"warning: --host 0.0.0.0 without --api-key-file",
                      server.said)
        self.assertEqual(server.ask("GET", "/health", Host="a.lan")[0], 200)
        result = run("serve", *MODEL, "--port", str(server.port))
        self.assertEqual(result.returncode, 6, result.stderr)
        self.assertIn(b"--port", result.stderr)
        # A model that cannot be loaded ends the server.
        result = run("serve", "-m", self.without_weights(), "--port", "0",
                     "--check-tensors")
        self.assertEqual(result.returncode, 3, result.stderr)

    def test_requests_that_are_no_http_or_too_large(self):
        server = Server(self)
        head = b"POST %s HTTP/1.1\r\nHost: localhost\r\n" % CHATS.encode()
        for data, status in (
                (b"hello\r\n\r\n", 400),
                (head + b"Content-Length: 1\r\nTransfer-Encoding: chunked"
                 b"\r\n\r\n", 400),
                (head + b"Content-Length: -1\r\n\r\n", 400),
                (head + b"Content-Length: 99999999999\r\n\r\n", 413),
                (head + b"Transfer-Encoding: chunked\r\n\r\n5000000\r\n", 413),
                (head + b"A: " + b"a" * (1 << 20) + b"\r\n\r\n", 431)):
            answer = server.raw(data)
            self.assertTrue(answer.startswith(b"HTTP/1.1 %d " % status),
                            (data[:200], answer[:200]))
            self.assertIn(b'{"error":{', answer)
        # Two requests at once come in their order, and a body may be awaited.
        get = b"GET /%s HTTP/1.1\r\nHost: localhost\r\n%s\r\n"
        answer = server.raw(get % (b"health", b"") + get % (
            b"none", b"Connection: close\r\n"))
        self.assertLess(0, answer.index(b"404 "))
        self.assertTrue(answer.startswith(b"HTTP/1.1 200 OK"))
        body = json.dumps({"prompt": "a", "max_tokens": 1}).encode()
        answer = server.raw(
            b"POST %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n%s"
            % (TEXTS.encode(), len(body), body))
        self.assertTrue(answer.startswith(b"HTTP/1.1 100 Continue\r\n\r\n"
                                          b"HTTP/1.1 200 OK\r\n"), answer)
        self.assertEqual(server.get("/health"), {"status": "ok"})


PDF = b"""%PDF-1.4
1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj
2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R\
/Resources<</Font<</F<</Type/Font/Subtype/Type1/BaseFont/Courier>>>>>>>>endobj
4 0 obj<</Length 43>>stream
BT /F 10 Tf 72 700 Td (A page of it.) Tj ET
endstream endobj
trailer<</Root 1 0 R>>
"""


class PageTest(Case):
    def test_the_page(self):
        server = Server(self, "--api-key-file", self.path("keys", b"sk-1"))
        for method in "GET", "HEAD":
            status, headers, page = server.ask(method, "/")
            self.assertEqual((status, headers["Content-Type"]),
                             (200, "text/html; charset=utf-8"))
            self.assertIn("default-src 'none'",
                          headers["Content-Security-Policy"])
            self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
            self.assertEqual(headers["Cache-Control"], "no-store")
            self.assertEqual(len(page) > 10_000, method == "GET")
        self.assertEqual(server.ask("GET", "/", Host="a.com")[0], 403)
        status, headers, _ = server.ask("POST", "/", b"a")
        self.assertEqual((status, headers["Allow"]),
                         (405, "GET, HEAD, OPTIONS"))
        self.assertEqual(server.ask("POST", "/documents", b"a")[0], 401)
        self.assertEqual(server.ask("POST", "/documents", b"a",
                                    Authorization="Bearer sk-1")[0], 200)

    def test_documents_are_those_of_text(self):
        server = Server(self)
        for name, content in (
                ("a b%.txt", b"CHAPTER 1\n\nOne.\n\nCHAPTER 2\n\nTwo.\n"),
                ("latin.txt", b"Un caf\xe9 \xe0 la cr\xe8me, s'il vous "
                 b"pla\xeet."),
                ("a.html", b"<title>A</title><h1>B</h1><p>C<h2>D</h2><p>E"),
                ("a.epub", epub_of("A", "B", [(1, "One", ["Text."]),
                                              (2, "Two", ["More."])])),
                ("a.pdf", PDF),
                ("a.fb2", b'<?xml version="1.0"?><FictionBook xmlns="http://'
                 b'www.gribuser.ru/xml/fictionbook/2.0"><body><section><title>'
                 b"<p>One</p></title><p>Text.</p></section></body>"
                 b"</FictionBook>")):
            path = self.path(name, content)
            told = run("text", path, "--json")
            self.assertEqual(told.returncode, 0, told.stdout)
            for quote in urllib.parse.quote, urllib.parse.quote_plus:
                status, headers, document = server.ask(
                    "POST", "/documents?name=" + quote(name), content)
                self.assertEqual((status, headers["Content-Type"]),
                                 (200, "application/json"))
                self.assertEqual(document + b"\n", told.stdout)
        # The log has no names.
        server.await_said(b"POST /documents 200, ", 12)
        self.assertNotIn(b"latin", server.said)

    def test_documents_that_are_none(self):
        server = Server(self)
        for name, content, code in (
                ("a.txt", b" \n", "empty_document"),
                ("a.txt", b"a\0b", "not_text"),
                ("a.epub", b"PK\3\4" + b"?" * 99, "invalid_epub"),
                ("a.pdf", b"%PDF-1.4\n", "invalid_pdf")):
            path = self.path(name, content)
            told = json.loads(run("text", path, "--json").stdout)["error"]
            status, _, text = server.ask("POST", "/documents?name=" + name,
                                         content)
            error = json.loads(text)["error"]
            self.assertEqual((status, error["code"], error["message"]),
                             (400, code, told["message"].replace(path, name)))
        status, _, text = server.ask("POST", "/documents", b"")
        self.assertEqual((status, json.loads(text)["error"]["message"]),
                         (400, "'document' has no text"))
        answer = server.raw(b"POST /documents HTTP/1.1\r\nHost: localhost\r\n"
                            b"Content-Length: 67108865\r\n\r\n")
        self.assertTrue(answer.startswith(b"HTTP/1.1 413 "), answer)
        for headers in {"Host": "a.com"}, {"Origin": "http://a.com"}:
            self.assertEqual(server.ask("POST", "/documents", b"a",
                                        **headers)[0], 403)

    def test_a_client_that_leaves_its_document(self):
        server = Server(self)
        body = b"<p>One two three.</p>\n" * 100_000
        head = (b"POST /documents?name=a.html HTTP/1.1\r\nHost: localhost\r\n"
                b"Content-Length: %d\r\n\r\n" % len(body))
        clients = [socket.create_connection((server.host, server.port))
                   for _ in range(4)]
        for client in clients:
            client.sendall(head + body)
        for client in clients:
            client.close()
        # It goes on, and has ended them all when it ends.
        status, _, _ = server.ask("POST", "/documents", b"a")
        self.assertEqual(status, 200)
        server.process.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(), 143)
        self.assertEqual(server.said.count(b"POST /documents "), 5)


class AnswersTest(Case):
    def test_they_are_those_of_the_other_commands(self):
        server = Server(self)
        drawn = {"temperature": 0.8, "seed": 7, "max_tokens": 24, "top_k": 50}
        flags = ["--temp", "0.8", "--seed", "7", "-n", "24", "--top-k", "50"]
        one = self.document("generate", *MODEL, "-p", "The falcon", *flags)
        text = server.answer(TEXTS, {"prompt": "The falcon", **drawn})
        self.assertEqual(text["choices"][0]["text"], one["output"][0]["text"])
        self.assertEqual(text["choices"][0]["finish_reason"], "length")
        said = run("chat", *MODEL, *flags, "--dry-multiplier", "0", "--quiet",
                   input=b"Who?\n").stdout.decode()
        chat = server.answer(CHATS, talk("Who?", **drawn))
        content = chat["choices"][0]["message"]["content"]
        self.assertEqual(content.strip(), said.strip())
        parts = [{"type": "text", "text": "Wh"}, {"type": "text", "text": "o?"}]
        for body in (talk(parts, **drawn), talk("Who?", **drawn, user="u"),
                     {**drawn, "messages": [
                         {"role": "user", "content": "Who?"},
                         {"role": "assistant", "content": ""}]}):
            again = server.answer(CHATS, body)
            self.assertEqual(again["choices"], chat["choices"])
        stop = text["choices"][0]["text"][4:6]
        stopped = server.answer(TEXTS, {"prompt": "The falcon", **drawn,
                                        "stop": ["\u2603", stop]})
        self.assertEqual(
            stopped["choices"][0]["text"],
            text["choices"][0]["text"].partition(stop)[0])
        self.assertEqual(stopped["choices"][0]["finish_reason"], "stop")
        for path, body, member in (
                (CHATS, talk("Who?", **drawn), "content"),
                (TEXTS, {"prompt": "The falcon", **drawn}, "text")):
            whole = server.answer(path, body)["choices"][0]
            stream = Stream(server, path, {**body, "stream": True})
            self.assertEqual(joined(stream, member),
                             (whole.get("message", whole)[member],
                              whole["finish_reason"]))

    def test_log_probs_are_those_of_the_logits(self):
        server = Server(self)
        body = {"prompt": "The falcon", "max_tokens": 12, "temperature": 1,
                "seed": 6}
        plain = server.answer(TEXTS, body)["choices"][0]
        self.assertIsNone(plain["logprobs"])
        answer = server.answer(TEXTS, {**body, "logprobs": 3})["choices"][0]
        self.assertEqual(answer["text"], plain["text"])
        said = answer["logprobs"]
        self.assertEqual({len(values) for values in said.values()}, {12})
        for at, token in list(zip(said["text_offset"], said["tokens"]))[:6]:
            self.assertEqual(answer["text"][at:at + len(token)], token)
        before = self.document("tokenize", *MODEL, "-p", "The falcon")["tokens"]
        (drawn,) = self.document("generate", *MODEL, "-p", "The falcon", "-n",
                                 "12", "--temp", "1", "--seed", "6")["output"]
        drawn = drawn["tokens"]
        ids = self.path("ids", " ".join(map(str, before + drawn)).encode())
        logits = self.path("logits.npy")
        self.succeed("eval", *MODEL, "--tokens", ids, "--logits", logits)
        (_, vocab), values = read_npy(logits)
        for i, (token, log_prob, top) in enumerate(zip(
                drawn, said["token_logprobs"], said["top_logprobs"])):
            row = values[(len(before) + i - 1) * vocab:][:vocab]
            scale = math.log(sum(math.exp(value) for value in row))
            self.assertAlmostEqual(log_prob, row[token] - scale, 4)
            likeliest = sorted(row, reverse=True)[:3]
            self.assertEqual(len(top), 3 + (said["tokens"][i] not in
                                            list(top)[:3]))
            for value, expected in zip(top.values(), likeliest):
                self.assertAlmostEqual(value, expected - scale, 4)
        # Drafts change nothing.
        greedy = {"prompt": "The falcon", "max_tokens": 30, "logprobs": 3}
        drafting = Server(self, "--draft", "ngram")
        self.assertEqual(drafting.answer(TEXTS, greedy)["choices"],
                         server.answer(TEXTS, greedy)["choices"])
        # A chat has the same, in another form.
        body = talk("Who?", max_tokens=9, temperature=0.8, seed=4)
        plain = server.answer(CHATS, body)["choices"][0]
        body = {**body, "logprobs": True, "top_logprobs": 2}
        answer = server.answer(CHATS, body)["choices"][0]
        self.assertEqual(answer["message"], plain["message"])
        content = answer["logprobs"]["content"]
        self.assertEqual(len(content), 9)
        self.assertEqual(bytes(sum((one["bytes"] for one in content), []))
                         .decode(errors="replace"),
                         answer["message"]["content"])
        for one in content:
            self.assertEqual(len(one["top_logprobs"]), 2)
            self.assertGreaterEqual(one["top_logprobs"][0]["logprob"],
                                    one["logprob"])

    def test_chunks_have_the_log_probs_of_their_text(self):
        server = Server(self)
        # One of the stop texts cuts a token, and the other keeps some waiting.
        text = {"prompt": "The falcon", "temperature": 1, "seed": 6,
                "stop": ['le"', "tut~*2\u2603"], "logprobs": 2}
        for path, body, member in ((TEXTS, text, "text"),
                                   (CHATS, talk("Who?", logprobs=True),
                                    "content")):
            body["max_tokens"] = 24
            whole = server.answer(path, body)["choices"][0]
            parts = []
            for event in Stream(server, path, {**body, "stream": True}):
                if event == "[DONE]":
                    continue
                (chunk,) = event["choices"]
                said = chunk.get("delta", chunk).get(member)
                if said or chunk["logprobs"]:
                    self.assertTrue(said or chunk["finish_reason"])
                    parts.append((said, chunk["logprobs"]))
            joined_parts = {}
            for _, part in parts:
                for name, values in part.items():
                    joined_parts.setdefault(name, []).extend(values or [])
            self.assertEqual(joined_parts, {name: values or [] for name, values
                                            in whole["logprobs"].items()})
            if path == TEXTS:
                self.assertEqual(whole["text"], "stut~*2p")
                self.assertEqual(
                    [(said, part["tokens"]) for said, part in parts],
                    [("st", ["st"]), ("ut", ["ut"]), ("~", ["~"]),
                     ("*", ["*"]), ("2", ["2"]), ("p", ["ple"])])

    def test_a_character_of_several_tokens_has_its_bytes(self):
        snowman = [chr(byte) for byte in "\u2603".encode()]
        names = told_model.tokens(["<|endoftext|>", "<|im_start|>",
                                   "<|im_end|>", "<think>", "</think>"])
        model = told_model.write_gguf(
            self.path("snow.gguf"),
            path_of("\n", "<think>", "h", "</think>", *snowman, "Y",
                    "<|im_end|>"),
            names, [CONTROL] * 3 + [USER] * 2 + [NORMAL] * 256)
        server = Server(self, model=["-m", model])
        body = talk("hello", max_tokens=16, logprobs=True, top_logprobs=1)
        answer = server.answer(CHATS, body)["choices"][0]
        self.assertEqual(answer["message"], {
            "role": "assistant", "content": "\u2603Y",
            "reasoning_content": "h"})
        content = answer["logprobs"]["content"]
        tokens = ["\\xe2", "\\x98", "\\x83", "Y"]
        self.assertEqual([one["token"] for one in content], tokens)
        self.assertEqual([one["bytes"] for one in content],
                         [[0xe2], [0x98], [0x83], [ord("Y")]])
        for one in content:
            self.assertEqual(one["top_logprobs"], [
                {name: one[name] for name in ("token", "logprob", "bytes")}])
        chunks = [event["choices"][0]["logprobs"] for event in
                  Stream(server, CHATS, {**body, "stream": True})
                  if event != "[DONE]"]
        self.assertEqual([chunk["content"] for chunk in chunks if chunk],
                         [content[:3], content[3:]])
        # The end has the tokens that it leaves without a text.
        body = {"prompt": "a\n", "max_tokens": 4, "logprobs": 0}
        *_, last = [event for event in Stream(
            server, TEXTS, {**body, "stream": True}) if event != "[DONE]"]
        self.assertEqual(last["choices"][0]["logprobs"]["tokens"],
                         ["bytes:\\xe2"])
        whole = server.answer(TEXTS, body)["choices"][0]
        self.assertEqual(whole["text"], "<think>h</think>")
        self.assertEqual(whole["logprobs"]["text_offset"], [0, 7, 8, 16])
        self.assertEqual(whole["logprobs"]["tokens"],
                         ["<think>", "h", "</think>", "bytes:\\xe2"])

    def test_a_token_is_spelled_with_its_space(self):
        names = ["<unk>", "<s>", "</s>", "\u2581The", "\u2581cat"]
        model = told_model.write_gguf(
            self.path("space.gguf"), path_of(names[3], names[4], names[3]),
            names, [told_model.UNKNOWN, CONTROL, CONTROL, NORMAL, NORMAL],
            tokenizer__ggml__model=gguf_file.string("llama"),
            tokenizer__ggml__pre=None, tokenizer__ggml__merges=None,
            tokenizer__ggml__scores=gguf_file.array(
                6, [0.0] * 3 + [-1.0, -2.0]),
            tokenizer__ggml__eos_token_id=gguf_file.u32(2))
        server = Server(self, model=["-m", model])
        answer = server.answer(TEXTS, {"prompt": [3], "max_tokens": 2,
                                       "logprobs": 1})["choices"][0]
        self.assertEqual(answer["text"], "cat The")
        self.assertEqual(answer["logprobs"]["tokens"], [" cat", " The"])

    def test_defaults_are_those_of_the_flags(self):
        server = Server(self, "-n", "9", "--temp", "0.7", "--seed", "5")
        one = self.document("generate", *MODEL, "-p", "The falcon", "-n", "9",
                            "--temp", "0.7", "--seed", "5")["output"][0]
        for members, same in ({}, True), ({"seed": 6}, False):
            answer = server.answer(TEXTS, {"prompt": "The falcon", **members})
            self.assertEqual(
                answer["choices"][0]["text"] == one["text"], same)
            self.assertEqual(answer["usage"]["completion_tokens"], 9)

    def test_the_chunks_of_a_stream(self):
        server = Server(self, "--draft", "ngram")
        body = talk("Who? " * 60, max_tokens=40, model="mine",
                    return_progress=True, stream=True,
                    stream_options={"include_usage": True})
        stream = Stream(server, CHATS, body)
        self.assertEqual(stream.response.getheader("Content-Type"),
                         "text/event-stream")
        *chunks, last, usage, done = stream
        self.assertEqual(done, "[DONE]")
        for chunk in (*chunks, last, usage):
            for name in "id", "object", "created", "model":
                self.assertEqual(chunk[name], usage[name])
        self.assertEqual(usage["object"], "chat.completion.chunk")
        self.assertEqual(usage["model"], "mine")
        self.assertEqual(chunks[0]["choices"][0]["delta"],
                         {"role": "assistant", "content": ""})
        self.assertEqual(usage["choices"], [])
        counts = usage["usage"]
        self.assertEqual(counts["completion_tokens"], 40)
        self.assertEqual(counts["total_tokens"], counts["prompt_tokens"] + 40)
        self.assertEqual(counts["prompt_tokens_details"], {"cached_tokens": 0})
        read = [chunk["prompt_progress"] for chunk in chunks
                if "prompt_progress" in chunk]
        self.assertEqual(set(read[0]),
                         {"total", "cache", "processed", "time_ms"})
        self.assertEqual(read[0]["processed"], 0)
        self.assertEqual(read[-1]["processed"], counts["prompt_tokens"])
        timings = last["timings"]
        self.assertEqual(timings["predicted_n"], 40)
        self.assertEqual(timings["prompt_n"], counts["prompt_tokens"])
        self.assertGreater(timings["prompt_ms"], 0)
        self.assertGreater(timings["predicted_ms"], 0)
        self.assertLessEqual(timings["draft_n_accepted"], timings["draft_n"])
        self.assertGreater(timings["draft_n"], 0)
        self.assertEqual(last["choices"][0]["finish_reason"], "length")
        for chunk in (*chunks, last):
            self.assertIsNone(chunk["usage"])
        # Without these wishes there is no more than the text.
        body = {"prompt": "The falcon", "max_tokens": 5, "stream": True}
        *chunks, done = Stream(server, TEXTS, body)
        for chunk in chunks:
            self.assertEqual(chunk["object"], "text_completion")
            self.assertNotIn("usage", chunk)
            self.assertNotIn("prompt_progress", chunk)
        # A client of HTTP/1.0 reads to the end of the connection.
        text = json.dumps(body).encode()
        answer = server.raw(b"POST %s HTTP/1.0\r\nHost: localhost\r\n"
                            b"Content-Length: %d\r\n\r\n%s"
                            % (TEXTS.encode(), len(text), text))
        self.assertTrue(answer.endswith(b"\n\ndata: [DONE]\n\n"), answer)
        self.assertNotIn(b"chunked", answer)

    def test_a_thought_comes_before_the_answer(self):
        names = told_model.tokens(["<|endoftext|>", "<|im_start|>",
                                   "<|im_end|>", "<think>", "</think>"])
        model = told_model.write_gguf(
            self.path("thinks.gguf"),
            path_of("\n", "<think>", "h", "m", "</think>", "Y", "e", "s",
                    "<|im_end|>"),
            names, [CONTROL] * 3 + [USER] * 2 + [NORMAL] * 256)
        server = Server(self, model=["-m", model])
        body = talk("hello", max_tokens=16)
        message = server.answer(CHATS, body)["choices"][0]["message"]
        self.assertEqual(message, {"role": "assistant", "content": "Yes",
                                   "reasoning_content": "hm"})
        deltas = [event["choices"][0]["delta"] for event in
                  Stream(server, CHATS, {**body, "stream": True})
                  if event != "[DONE]"]
        said = [next(iter(delta.items())) for delta in deltas[1:-1]]
        self.assertEqual(said, [("reasoning_content", "h"),
                                ("reasoning_content", "m"), ("content", "Y"),
                                ("content", "e"), ("content", "s")])
        cut = server.answer(CHATS, {**body, "max_tokens": 2})["choices"][0]
        self.assertEqual((cut["message"]["content"], cut["finish_reason"]),
                         ("", "length"))
        text = server.answer(TEXTS, {"prompt": "a\n", "max_tokens": 16})
        self.assertEqual(text["choices"][0]["text"],
                         "<think>hm</think>Yes")

    def test_a_prompt_that_is_too_long(self):
        server = Server(self, "-c", "300")
        for words, counted in (100, 300), (5000, 300):
            status, document = server.post(CHATS, talk("words " * words * 3))
            error = document["error"]
            self.assertEqual((status, error["code"]),
                             (400, "context_length_exceeded"))
            self.assertEqual(error["n_ctx"], counted)
            self.assertGreater(error["n_prompt_tokens"], words)
            for count in error["n_ctx"], error["n_prompt_tokens"]:
                self.assertIn(str(count), error["message"])
        cut = server.answer(TEXTS, {"prompt": [5] * 290, "max_tokens": 99,
                                    "ignore_eos": True})
        self.assertEqual(cut["usage"]["total_tokens"], 300)
        self.assertEqual(cut["choices"][0]["finish_reason"], "length")

    def test_many_at_once_are_as_alone(self):
        server = Server(self, "--parallel", "8")
        bodies = [talk("Question %d?" % i, temperature=0.9, seed=i,
                       ignore_eos=True, max_tokens=60 + 20 * i)
                  for i in range(8)]
        alone = [server.answer(CHATS, body)["choices"] for body in bodies]
        beside = [None] * 8

        def ask(i):
            beside[i] = server.answer(CHATS, bodies[i])["choices"]

        threads = [threading.Thread(target=ask, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(alone, beside)

    def test_beginnings_are_read_once(self):
        server = Server(self, "--parallel", "2")
        text = "A man had a dog, and it had a name. " * 20

        def counts(question):
            usage = server.answer(CHATS, talk(text + question, max_tokens=8)
                                  )["usage"]
            return (usage["prompt_tokens"],
                    usage["prompt_tokens_details"]["cached_tokens"])

        prompt, found = counts("Who?")
        self.assertEqual(found, 0)
        self.assertEqual(counts("Who?"), (prompt, prompt - 1))
        # A question leaves the text for those that come beside it.
        blocks = Stream(server, CHATS, talk(
            text + "How?", max_tokens=10_000, ignore_eos=True, stream=True))
        next(iter(blocks))
        prompt, found = counts("Whom?")
        self.assertGreater(found, prompt - 40)
        blocks.leave()


class LoadTest(Case):
    def test_a_client_that_leaves_stops_its_work(self):
        server = Server(self, "--parallel", "1")
        stream = Stream(server, TEXTS, long_text(15_000))
        stream.await_text()
        waits = Stream(server, TEXTS, long_text(15_000))
        server.await_gauge("tiercel_requests_waiting", 1)
        waits.leave()
        server.await_gauge("tiercel_requests_waiting", 0)
        self.assertEqual(server.gauge("tiercel_requests_running"), 1)
        stream.leave()
        server.await_gauge("tiercel_requests_running", 0)
        # One that wants a whole answer may leave as well.
        with socket.create_connection((server.host, server.port)) as client:
            body = json.dumps(long_text(15_000, stream=False)).encode()
            client.sendall(b"POST %s HTTP/1.1\r\nHost: localhost\r\n"
                           b"Content-Length: %d\r\n\r\n%s"
                           % (TEXTS.encode(), len(body), body))
            server.await_gauge("tiercel_requests_running", 1)
        server.await_gauge("tiercel_requests_running", 0)
        server.await_said(b", stopped\n", 3)
        self.assertEqual(server.said.count(b"POST /v1/completions 499, "), 3)
        self.assertIn(b'path="/v1/completions",status="499"} 3\n',
                      server.ask("GET", "/metrics")[2])
        usage = server.answer(TEXTS, {"prompt": "The falcon",
                                      "max_tokens": 1})["usage"]
        self.assertEqual(usage["prompt_tokens_details"]["cached_tokens"],
                         usage["prompt_tokens"] - 1)

    def test_a_client_that_sends_no_more_gets_its_answer(self):
        server = Server(self)
        for stream in (False, True):
            body = json.dumps(long_text(300, stream=stream)).encode()
            with socket.create_connection((server.host, server.port)) as client:
                client.sendall(b"POST %s HTTP/1.1\r\nHost: localhost\r\n"
                               b"Content-Length: %d\r\n\r\n%s"
                               % (TEXTS.encode(), len(body), body))
                client.shutdown(socket.SHUT_WR)
                answer = b"".join(iter(lambda: client.recv(1 << 16), b""))
            self.assertIn(b"HTTP/1.1 200 OK\r\n", answer)
            self.assertIn(b'"finish_reason":"length"', answer)
        server.await_said(b"POST /v1/completions 200, ", 2)

    def test_a_client_that_leaves_its_prompt_leaves_what_was_read(self):
        server = Server(self)
        text = ("A man had a dog, and it had a name. " * 600).strip()
        body = talk(text, max_tokens=3, stream=True, return_progress=True)
        stream = Stream(server, CHATS, body)
        for event in stream:
            progress = event.get("prompt_progress", {"processed": 0})
            if progress["processed"] >= 4096:
                break
        stream.leave()
        server.await_gauge("tiercel_requests_running", 0)
        del body["stream"]
        again = server.answer(CHATS, body)
        usage = again["usage"]
        self.assertGreater(usage["prompt_tokens"], 2 * 4096)
        found = usage["prompt_tokens_details"]["cached_tokens"]
        self.assertGreaterEqual(found, 4095)
        # Prompts that are read in steps have the same texts.
        alone = run("chat", *MODEL, "-n", "3", "--dry-multiplier", "0",
                    "--quiet", input=text.encode() + b"\n").stdout.decode()
        self.assertEqual(again["choices"][0]["message"]["content"].strip(),
                         alone.strip())

    def test_a_full_queue(self):
        server = Server(self, "--parallel", "1", "--queue", "1")
        first = Stream(server, TEXTS, long_text(15_000))
        first.await_text()
        second = Stream(server, CHATS, talk("Who?", max_tokens=4, stream=True))
        server.await_gauge("tiercel_requests_waiting", 1)
        status, headers, text = server.ask("POST", TEXTS,
                                           json.dumps({"prompt": "a"}))
        self.assertEqual((status, headers["Retry-After"]), (429, "1"))
        self.assertEqual(json.loads(text)["error"]["code"], "queue_full")
        events = iter(second)
        self.assertEqual(next(events)["choices"][0]["delta"]["role"],
                         "assistant")
        while second.comments == 0:  # it is told that the server lives
            line = second.response.readline()
            self.assertIn(line[:1], (b":", b"\n"))
            second.comments += line.startswith(b":")
        first.leave()
        self.assertEqual(joined(events, "content")[1], "length")

    def test_a_signal_lets_answers_end(self):
        server = Server(self)
        idle = server.connect()
        idle.request("GET", "/health")
        idle.getresponse().read()
        stream = Stream(server, TEXTS, long_text(3000))
        stream.await_text()
        server.process.send_signal(signal.SIGTERM)
        self.await_refusal(server)
        self.assertEqual(idle.sock.recv(1), b"")
        idle.close()
        self.assertEqual(joined(stream)[1], "length")
        self.assertEqual(server.wait(), 143)
        self.assertIn(b"POST /v1/completions 200", server.said)
        self.assertNotIn(b"falcon", server.said)

    def test_a_second_signal_ends_them(self):
        server = Server(self)
        stream = Stream(server, TEXTS, long_text(15_000))
        stream.await_text()
        server.process.send_signal(signal.SIGINT)
        self.await_refusal(server)
        self.assertIsNone(server.process.poll())
        server.process.send_signal(signal.SIGINT)
        *_, last = stream
        self.assertEqual(last["error"]["code"], "interrupted")
        self.assertEqual(server.wait(), 130)

    def await_refusal(self, server):
        end = time.monotonic() + DEADLINE_S
        while time.monotonic() < end:
            try:
                socket.create_connection((server.host, server.port)).close()
            except ConnectionRefusedError:
                return
        self.fail("the server still listens")

    def test_what_was_read_is_kept_on_disk(self):
        cache = self.path("cache")
        env = environment(XDG_CACHE_HOME=cache)
        lend_rates(self, os.path.join(cache, "tiercel"))
        body = talk("A man had a dog, and it had a name. " * 60, max_tokens=4)
        server = Server(self, env=env)
        first = server.answer(CHATS, body)
        self.assertGreater(first["usage"]["prompt_tokens"], 1024)
        server.process.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(), 143)
        for flags, found in ([], True), (["--no-cache"], False):
            server = Server(self, *flags, env=env)
            again = server.answer(CHATS, body)
            self.assertEqual(again["choices"], first["choices"])
            cached = again["usage"]["prompt_tokens_details"]["cached_tokens"]
            self.assertEqual(cached > 1024, found)


if __name__ == "__main__":
    unittest.main(argv=["cli_serve_test"])
