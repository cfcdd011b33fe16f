#!/usr/bin/env python3
"""Every link of a page leads somewhere, and the front page stays one.

  doc_test.py SOURCE_DIR
"""

import pathlib
import re
import subprocess
import sys
import tempfile

MOST_LINES = 150  # the limit of README.md


def broken_links(root, page):
    """Yields the relative links of `page` that lead to no file."""
    text = (root / page).read_text(encoding="utf-8")
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        target = link.partition("#")[0]
        if target and not re.match(r"[a-z]+:", target):
            if not (root / page).parent.joinpath(target).exists():
                yield f"{page}: there is no {link}"


def check(root, pages):
    wrong = [sentence for page in pages for sentence in broken_links(root, page)]
    lines = (root / "README.md").read_text(encoding="utf-8").count("\n")
    if lines > MOST_LINES:
        wrong.append(f"README.md: {lines} lines; at most {MOST_LINES}")
    return wrong


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "README.md").write_text("[a](b.md) [c](https://d/e) [f](#g)\n")
        assert len(check(root, ["README.md"])) == 1
        (root / "b.md").write_text("\n")
        assert not check(root, ["README.md"])
        (root / "README.md").write_text("\n" * (MOST_LINES + 1))
        assert len(check(root, ["README.md"])) == 1


def main():
    self_test()
    root = pathlib.Path(sys.argv[1])
    pages = subprocess.run(["git", "-C", root, "ls-files", "*.md"], check=True,
                           capture_output=True, text=True).stdout.split()
    wrong = check(root, [page for page in pages if (root / page).exists()])
    print("\n".join(wrong) or f"{len(pages)} pages hold")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
