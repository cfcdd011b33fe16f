#!/usr/bin/env python3
"""No class is everything: a check of the public functions of each class.

  class_size_test.py SOURCE_DIR

A class whose public part has many functions has several ideas. The check reads
the headers of the FOLDERS and refuses a class or struct with more than MOST
public functions of its own: constructors, static functions, operators and each
overload count, friends and functions that are deleted or defaulted do not.
"""

import pathlib
import re
import subprocess
import sys

FOLDERS = ("kernels", "offload", "models", "drafts", "runtime")
MOST = 25

NOISE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\''
                   r"|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.DOTALL | re.MULTILINE)
CLASS = re.compile(r"\b(?<!enum )(class|struct)\s+(?:alignas\([^)]*\)\s*)?"
                   r"([\w:]+)[^;{}()=]*\{")
ACCESS = re.compile(r"\s*\b(public|protected|private)\s*:(?!:)")
NO_FUNCTION = re.compile(r"\s*(?:using|friend|typedef|static_assert|class|struct"
                         r"|union|enum)\b")
# The declarator of a function: a name before parentheses.
FUNCTION = re.compile(r"(?:operator\s*(?:\(\)|[^\s(]+)|~?\b\w+)\s*\(")


def end_of(text, begin, opening, closing):
    """The position after the bracket that closes the one at `begin`."""
    depth = 0
    for at in range(begin, len(text)):
        depth += (text[at] == opening) - (text[at] == closing)
        if depth == 0:
            return at + 1
    return len(text)


def without_template_arguments(text):
    """`text` without what is in angle brackets, which may have parentheses."""
    text = re.sub(r"operator\s*(?:<=>|<<|>>|<=|>=|<|>|->)", "operator_", text)
    text = text.replace("->", "")
    while (shorter := re.sub(r"<[^<>]*>", "", text)) != text:
        text = shorter
    return text


def is_function(declaration):
    """True if a member's declaration, without a body, is a function."""
    if NO_FUNCTION.match(declaration):
        return False
    if re.search(r"=\s*(?:delete|default)\s*$", declaration):
        return False
    head = without_template_arguments(declaration)
    head = re.sub(r"\b(?:alignas|decltype|noexcept|ABSL_\w+)\s*\([^()]*\)", "",
                  head)
    function = FUNCTION.search(head)
    # A member's initializer may call functions, too.
    return function is not None and not re.search(
        r"(?<!operator)=", head[:function.start()])


def members_of(body):
    """Yields (access, declaration) of each member; bodies are left out."""
    access, at, begin = None, 0, 0
    while at < len(body):
        if at == begin and (label := ACCESS.match(body, at)):
            access, at = label[1], label.end()
            begin = at
            continue
        if body[at] == "(":
            at = end_of(body, at, "(", ")")
        elif body[at] == "{":
            declaration = body[begin:at]
            at = end_of(body, at, "{", "}")
            # A function's body ends it; an initializer has a semicolon to come,
            # or the body still.
            more = re.match(r"\s*([;,{])", body[at:])
            if more is None or NO_FUNCTION.match(declaration):
                yield access, declaration
                begin = at = at + (more.end() if more and more[1] == ";" else 0)
        elif body[at] == ";":
            yield access, body[begin:at]
            at += 1
            begin = at
        else:
            at += 1


def classes_of(text):
    """Yields (name, number of public functions) of each class in a header."""
    text = NOISE.sub("", text)
    for found in CLASS.finditer(text):
        begin = found.end() - 1
        body = text[begin + 1:end_of(text, begin, "{", "}") - 1]
        usual = "public" if found[1] == "struct" else "private"
        yield found[2], sum((access or usual) == "public" and is_function(member)
                            for access, member in members_of(body))


def check(files):
    """(sentences that name the classes which are too large, all counts)."""
    counts = [(name, of, count) for name, text in sorted(files.items())
              for of, count in classes_of(text)]
    return [f"{name}: {of} has {count} public functions, need {MOST} at most"
            for name, of, count in counts if count > MOST], counts


def self_test():
    """The check counts public functions, and nothing else."""
    kinds = """
        class Large : public Base<int> {
         public:
          // A comment with a call();
          static absl::StatusOr<std::unique_ptr<Large>> Create(int a = f(1));
          explicit Large(Map<int, F(int)> a) : a_(a), b_{1} { g(); }
          ~Large();
          Large(const Large&) = delete;
          Large& operator=(Large&&) = default;
          bool operator()(int) const { return true; }
          int Get() const { return a_.b(); }
          virtual auto Made() const -> std::vector<int> = 0;
          using Call = absl::FunctionRef<void(int)>;
          struct Inner { int In() const; int in = f(); };
          std::function<int(int)> member = [](int a) { return a; };
          int other = f(1);
          std::vector<int> list = {1, 2};
          friend bool operator==(const Large&, const Large&) = default;
          enum class Kind { kOne };
         private:
          int Hidden();
        };"""
    assert list(classes_of(kinds)) == [("Large", 6), ("Inner", 1)], \
        list(classes_of(kinds))
    for count in (MOST, MOST + 1):
        functions = "".join(f"  int F{i}();\n" for i in range(count))
        wrong, _ = check({"a.h": f"struct A {{\n{functions}}};\n"})
        assert bool(wrong) == (count > MOST), wrong


def main():
    self_test()
    root = pathlib.Path(sys.argv[1])
    names = subprocess.run(
        ["git", "-C", root, "ls-files", "--",
         *(f"{folder}/*.h" for folder in FOLDERS)],
        check=True, capture_output=True, text=True).stdout.split()
    wrong, counts = check({name: (root / name).read_text(encoding="utf-8")
                           for name in names if (root / name).exists()})
    largest = max(counts, key=lambda one: one[2])
    print("\n".join(wrong) or f"{len(counts)} classes hold; the largest is "
          f"{largest[1]}, with {largest[2]} public functions")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
