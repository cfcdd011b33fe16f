"""Shared by the tests of clients: a server with the real model, $TIERCEL_MODEL.

For scripts that are called with TIERCEL, the program.
"""

import os
import pathlib
import sys
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
from serving import Server

TIERCEL = os.path.abspath(sys.argv[1])
MODEL = os.environ["TIERCEL_MODEL"]
NAME = pathlib.Path(MODEL).stem
QUESTION = [{"role": "user", "content": "What is a falcon?"}]
DRAWN = {"max_tokens": 24, "temperature": 0.7, "seed": 3}


class Case(unittest.TestCase):
    """Cases that share a server with room for two answers and a queue of one
    more."""

    FLAGS = ("--parallel", "2", "--queue", "1", "-c", "4096", "--no-cache")
    model = MODEL

    @classmethod
    def setUpClass(cls):
        cls.server = Server([TIERCEL, "serve", "-m", cls.model, *cls.FLAGS])
        cls.addClassCleanup(cls.server.end)
        cls.url = f"http://{cls.server.host}:{cls.server.port}/v1"
