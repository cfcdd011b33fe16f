"""Writes seeds of the document fuzzers: corpus/{document,epub,pdf,rtf,mhtml}/.

Everything here is made up. Run it in this folder.
"""

import io
import pathlib
import zipfile

HERE = pathlib.Path(__file__).parent / "corpus"

CONTAINER = ("<container><rootfiles><rootfile full-path='o/b.opf'/></rootfiles>"
             "</container>")
OPF = ("<package><metadata><dc:title>T</dc:title><dc:creator>A</dc:creator>"
       "<dc:language>en</dc:language></metadata><manifest><item id='n' "
       "href='n.xhtml' properties='nav'/><item id='x' href='t.ncx' "
       "media-type='application/x-dtbncx+xml'/><item id='a' href='a.xhtml'/>"
       "</manifest><spine><itemref idref='a'/></spine></package>")
NAV = ("<nav epub:type='toc'><ol><li><a href='a.xhtml'>1. One</a><ol><li>"
       "<a href='a.xhtml#s'>Two</a></li></ol></li></ol></nav>"
       "<nav epub:type='page-list'><ol><li><a href='a.xhtml#p'>7</a></li></ol>"
       "</nav>")
NCX = ("<ncx><navMap><navPoint><navLabel><text>One</text></navLabel><content "
       "src='a.xhtml'/></navPoint></navMap><pageList><pageTarget><navLabel>"
       "<text>1</text></navLabel><content src='a.xhtml#p'/></pageTarget>"
       "</pageList></ncx>")
PAGE = ("<?xml version='1.0'?><html><head><title/></head><body><h1>1. One</h1>"
        "<p>a<a epub:type='noteref'>1</a></p><h2 id='s'>Two</h2><span id='p' "
        "epub:type='pagebreak' title='7'/><ruby>x<rt>y</rt></ruby></body>"
        "</html>")


def epub(files, pack=zipfile.ZIP_STORED):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", pack) as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(name), text, pack)
    return data.getvalue()


BOOK = {"META-INF/container.xml": CONTAINER, "o/b.opf": OPF, "o/n.xhtml": NAV,
        "o/t.ncx": NCX, "o/a.xhtml": PAGE}

EPUB = {
    "stored.epub": epub(BOOK),
    "packed.epub": epub(BOOK, zipfile.ZIP_DEFLATED),
    "drm.epub": epub(dict(BOOK, **{"META-INF/encryption.xml":
                                   "<e><EncryptedData/></e>"})),
    "container.xml": CONTAINER.encode(), "b.opf": OPF.encode(),
    "n.xhtml": NAV.encode(), "t.ncx": NCX.encode(), "a.xhtml": PAGE.encode(),
}


def line(left, top, words, height=10):
    at, box = left, ""
    for word in words.split():
        right = at + 6 * len(word)
        box += ('<word xMin="%d" yMin="%d" xMax="%d" yMax="%d">%s</word>'
                % (at, top, right, top + height, word))
        at = right + 6
    return ('<line xMin="%d" yMin="%d" xMax="%d" yMax="%d">%s</line>'
            % (left, top, at, top + height, box))


def page(*lines):
    blocks = "".join(
        '<block xMin="0" yMin="%d" xMax="500" yMax="%d">%s</block>'
        % (top, top + height, line(left, top, words, height))
        for left, top, words, height in lines)
    return '<page width="600" height="800"><flow>%s</flow></page>' % blocks


LAYOUT = "<html><head><title>T</title></head><body><doc>%s</doc>" % "".join(
    page((72, 40, "A book", 10), (72, 100, "CHAPTER ONE", 14),
         (72, 200, "the long-", 10), (72, 212, "winded words 1", 10),
         (72, 700, "1 note", 7), (300, 760, str(number), 10))
    for number in range(5, 9))
OUTLINE = ('<outline><item page="1">Chapter One</item><outline><item page="2">'
           'x</item></outline></outline>')

PDF = {"book": ("%s\n----\n%s" % (LAYOUT, OUTLINE)).encode(),
       "outline": ("----\n" + OUTLINE).encode(), "page": page().encode()}

PROSE = "\n" + "It was the way of the wind there to turn at night.\n" * 10 + "\n"
DOCUMENT = {
    "chapters.txt": "".join("CHAPTER %s. Rain\n" % n + PROSE
                            for n in ("I", "II", "III")),
    "contents.txt": "Contents\n\nRain\nSnow\nWind\n\n" + "".join(
        name + "\n" + PROSE for name in ("Rain", "Snow", "Wind")),
    "underlined.txt": "T\n===\n\n1. A\n---\n\nx\n\n2. B\n---\n",
    "markdown.txt": "# T\n\n## A\n\n```\n# no\n```\n\n## B\n",
    "gutenberg.txt": "Title: T\n*** START OF THE PROJECT GUTENBERG EBOOK T ***"
                     "\nx\n*** END OF THE PROJECT GUTENBERG EBOOK T ***\n",
    "chinese.txt": "第一章　风\n　　他说。\n第二章　雨\n　　她说。\n",
}

RTF = {
    "styles.rtf": r"{\rtf1\ansi\ansicpg1252\deff0\deflang1031{\fonttbl{\f0"
                  r"\fcharset0 A;}{\f1\fcharset204 B;}{\f2\fcharset128 C;}}"
                  r"{\stylesheet{\s1\outlinelevel0 heading 1;}{\s2\sbasedon1 x;}"
                  r"{\*\cs3 y;}}{\info{\title T\'e9}{\author {\upr{A}{\*\ud "
                  r"\u193?}}}}\pard\s1 Chapter 1\par\pard caf\'e9\chftn{\footnote "
                  r"\chftn n}\line\f1\'cf\f2\'83A\tab\u-10179?\u-8704?\uc2\u8212 "
                  r"ab\~\emdash\par\pard\s2 Two\par}",
    "groups.rtf": r"{\rtf1\mac{\header h}{\pict\bin3 }}}a{\*\x y}\v b\v0"
                  r"{\deleted c}\trowd\pard\intbl d\cell e\cell\row\pard f\page"
                  r"{\field{\*\fldinst X}{\fldrslt g}}\outlinelevel1 h\sect}",
}
PARTS = ("MIME-Version: 1.0\r\nContent-Type: multipart/related;\r\n boundary="
         "\"b\"; start=\"<r@x>\"\r\n\r\n--b\r\nContent-Type: text/html; "
         "charset=koi8-r\r\nContent-ID: <r@x>\r\nContent-Transfer-Encoding: "
         "quoted-printable\r\n\r\n<frameset><frame src=3D'cid:f'><frame src=3D"
         "'http://a/=\r\nb'></frameset>\r\n--b\r\nContent-Type: text/html\r\n"
         "Content-ID: <f>\r\nContent-Transfer-Encoding: base64\r\n\r\n"
         "PGgxPjEuIE9uZTwvaDE+\r\n--b\r\nContent-Type: multipart/alternative; "
         "boundary=c\r\n\r\n--c\r\nContent-Type: text/html\r\nContent-Location: "
         "http://a/b\r\n\r\n<h1>2. Two</h1>x\r\n--c--\r\n--b--\r\n")
MHTML = {"frames.mht": PARTS,
         "one.mht": "Content-Type: text/html\n\n<h1>A</h1><p>b</p>"}


def main():
    for folder, seeds in (("document", DOCUMENT), ("epub", EPUB), ("pdf", PDF),
                          ("rtf", RTF), ("mhtml", MHTML)):
        (HERE / folder).mkdir(parents=True, exist_ok=True)
        for name, data in seeds.items():
            (HERE / folder / name).write_bytes(
                data.encode() if isinstance(data, str) else data)


main()
