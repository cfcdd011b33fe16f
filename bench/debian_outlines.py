#!/usr/bin/env python3
"""Compares the outlines of Debian's books with their own tables of contents.

  bench/debian_outlines.py                 fetches the packages (180 MB, once)
  bench/debian_outlines.py policy.epub     one book, and each title that differs
  bench/debian_outlines.py --save          also writes
                                           bench/results/<date>-<cpu>-debian-outlines.md

The outline is that of `tiercel text --json`, the one of --toc. The contents are
read apart from it: of HTML the links in the lists of the first page, of an EPUB
its NCX, of a PDF and a text the lines of the printed contents. Blanks, marks and
case do not count, nor what lies deeper than the contents go. Exit code 1 if
titles differ.

Needs Debian's apt-get and dpkg-deb, and pdftotext for PDF. Standard library
only.
"""

import argparse
import gzip
import html.parser
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unicodedata
import xml.etree.ElementTree
import zipfile

import pages

# Each book's package, and its path there: a file, or a folder of pages.
DOC = "usr/share/doc/"
REFERENCE = "usr/share/debian-reference/"
DEVELOPERS = "usr/share/developers-reference"
INSTALLATION = DOC + "installation-guide-amd64/en"
POLICY = DOC + "debian-policy/policy."
BOOKS = {
    "apt-guide.html": ("apt-doc", DOC + "apt-doc/guide.html"),
    "debmake.epub": ("debmake-doc", DOC + "debmake-doc/debmake-doc.en.epub"),
    "debmake.txt": ("debmake-doc", DOC + "debmake-doc/debmake-doc.en.txt.gz"),
    "developers-reference.epub": (
        "developers-reference", DEVELOPERS + "/developers-reference.epub"),
    "developers-reference.html": ("developers-reference", DEVELOPERS),
    "developers-reference.pdf": (
        "developers-reference", DEVELOPERS + "/developers-reference.pdf"),
    "faq.txt": ("debian-faq", DOC + "debian/FAQ/debian-faq.en.txt.gz"),
    "handbook.html": ("debian-handbook", DOC + "debian-handbook/html/en-US"),
    "installation.html": ("installation-guide-amd64", INSTALLATION),
    "installation.txt": ("installation-guide-amd64",
                         INSTALLATION + "/install.en.txt.gz"),
    "maint-guide.pdf": ("maint-guide", DOC + "maint-guide/maint-guide.en.pdf"),
    "maint-guide.txt": ("maint-guide",
                        DOC + "maint-guide/maint-guide.en.txt.gz"),
    "policy.epub": ("debian-policy", POLICY + "epub"),
    "policy.html": ("debian-policy", POLICY + "html"),
    "reference.html": ("debian-reference-en", REFERENCE),
    "reference.pdf": ("debian-reference-en",
                      REFERENCE + "debian-reference.en.pdf"),
    "reference.txt": ("debian-reference-en",
                      REFERENCE + "debian-reference.en.txt.gz"),
    "securing.html": ("harden-doc", DOC + "harden-doc/html/en-US"),
}

# Sections that a book has and its contents do not name, and the reverse.
UNLISTED = {
    "handbook.html": {"Legal Notice"},
    "securing.html": {"Legal Notice"},
    # Subsections of GNU's licence.
    "installation.html": {"Preamble", "GNU GENERAL PUBLIC LICENSE",
                          "How to Apply These Terms to Your New Programs"},
}
ABSENT = {
    "developers-reference.epub": {"debiandevelopersreference"},  # title page
    # The package has this page packed, so that no link leads to it.
    "securing.html": {"12wheretogetthemanualandavailableformats"},
}
NEAR = 60  # letters between two entries that follow each other
WORDS = ("one two three four five six seven eight nine ten eleven twelve "
         "thirteen fourteen fifteen").split()


def fetched(package, folder):
    """The folder of a package's files, which is fetched if it is not there."""
    tree = folder / package
    if not tree.exists():
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            print(f"fetching {package}", file=sys.stderr)
            subprocess.run(["apt-get", "-o", "APT::Sandbox::User=root", "-qq",
                            "download", package], cwd=scratch, check=True)
            (name,) = os.listdir(scratch)
            subprocess.run(["dpkg-deb", "--extract", name, "tree"],
                           cwd=scratch, check=True)
            os.rename(os.path.join(scratch, "tree"), tree)
    return tree


class Links(html.parser.HTMLParser):
    """The texts of links to pages in lists, but not in those of tables."""

    def __init__(self):
        super().__init__()
        self.texts = []
        self.lists = 0
        self.ends = False
        self.within = False

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag in ("ul", "ol", "dl"):
            self.lists += 1
        elif tag == "div" and "list-of" in (attrs.get("class") or ""):
            self.ends = True
        elif tag == "a" and self.lists and not self.ends:
            target = attrs.get("href") or ""
            if attrs.get("accesskey") == "n":  # the next page
                target = ""
            self.within = re.search(r"\.html?($|#)", target) is not None \
                and ":" not in target.split("/")[0]
            if self.within:
                self.texts.append("")

    def handle_endtag(self, tag):
        if tag in ("ul", "ol", "dl"):
            self.lists -= 1
        elif tag == "a":
            self.within = False

    def handle_data(self, data):
        if self.within:
            self.texts[-1] += data


def contents_of_html(folder):
    links = Links()
    links.feed((folder / "index.html").read_text("utf-8", "replace"))
    return links.texts


def contents_of_epub(path):
    spaces = {"n": "http://www.daisy.org/z3986/2005/ncx/"}
    with zipfile.ZipFile(path) as archive:
        (name,) = (name for name in archive.namelist()
                   if name.endswith(".ncx"))
        root = xml.etree.ElementTree.fromstring(archive.read(name))
    texts, seen = [], set()
    for point in root.iterfind(".//n:navPoint", spaces):
        text = "".join(point.find("n:navLabel/n:text", spaces).itertext())
        # Sphinx lists chapters beside their sections, too.
        place = (text, point.find("n:content", spaces).get("src"))
        if place not in seen:
            texts.append(text)
        seen.add(place)
    return texts


def contents_of_pdf(path):
    """The lines behind "Contents" that end in the number of a page, until none
    does for a while."""
    read = subprocess.run(["pdftotext", "-layout", "-l", "30", path, "-"],
                          check=True, stdout=subprocess.PIPE)
    texts, others = [], None
    for line in read.stdout.decode().replace("\f", "\n").split("\n"):
        if re.match(r"\s*(table of )?contents\s*$", line, re.I):
            others = 0
        elif others is not None and line.strip():
            entry = re.match(r" *(\S.*?)(?:(?: ?[.…]){3,} *| {2,})"
                             r"(?:\d+|[ivxlc]+)$", line.rstrip())
            if entry:
                texts.append(entry[1])
            others = 0 if entry or not texts else others + 1
            # Tables have a list of their own.
            if others > 60 or entry and "List of Tables" in entry[1]:
                break
    return texts


def contents_of_text(text):
    """The lines behind "Contents", up to the first entry when it comes again,
    or to a line that begins with no number and is not indented."""
    texts, begun = [], False
    for line in text.replace("\xa0", " ").split("\n"):
        words = re.sub(r"^[\s*]+", "", line).strip()
        if not begun:
            begun = re.match(r"(table of )?contents:?$", words, re.I)
            continue
        if not words:
            continue
        first = letters(texts[0]) if texts else None
        if first and letters(words) in (first, "chapter" + first):
            break
        numbered = re.match(r"(appendix|chapter)? ?(\d+|[A-Z])(\.\d+)*\.? ",
                            words, re.I)
        if texts and not numbered and line == words:
            break
        texts.append(words)
    return texts


def letters(text):
    """A text without blanks and marks."""
    text = unicodedata.normalize("NFKC", text)
    return re.sub(r"[\W_]+", "", text).lower()


def number_of(label):
    """The number of a label: of "Chapter 3", "CHAPTER THREE" and "3" it is
    "3"."""
    number = letters(re.sub(r"^(chapter|appendix|part)\b", "", label,
                            flags=re.I))
    return str(WORDS.index(number) + 1) if number in WORDS else number


def depth_of(label):
    return label.split(" ")[0].strip(".").count(".")


def differences(contents, document):
    """Returns the number of titles in both, the pieces of the contents that no
    title has, and the titles that the contents lack. An entry may go over
    several lines, so titles are looked up in all of the contents, joined."""
    whole, begins = "", set()
    for text in contents:
        begins.add(len(whole))
        whole += letters(text)
    numbered = sum(bool(re.match(r"[\w.]*\d", text.strip()))
                   for text in contents)
    in_order = 2 * numbered > len(contents)
    at, levels, pieces, surplus = 0, [], [], []
    for section in document["sections"]:
        number, title = number_of(section["label"]), letters(section["title"])
        wanted = number + title
        found = whole.find(wanted, at) if number else -1
        if found < 0:
            wanted = title or number
            found = whole.find(wanted, at, at + NEAR + len(wanted))
            if in_order and found not in begins:
                found = -1  # it is a part of another title
        if found < 0:
            name = section["label"] + " " + section["title"]
            surplus.append((section["level"], " ".join(name.split())))
            continue
        levels.append(section["level"])
        pieces.append(whole[at:found])
        at = found + len(wanted)
    pieces.append(whole[at:])
    # The book's title, heads of the contents' pages and their numbers.
    head = letters(document["title"]) or "-"
    missing = [piece for piece in pieces if not re.fullmatch(
        r"(index|next|contents|%s)*(((chapter|appendix|part)?[a-z\d]|\d+)|[ivxlc]+)?"
        r"(debianreference.*listof.*)?" % re.escape(head), piece)]
    deepest = max(levels, default=0)
    dots = max((depth_of(text.strip()) for text in contents), default=0)
    return len(levels), missing, [
        title for level, title in surplus
        if level <= deepest and depth_of(title) <= dots]


def read(name, path, scratch):
    """The book's contents, and the path at which its outline is read."""
    if name.endswith(".epub"):
        return contents_of_epub(path), path
    if name.endswith(".pdf"):
        return contents_of_pdf(path), path
    if name.endswith(".txt"):
        with gzip.open(path, "rt", encoding="utf-8", errors="replace") as file:
            return contents_of_text(file.read()), path
    if (path / "index.en.html").exists():  # pages of several languages
        for page in path.glob("*.en.html"):
            (scratch / page.name.replace(".en.", ".")).write_bytes(
                page.read_bytes().replace(b".en.html", b".html"))
        path = scratch
    return contents_of_html(path), path


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("books", nargs="*", metavar="BOOK",
                        help=", ".join(BOOKS))
    parser.add_argument("--tiercel", default=str(
        pages.ROOT / "build/cpu/apps/tiercel"))
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path(
        os.environ.get("XDG_CACHE_HOME") or
        os.path.expanduser("~/.cache")) / "tiercel/debian-books")
    parser.add_argument("--save", action="store_true")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    rows, same = [], True
    for name in args.books or BOOKS:
        package, inner = BOOKS[name]
        tree = fetched(package, args.folder)
        with tempfile.TemporaryDirectory() as scratch:
            contents, path = read(name, tree / inner, pathlib.Path(scratch))
            document = json.loads(subprocess.run(
                [args.tiercel, "text", path, "--json"], check=True,
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)
        both, missing, surplus = differences(contents, document)
        surplus = [title for title in surplus
                   if title not in UNLISTED.get(name, ())]
        missing = [title for title in missing
                   if title not in ABSENT.get(name, ())]
        rows.append([name, package, str(len(document["sections"])), str(both),
                     str(len(missing)), str(len(surplus))])
        print(f"{name}: {both} titles in both, {len(missing)} missing, "
              f"{len(surplus)} surplus", flush=True)
        for title in missing:
            print(f"  missing: {title}")
        for title in surplus:
            print(f"  surplus: {title}")
        same = same and both > 0 and not missing and not surplus
    if args.save:
        say = pages.Lines()
        say("# Outlines of Debian's books")
        say()
        say(f"bench/debian_outlines.py, {pages.version_of(args.tiercel)}: the "
            "titles of `tiercel text --json` beside the books' own contents. "
            "Sections deeper than the contents go are not counted as surplus.")
        say()
        for line in pages.table(["book", "package", "sections", "in both",
                                 "missing", "surplus"], rows, words=2):
            say(line)
        print("written:", pages.save(say.said, {}, "debian-outlines"))
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
