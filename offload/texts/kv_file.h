#ifndef TIERCEL_OFFLOAD_TEXTS_KV_FILE_H_
#define TIERCEL_OFFLOAD_TEXTS_KV_FILE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "offload/disk/disk_calls.h"
#include "offload/disk/page_file.h"
#include "offload/kv/held_pages.h"
#include "offload/kv/kv_store.h"
#include "offload/texts/kv_format.h"
#include "offload/tier/ledger.h"

namespace tiercel {

// A saved text that was finished (kv_format.h), open for reading: it stays
// readable though others remove or replace it. Used from one thread.
class KvFile {
 public:
  // The file `name` of an open folder; a regular one of this user's, no link.
  // Errors: text_damaged, text_version; io_error, not_found.
  static absl::StatusOr<std::unique_ptr<KvFile>> Open(DiskCalls& disk,
                                                      int folder,
                                                      const std::string& name);
  ~KvFile();
  KvFile(const KvFile&) = delete;
  KvFile& operator=(const KvFile&) = delete;

  const std::string& name() const { return name_; }
  const KvFileInfo& info() const { return info_; }

  // Puts those of the pages [first, end) that are wanted, of all layers, layer
  // by layer, each once its checksum was compared; what has a place is read
  // there. Errors: text_damaged; io_error, cancelled; put's.
  absl::Status Read(int64_t first, int64_t end,
                    absl::FunctionRef<bool(int64_t page)> wanted,
                    KvStore::PutPage put, KvStore::PlacePage place,
                    absl::FunctionRef<bool()> cancelled, DiskUse* use) const;
  // The pages of `file`, for a store that leaves them there.
  static std::shared_ptr<PageFile> PagesOf(std::shared_ptr<const KvFile> file);
  // It was used now: who looks for the stalest finds another.
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
// checksums. What comes back ok is whole on the disk. Errors: disk_full,
// io_error; those of HeldPages::Read; cancelled, asked for every page.
absl::Status WriteKvFile(DiskCalls& disk, int file, const std::string& name,
                         KvFileInfo info, const HeldPages& pages,
                         absl::FunctionRef<bool()> cancelled);

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_TEXTS_KV_FILE_H_
