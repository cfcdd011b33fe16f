"""Compares today's headers with those of the first release.

    headers_test.py TREE

Whatever stands in abi/tiercel-1.h must stand in include/, in the same words: a
struct may have more fields at its end, an enum more constants, and there may be
more of everything else.
"""

import glob
import os
import re
import sys

_TOKEN = re.compile(r'"[^"]*"|\w+|[^\w\s]')


def declarations(text):
    """Returns {name: its words}; of a struct or enum, one text per member."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    text = re.sub(r"\\\n", " ", text)
    text = re.sub(r"^\s*#.*$", "", text, flags=re.M)
    text = text.replace('extern "C" {', " ")
    found = {}
    for one in re.findall(r"[^;{}]+(?:\{[^}]*\}[^;]*)?;", text):
        words = _TOKEN.findall(one)
        if "{" in words:
            begin, end = words.index("{"), words.index("}")
            split = "," if words[begin - 1] == "enum" or "enum" in \
                words[:begin] else ";"
            name = " ".join(words[:begin] + words[end + 1:-1])
            if name == "enum":  # it has no name: that of its first constant
                name += " " + words[begin + 1]
            members = " ".join(words[begin + 1:end]).split(" %s" % split)
            found[name] = [each.strip() for each in members if each.strip()]
        else:
            # The function's name, or the new type's.
            name = next((words[i] for i in range(len(words) - 1)
                         if words[i + 1] == "(" and words[i] != "TIERCEL_API"),
                        words[-2])
            if words[0] == "typedef" and "(" in words:
                name = words[words.index("*", words.index("(")) + 1]
            found[name] = [" ".join(words)]
    return found


def main(tree):
    with open(os.path.join(tree, "tests/abi/tiercel-1.h"),
              encoding="utf-8") as file:
        first = declarations(file.read())
    now = {}
    for path in glob.glob(os.path.join(tree, "include/*.h")):
        with open(path, encoding="utf-8") as file:
            for name, members in declarations(file.read()).items():
                # A struct may be named before it is declared.
                if len(members) >= len(now.get(name, [])):
                    now[name] = members
    wrong = 0
    for name, members in first.items():
        if name not in now:
            print(f"{name}: it is gone")
            wrong += 1
        elif now[name][:len(members)] != members:
            print(f"{name}: got {now[name]}, need {members} first")
            wrong += 1
    if len(first) < 100:
        print(f"tests/abi/tiercel-1.h: {len(first)} declarations were found")
        wrong += 1
    print(f"{len(first)} declarations of the first release stand among "
          f"{len(now)}")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
