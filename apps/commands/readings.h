#ifndef TIERCEL_APPS_COMMANDS_READINGS_H_
#define TIERCEL_APPS_COMMANDS_READINGS_H_

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apps/cli/options.h"
#include "apps/commands/model.h"
#include "apps/notes/journal.h"
#include "apps/terminal/output.h"

namespace tiercel::cli {

// The journal of a book that is read in parts, kept in the folder readings/ of
// the cache (0700; each file 0600, whole or not there). A folder that belongs
// to another user, or in which others may write, is not used.
class Reading {
 public:
  // Opens the journal of `key`, if one is kept; else an empty one. If `options`
  // keep nothing, or there is no folder, it is empty and is kept in memory
  // alone.
  static Reading Open(const Options& options, std::string key);

  const reader::Journal& journal() const { return journal_; }
  bool keeps() const { return !path_.empty(); }
  void StopKeeping() { path_.clear(); }
  // Adds to the journal, on the disk too, where entries that another process
  // has added meanwhile stay. Errors: no_build_id, unsafe_folder, io_error.
  absl::Status Add(int level, size_t index, uint64_t prompt,
                   reader::Writing writing);

 private:
  Reading(std::string path, reader::Journal journal)
      : path_(std::move(path)), journal_(std::move(journal)) {}

  std::string path_;  // empty: nothing is kept
  reader::Journal journal_;
};

// The settings of the command line on which texts depend, whatever is asked.
Json SettingsKey(const Options& options);
// The files of a checkpoint, sorted: one, those of a folder, or all of a split.
std::vector<std::filesystem::path> CheckpointFiles(const std::string& model);
// The files of a checkpoint, one, those of a folder or all of a split: [[name,
// bytes, a fingerprint of some of these], ...], the same on every machine.
Json ContentsOf(const std::string& model);

// Returns a key for all that the parts of a book depend on: its text, the
// model's file, the command line, and the build of the program.
absl::StatusOr<std::string> ReadingKey(const Options& options,
                                       const Model& model,
                                       const std::string& text);

// The readings of a cache: [{"file", "bytes", "modified": seconds since 1970,
// "parts", "name": of the book}]; a damaged file lacks the last two.
Json ListReadings(const std::string& cache_dir);
// Removes the readings, and no other file; returns their number.
size_t ClearReadings(const std::string& cache_dir);

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_COMMANDS_READINGS_H_
