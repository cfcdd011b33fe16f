#ifndef TIERCEL_OFFLOAD_PROMPT_CACHE_KV_FOLDER_H_
#define TIERCEL_OFFLOAD_PROMPT_CACHE_KV_FOLDER_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "offload/disk/disk_calls.h"
#include "offload/prompt_cache/kv_file.h"
#include "offload/prompt_cache/prompt_file.h"

namespace tiercel {

// The prompt cache on disk: a folder of files that each have the KV of one text
// (kv_format.h). A text is found by its tokens: its file serves every text that
// begins with the same tokens. Several processes may use the folder at once,
// and none waits for another: a file appears whole under its name or not at
// all, and one that is open stays readable when it is removed.
//
//   text-<fingerprint>-<first kLeastTokens>-<all tokens>.kv
//   part-<process>-<number>.kv      being written: its writer has it locked
//   prompt-<the same three>.kv      an unfinished prompt (prompt_file.h): the
//                                   session that computes it has it locked
//
// On a file system without locks a process cannot know which files others
// write: it may then read and remove the unfinished prompts of others, who lose
// work and nothing else, and only Clear removes unfinished parts.
//
// The three parts of a name are hashes, 16 digits each. They save opening files
// that cannot serve; once open, a file's fingerprint and ids are compared in
// full. The folder is made for this user alone, and may be a link to a folder.
// Copies of a KvFolder may be used from several threads.
class KvFolder {
 public:
  // Shorter texts are neither kept nor found.
  static constexpr int64_t kLeastTokens = 256;

  // Files take `most_bytes` at most, not counting files that any process is
  // writing. Once such a file is whole, or was left unfinished, the least
  // recently used files make room. But a file that was used at `since_ns` of
  // the Unix clock or later makes none for another whose title names the same
  // text: where a book has more parts than there is room for, the first ones
  // stay, and the next reading of all of them in turn finds those. The
  // constructor touches no file.
  KvFolder(std::string path, uint64_t most_bytes,
           DiskCalls& disk = SystemDisk(),
           int64_t since_ns = std::numeric_limits<int64_t>::max())
      : path_(std::move(path)),
        most_bytes_(most_bytes),
        since_ns_(since_ns),
        disk_(disk) {}

  // The time now, for `since_ns`, by the clock that marks a file as used.
  static int64_t NowNs();

  struct Found {
    std::unique_ptr<KvFile> file;
    int64_t common = 0;  // first tokens that the file shares with the text
  };
  // Returns the file of this fingerprint that shares the most first tokens with
  // `ids`, at least kLeastTokens; absent if there is none. Removes damaged
  // files on the way. Errors: io_error, where the folder or a file cannot be
  // read.
  absl::StatusOr<std::optional<Found>> Find(
      const std::string& fingerprint, absl::Span<const int32_t> ids) const;

  // Saves a text, whose `info` lacks the checksums. It then removes files whose
  // text is a beginning of this one, and unfinished prompts that no process has
  // locked and for which this text saves as much work. Errors: disk_full, for
  // most_bytes too; prompt_cache_full, if all would have to make room that stay
  // (the constructor); io_error, unsafe_folder; cancelled. Whatever happens, no
  // partial file is left, and a text that is not saved removes none but
  // `prompt`: the file of the prompt that became this text, which goes, even if
  // it is locked, once the text is saved or the cache is full; empty if there
  // is none.
  absl::Status Save(const KvFileInfo& info, const HeldPages& pages,
                    absl::FunctionRef<bool()> cancelled,
                    const std::string& prompt = "") const;

  // Opens the file of a prompt, for one session at a time, with the layers that
  // earlier ones have finished, unless `anew`. As it is being written it is not
  // counted in most_bytes, while prompts that others left unfinished are. Null
  // if another session has it, or it would take more than most_bytes. Errors:
  // disk_full, io_error, unsafe_folder.
  absl::StatusOr<std::unique_ptr<PromptFile>> OpenPrompt(const PromptInfo& info,
                                                         bool anew) const;
  // The finished part of the unfinished prompt of all `ids`, wherever the
  // prompt begins among them; absent if there is none, or another session has
  // it.
  std::optional<PromptFile::Finished> FindPrompt(
      const std::string& fingerprint, absl::Span<const int32_t> ids) const;

  // Opens a file without a name in the folder, for pages that have no room in
  // memory: it is gone when it is closed. Errors: io_error, unsafe_folder.
  absl::StatusOr<int> OpenNameless() const;

  // Removes files until they take most_bytes at most, as after a Save: for a
  // session that saved nothing, at its end. Files that were used before
  // `since_ns` go first, the least recently used of them before others; then
  // the most recently used, so that the next reading of all parts of a text in
  // turn finds the first ones.
  void Trim() const;

  // Removes a file that is of no more use: one that is damaged, or a prompt
  // that will not go on.
  void Remove(const std::string& name) const;

  struct Entry {
    std::string name;
    uint64_t bytes = 0;
    int64_t used = 0;         // seconds of the Unix clock
    bool unfinished = false;  // it is an unfinished prompt
    // Absent if the file is unfinished, damaged or of another version.
    std::optional<KvFileInfo> info = {};
  };
  // Lists all files by name; none if there is no folder. Errors: io_error.
  absl::StatusOr<std::vector<Entry>> List() const;
  // Removes all files that List shows, and parts that writers left. Returns the
  // number of files. Errors: io_error.
  absl::StatusOr<int64_t> Clear() const;

 private:
  class Handle;
  struct Listed {
    std::string name;
    uint64_t bytes;
    int64_t used_ns;  // by the Unix clock
  };
  // The holder of a file's lock.
  enum class Holder { kNobody /* but we, now */, kAnother, kUnknown };
  Holder TryLock(int file) const;
  // Locks a file that was just made. Returns false if it was removed meanwhile.
  bool Claim(int file) const;
  Holder HolderOf(const Handle& folder, const std::string& name) const;
  // Removes a file unless another process has it. If `surely`, it must be known
  // that none has. Returns true if the file was removed.
  bool RemoveFree(const Handle& folder, const std::string& name,
                  bool surely) const;
  // Removes the parts of writers that ended early. Returns the number of files.
  // Errors: io_error.
  absl::StatusOr<int64_t> RemoveParts(const Handle& folder, bool surely) const;
  // Removes files that the text `name`, which was saved, replaces, then others
  // until it has room.
  void MakeRoom(const Handle& folder, const std::string& name,
                const KvFileInfo& info) const;
  // Removes the least recently used files except `name` until all together take
  // most_bytes at most. Those that stay for `title` are not removed.
  void Evict(const Handle& folder, const std::string& name,
             const std::string& title) const;
  static uint64_t Bytes(absl::Span<const Listed> files);
  // The files that count for most_bytes, all but the prompts that others are
  // writing; none if all files together take no more than that.
  std::vector<Listed> FilesOverLimit(const Handle& folder) const;
  // Removes files in this order, but those that are `kept`, until all together
  // take most_bytes at most. Returns true if they do.
  bool RemoveInTurn(const Handle& folder, absl::Span<const Listed> files,
                    absl::FunctionRef<bool(const Listed&)> kept) const;
  // Returns true if the file has this title, which names a text, and was used
  // at since_ns or later.
  bool Stays(const Handle& folder, const std::string& name, int64_t used_ns,
             const std::string& title) const;
  // Returns true if the files that stay leave room for the text.
  bool HasRoomFor(const Handle& folder, const KvFileInfo& info) const;
  // Returns true if the text `info` begins with the whole text `name`.
  bool BeginsWith(const Handle& folder, const KvFileInfo& info,
                  const std::string& name) const;
  // Returns true if the text `info` saves the prompt `name` as much work as the
  // prompt's own finished layers do.
  bool Serves(const Handle& folder, const KvFileInfo& info,
              const std::string& name) const;

  std::string path_;
  uint64_t most_bytes_;
  int64_t since_ns_;
  DiskCalls& disk_;
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_PROMPT_CACHE_KV_FOLDER_H_
