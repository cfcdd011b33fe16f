#!/usr/bin/env python3
"""Writes unicode_class_runs.inc, the table of unicode_classes.cc.

  make_unicode_classes.py [folder of the Unicode character database]

The database is Debian's package unicode-data (/usr/share/unicode), version
15.0.0: UnicodeData.txt gives the general categories L* and N*, PropList.txt
gives White_Space.
"""

import pathlib
import sys

OTHER, LETTER, NUMBER, SPACE = range(4)
CODE_POINTS = 0x110000


def general_categories(path):
    """(first, last, category) of UnicodeData.txt; ranges are two lines."""
    first = None
    for line in path.read_text("ascii").splitlines():
        code, name, category = line.split(";")[:3]
        if name.endswith(", First>"):
            first = int(code, 16)
            continue
        last = int(code, 16)
        yield (last if first is None else first), last, category
        first = None


def white_space(path):
    for line in path.read_text("utf-8").splitlines():
        fields = [field.strip() for field in line.split("#")[0].split(";")]
        if len(fields) == 2 and fields[1] == "White_Space":
            codes = fields[0].split("..")
            yield int(codes[0], 16), int(codes[-1], 16)


def main():
    database = pathlib.Path(
        sys.argv[1] if len(sys.argv) > 1 else "/usr/share/unicode")
    classes = bytearray(CODE_POINTS)
    for first, last, category in general_categories(
            database / "UnicodeData.txt"):
        kind = {"L": LETTER, "N": NUMBER}.get(category[0], OTHER)
        for code in range(first, last + 1):
            classes[code] = kind
    for first, last in white_space(database / "PropList.txt"):
        for code in range(first, last + 1):
            classes[code] = SPACE

    runs = [code * 4 + classes[code] for code in range(CODE_POINTS)
            if code == 0 or classes[code] != classes[code - 1]]
    lines = ["// Made by make_unicode_classes.py from Unicode 15.0.0."]
    line = ""
    for run in runs:
        word = f"0x{run:x},"
        if len(line) + 1 + len(word) > 80:
            lines.append(line)
            line = ""
        line += word if not line else " " + word
    lines.append(line)
    out = pathlib.Path(__file__).parent / "unicode_class_runs.inc"
    out.write_text("\n".join(lines) + "\n", "ascii")


if __name__ == "__main__":
    main()
