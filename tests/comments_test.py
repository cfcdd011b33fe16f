#!/usr/bin/env python3
"""Comments are sentences: a check of how they begin and of a few words.

  comments_test.py SOURCE_DIR

A comment stands alone, so it has a subject and a verb. The check refuses a
block, or a trailing comment, whose first word leaves that subject out
(FIRST_WORDS), and more than MOST_VAGUE of the words that hide the subject
(VAGUE), in comments and in documents.
"""

import pathlib
import re
import subprocess
import sys

FIRST_WORDS = ("What", "Who", "Whom", "Whose", "Whoever", "Whatever", "Which",
               "Where", "How", "Whether", "Of", "Those", "That")
VAGUE = re.compile(r"\b(?:nobody|somebody|whoever)\b", re.IGNORECASE)
MOST_VAGUE = 10

C_LIKE = (".cc", ".h", ".cu", ".inc", ".c")
HASHED = (".py", ".sh", ".cmake", "CMakeLists.txt")
# Texts of others, results of runs, and this list of words.
SKIPPED = ("bench/results/", "tests/golden/", "tests/fuzz/corpus/",
           "tests/comments_test.py", "LICENSE")

OPENING = re.compile(r"(?:" + "|".join(FIRST_WORDS) + r")\b(?!['-])")
OPENING_OF_ANY_CASE = re.compile(OPENING.pattern, re.IGNORECASE)


def comment_of(line, marks):
    """(is whole line, text) of the comment that ends `line`, or None."""
    stripped = line.strip()
    if stripped.startswith(marks):
        return True, stripped.lstrip(marks + "!< ")
    # A mark inside a string literal begins no comment; two blanks precede one.
    trailing = re.search(r"\S {2,}" + marks + r" (.*)", line)
    return (False, trailing[1]) if trailing else None


def wrong_in_code(name, text):
    """Yields (line number, sentence) for each comment that breaks a rule."""
    marks = "//" if name.endswith(C_LIKE) else "#"
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        comment = comment_of(line, marks)
        if comment is None:
            inside = False
            continue
        is_whole, words = comment
        if is_whole and not inside and OPENING.match(words):
            yield number, f'a comment begins with "{words.split()[0]}"'
        if not is_whole and OPENING_OF_ANY_CASE.match(words):
            yield number, f'a trailing comment begins with "{words.split()[0]}"'
        inside = True
    if name.endswith(".py"):
        for docstring in re.finditer(r'^ *"""(\S+)', text, re.MULTILINE):
            if OPENING.match(docstring[1]):
                yield (text.count("\n", 0, docstring.start()) + 1,
                       f'a docstring begins with "{docstring[1]}"')


def check(files):
    """Sentences that say what is wrong with `files`, {name: text}."""
    wrong, vague = [], []
    for name, text in sorted(files.items()):
        if name.endswith(C_LIKE + HASHED):
            wrong += [f"{name}:{number}: {sentence}"
                      for number, sentence in wrong_in_code(name, text)]
        for number, line in enumerate(text.splitlines(), 1):
            vague += [f"{name}:{number}: {word}"
                      for word in VAGUE.findall(line)]
    if len(vague) > MOST_VAGUE:
        wrong += vague + [f"{len(vague)} vague words; at most {MOST_VAGUE}"]
    return wrong


def self_test():
    """The check sees each fault that it is for, and no other."""
    faults = {
        "a.cc": "int a;  // of the first\n",
        "a.h": "int a;  // one\nint b;  // what is left\n",
        "b.h": "// What it is.\nint b;\n",
        "c.py": '"""Whether it is."""\n',
        "d.sh": "\n# Those that are left.\nls\n",
        "e.md": "nobody " * (MOST_VAGUE + 1),
    }
    for name, text in faults.items():
        assert check({name: text}), f"{name} passes: {text!r}"
    fine = {
        "a.cc": "int a;  // one of the first\n// It says\n// What it is.\n",
        "b.md": "nobody " * MOST_VAGUE,
        "c.cc": 'f("//  of");\n// That\'s fine.\n',
    }
    assert not check(fine), check(fine)


def main():
    self_test()
    root = pathlib.Path(sys.argv[1])
    names = subprocess.run(["git", "-C", root, "ls-files"], check=True,
                           capture_output=True, text=True).stdout.split("\n")
    files = {}
    for name in filter(None, names):
        is_text = name.endswith(C_LIKE + HASHED + (".md",))
        if is_text and not name.startswith(SKIPPED) and (root / name).exists():
            files[name] = (root / name).read_text(encoding="utf-8")
    wrong = check(files)
    print("\n".join(wrong) or f"{len(files)} files hold")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
