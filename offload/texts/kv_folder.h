#ifndef TIERCEL_OFFLOAD_TEXTS_KV_FOLDER_H_
#define TIERCEL_OFFLOAD_TEXTS_KV_FOLDER_H_

#include <cstdint>
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
#include "offload/texts/kv_file.h"
#include "offload/texts/prompt_file.h"

namespace tiercel {

// A folder of saved texts (kv_format.h). A text is found by its tokens: one
// that was saved serves every text that begins with its first tokens. Several
// processes may use the folder at once, and nothing waits for another: a file
// appears whole under its name or not at all, and one that is open stays
// readable when it is removed.
//
//   text-<of the fingerprint>-<of the first kLeastTokens>-<of all>.kv
//   part-<process>-<number>.kv      being written: its writer has it locked
//   prompt-<the same three>.kv      a prompt that is not finished
//                                   (prompt_file.h): its reader has it locked
//
// On a file system without locks nobody knows what others write: unfinished
// prompts may then be read and removed beside their readers, who lose work and
// nothing else, and what a writer left behind goes with Clear alone.
//
// The three parts of a name are hashes, 16 digits each: they save opening what
// cannot serve; what is opened is compared letter by letter and id by id. The
// folder is made for this user alone; a link to one does, too. Copies may be
// used from several threads.
class KvFolder {
 public:
  // Shorter texts are neither kept nor found.
  static constexpr int64_t kLeastTokens = 1024;

  // Files take `most_bytes` at most, and beside them what is being written, by
  // anybody: once that is whole, or left unfinished, those that were not used
  // for longest make room. Nothing is touched yet.
  KvFolder(std::string path, uint64_t most_bytes,
           DiskCalls& disk = SystemDisk())
      : path_(std::move(path)), most_bytes_(most_bytes), disk_(disk) {}

  struct Found {
    std::unique_ptr<KvFile> file;
    int64_t common = 0;  // tokens that the text begins with
  };
  // The file of such a fingerprint that begins as `ids` do for longest, for
  // kLeastTokens at least; absent: none. Files that are not whole are removed
  // on the way. Errors: io_error, where the folder or a file cannot be read.
  absl::StatusOr<std::optional<Found>> Find(
      const std::string& fingerprint, absl::Span<const int32_t> ids) const;

  // Keeps a text, whose `info` lacks the checksums; kept texts that it begins
  // with are part of it then, and go; so do unfinished prompts that nobody
  // reads, where the text serves them as well as what is finished of them.
  // Errors: disk_full, with most_bytes too; io_error, unsafe_folder; cancelled.
  // Whatever happens, no file is left that is not whole, and for a text that is
  // not kept none goes. `prompt`: the file of the prompt that is the text now,
  // which goes whoever has it; empty: none.
  absl::Status Save(const KvFileInfo& info, const HeldPages& pages,
                    absl::FunctionRef<bool()> cancelled,
                    const std::string& prompt = "") const;

  // The file of a prompt, for one reader at a time, with what earlier ones have
  // finished of it, unless `anew`. It is being written, and needs no room yet;
  // what others have left unfinished does. Null: another has it, or it would
  // take more than most_bytes. Errors: disk_full, io_error, unsafe_folder.
  absl::StatusOr<std::unique_ptr<PromptFile>> OpenPrompt(const PromptInfo& info,
                                                         bool anew) const;
  // What is finished of the prompt of all `ids`, whatever is before it; absent:
  // nothing that is known, or another has it.
  std::optional<PromptFile::Finished> FindPrompt(
      const std::string& fingerprint, absl::Span<const int32_t> ids) const;

  // An open file that has no name there, for pages that have no room in memory:
  // it is gone when it is closed. Errors: io_error, unsafe_folder.
  absl::StatusOr<int> OpenNameless() const;

  // The file is of no use to anybody.
  void Remove(const std::string& name) const;

  struct Entry {
    std::string name;
    uint64_t bytes = 0;
    int64_t used = 0;         // seconds of the Unix clock
    bool unfinished = false;  // a prompt, to go on with
    // Absent: of one that is unfinished, not whole or of another version.
    std::optional<KvFileInfo> info = {};
  };
  // All of them by name; none where the folder is not there. Errors: io_error.
  absl::StatusOr<std::vector<Entry>> List() const;
  // Removes what List shows, and what was left unfinished; how many files.
  // Errors: io_error.
  absl::StatusOr<int64_t> Clear() const;

 private:
  class Handle;
  // Who has a file whose writer locks it.
  enum class Holder { kNobody /* but we, now */, kAnother, kUnknown };
  Holder TryLock(int file) const;
  // Takes the lock of a file that was just made; whether it is there still.
  bool Claim(int file) const;
  Holder HolderOf(const Handle& folder, const std::string& name) const;
  // Removes a file that nobody has, or, unless `surely`, may have; whether it
  // did.
  bool RemoveFree(const Handle& folder, const std::string& name,
                  bool surely) const;
  // Removes what writers that ended before their time have left; how many
  // files. Errors: io_error.
  absl::StatusOr<int64_t> RemoveParts(const Handle& folder, bool surely) const;
  // Makes room for the text `name`, which is there.
  void MakeRoom(const Handle& folder, const std::string& name,
                const KvFileInfo& info) const;
  // Removes the stalest files but `name` until all take most_bytes at most.
  void Evict(const Handle& folder, const std::string& name) const;
  // Whether `info` goes on where the text `name` ends.
  bool BeginsWith(const Handle& folder, const KvFileInfo& info,
                  const std::string& name) const;
  // Whether `info` serves the prompt `name` as what is finished of it does.
  bool Serves(const Handle& folder, const KvFileInfo& info,
              const std::string& name) const;

  std::string path_;
  uint64_t most_bytes_;
  DiskCalls& disk_;
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_TEXTS_KV_FOLDER_H_
