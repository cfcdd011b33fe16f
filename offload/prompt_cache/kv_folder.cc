#include "offload/prompt_cache/kv_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <system_error>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"
#include "offload/disk/page_reader.h"

namespace tiercel {
namespace {

constexpr std::string_view kTextBegin = "text-";
constexpr std::string_view kPartBegin = "part-";
constexpr std::string_view kPromptBegin = "prompt-";
constexpr std::string_view kEnd = ".kv";
constexpr size_t kDigits = 16;

std::string Digits(const void* bytes, size_t count) {
  return absl::StrCat(absl::Hex(XXH3_64bits(bytes, count), absl::kZeroPad16));
}

// The beginning of the names of this kind for texts with the first ids of
// `ids`.
std::string NameBegin(std::string_view kind, const std::string& fingerprint,
                      absl::Span<const int32_t> ids) {
  return absl::StrCat(
      std::string(kind), Digits(fingerprint.data(), fingerprint.size()), "-",
      Digits(ids.data(), KvFolder::kLeastTokens * sizeof(int32_t)), "-");
}

std::string NameOf(std::string_view kind, const std::string& fingerprint,
                   absl::Span<const int32_t> ids) {
  return absl::StrCat(NameBegin(kind, fingerprint, ids),
                      Digits(ids.data(), ids.size() * sizeof(int32_t)),
                      std::string(kEnd));
}

// Returns true if the name has three hashes between `kind` and the end.
bool HasHashes(std::string_view kind, std::string_view name) {
  if (!name.starts_with(kind) || !name.ends_with(kEnd) ||
      name.size() != kind.size() + 3 * kDigits + 2 + kEnd.size()) {
    return false;
  }
  name = name.substr(kind.size(), 3 * kDigits + 2);
  for (size_t i = 0; i < name.size(); ++i) {
    const bool dash = i % (kDigits + 1) == kDigits;
    const std::string_view may_be = dash ? "-" : "0123456789abcdef";
    if (may_be.find(name[i]) == std::string_view::npos) return false;
  }
  return true;
}

bool IsText(std::string_view name) { return HasHashes(kTextBegin, name); }

bool IsPrompt(std::string_view name) { return HasHashes(kPromptBegin, name); }

bool IsPart(std::string_view name) {
  return name.starts_with(kPartBegin) && name.ends_with(kEnd) &&
         name.size() > kPartBegin.size() + kEnd.size() &&
         name.substr(kPartBegin.size(),
                     name.size() - kPartBegin.size() - kEnd.size())
                 .find_first_not_of("0123456789-") == std::string_view::npos;
}

bool IsTextOrPrompt(std::string_view name) {
  return IsText(name) || IsPrompt(name);
}

int64_t NanosecondsOf(const timespec& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// Returns true if the title of a file names a text, whose parts have it, too.
bool NamesText(std::string_view title) {
  return title.find('\0') != std::string_view::npos;
}

// The number of ids that two texts share before the first that differs.
int64_t CommonBeginning(absl::Span<const int32_t> a,
                        absl::Span<const int32_t> b) {
  return std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first -
         a.begin();
}

absl::Status CannotRead(const std::string& path, int error) {
  return DiskError(path, "read the folder", error);
}

}  // namespace

// The open folder.
class KvFolder::Handle {
 public:
  ~Handle() {
    if (folder_ >= 0) close(folder_);
  }
  Handle(Handle&& other) noexcept
      : path_(std::move(other.path_)),
        folder_(std::exchange(other.folder_, -1)) {}
  Handle& operator=(Handle&&) = delete;

  // Opens the folder, or the one to which a link leads; absent if there is
  // none. Errors: io_error.
  static absl::StatusOr<std::optional<Handle>> ToList(const std::string& path) {
    const int folder = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) {
      if (errno == ENOENT) return std::nullopt;
      return DiskError(path, "open the folder", errno);
    }
    return std::optional<Handle>(Handle(path, folder));
  }
  // Opens the folder for files that are to be used, so only this user may be
  // able to write to it; absent if there is none. Errors: unsafe_folder,
  // io_error.
  static absl::StatusOr<std::optional<Handle>> ToRead(const std::string& path) {
    absl::StatusOr<std::optional<Handle>> handle = ToList(path);
    if (!handle.ok() || !handle->has_value()) return handle;
    struct stat status;
    if (fstat((*handle)->fd(), &status) != 0) return CannotRead(path, errno);
    if (status.st_uid == geteuid() && (status.st_mode & 022) == 0) {
      return handle;
    }
    return IoError("unsafe_folder",
                   absl::StrCat(path,
                                ": others may write there; need a folder "
                                "of this user alone"));
  }
  // Opens the folder for files that are to be used, and makes it if there is
  // none. Errors: those of ToRead.
  static absl::StatusOr<Handle> ToWrite(const std::string& path) {
    std::error_code ignored;  // opening the folder reports errors
    std::filesystem::create_directories(
        std::filesystem::path(path).parent_path(), ignored);
    if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
      return DiskError(path, "make the folder", errno);
    }
    ASSIGN_OR_RETURN(std::optional<Handle> handle, ToRead(path));
    if (handle.has_value()) return *std::move(handle);
    return DiskError(path, "make the folder", ENOENT);
  }

  int fd() const { return folder_; }

  // Lists files for whose names `ours` returns true, by name. Errors: io_error.
  absl::StatusOr<std::vector<Listed>> List(
      bool (*ours)(std::string_view)) const {
    const int again = openat(folder_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR* const stream = again >= 0 ? fdopendir(again) : nullptr;
    if (stream == nullptr) {
      const int error = errno;
      if (again >= 0) close(again);
      return CannotRead(path_, error);
    }
    const absl::Cleanup end = [stream] { closedir(stream); };
    std::vector<Listed> files;
    for (;;) {
      errno = 0;
      const dirent* const entry = readdir(stream);
      if (entry == nullptr) break;
      struct stat status;
      if (!ours(entry->d_name) ||
          fstatat(folder_, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
          !S_ISREG(status.st_mode)) {
        continue;  // no file of ours, or one that was removed just now
      }
      files.push_back({entry->d_name, static_cast<uint64_t>(status.st_size),
                       NanosecondsOf(status.st_mtim)});
    }
    if (errno != 0) return CannotRead(path_, errno);
    std::sort(files.begin(), files.end(),
              [](const Listed& a, const Listed& b) { return a.name < b.name; });
    return files;
  }

 private:
  Handle(std::string path, int folder)
      : path_(std::move(path)), folder_(folder) {}

  std::string path_;
  int folder_;
};

// ---- Locks ----

KvFolder::Holder KvFolder::TryLock(int file) const {
  if (disk_.Lock(file, LOCK_EX | LOCK_NB) == 0) return Holder::kNobody;
  return errno == EWOULDBLOCK ? Holder::kAnother : Holder::kUnknown;
}

// RemoveParts of another process may have been quicker, and have removed the
// file, which it locks meanwhile: so this call waits for the lock, then looks.
bool KvFolder::Claim(int file) const {
  disk_.Lock(file, LOCK_EX);
  struct stat status;
  return fstat(file, &status) != 0 || status.st_nlink > 0;
}

KvFolder::Holder KvFolder::HolderOf(const Handle& folder,
                                    const std::string& name) const {
  const int file =
      disk_.Open(folder.fd(), name.c_str(),
                 O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
  if (file < 0) return Holder::kUnknown;
  const Holder holder = TryLock(file);
  disk_.Close(file);
  return holder;
}

bool KvFolder::RemoveFree(const Handle& folder, const std::string& name,
                          bool surely) const {
  const int file =
      disk_.Open(folder.fd(), name.c_str(),
                 O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
  if (file < 0) return false;
  const absl::Cleanup unlock = [&] { disk_.Close(file); };
  const Holder holder = TryLock(file);
  return holder != Holder::kAnother && (holder == Holder::kNobody || !surely) &&
         disk_.Remove(folder.fd(), name.c_str()) == 0;
}

absl::StatusOr<int64_t> KvFolder::RemoveParts(const Handle& folder,
                                              bool surely) const {
  ASSIGN_OR_RETURN(const std::vector<Listed> parts, folder.List(IsPart));
  int64_t removed = 0;
  for (const Listed& part : parts) {
    removed += RemoveFree(folder, part.name, surely);
  }
  return removed;
}

// ---- Finding ----

// The kernel marks files by a clock that may be some milliseconds late.
int64_t KvFolder::NowNs() {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return NanosecondsOf(now);
}

absl::StatusOr<std::optional<KvFolder::Found>> KvFolder::Find(
    const std::string& fingerprint, absl::Span<const int32_t> ids) const {
  if (static_cast<int64_t>(ids.size()) < kLeastTokens) return std::nullopt;
  ASSIGN_OR_RETURN(const std::optional<Handle> folder, Handle::ToRead(path_));
  if (!folder.has_value()) return std::nullopt;
  ASSIGN_OR_RETURN(const std::vector<Listed> files, folder->List(IsText));
  const std::string begin = NameBegin(kTextBegin, fingerprint, ids);
  std::optional<Found> best;
  absl::Status failed;
  for (const Listed& listed : files) {
    if (!std::string_view(listed.name).starts_with(begin)) continue;
    absl::StatusOr<std::unique_ptr<KvFile>> file =
        KvFile::Open(disk_, folder->fd(), listed.name);
    if (!file.ok()) {
      if (CodeOf(file.status()) == "text_damaged") {
        disk_.Remove(folder->fd(), listed.name.c_str());
      } else if (CodeOf(file.status()) == "io_error") {
        failed.Update(file.status());
      }
      continue;
    }
    const KvFileInfo& info = (*file)->info();
    if (info.fingerprint != fingerprint) continue;
    const int64_t common = CommonBeginning(info.ids, ids);
    if (common < kLeastTokens) continue;
    if (!best.has_value() || common > best->common) {
      best = Found{*std::move(file), common};
    }
  }
  if (!best.has_value() && !failed.ok()) return failed;
  return best;
}

std::optional<PromptFile::Finished> KvFolder::FindPrompt(
    const std::string& fingerprint, absl::Span<const int32_t> ids) const {
  const absl::StatusOr<std::optional<Handle>> folder = Handle::ToRead(path_);
  if (!folder.ok() || !folder->has_value()) return std::nullopt;
  const std::string name = NameOf(kPromptBegin, fingerprint, ids);
  absl::StatusOr<PromptFile::Finished> finished =
      PromptFile::ReadFinished(disk_, (*folder)->fd(), name);
  if (!finished.ok() || finished->info.fingerprint != fingerprint ||
      finished->info.ids != ids ||
      HolderOf(**folder, name) == Holder::kAnother) {
    return std::nullopt;
  }
  return *std::move(finished);
}

void KvFolder::Remove(const std::string& name) const {
  const absl::StatusOr<std::optional<Handle>> folder = Handle::ToRead(path_);
  if (folder.ok() && folder->has_value()) {
    disk_.Remove((*folder)->fd(), name.c_str());
  }
}

// ---- Keeping ----

uint64_t KvFolder::Bytes(absl::Span<const Listed> files) {
  uint64_t bytes = 0;
  for (const Listed& file : files) bytes += file.bytes;
  return bytes;
}

void KvFolder::MakeRoom(const Handle& folder, const std::string& name,
                        const KvFileInfo& info) const {
  const absl::StatusOr<std::vector<Listed>> files = folder.List(IsTextOrPrompt);
  if (!files.ok()) return;  // the next save makes room
  const std::string texts = NameBegin(kTextBegin, info.fingerprint, info.ids);
  const std::string prompts =
      NameBegin(kPromptBegin, info.fingerprint, info.ids);
  for (const Listed& file : *files) {
    const std::string_view other = file.name;
    if (other != name && other.starts_with(texts) &&
        BeginsWith(folder, info, file.name)) {
      disk_.Remove(folder.fd(), file.name.c_str());
    } else if (other.starts_with(prompts) && Serves(folder, info, file.name)) {
      RemoveFree(folder, file.name, /*surely=*/false);
    }
  }
  Evict(folder, name, info.title);
}

bool KvFolder::Stays(const Handle& folder, const std::string& name,
                     int64_t used_ns, const std::string& title) const {
  if (used_ns < since_ns_ || !IsText(name) || !NamesText(title)) return false;
  const absl::StatusOr<std::unique_ptr<KvFile>> file =
      KvFile::Open(disk_, folder.fd(), name);
  return file.ok() && (*file)->info().title == title;
}

bool KvFolder::HasRoomFor(const Handle& folder, const KvFileInfo& info) const {
  const absl::StatusOr<std::vector<Listed>> files = folder.List(IsText);
  if (!files.ok()) return true;  // writing reports errors
  const std::string name = NameOf(kTextBegin, info.fingerprint, info.ids);
  uint64_t held = info.FileBytes();
  for (const Listed& file : *files) {
    if (file.name != name &&
        Stays(folder, file.name, file.used_ns, info.title) &&
        !BeginsWith(folder, info, file.name)) {
      held += file.bytes;
    }
  }
  return held <= most_bytes_;
}

std::vector<KvFolder::Listed> KvFolder::FilesOverLimit(
    const Handle& folder) const {
  absl::StatusOr<std::vector<Listed>> files = folder.List(IsTextOrPrompt);
  if (!files.ok() || Bytes(*files) <= most_bytes_) return {};
  std::erase_if(*files, [&](const Listed& file) {
    return IsPrompt(file.name) &&
           HolderOf(folder, file.name) == Holder::kAnother;
  });
  return *std::move(files);
}

bool KvFolder::RemoveInTurn(const Handle& folder,
                            absl::Span<const Listed> files,
                            absl::FunctionRef<bool(const Listed&)> kept) const {
  uint64_t held = Bytes(files);
  for (const Listed& file : files) {
    if (held <= most_bytes_) break;
    if (kept(file)) continue;
    const bool removed = IsText(file.name)
                             ? disk_.Remove(folder.fd(), file.name.c_str()) == 0
                             : RemoveFree(folder, file.name, /*surely=*/false);
    if (removed) held -= file.bytes;
  }
  return held <= most_bytes_;
}

void KvFolder::Evict(const Handle& folder, const std::string& name,
                     const std::string& title) const {
  std::vector<Listed> files = FilesOverLimit(folder);
  std::sort(files.begin(), files.end(), [](const Listed& a, const Listed& b) {
    return a.used_ns < b.used_ns;
  });
  const auto kept = [&](const Listed& file) {
    return file.name == name || Stays(folder, file.name, file.used_ns, title);
  };
  // Two parts that were written at once may have had room for one.
  if (!RemoveInTurn(folder, files, kept) && IsText(name)) {
    disk_.Remove(folder.fd(), name.c_str());
  }
}

void KvFolder::Trim() const {
  const absl::StatusOr<std::optional<Handle>> folder = Handle::ToRead(path_);
  if (!folder.ok() || !folder->has_value()) return;
  std::vector<Listed> files = FilesOverLimit(**folder);
  std::sort(files.begin(), files.end(), [&](const Listed& a, const Listed& b) {
    const bool is_new = a.used_ns >= since_ns_;
    if (is_new != (b.used_ns >= since_ns_)) return !is_new;
    return is_new ? a.used_ns > b.used_ns : a.used_ns < b.used_ns;
  });
  RemoveInTurn(**folder, files, [](const Listed&) { return false; });
}

bool KvFolder::BeginsWith(const Handle& folder, const KvFileInfo& info,
                          const std::string& name) const {
  const absl::StatusOr<std::unique_ptr<KvFile>> file =
      KvFile::Open(disk_, folder.fd(), name);
  if (!file.ok() || (*file)->info().fingerprint != info.fingerprint) {
    return false;
  }
  const std::vector<int32_t>& ids = (*file)->info().ids;
  return ids.size() < info.ids.size() &&
         std::equal(ids.begin(), ids.end(), info.ids.begin());
}

bool KvFolder::Serves(const Handle& folder, const KvFileInfo& info,
                      const std::string& name) const {
  const absl::StatusOr<PromptFile::Finished> prompt =
      PromptFile::ReadFinished(disk_, folder.fd(), name);
  if (!prompt.ok() || prompt->info.fingerprint != info.fingerprint) {
    return false;
  }
  return prompt->IsServedBy(CommonBeginning(info.ids, prompt->info.ids));
}

absl::Status KvFolder::Save(const KvFileInfo& info, const HeldPages& pages,
                            absl::FunctionRef<bool()> cancelled,
                            const std::string& prompt) const {
  ASSIGN_OR_RETURN(const Handle folder, Handle::ToWrite(path_));
  if (info.FileBytes() > most_bytes_) {
    return IoError("disk_full",
                   absl::StrCat(path_, ": the text needs ", info.FileBytes(),
                                " bytes, the folder may have ", most_bytes_));
  }
  if (!HasRoomFor(folder, info)) {
    if (!prompt.empty()) disk_.Remove(folder.fd(), prompt.c_str());
    return IoError(
        "prompt_cache_full",
        absl::StrCat(path_, ": other parts of this text have the ", most_bytes_,
                     " bytes that the folder may have"));
  }
  RETURN_IF_ERROR(RemoveParts(folder, /*surely=*/true).status());
  // The part gets a name that no other writer has.
  static std::atomic<int> turn{0};
  constexpr int kMostTries = 100;
  std::string part;
  int file = -1;
  for (int tries = 0; file < 0; ++tries) {
    part = absl::StrCat(std::string(kPartBegin), getpid(), "-", turn++,
                        std::string(kEnd));
    file = disk_.Open(folder.fd(), part.c_str(),
                      O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0 && (errno != EEXIST || tries == kMostTries)) {
      return DiskError(path_, absl::StrCat("make ", part), errno);
    }
    if (file >= 0 && !Claim(file) && tries < kMostTries) {
      disk_.Close(std::exchange(file, -1));
    }
  }
  absl::Cleanup remove = [&] { disk_.Remove(folder.fd(), part.c_str()); };
  absl::Cleanup end = [&] { disk_.Close(file); };  // after an exception
  absl::Status status = WriteKvFile(disk_, file, path_, info, pages, cancelled);
  const std::string name = NameOf(kTextBegin, info.fingerprint, info.ids);
  if (status.ok() &&
      disk_.Rename(folder.fd(), part.c_str(), name.c_str()) != 0) {
    status = DiskError(path_, absl::StrCat("rename to ", name), errno);
  }
  // Closing releases the lock: under its final name the file needs none.
  std::move(end).Cancel();
  if (disk_.Close(file) != 0 && status.ok()) {
    status = DiskError(path_, absl::StrCat("close ", name), errno);
    part = name;
  }
  if (!status.ok()) return status;
  std::move(remove).Cancel();
  // Without this a crash may lose the name, though the contents are on the
  // disk.
  if (disk_.SyncFolder(folder.fd()) != 0) {
    return DiskError(path_, "bring the folder to the disk", errno);
  }
  if (!prompt.empty()) disk_.Remove(folder.fd(), prompt.c_str());
  MakeRoom(folder, name, info);
  return absl::OkStatus();
}

// ---- Prompts ----

absl::StatusOr<int> KvFolder::OpenNameless() const {
  ASSIGN_OR_RETURN(const Handle folder, Handle::ToWrite(path_));
  const int file =
      disk_.Open(folder.fd(), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file >= 0) return file;
  if (errno != EOPNOTSUPP && errno != EISDIR) {
    return DiskError(path_, "open a file without a name", errno);
  }
  // If the file system has no nameless files, the file has a name for a moment.
  static std::atomic<int> turn{0};
  const std::string name = absl::StrCat(std::string(kPartBegin), getpid(),
                                        "-0-", turn++, std::string(kEnd));
  const int named = disk_.Open(
      folder.fd(), name.c_str(),
      O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, 0600);
  if (named < 0) return DiskError(path_, absl::StrCat("open ", name), errno);
  disk_.Remove(folder.fd(), name.c_str());
  return named;
}

absl::StatusOr<std::unique_ptr<PromptFile>> KvFolder::OpenPrompt(
    const PromptInfo& info, bool anew) const {
  if (info.FileBytes() > most_bytes_) return nullptr;
  ASSIGN_OR_RETURN(const Handle folder, Handle::ToWrite(path_));
  const std::string name = NameOf(kPromptBegin, info.fingerprint, info.ids);
  constexpr int kMostTries = 100;
  for (int tries = 0; tries < kMostTries; ++tries) {
    int file = disk_.Open(
        folder.fd(), name.c_str(),
        O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY,
        0600);
    if (file < 0) return DiskError(path_, absl::StrCat("open ", name), errno);
    absl::Cleanup close = [&] { disk_.Close(file); };
    struct stat status;
    if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode) ||
        status.st_uid != geteuid()) {
      return IoError("io_error", absl::StrCat(name, ": it is no file of ours"));
    }
    if (TryLock(file) == Holder::kAnother) return nullptr;
    // Another process may have removed the file before it was locked.
    if (fstat(file, &status) == 0 && status.st_nlink == 0) continue;
    Evict(folder, name, /*title=*/"");
    std::move(close).Cancel();
    absl::StatusOr<std::unique_ptr<PromptFile>> opened =
        PromptFile::Open(disk_, file, name, info, anew);
    // If the disk has no room for the whole file, none of it is kept.
    if (!opened.ok()) disk_.Remove(folder.fd(), name.c_str());
    return opened;
  }
  return nullptr;
}

// ---- All files ----

absl::StatusOr<std::vector<KvFolder::Entry>> KvFolder::List() const {
  ASSIGN_OR_RETURN(const std::optional<Handle> folder, Handle::ToList(path_));
  std::vector<Entry> entries;
  if (!folder.has_value()) return entries;
  ASSIGN_OR_RETURN(const std::vector<Listed> files,
                   folder->List(IsTextOrPrompt));
  for (const Listed& listed : files) {
    entries.push_back({.name = listed.name,
                       .bytes = listed.bytes,
                       .used = listed.used_ns / 1'000'000'000,
                       .unfinished = IsPrompt(listed.name)});
    if (entries.back().unfinished) continue;
    const absl::StatusOr<std::unique_ptr<KvFile>> file =
        KvFile::Open(disk_, folder->fd(), listed.name);
    if (file.ok()) entries.back().info = (*file)->info();
  }
  return entries;
}

absl::StatusOr<int64_t> KvFolder::Clear() const {
  ASSIGN_OR_RETURN(const std::optional<Handle> folder, Handle::ToList(path_));
  if (!folder.has_value()) return 0;
  ASSIGN_OR_RETURN(const std::vector<Listed> files,
                   folder->List(IsTextOrPrompt));
  ASSIGN_OR_RETURN(const int64_t parts, RemoveParts(*folder, /*surely=*/false));
  int64_t removed = parts;
  for (const Listed& listed : files) {
    if (disk_.Remove(folder->fd(), listed.name.c_str()) == 0) {
      ++removed;
    } else if (errno != ENOENT) {
      return DiskError(path_, absl::StrCat("remove ", listed.name), errno);
    }
  }
  return removed;
}

}  // namespace tiercel
