"""Talks with a model: reads lines, and prints the answers as they come. Ctrl-C
ends an answer.

    chat.py MODEL
"""

import sys

import tiercel


def chat(path):
    with tiercel.Model(path, progress=True) as model:
        session = tiercel.Session(model)
        for line in sys.stdin:
            answer = session.chat(line.rstrip("\n"), max_tokens=256,
                                  stream=True)
            try:
                for piece in answer:
                    print(piece, end="", flush=True)
            except KeyboardInterrupt:
                answer.close()
            print()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: chat.py MODEL")
    try:
        chat(sys.argv[1])
    except tiercel.Error as error:
        sys.exit(f"chat: {error}")
