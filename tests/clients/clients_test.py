#!/usr/bin/env python3
"""The client of OpenAI, langchain's, and requests as Open WebUI sends them.

    clients_test.py TIERCEL

By a Python that finds the packages of requirements.txt, or of
requirements_llama_index.txt, and `tiercel`.
"""

import asyncio
import json
import os
import tempfile
import threading
import time
import unittest

from langchain_core.messages import HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI
import openai

from clients_testing import DRAWN, MODEL, NAME, QUESTION, Case
import tiercel

import gguf_file
from serving import CHATS, DEADLINE_S, Stream

FOREVER = {"max_tokens": 4000, "extra_body": {"ignore_eos": True}}
# Begins a thought unless it is told not to.
THINKING = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
    "<|im_end|>\n{% endfor %}<|im_start|>assistant\n"
    "{% if enable_thinking is not defined or enable_thinking %}<think>\n"
    "{% endif %}")


def write_thinking(path):
    """Writes the model with a template that begins a thought."""
    with gguf_file.Reader(MODEL) as source, open(path, "wb") as file:
        keys = {**source.keys,
                "tokenizer.chat_template": gguf_file.string(THINKING)}
        gguf_file.write(file, keys, source.tensors,
                        map(source.data, source.tensors), source.alignment)


def client_of(case, retries=0, key="any"):
    client = openai.OpenAI(base_url=case.url, api_key=key,
                           max_retries=retries, timeout=DEADLINE_S)
    case.addCleanup(client.close)
    return client


class OpenAITest(Case):
    def test_a_chat_whole_and_streamed(self):
        chat = client_of(self).chat.completions
        whole = chat.create(model="any", messages=QUESTION, **DRAWN)
        self.assertEqual(whole.model, "any")
        choice = whole.choices[0]
        self.assertEqual(choice.message.role, "assistant")
        self.assertIn(choice.finish_reason, ("stop", "length"))
        self.assertIsNone(choice.logprobs)
        usage = whole.usage
        self.assertEqual(usage.total_tokens,
                         usage.prompt_tokens + usage.completion_tokens)
        self.assertEqual(usage.completion_tokens, 24)
        text, last = "", None
        for chunk in chat.create(model="any", messages=QUESTION, stream=True,
                                 stream_options={"include_usage": True},
                                 **DRAWN):
            last = chunk
            for said in chunk.choices:
                text += said.delta.content or ""
        self.assertEqual(text, choice.message.content)
        self.assertEqual(last.choices, [])
        self.assertEqual(last.usage.completion_tokens, 24)
        self.assertEqual(last.usage.prompt_tokens, usage.prompt_tokens)
        self.assertEqual(last.usage.prompt_tokens_details.cached_tokens,
                         usage.prompt_tokens - 1)

    def test_the_helper_for_streams(self):
        chat = client_of(self).chat.completions
        with chat.stream(model="any", messages=QUESTION, logprobs=True,
                         stop=["."], **DRAWN) as stream:
            text = "".join(event.delta for event in stream
                           if event.type == "content.delta")
            final = stream.get_final_completion()
        whole = chat.create(model="any", messages=QUESTION, logprobs=True,
                            stop=["."], **DRAWN).choices[0]
        self.assertEqual(text, whole.message.content)
        self.assertEqual(final.choices[0].message.content, text)
        self.assertEqual(final.choices[0].logprobs, whole.logprobs)

    def test_raw_answers_and_asynchronous_ones(self):
        chat = client_of(self).chat.completions
        raw = chat.with_raw_response.create(model="any", messages=QUESTION,
                                            **DRAWN)
        self.assertEqual(raw.http_response.headers["content-type"],
                         "application/json")
        text = raw.parse().choices[0].message.content

        async def ask():
            async with openai.AsyncOpenAI(base_url=self.url, api_key="any",
                                          max_retries=0) as client:
                async def one(stream):
                    answer = await client.chat.completions.create(
                        model="any", messages=QUESTION, stream=stream, **DRAWN)
                    if not stream:
                        return answer.choices[0].message.content
                    return "".join([
                        chunk.choices[0].delta.content or ""
                        async for chunk in answer])
                return await asyncio.gather(one(False), one(True))

        self.assertEqual(asyncio.run(ask()), [text, text])

    def test_a_completion_whole_and_streamed(self):
        texts = client_of(self).completions
        whole = texts.create(model="any", prompt="The falcon", **DRAWN)
        streamed = "".join(
            chunk.choices[0].text for chunk in texts.create(
                model="any", prompt="The falcon", stream=True, **DRAWN))
        self.assertEqual(streamed, whole.choices[0].text)
        stop = whole.choices[0].text[10:12]
        stopped = texts.create(model="any", prompt="The falcon", stop=stop,
                               **DRAWN).choices[0]
        self.assertEqual(stopped.text,
                         whole.choices[0].text.partition(stop)[0])
        self.assertEqual(stopped.finish_reason, "stop")

    def test_log_probs_are_those_of_the_library(self):
        told = []
        with tiercel.Model(MODEL) as model:
            session = tiercel.Session(model, context=4096)
            text = session.generate("The falcon", on_token=told.append,
                                    log_probs=True, top_log_probs=5, **DRAWN)
            session.close()
        said = client_of(self).completions.create(
            model="any", prompt="The falcon", logprobs=5, **DRAWN).choices[0]
        self.assertEqual(said.text, text)
        self.assertEqual("".join(said.logprobs.tokens), text)
        self.assertEqual(said.logprobs.token_logprobs,
                         [token.log_prob for token in told])
        for token, top in zip(told, said.logprobs.top_logprobs):
            self.assertEqual(
                list(top.values())[:5],
                [log_prob for _, log_prob in token.top_log_probs])
        # The first token of a chat: all that are likely, and what was drawn.
        first = client_of(self).chat.completions.create(
            model="any", messages=QUESTION, logprobs=True, top_logprobs=20,
            max_tokens=1).choices[0].logprobs.content[0]
        self.assertEqual(first.top_logprobs[0].token, first.token)
        self.assertEqual(first.top_logprobs[0].logprob, first.logprob)
        self.assertEqual(bytes(first.bytes).decode(), first.token)
        self.assertEqual(len(first.top_logprobs), 20)

    def test_models(self):
        (model,) = client_of(self).models.list().data
        self.assertEqual((model.id, model.object), (NAME, "model"))
        self.assertEqual(model.owned_by, "tiercel")
        self.assertEqual(model.max_model_len, 4096)

    def test_errors(self):
        client = client_of(self)
        chat = client.chat.completions

        def refused(kind, **members):
            with self.assertRaises(kind) as caught:
                chat.create(**{"model": "any", "messages": QUESTION,
                               **members})
            return caught.exception

        error = refused(openai.BadRequestError, messages=[
            {"role": "user", "content": "word " * 9000}])
        self.assertEqual((error.code, error.type, error.status_code),
                         ("context_length_exceeded", "invalid_request_error",
                          400))
        self.assertEqual(error.body["n_ctx"], 4096)
        tool = {"type": "function", "function": {"name": "f", "parameters": {
            "type": "object", "properties": {}}}}
        for members, name in (({"tools": [tool]}, "tools"), ({"n": 2}, "n"),
                              ({"response_format": {"type": "json_object"}},
                               "response_format"),
                              ({"logit_bias": {"5": 1}}, "logit_bias")):
            error = refused(openai.BadRequestError, **members)
            self.assertEqual((error.param, error.code),
                             (name, "unsupported_parameter"))
        error = refused(openai.BadRequestError, logprobs=True, top_logprobs=21)
        self.assertEqual((error.param, error.code),
                         ("top_logprobs", "invalid_request"))
        with self.assertRaises(openai.NotFoundError) as caught:
            client.embeddings.create(model="any", input="a")
        self.assertEqual(caught.exception.code, "not_found")
        with self.assertRaises(openai.NotFoundError):
            client.models.retrieve("none")

    def test_a_client_that_leaves_stops_its_work(self):
        chat = client_of(self).chat.completions
        text = "A man had a dog, and it had a name. " * 40
        messages = [{"role": "user", "content": text + "Who?"}]
        stream = chat.create(model="any", messages=messages, stream=True,
                             **FOREVER)
        for chunk in stream:
            if chunk.choices[0].delta.content:
                break
        self.assertEqual(self.server.gauge("tiercel_requests_running"), 1)
        stream.close()
        self.server.await_gauge("tiercel_requests_running", 0)
        usage = chat.create(model="any", messages=messages, max_tokens=2).usage
        self.assertEqual(usage.prompt_tokens_details.cached_tokens,
                         usage.prompt_tokens - 1)

    def test_a_full_queue_is_tried_again(self):
        def busy():
            answer = client_of(self).chat.completions.create(
                model="any", messages=QUESTION, stream=True, **FOREVER)
            self.addCleanup(answer.close)
            return answer

        streams = [busy() for _ in range(3)]
        self.server.await_gauge("tiercel_requests_running", 2)
        self.server.await_gauge("tiercel_requests_waiting", 1)
        with self.assertRaises(openai.RateLimitError) as caught:
            client_of(self).completions.create(model="any", prompt="a")
        self.assertEqual(caught.exception.code, "queue_full")
        self.assertEqual(caught.exception.response.headers["retry-after"], "1")

        answers = []

        def patient():
            answers.append(client_of(self, retries=20).completions.create(
                model="any", prompt="a", max_tokens=2))

        before = self.refusals()
        waits = threading.Thread(target=patient)
        waits.start()
        end = time.monotonic() + DEADLINE_S
        while self.refusals() == before and time.monotonic() < end:
            time.sleep(0.02)
        for stream in streams:
            stream.close()
        waits.join(DEADLINE_S)
        self.assertEqual(answers[0].usage.completion_tokens, 2)

    def refusals(self):
        text = self.server.ask("GET", "/metrics")[2].decode()
        return [line for line in text.splitlines() if 'status="429"' in line]


class LangChainTest(Case):
    def chat(self, **members):
        return ChatOpenAI(base_url=self.url, api_key="any", model="any",
                          temperature=0.7, seed=3, max_tokens=24,
                          max_retries=0, timeout=DEADLINE_S, **members)

    def test_whole_and_streamed(self):
        chat = self.chat()
        messages = [SystemMessage("Be brief."),
                    HumanMessage("What is a falcon?")]
        whole = chat.invoke(messages)
        self.assertEqual(whole.usage_metadata["output_tokens"], 24)
        self.assertEqual(whole.response_metadata["finish_reason"], "length")
        streamed = None
        for chunk in chat.stream(messages, stream_usage=True):
            streamed = chunk if streamed is None else streamed + chunk
        self.assertEqual(streamed.content, whole.content)
        self.assertEqual(streamed.usage_metadata["output_tokens"], 24)
        texts = [one.content for one in chat.batch([messages] * 2)]
        self.assertEqual(texts, [whole.content] * 2)
        asked = self.server.answer(CHATS, {
            "messages": [{"role": "system", "content": "Be brief."},
                         *QUESTION], **DRAWN})
        self.assertEqual(whole.content,
                         asked["choices"][0]["message"]["content"])

    def test_log_probs(self):
        bound = self.chat().bind(logprobs=True, top_logprobs=2)
        whole = bound.invoke("What is a falcon?")
        content = whole.response_metadata["logprobs"]["content"]
        self.assertEqual("".join(one["token"] for one in content),
                         whole.content)
        streamed = None
        for chunk in bound.stream("What is a falcon?"):
            streamed = chunk if streamed is None else streamed + chunk
        self.assertEqual(streamed.response_metadata["logprobs"]["content"],
                         content)

    def test_errors(self):
        with self.assertRaises(openai.BadRequestError) as caught:
            self.chat().invoke("word " * 9000)
        self.assertEqual(caught.exception.code, "context_length_exceeded")

        def weather(city: str) -> str:
            """The weather."""
            return city

        with self.assertRaises(openai.BadRequestError) as caught:
            self.chat().bind_tools([weather]).invoke("a")
        self.assertEqual(caught.exception.param, "tools")


class OpenWebUITest(Case):
    """Replays requests of Open WebUI, which has members of its own beside those
    of the form."""

    HEADERS = {"Authorization": "Bearer any",
               "X-OpenWebUI-User-Name": "User", "X-OpenWebUI-User-Id": "u-1"}

    def test_the_list_of_models(self):
        status, headers, text = self.server.ask("GET", "/v1/models",
                                                **self.HEADERS)
        self.assertEqual((status, headers["Content-Type"]),
                         (200, "application/json"))
        (model,) = json.loads(text)["data"]
        self.assertEqual(model["id"], NAME)

    def test_a_talk(self):
        body = {
            "model": NAME, "stream": True,
            "messages": [{"role": "system", "content": "Be brief."},
                         {"role": "user", "content": [
                             {"type": "text", "text": "What is a falcon?"}]}],
            "stream_options": {"include_usage": True},
            "params": {}, "features": {"web_search": False},
            "chat_id": "c-1", "id": "m-1", "session_id": "s-1",
            "metadata": {"user_id": "u-1", "tags": ["a"], "files": []},
            "tool_ids": None, "files": None, "tools": [],
            "background_tasks": {"title_generation": True},
            "chat_template_kwargs": {"enable_thinking": False},
            "temperature": 0.7, "seed": 3, "max_tokens": 24, "top_k": 40,
            "frequency_penalty": 0, "presence_penalty": 0, "logit_bias": {}}
        text, usage = "", None
        *events, done = Stream(self.server, CHATS, body)
        self.assertEqual(done, "[DONE]")
        for event in events:
            usage = event["usage"] or usage
            for choice in event["choices"]:
                text += choice["delta"].get("content", "")
        self.assertEqual(usage["completion_tokens"], 24)
        whole = self.server.answer(CHATS, {**body, "stream": False})
        self.assertEqual(whole["choices"][0]["message"]["content"], text)
        # The title of the talk is asked for beside the next turn.
        title = self.server.answer(CHATS, {
            "model": NAME, "stream": False, "max_completion_tokens": 50,
            "messages": [{"role": "user", "content":
                          "### Task:\nGenerate a concise, 3-5 word title.\n"
                          "### Chat History:\nUSER: What is a falcon?\n"
                          f"ASSISTANT: {text}"}],
            "metadata": {"task": "title_generation", "chat_id": "c-1",
                         "task_body": {"messages": []}}})
        self.assertTrue(title["choices"][0]["message"]["content"])
        turn = self.server.answer(CHATS, {**body, "stream": False, "messages": [
            *body["messages"], {"role": "assistant", "content": text},
            {"role": "user", "content": "And an eagle?"}]})
        cached = turn["usage"]["prompt_tokens_details"]["cached_tokens"]
        self.assertGreaterEqual(cached, usage["prompt_tokens"])


class ThinkingTest(Case):
    """The model with a template that begins a thought, which it never ends."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.model = os.path.join(folder.name, "thinking.gguf")
        write_thinking(cls.model)
        super().setUpClass()

    def test_a_thought(self):
        chat = client_of(self).chat.completions
        whole = chat.create(model="any", messages=QUESTION, logprobs=True,
                            **DRAWN).choices[0]
        self.assertEqual((whole.message.content, whole.finish_reason),
                         ("", "length"))
        self.assertEqual(whole.logprobs.content, [])
        thought = "".join(
            getattr(chunk.choices[0].delta, "reasoning_content", "")
            for chunk in chat.create(model="any", messages=QUESTION,
                                     stream=True, **DRAWN))
        self.assertTrue(thought)
        self.assertEqual(thought, whole.message.reasoning_content)

    def test_no_thought(self):
        chat = client_of(self).chat.completions
        off = {"extra_body": {"chat_template_kwargs": {
            "enable_thinking": False}}}
        whole = chat.create(model="any", messages=QUESTION, **DRAWN, **off)
        message = whole.choices[0].message
        self.assertTrue(message.content)
        self.assertFalse(hasattr(message, "reasoning_content"))
        text = "".join(chunk.choices[0].delta.content or ""
                       for chunk in chat.create(
                           model="any", messages=QUESTION, stream=True,
                           **DRAWN, **off))
        self.assertEqual(text, message.content)


class KeysTest(Case):
    @classmethod
    def setUpClass(cls):
        keys = tempfile.NamedTemporaryFile("w", suffix=".keys")
        cls.addClassCleanup(keys.close)
        keys.write("sk-1\n")
        keys.flush()
        cls.FLAGS = (*Case.FLAGS, "--api-key-file", keys.name)
        super().setUpClass()

    def test_keys(self):
        with self.assertRaises(openai.AuthenticationError) as caught:
            client_of(self).models.list()
        self.assertEqual(caught.exception.code, "invalid_api_key")
        client = client_of(self, key="sk-1")
        self.assertEqual(client.models.list().data[0].id, NAME)


if __name__ == "__main__":
    unittest.main(argv=["clients_test"])
