#!/usr/bin/env python3
"""Every error code is in the table of tiercel_error.h, under its one status.

  error_codes_test.py SOURCE_DIR

The check reads the sources of the libraries for the codes of their errors
(lib/status/error.h), and the headers for those that their comments name. It
refuses a code that the table lacks, one that nothing makes, one of several
statuses, and an error whose code it cannot read.
"""

import pathlib
import re
import subprocess
import sys

# The folders of which the libraries consist.
FOLDERS = ("lib", "kernels", "offload", "models", "drafts", "runtime")
# The program alone has this room.
NOT_OF_THEM = "lib/grammar/"
TABLE = "include/tiercel_error.h"
# It defines the functions that make errors.
MAKERS = "lib/status/error"

STATUS_OF = {"Usage": "USAGE", "Input": "INVALID_INPUT",
             "Memory": "OUT_OF_MEMORY", "Device": "NO_DEVICE", "Io": "IO",
             "Internal": "FAILED"}
# Errors that are made otherwise; border.cc gives the second its status.
OTHERS = {("cancelled", "CANCELLED"), ("buffer_too_small", "BUFFER_TOO_SMALL")}
KINDS = "|".join(STATUS_OF)

COMMENT = re.compile(r'("(?:\\.|[^"\\\n])*")|//[^\n]*')
MAKER = re.compile(rf"\b({KINDS})Error\(\s*")
REPORT = re.compile(r"\bReportError\(\s*TIERCEL_(\w+),\s*")
# Errors of documents have a kind, or a maker whose first argument is a name.
OF_KIND = re.compile(rf"\bError::Kind::k({KINDS}),\s*")
OF_NAME = re.compile(r"\b(Input)Error\(\s*\w+,\s*")
# A function that passes its parameter `code` on to a maker.
WRAPPER = re.compile(rf"\b(\w+)\(std::string(?:_view)? code,[^{{;]*\{{[^}}]*?"
                     rf"\b(?:Error::Kind::k)?({KINDS})(?:Error\(|,)\s*"
                     r"(?:\w+,\s*)?(?:std::move\()?code\b")
PASSED_ON = ("code", "std::move(code)", "error->code", '""', "kTooSmall")
ROW = re.compile(r"^ \*   (\w+) +\S", re.MULTILINE)
# A status and the codes that a comment names behind it.
NAMED = re.compile(r"\bTIERCEL_([A-Z_]+)[,:]"
                   r'((?:[\s,]+(?:also |or )?"[a-z_]+")+)')


def first_argument(text, begin):
    """The text from `begin` to the comma or bracket that ends an argument."""
    depth, at = 0, begin
    while at < len(text):
        if text[at] == '"':
            at = text.index('"', at + 1)
        elif text[at] in "([{":
            depth += 1
        elif text[at] in ")]},":
            if depth == 0:
                break
            depth -= text[at] != ","
        at += 1
    return text[begin:at].strip()


def wrappers_of(name, files):
    """The wrappers that the file `name` can call: its own, and those of headers
    in its folder."""
    folder = name.rpartition("/")[0] + "/"
    found = {}
    for other, text in files.items():
        if other == name or other.endswith(".h") and other.startswith(folder):
            for wrapper in WRAPPER.finditer(text):
                found[wrapper[1]] = STATUS_OF[wrapper[2]]
    return found


def codes_made(files):
    """(a set of (code, status), sentences about codes that cannot be read)."""
    files = {name: COMMENT.sub(lambda found: found[1] or "", text)
             for name, text in files.items()}
    made, unread = set(OTHERS), []
    for name, text in files.items():
        maker = OF_NAME if name.startswith("lib/documents/") else MAKER
        calls = [(call.end(), STATUS_OF[call[1]])
                 for makes in (maker, OF_KIND) for call in makes.finditer(text)]
        calls += [(call.end(), call[1]) for call in REPORT.finditer(text)]
        for wrapper, status in wrappers_of(name, files).items():
            calls += [(call.end(), status) for call in
                      re.finditer(rf'\b{wrapper}\(\s*(?="\w+",)', text)]
        for begin, status in calls:
            code = first_argument(text, begin)
            if code in PASSED_ON:
                continue
            literals = re.findall(r'"(\w+)"', code.rpartition(" ? ")[2])
            if not literals:
                unread.append(f"{name}: cannot read the code in {code}")
            made.update((literal, status) for literal in literals)
    return made, unread


def codes_listed(header):
    """A list of (code, status), the rows of the table."""
    listed = []
    for part in re.split(r"^ \* TIERCEL_", header, flags=re.MULTILINE)[1:]:
        title, _, rows = part.partition("\n")
        listed += [(code, title.split()[0])
                   for code in ROW.findall(rows.split("*/")[0])]
    return listed


def check(files, headers):
    """Sentences that say what is wrong."""
    made, wrong = codes_made(files)
    listed = codes_listed(headers[TABLE])
    for code, status in sorted(made - set(listed)):
        wrong.append(f"{TABLE}: lacks {code} of TIERCEL_{status}")
    for code, status in sorted(set(listed) - made):
        wrong.append(f"{TABLE}: {code} of TIERCEL_{status} is made nowhere")
    codes = [code for code, _ in listed]
    for code in sorted({code for code in codes if codes.count(code) > 1}):
        wrong.append(f"{TABLE}: {code} is listed twice")
    for name, text in sorted(headers.items()):
        for status, named in NAMED.findall(re.sub(r"\n\s*\*", "", text)):
            wrong += [f"{name}: TIERCEL_{status}, \"{code}\" is not in {TABLE}"
                      for code in re.findall(r'"(\w+)"', named)
                      if (code, status) not in listed]
    return wrong


def self_test():
    """The check finds what is wrong, and nothing else."""
    files = {
        "models/a.h": "absl::Status Fail(std::string_view code, T m) const {\n"
                      "  return InputError(\n      code, m);\n}",
        "models/a.cc": 'x.Fail("bad_file", m);  // Fail("no", m)\n'
                       'return IoError(e == f("a", 1) ? "gone" : "broken", m);'
                       'return ReportError(TIERCEL_FAILED, "internal", m);'
                       'return UsageError("wrong", "//");',
        "lib/documents/c.cc": 'InputError(name, "no_book", m);'
                              'return {Error::Kind::kIo, "gone", m};',
        "runtime/b.cc": 'Fail("of another folder", m);'}
    table = (" * TIERCEL_FAILED\n *   internal  a\n *             b\n *\n"
             " * TIERCEL_USAGE\n *   wrong  a\n *\n * TIERCEL_INVALID_INPUT\n"
             " *   bad_file  a\n * TIERCEL_IO\n *   gone  a\n *   broken  a\n"
             " * TIERCEL_CANCELLED\n *   cancelled  a\n"
             " * TIERCEL_BUFFER_TOO_SMALL\n *   buffer_too_small  a\n"
             " * TIERCEL_INVALID_INPUT of books\n *   no_book  a */\n")
    for change, number in (
            (lambda f, h: None, 0),
            (lambda f, h: f.update(c='IoError("new", m)'), 1),
            (lambda f, h: f.update(c='IoError("wrong", m)'), 1),
            (lambda f, h: f.update(c="IoError(of(m), m)"), 1),
            (lambda f, h: f.pop("models/a.cc"), 4),
            (lambda f, h: f.pop("lib/documents/c.cc"), 1),
            (lambda f, h: h.update(a='* TIERCEL_USAGE,\n * "wrong"'), 0),
            (lambda f, h: h.update(a='* TIERCEL_IO: "gone" or\n * "wrong"'), 1),
            (lambda f, h: h.update(
                {TABLE: table.replace("gone", "broken")}), 2)):
        changed, headers = dict(files), {TABLE: table}
        change(changed, headers)
        wrong = check(changed, headers)
        assert len(wrong) == number, (number, wrong)


def main():
    self_test()
    root = pathlib.Path(sys.argv[1])

    def texts(*patterns):
        names = subprocess.run(["git", "-C", root, "ls-files", "--", *patterns],
                               check=True, capture_output=True,
                               text=True).stdout.split()
        return {name: (root / name).read_text(encoding="utf-8")
                for name in names}

    files = {name: text for name, text in texts(*FOLDERS).items()
             if re.search(r"\.(cc|h|cu|inc)$", name)
             and not name.startswith(NOT_OF_THEM)
             and not re.search(r"_test|testing|/executor/", name)
             and not name.startswith(MAKERS)}
    headers = texts("include")
    wrong = check(files, headers)
    for sentence in wrong:
        print(sentence)
    if wrong:
        sys.exit(1)
    print(f"{len(codes_listed(headers[TABLE]))} codes hold")


if __name__ == "__main__":
    main()
