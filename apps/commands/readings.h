#ifndef TIERCEL_APPS_COMMANDS_READINGS_H_
#define TIERCEL_APPS_COMMANDS_READINGS_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apps/cli/options.h"
#include "apps/commands/api.h"
#include "apps/reader/journal.h"
#include "apps/terminal/output.h"

namespace tiercel::cli {

// The journals of books that were read in parts, in the folder readings/ of the
// cache (0700; each file 0600, whole or not there). In a folder that is another
// user's, or others may write in, none is looked for or kept.
class Reading {
 public:
  // The journal of what `key` says, if one is kept; else an empty one. Where
  // `options` keep nothing, or there is no folder, it is empty and stays here.
  static Reading Open(const Options& options, std::string key);

  const reader::Journal& journal() const { return journal_; }
  bool keeps() const { return !path_.empty(); }
  void StopKeeping() { path_.clear(); }
  // Adds to it, on the disk too, where what another process has added meanwhile
  // stays. Errors: no_build_id, unsafe_folder, io_error.
  absl::Status Add(int level, size_t index, uint64_t prompt,
                   reader::Writing writing);

 private:
  Reading(std::string path, reader::Journal journal)
      : path_(std::move(path)), journal_(std::move(journal)) {}

  std::string path_;  // empty: nothing is kept
  reader::Journal journal_;
};

// All that a book's parts follow from: its text, the model's file, the command
// line, and the program, of which each build is another.
absl::StatusOr<std::string> ReadingKey(const Options& options,
                                       const Model& model,
                                       const std::string& text);

// The readings of a cache: [{"file", "bytes", "modified": seconds since 1970,
// "parts", "name": of the book}], of a file that is not whole without the last
// two.
Json ListReadings(const std::string& cache_dir);
// Removes them, and no other file; how many there were.
size_t ClearReadings(const std::string& cache_dir);

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_COMMANDS_READINGS_H_
