#include "apps/commands/readings.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "apps/cli/error.h"
#include "apps/commands/whole_file.h"
#include "lib/status/status_macros.h"

namespace tiercel::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kBegin[] = "reading-";
constexpr char kEnd[] = ".txt";

std::string FolderOf(const std::string& cache_dir) {
  return cache_dir + "/readings";
}

// Checks that only this user can have put files in the folder: it is this
// user's, and no other may write in it. If others may read it, it is closed to
// them. A folder that is missing is safe. Errors: unsafe_folder, io_error.
absl::Status CheckFolder(const fs::path& folder) {
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd == -1 && errno == ENOENT) return absl::OkStatus();
  const std::string name = "'" + folder.string() + "'";
  if (fd == -1) return SystemError("opening " + name);
  const absl::Cleanup end = [fd] { close(fd); };
  struct stat info;
  if (fstat(fd, &info) != 0) return SystemError("opening " + name);
  if (info.st_uid == geteuid() && (info.st_mode & 022) == 0) {
    const bool open_to_others = (info.st_mode & 077) != 0;
    return !open_to_others || fchmod(fd, 0700) == 0
               ? absl::OkStatus()
               : SystemError("closing " + name + " to others");
  }
  return Error(
      Exit::kIo, "unsafe_folder",
      absl::StrFormat("%s belongs to user %d and has mode %04o; need a folder "
                      "of user %d where nobody else may write (mode 0700)",
                      name, info.st_uid, info.st_mode & 07777, geteuid()));
}

// Makes the folder if it is missing, and checks it. Errors: CheckFolder's.
absl::Status MakeFolder(const fs::path& folder) {
  std::error_code ignored;  // mkdir reports it
  fs::create_directories(folder.parent_path(), ignored);
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return SystemError("making '" + folder.string() + "'");
  }
  return CheckFolder(folder);
}

// Reads a file; empty, which counts as damaged, if it cannot be read or is no
// regular file.
std::string BytesOf(const fs::path& path) {
  const int fd =
      open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd == -1) return "";
  std::string bytes;
  struct stat info;
  if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) {
    char part[1 << 16];
    for (ssize_t got; (got = read(fd, part, sizeof(part))) > 0;) {
      bytes.append(part, static_cast<size_t>(got));
    }
  }
  close(fd);
  return bytes;
}

// While one lives, no other process writes a reading in the folder. It waits
// for the lock for a second, since its holder may have been stopped, then goes
// on without it; parts that two processes add then may be made twice.
class FolderLock {
 public:
  explicit FolderLock(const fs::path& folder)
      : fd_(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    for (int i = 0; i < 20 && fd_ != -1; ++i) {
      if (flock(fd_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) break;
      usleep(50'000);
    }
  }
  ~FolderLock() {
    if (fd_ != -1) close(fd_);
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  const int fd_;
};

// The readings in the folder, in the order of their names; if `unfinished`,
// also the unfinished files of killed processes.
std::vector<fs::path> FilesIn(const std::string& cache_dir, bool unfinished) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator entry(FolderOf(cache_dir), error), end;
       !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename();
    std::error_code gone;
    if (!absl::StartsWith(name, kBegin) || !entry->is_regular_file(gone)) {
      continue;
    }
    const bool whole = absl::EndsWith(name, kEnd);
    const bool left =
        absl::EndsWith(name, ".tmp") && absl::StrContains(name, kEnd);
    if (whole || (unfinished && left)) files.push_back(entry->path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Returns [name, bytes, nanoseconds since 1970 of the last change].
Json StateOf(const fs::path& path) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) return Json::array();
  return {path.filename().string(), info.st_size,
          int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec};
}

// Returns [StateOf of each].
Json StatesOf(const std::string& model) {
  Json states = Json::array();
  for (const fs::path& file : CheckpointFiles(model)) {
    states.push_back(StateOf(file));
  }
  return states;
}

// Returns [name, bytes, a fingerprint of pieces from all over it], which are
// the same on every machine; empty: it cannot be read.
Json ContentOf(const fs::path& path) {
  constexpr int64_t kPieces = 256;
  constexpr int64_t kPieceBytes = 4096;
  std::error_code error;
  const auto bytes = static_cast<int64_t>(fs::file_size(path, error));
  std::ifstream file(path, std::ios::binary);
  if (error || !file) return Json::array();
  std::string pieces;
  std::string piece(kPieceBytes, 0);
  const int64_t step =
      std::max(kPieceBytes, (bytes - kPieceBytes) / (kPieces - 1));
  for (int64_t at = 0; at < bytes; at += step) {
    file.seekg(at);
    file.read(piece.data(), kPieceBytes);
    pieces.append(piece, 0, static_cast<size_t>(file.gcount()));
    file.clear();
  }
  return {path.filename().string(), bytes,
          reader::Hex(reader::Fingerprint(pieces))};
}

}  // namespace

std::vector<fs::path> CheckpointFiles(const std::string& model) {
  std::error_code error;
  if (fs::is_regular_file(model, error) &&
      !absl::StrContains(model, "-00001-of-")) {
    return {model};
  }
  const bool folder = fs::is_directory(model, error);
  const fs::path path(model);
  const std::string name = path.filename();
  const std::string begin = name.substr(0, name.find("-00001-of-") + 1);
  std::vector<fs::path> files;
  fs::directory_iterator entry(folder                   ? path
                               : path.has_parent_path() ? path.parent_path()
                                                        : ".",
                               error);
  for (const fs::directory_iterator end; !error && entry != end;
       entry.increment(error)) {
    if (folder || absl::StartsWith(entry->path().filename().string(), begin)) {
      files.push_back(entry->path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

Json ContentsOf(const std::string& model) {
  Json contents = Json::array();
  for (const fs::path& file : CheckpointFiles(model)) {
    Json content = ContentOf(file);
    if (!content.empty()) contents.push_back(std::move(content));
  }
  return contents;
}

Json SettingsKey(const Options& options) {
  const ModelOptions& computed = options.model;
  const SessionOptions& session = options.session;
  const SamplingOptions& drawn = options.sampling;
  return {
      {"template", {computed.think, computed.template_kwargs}},
      {"compute",
       {computed.device, computed.compute, computed.rope_scaling,
        computed.rope_scale, computed.rope_freq_base, computed.yarn_orig_ctx}},
      {"session",
       {session.context, session.kv_type_k, session.kv_type_v, session.budget,
        session.sink.value_or(-1), session.window, session.chunk}},
      {"sampling",
       {drawn.max_tokens, drawn.seed.value_or(0), drawn.temperature,
        drawn.top_k, drawn.top_p, drawn.min_p, drawn.repeat_penalty,
        drawn.stops, drawn.stop_ids, drawn.ignore_eos}},
      {"dry",
       {drawn.dry_multiplier, drawn.dry_base.value_or(0),
        drawn.dry_allowed_length.value_or(0), drawn.dry_breakers.has_value(),
        drawn.dry_breakers.value_or(std::vector<std::string>())}},
      {"policy",
       {drawn.policy, drawn.plain, drawn.settings, drawn.Drafter(),
        drawn.Verify(), drawn.gamma1, drawn.gamma2, drawn.cost_ratio,
        drawn.draft_layers, drawn.branches}}};
}

absl::StatusOr<std::string> ReadingKey(const Options& options,
                                       const Model& model,
                                       const std::string& text) {
  ASSIGN_OR_RETURN(const Json described, model.Describe());
  const BookOptions& book = options.book;
  const std::string& draft = options.sampling.draft_path;
  const Json key = {
      {"build", {tiercel_build_id(), tiercel_version()}},
      {"text", reader::Hex(reader::Fingerprint(text))},
      {"bytes", text.size()},
      {"model", StatesOf(options.model.path)},
      {"header", reader::Hex(reader::Fingerprint(Dump(described)))},
      {"draft_model", draft.empty() ? Json() : StatesOf(draft)},
      {"settings", SettingsKey(options)},
      {"asked",
       {book.words, book.language, book.instruction, options.questions}}};
  return Dump(key);
}

Reading Reading::Open(const Options& options, std::string key) {
  const std::string& cache_dir = options.session.cache_dir;
  if (!options.book.keeps || cache_dir.empty()) {
    return Reading("", reader::Journal(std::move(key)));
  }
  const std::string path =
      absl::StrCat(FolderOf(cache_dir), "/", kBegin,
                   reader::Hex(reader::Fingerprint(key)), kEnd);
  std::optional<reader::Journal> kept;
  if (CheckFolder(FolderOf(cache_dir)).ok()) {  // else Add reports it
    if (options.book.restart) unlink(path.c_str());
    kept = reader::Journal::Parse(BytesOf(path), key);
  }
  if (kept.has_value()) return Reading(path, *std::move(kept));
  return Reading(
      path, reader::Journal(std::move(key), options.session.prompt_cache_name));
}

absl::Status Reading::Add(int level, size_t index, uint64_t prompt,
                          reader::Writing writing) {
  journal_.Add(level, index, prompt, std::move(writing));
  if (path_.empty()) return absl::OkStatus();
  if (*tiercel_build_id() == '\0') {
    return Error(Exit::kFailed, "no_build_id",
                 "nothing tells this build of the program from another, which "
                 "may write other texts");
  }
  const fs::path folder = fs::path(path_).parent_path();
  RETURN_IF_ERROR(MakeFolder(folder));
  const FolderLock lock(folder);
  std::optional<reader::Journal> others =
      reader::Journal::Parse(BytesOf(path_), journal_.key());
  if (others.has_value()) journal_.Merge(*std::move(others));
  // WholeFile would write into a device or a pipe, and wait for its reader.
  struct stat info;
  if (lstat(path_.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    unlink(path_.c_str());
  }
  ASSIGN_OR_RETURN(WholeFile file, WholeFile::Create(path_, /*mode=*/0600));
  RETURN_IF_ERROR(file.Write(journal_.Serialize()));
  return file.Finish();
}

Json ListReadings(const std::string& cache_dir) {
  Json list = Json::array();
  for (const fs::path& path : FilesIn(cache_dir, /*unfinished=*/false)) {
    struct stat info = {};
    if (stat(path.c_str(), &info) != 0) continue;  // gone by now
    Json row = {{"file", path.filename().string()},
                {"bytes", info.st_size},
                {"modified", info.st_mtim.tv_sec}};
    const std::optional<reader::JournalHead> head =
        reader::HeadOf(BytesOf(path));
    if (head.has_value()) row["parts"] = head->parts;
    if (head.has_value() && !head->name.empty()) row["name"] = head->name;
    list.push_back(std::move(row));
  }
  return list;
}

size_t ClearReadings(const std::string& cache_dir) {
  size_t removed = 0;
  for (const fs::path& path : FilesIn(cache_dir, /*unfinished=*/true)) {
    std::error_code error;
    if (fs::remove(path, error)) ++removed;
  }
  std::error_code not_empty;
  fs::remove(FolderOf(cache_dir), not_empty);
  return removed;
}

}  // namespace tiercel::cli
