#!/usr/bin/env python3
"""llama-index's classes for servers in OpenAI's form.

    llama_index_test.py TIERCEL

By a Python that finds the packages of requirements_llama_index.txt.
"""

import asyncio
import unittest

from llama_index.core.llms import ChatMessage
from llama_index.llms.openai_like import OpenAILike

from clients_testing import DRAWN, QUESTION, Case

from serving import CHATS, DEADLINE_S, TEXTS


class LlamaIndexTest(Case):
    def llm(self):
        return OpenAILike(api_base=self.url, api_key="any", model="any",
                          is_chat_model=True, context_window=4096,
                          temperature=0.7, max_tokens=24, max_retries=0,
                          additional_kwargs={"seed": 3}, timeout=DEADLINE_S)

    def test_whole_and_streamed(self):
        messages = [ChatMessage(role="user", content="What is a falcon?")]
        llm = self.llm()
        whole = llm.chat(messages)
        *_, last = llm.stream_chat(messages)
        self.assertEqual(last.message.content, whole.message.content)
        self.assertEqual(llm.complete("What is a falcon?").text,
                         whole.message.content)
        asked = self.server.answer(CHATS, {"messages": QUESTION, **DRAWN})
        self.assertEqual(whole.message.content,
                         asked["choices"][0]["message"]["content"])
        self.assertEqual(whole.raw.usage.completion_tokens, 24)
        self.assertEqual(
            asyncio.run(llm.achat(messages)).message.content,
            whole.message.content)

    def test_texts(self):
        llm = OpenAILike(api_base=self.url, api_key="any", model="any",
                         is_chat_model=False, context_window=4096,
                         temperature=0, max_tokens=24, max_retries=0,
                         timeout=DEADLINE_S)
        whole = llm.complete("The falcon").text
        *_, last = llm.stream_complete("The falcon")
        self.assertEqual(last.text, whole)
        asked = self.server.answer(TEXTS, {"prompt": "The falcon",
                                           "max_tokens": 24})
        self.assertEqual(asked["choices"][0]["text"], whole)


if __name__ == "__main__":
    # It leaves connections open.
    unittest.main(argv=["llama_index_test"], warnings="ignore")
