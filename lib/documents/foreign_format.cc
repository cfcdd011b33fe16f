#include "lib/documents/foreign_format.h"

#include "lib/documents/book_files.h"
#include "lib/documents/encoding.h"
#include "lib/documents/error.h"
#include "lib/documents/xml.h"

namespace tiercel::document {
namespace {

constexpr std::string_view kByOffice =
    "; convert it with LibreOffice (soffice --convert-to epub)";
constexpr std::string_view kByCalibre =
    "; convert it with Calibre (ebook-convert BOOK BOOK.epub)";
constexpr std::string_view kUnpack = "; unpack it first";

struct Signature {
  size_t at;
  std::string_view bytes;
  std::string_view format;
  std::string_view advice;
};
using namespace std::string_view_literals;
constexpr Signature kSignatures[] = {
    {0, "\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1", "a document of Microsoft Office",
     kByOffice},
    {60, "BOOKMOBI", "a Kindle book (MOBI, AZW3)", kByCalibre},
    {60, "TEXtREAd", "a Palm book (PDB)", kByCalibre},
    {0, "TPZ0", "a Kindle book (Topaz)", kByCalibre},
    {0,
     "\xEA"
     "DRMION\xEE",
     "an encrypted Kindle book (KFX)", ""},
    {0, "CONT\x02\0"sv, "a Kindle book (KFX)", kByCalibre},
    {0, "ITOLITLS", "a Microsoft Reader book (LIT)", kByCalibre},
    {0, "ITSF", "a compiled help file (CHM)", kByCalibre},
    {0, "AT&TFORM", "DjVu",
     "; take its text with DjVuLibre (djvutxt BOOK.djvu BOOK.txt)"},
    {0, "%!PS", "PostScript", "; convert it with Ghostscript (ps2pdf)"},
    {0, "\x1F\x8B", "a gzip file", kUnpack},
    {0, "BZh", "a bzip2 file", kUnpack},
    {0,
     "\xFD"
     "7zXZ\0"sv,
     "an xz file", kUnpack},
    {0, "\x28\xB5\x2F\xFD", "a Zstandard file", kUnpack},
    {0, "7z\xBC\xAF\x27\x1C", "a 7-Zip archive", kUnpack},
    {0, "Rar!\x1A\x07", "a RAR archive", kUnpack},
    {257, "ustar", "a tar archive", kUnpack},
    {0, "\x89PNG\r\n", "a picture (PNG)", "; it needs text recognition"},
    {0, "\xFF\xD8\xFF", "a picture (JPEG)", "; it needs text recognition"},
    {0, "II*\0"sv, "a picture (TIFF)", "; it needs text recognition"},
    {0, "MM\0*"sv, "a picture (TIFF)", "; it needs text recognition"},
};

// A form of XML: its root element, and what the file's beginning or the
// element's namespace says as well, in lower case.
struct XmlForm {
  std::string_view root;
  std::string_view says;
  std::string_view format;
  std::string_view advice;
};
constexpr std::string_view kFromDocBook =
    "; convert it with pandoc (pandoc -f docbook BOOK -o BOOK.epub)";
constexpr std::string_view kFromJats =
    "; convert it with pandoc (pandoc -f jats BOOK -o BOOK.epub)";
constexpr XmlForm kXmlForms[] = {
    {"document", "opendocument", "a flat OpenDocument file (FODT)", kByOffice},
    {"wordDocument", "", "a document of Microsoft Word (XML)", kByOffice},
    {"package", "xmlpackage", "a document of Microsoft Word (XML)", kByOffice},
    {"book", "docbook", "DocBook", kFromDocBook},
    {"article", "docbook", "DocBook", kFromDocBook},
    {"chapter", "docbook", "DocBook", kFromDocBook},
    {"set", "docbook", "DocBook", kFromDocBook},
    {"article", "jats", "an article in JATS", kFromJats},
    {"TEI", "", "TEI", "; convert it to HTML or EPUB"},
    {"TEI.2", "", "TEI", "; convert it to HTML or EPUB"},
    {"dtbook", "", "a DAISY book (DTBook)", "; convert it to HTML or EPUB"},
};

// Returns the form of XML that bytes begin; null for others.
const XmlForm* XmlFormOf(std::string_view bytes) {
  constexpr size_t kSeen = 4096;
  bytes.remove_prefix(FindByteOrderMark(bytes).bytes);
  const size_t first = bytes.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || bytes[first] != '<') return nullptr;
  const std::string start = ValidUtf8(bytes.substr(first, kSeen));
  const XmlTree tree(start, XmlTree::Repair::kParts);
  if (tree.root() == nullptr) return nullptr;
  const std::string_view root = LocalName(*tree.root());
  const std::string lower = Lowercase(start);
  for (const XmlForm& form : kXmlForms) {
    if (root == form.root && lower.find(form.says) != std::string::npos) {
      return &form;
    }
  }
  return nullptr;
}

Error Foreign(const std::string& name, std::string_view format,
              std::string_view advice) {
  return InputError(name, "unsupported_document",
                    std::string("is ")
                        .append(format)
                        .append(", which is not read")
                        .append(advice));
}

}  // namespace

std::optional<Error> ForeignFormat(const std::string& name,
                                   std::string_view bytes) {
  for (const Signature& signature : kSignatures) {
    if (bytes.size() >= signature.at &&
        bytes.substr(signature.at, signature.bytes.size()) == signature.bytes) {
      return Foreign(name, signature.format, signature.advice);
    }
  }
  if (const XmlForm* form = XmlFormOf(bytes); form != nullptr) {
    return Foreign(name, form->format, form->advice);
  }
  return std::nullopt;
}

Error ForeignArchive(const std::string& name, const BookFiles& archive) {
  if (archive.Has("word/document.xml")) {
    return Foreign(name, "a document of Microsoft Word (DOCX)", kByOffice);
  }
  if (archive.Has("content.xml") && archive.Has("META-INF/manifest.xml")) {
    return Foreign(name, "an OpenDocument file (ODT)", kByOffice);
  }
  return InputError(name, "unsupported_document",
                    "is a ZIP archive without a book (EPUB, FB2) in it");
}

}  // namespace tiercel::document
