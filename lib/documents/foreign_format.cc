#include "lib/documents/foreign_format.h"

#include "lib/documents/book_files.h"
#include "lib/documents/error.h"

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
