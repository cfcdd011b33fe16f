#ifndef TIERCEL_LIB_DOCUMENTS_BOOK_FILES_H_
#define TIERCEL_LIB_DOCUMENTS_BOOK_FILES_H_

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "lib/documents/document.h"

namespace tiercel::document {

// The files of a book, of an archive or of a folder, by their paths.
//
// Paths are read as their makers meant them: '\\' separates folders, too, and
// one at the start means the root. Two that differ in case or in the
// composition of their accents (NFC, NFD) are one.
class BookFiles {
 public:
  virtual ~BookFiles() = default;
  BookFiles(const BookFiles&) = delete;
  BookFiles& operator=(const BookFiles&) = delete;

  // Makes the folder in which `path` lies the root of all paths, if only a
  // folder has it: books are also packed together with their folder.
  void FindRoot(const std::string& path);
  bool Has(const std::string& path) const { return NumberOf(path) >= 0; }
  // "archive" or "folder", for messages.
  const std::string& kind() const { return kind_; }
  // The keys of paths that end in `extension`, in lower case.
  std::vector<std::string> PathsWith(const std::string& extension) const;
  // Returns the number of a file, which is one for all its names; -1: there is
  // no such file.
  int64_t NumberOf(const std::string& path) const;
  // Reads a file that exists. More than `most` bytes are a zip_bomb.
  virtual std::variant<std::string, Error> Read(const std::string& path,
                                                uint64_t most) = 0;

 protected:
  BookFiles(std::string name, std::string kind)
      : name_(std::move(name)), kind_(std::move(kind)) {}
  // Gives a file a path, and the one that links may have for it.
  void Add(const std::string& path, int64_t number);
  Error NoSuchFile(const std::string& path) const;

  const std::string name_;  // the book's, for errors

 private:
  const std::string kind_;
  std::unordered_map<std::string, int64_t> numbers_;  // by key
  std::string root_;  // the key of a folder, with a '/' at its end; or empty
};

// Returns a path as errors show it.
std::string ShownPath(std::string_view path);

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_BOOK_FILES_H_
