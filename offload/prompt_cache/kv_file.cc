#include "offload/prompt_cache/kv_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"
#include "offload/disk/file_writer.h"
#include "offload/disk/page_reader.h"
#include "offload/disk/page_sum.h"

namespace tiercel {
namespace {

absl::Status At(const std::string& name, const absl::Status& status) {
  return status.ok() ? status : Annotate(status, name);
}

}  // namespace

// ---- Reading ----

absl::StatusOr<std::unique_ptr<KvFile>> KvFile::Open(DiskCalls& disk,
                                                     int folder,
                                                     const std::string& name) {
  // The flags keep it from blocking and from following a link.
  const int file =
      disk.Open(folder, name.c_str(),
                O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY, 0);
  if (file < 0) {
    if (errno == ENOENT) return IoError("not_found", name + ": it is gone");
    return DiskError(name, "open it", errno);
  }
  std::unique_ptr<KvFile> opened(new KvFile(disk, file, name));
  if (absl::Status s = opened->ReadFront(); !s.ok()) return At(name, s);
  return opened;
}

KvFile::~KvFile() { disk_.Close(file_); }

absl::Status KvFile::ReadFront() {
  struct stat status;
  if (fstat(file_, &status) != 0) return DiskError(name_, "stat it", errno);
  const auto bytes = static_cast<uint64_t>(status.st_size);
  if (!S_ISREG(status.st_mode) || status.st_uid != geteuid() ||
      bytes < kFixedFrontBytes + kCommitBytes) {
    return InputError("text_damaged", "it is no file of ours");
  }
  std::vector<std::byte> front(kFixedFrontBytes);
  RETURN_IF_ERROR(
      ReadRange(disk_, file_, name_, 0, front.data(), front.size()));
  ASSIGN_OR_RETURN(
      const uint64_t front_bytes,
      FrontBytesIn(std::span<const std::byte>(front).first<kFixedFrontBytes>(),
                   bytes));
  front.resize(front_bytes);
  RETURN_IF_ERROR(ReadRange(disk_, file_, name_, kFixedFrontBytes,
                            front.data() + kFixedFrontBytes,
                            front.size() - kFixedFrontBytes));
  ASSIGN_OR_RETURN(KvFileInfo info, DecodeFront(front, bytes));
  std::array<std::byte, kCommitBytes> commit;
  RETURN_IF_ERROR(ReadRange(disk_, file_, name_, info.CommitOffset(),
                            commit.data(), commit.size()));
  info_ = std::move(info);
  return CheckCommit(commit, front);
}

absl::Status KvFile::Read(int64_t first, int64_t end,
                          absl::FunctionRef<bool(int64_t)> wanted,
                          KvStore::PutPage put, KvStore::PlacePage place,
                          absl::FunctionRef<bool()> cancelled,
                          DiskUse* use) const {
  const auto page_bytes = static_cast<size_t>(info_.layout.PageBytes());
  std::vector<int64_t> list;
  for (int64_t page = first; page < end; ++page) {
    if (wanted(page)) list.push_back(page);
  }
  const size_t pages = list.size();
  PageRuns runs = {
      .file = file_, .name = name_, .bytes = page_bytes, .offsets = {}};
  for (int layer = 0; layer < info_.layers; ++layer) {
    for (const int64_t page : list) {
      runs.offsets.push_back(info_.PageOffset(layer, page));
      runs.places.push_back(place(layer, page));
    }
  }
  return ReadPages(
      disk_, runs,
      [&](size_t run, const std::byte* bytes) -> absl::Status {
        const auto layer = static_cast<int>(run / pages);
        const int64_t page = list[run % pages];
        const auto sum = static_cast<size_t>(layer * info_.Pages() + page);
        if (PageSum(bytes, page_bytes) != info_.sums[sum]) {
          return InputError("text_damaged",
                            absl::StrCat(name_, ": page ", page, " of layer ",
                                         layer, " does not have its checksum"));
        }
        return put(layer, page, bytes);
      },
      cancelled, use);
}

std::shared_ptr<PageFile> KvFile::PagesOf(std::shared_ptr<const KvFile> file) {
  const KvFileInfo& info = file->info();
  DiskCalls& disk = file->disk_;
  const int descriptor = file->file_;
  return std::make_shared<PageFile>(disk, descriptor, file->name(), info.layout,
                                    info.layers, info.PayloadOffset(),
                                    info.Pages(), info.sums, std::move(file));
}

void KvFile::Touch() const { (void)futimens(file_, /*now=*/nullptr); }

// ---- Writing ----

absl::Status WriteKvFile(DiskCalls& disk, int file, const std::string& name,
                         KvFileInfo info, const HeldPages& pages,
                         absl::FunctionRef<bool()> cancelled) {
  const auto page_bytes = static_cast<size_t>(info.layout.PageBytes());
  info.sums.assign(static_cast<size_t>(info.layers * info.Pages()), 0);
  if (disk.Allocate(file, info.FileBytes()) != 0) {
    return DiskError(name,
                     absl::StrCat("make room for ", info.FileBytes(), " bytes"),
                     errno);
  }
  FileWriter writer(disk, file, name);
  // The pages of all layers follow each other without a gap.
  const size_t at_once = std::max<size_t>(1, FileWriter::kAtOnce / page_bytes);
  std::vector<std::byte> buffer(at_once * page_bytes);
  size_t held = 0;
  for (size_t i = 0; i < info.sums.size(); ++i) {
    if (cancelled()) return CancelledError();
    const auto index = static_cast<int64_t>(i);
    std::byte* const page = buffer.data() + held * page_bytes;
    RETURN_IF_ERROR(pages.Read(static_cast<int>(index / info.Pages()),
                               index % info.Pages(), page));
    info.sums[i] = PageSum(page, page_bytes);
    if (++held < at_once && i + 1 < info.sums.size()) continue;
    const uint64_t offset = info.PayloadOffset() + (i + 1 - held) * page_bytes;
    RETURN_IF_ERROR(writer.Write(buffer.data(), held * page_bytes, offset));
    held = 0;
  }
  const std::vector<std::byte> front = EncodeFront(info);
  absl::Status status = writer.Write(front.data(), front.size(), 0);
  if (status.ok()) status = writer.Sync();
  if (!status.ok()) return status;
  // The commit record is written only when everything before it is on the disk.
  const std::array<std::byte, kCommitBytes> commit = EncodeCommit(front);
  status = writer.Write(commit.data(), commit.size(), info.CommitOffset());
  return status.ok() ? writer.Sync() : status;
}

}  // namespace tiercel
