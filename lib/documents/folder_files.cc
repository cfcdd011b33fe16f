#include "lib/documents/folder_files.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "lib/documents/error.h"
#include "lib/documents/file.h"
#include "lib/documents/zip_archive.h"

namespace tiercel::document {

namespace fs = std::filesystem;

FolderFiles::Opened FolderFiles::Open(const std::string& path) {
  std::unique_ptr<FolderFiles> files(new FolderFiles(path));
  std::error_code failed;
  fs::recursive_directory_iterator entry(path, failed);
  for (; !failed && entry != fs::end(entry); entry.increment(failed)) {
    std::error_code gone;
    const fs::file_status status = entry->symlink_status(gone);
    if (gone || !fs::is_regular_file(status)) continue;
    if (files->paths_.size() == static_cast<size_t>(kMaxZipFiles)) {
      return InputError(
          path, "too_many_files",
          "has more than " + std::to_string(kMaxZipFiles) + " files");
    }
    files->paths_.push_back(entry->path().string());
  }
  if (failed) {
    return Error{Error::Kind::kIo, "io_error",
                 path + ": cannot read the folder: " + failed.message()};
  }
  // Sorted, so that of two names that differ in case one counts in each run.
  std::sort(files->paths_.begin(), files->paths_.end());
  for (size_t i = 0; i < files->paths_.size(); ++i) {
    files->Add(
        fs::path(files->paths_[i]).lexically_relative(path).generic_string(),
        static_cast<int64_t>(i));
  }
  return files;
}

std::variant<std::string, Error> FolderFiles::Read(const std::string& path,
                                                   uint64_t most) {
  const int64_t number = NumberOf(path);
  if (number < 0) return NoSuchFile(path);
  auto bytes = ReadFile(paths_[static_cast<size_t>(number)]);
  const auto* const read = std::get_if<std::string>(&bytes);
  if (read != nullptr && read->size() > most) {
    return InputError(name_, "zip_bomb",
                      "'" + ShownPath(path) + "' has " +
                          std::to_string(read->size()) +
                          " bytes, reads at most " + std::to_string(most));
  }
  return bytes;
}

}  // namespace tiercel::document
