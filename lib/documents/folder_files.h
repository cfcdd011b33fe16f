#ifndef TIERCEL_LIB_DOCUMENTS_FOLDER_FILES_H_
#define TIERCEL_LIB_DOCUMENTS_FOLDER_FILES_H_

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lib/documents/book_files.h"

namespace tiercel::document {

// The regular files in a folder and in those below it. Links of the file
// system are not followed. Errors: too_many_files (kMaxZipFiles); zip_bomb (a
// limit on bytes); io_error.
class FolderFiles : public BookFiles {
 public:
  using Opened = std::variant<std::unique_ptr<FolderFiles>, Error>;

  static Opened Open(const std::string& path);
  std::variant<std::string, Error> Read(const std::string& path,
                                        uint64_t most) override;

 private:
  explicit FolderFiles(std::string path)
      : BookFiles(std::move(path), "folder") {}

  std::vector<std::string> paths_;  // by number
};

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_FOLDER_FILES_H_
