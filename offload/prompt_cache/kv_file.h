#ifndef TIERCEL_OFFLOAD_PROMPT_CACHE_KV_FILE_H_
#define TIERCEL_OFFLOAD_PROMPT_CACHE_KV_FILE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "offload/disk/disk_calls.h"
#include "offload/disk/page_file.h"
#include "offload/kv/held_pages.h"
#include "offload/kv/kv_store.h"
#include "offload/prompt_cache/kv_format.h"
#include "offload/tier/ledger.h"

namespace tiercel {

// The file of a text in the prompt cache (kv_format.h), open for reading. It
// stays readable if others remove or replace it. Used from one thread.
class KvFile {
 public:
  // Opens `name` in an open folder: a regular file of this user's, no link.
  // Errors: text_damaged, text_version; io_error, not_found.
  static absl::StatusOr<std::unique_ptr<KvFile>> Open(DiskCalls& disk,
                                                      int folder,
                                                      const std::string& name);
  ~KvFile();
  KvFile(const KvFile&) = delete;
  KvFile& operator=(const KvFile&) = delete;

  const std::string& name() const { return name_; }
  const KvFileInfo& info() const { return info_; }

  // Reads those of the pages [first, end) that are wanted, of all layers, layer
  // by layer, and calls `put` for each once its checksum was compared. A page
  // for which `place` returns an address is read there. Errors: text_damaged;
  // io_error, cancelled; those of `put`.
  absl::Status Read(int64_t first, int64_t end,
                    absl::FunctionRef<bool(int64_t page)> wanted,
                    KvStore::PutPage put, KvStore::PlacePage place,
                    absl::FunctionRef<bool()> cancelled, DiskUse* use) const;
  // The pages of `file`, for a store that leaves them there.
  static std::shared_ptr<PageFile> PagesOf(std::shared_ptr<const KvFile> file);
  // Marks the file as used now, so that others are evicted first.
  void Touch() const;

 private:
  KvFile(DiskCalls& disk, int file, std::string name)
      : disk_(disk), file_(file), name_(std::move(name)) {}
  absl::Status ReadFront();

  DiskCalls& disk_;
  const int file_;
  const std::string name_;
  KvFileInfo info_;
};

// Writes `pages` as a text to `file`, which is open and empty; `info` lacks the
// checksums. If it returns OK the file is whole on the disk. Errors: disk_full,
// io_error; those of HeldPages::Read; cancelled, asked for every page.
absl::Status WriteKvFile(DiskCalls& disk, int file, const std::string& name,
                         KvFileInfo info, const HeldPages& pages,
                         absl::FunctionRef<bool()> cancelled);

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_PROMPT_CACHE_KV_FILE_H_
