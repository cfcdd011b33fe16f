#include "offload/prompt_cache/prompt_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"
#include "offload/disk/file_writer.h"
#include "offload/disk/page_reader.h"
#include "offload/disk/page_sum.h"
#include "offload/prompt_cache/kv_format.h"

namespace tiercel {
namespace {

constexpr char kMagic[8] = {'\x89', 'T', 'K', 'P', '\r', '\n', '\x1a', '\n'};
constexpr char kRecordMagic[8] = {'T', 'K', 'P', ' ', 'l', 'a', 'y', '\n'};
constexpr uint32_t kVersion = 1;
constexpr int kStates = 2;  // places for hidden states, used in turn
// The record of a layer without hidden states has it in place of their sum.
constexpr uint64_t kNoStates = 0;
// This is far above every known model.
constexpr uint64_t kMostRowBytes = uint64_t{1} << 24;

struct Fixed {
  char magic[8];
  uint32_t version;
  uint32_t byte_order;
  uint64_t file_bytes;
  uint64_t begin;
  uint64_t positions;
  uint64_t row_bytes;
  uint64_t page_bytes;
  FileShape shape;
  uint64_t fingerprint_bytes;
};
static_assert(sizeof(Fixed) == 88);

// The numbers of a record are its magic, the layer, the sums of head and
// states, those of the layer's pages, and the sum of all these.
enum : size_t { kMagicAt, kLayerAt, kHeadSumAt, kStateSumAt, kPageSumsAt };

size_t PagesOf(const PromptInfo& info) {
  return static_cast<size_t>(info.EndPage() - info.FirstPage());
}

size_t KeptLayers(const PromptInfo& info) {
  return static_cast<size_t>(info.layers - 1);
}

size_t RecordNumbers(const PromptInfo& info) {
  return kPageSumsAt + PagesOf(info) + 1;
}

uint64_t RecordsAt(const PromptInfo& info) {
  return FileAligned(sizeof(Fixed) + info.fingerprint.size() +
                     info.ids.size() * sizeof(int32_t) + sizeof(uint64_t));
}

uint64_t RecordAt(const PromptInfo& info, size_t layer) {
  return RecordsAt(info) + layer * RecordNumbers(info) * sizeof(uint64_t);
}

uint64_t StateAt(const PromptInfo& info, size_t layer) {
  return FileAligned(RecordAt(info, KeptLayers(info))) +
         layer % kStates *
             FileAligned(static_cast<uint64_t>(info.StateBytes()));
}

// The place of a page; `page` counts from the prompt's first.
uint64_t PageAt(const PromptInfo& info, size_t layer, size_t page) {
  return StateAt(info, 0) +
         kStates * FileAligned(static_cast<uint64_t>(info.StateBytes())) +
         (layer * PagesOf(info) + page) *
             static_cast<uint64_t>(info.layout.PageBytes());
}

// The head of a prompt's file: its PromptInfo, and the sum of that.
std::vector<std::byte> HeadOf(const PromptInfo& info) {
  Fixed fixed = {.magic = {},
                 .version = kVersion,
                 .byte_order = kFileByteOrder,
                 .file_bytes = info.FileBytes(),
                 .begin = static_cast<uint64_t>(info.begin),
                 .positions = info.ids.size(),
                 .row_bytes = static_cast<uint64_t>(info.row_bytes),
                 .page_bytes = static_cast<uint64_t>(info.layout.PageBytes()),
                 .shape = FileShapeOf(info.layout, info.layers),
                 .fingerprint_bytes = info.fingerprint.size()};
  std::memcpy(fixed.magic, kMagic, sizeof(kMagic));
  std::vector<std::byte> head;
  AppendBytes(&fixed, 1, &head);
  AppendBytes(info.fingerprint.data(), info.fingerprint.size(), &head);
  AppendBytes(info.ids.data(), info.ids.size(), &head);
  const uint64_t sum = SumOf(head.data(), head.size());
  AppendBytes(&sum, 1, &head);
  return head;
}

uint64_t RecordMagic() {
  uint64_t magic;
  std::memcpy(&magic, kRecordMagic, sizeof(magic));
  return magic;
}

// Reads the prompt's info from the head of an open file. Its numbers are within
// bounds; HasHead must still compare the head and its sum. Errors:
// text_damaged, io_error.
absl::StatusOr<PromptInfo> InfoIn(DiskCalls& disk, int file,
                                  const std::string& name) {
  const absl::Status damaged = InputError(
      "text_damaged", absl::StrCat(name, ": it is no unfinished prompt"));
  struct stat status;
  if (fstat(file, &status) != 0) return DiskError(name, "stat it", errno);
  const auto bytes = static_cast<uint64_t>(status.st_size);
  Fixed fixed;
  if (!S_ISREG(status.st_mode) || bytes < sizeof(fixed)) return damaged;
  RETURN_IF_ERROR(ReadRange(disk, file, name, 0,
                            reinterpret_cast<std::byte*>(&fixed),
                            sizeof(fixed)));
  const absl::StatusOr<KvLayout> layout =
      LayoutOf(fixed.shape, fixed.positions);
  if (!layout.ok() || fixed.begin >= fixed.positions ||
      fixed.row_bytes > kMostRowBytes ||
      fixed.fingerprint_bytes > kMostFileText ||
      sizeof(fixed) + fixed.fingerprint_bytes +
              fixed.positions * sizeof(int32_t) >
          bytes) {
    return damaged;
  }
  PromptInfo info = {.fingerprint = std::string(fixed.fingerprint_bytes, '\0'),
                     .layout = *layout,
                     .layers = static_cast<int>(fixed.shape.layers),
                     .begin = static_cast<int64_t>(fixed.begin),
                     .ids = std::vector<int32_t>(fixed.positions),
                     .row_bytes = static_cast<int64_t>(fixed.row_bytes)};
  RETURN_IF_ERROR(
      ReadRange(disk, file, name, sizeof(fixed),
                reinterpret_cast<std::byte*>(info.fingerprint.data()),
                info.fingerprint.size()));
  RETURN_IF_ERROR(ReadRange(disk, file, name,
                            sizeof(fixed) + info.fingerprint.size(),
                            reinterpret_cast<std::byte*>(info.ids.data()),
                            info.ids.size() * sizeof(int32_t)));
  return info;
}

// XXH3-64 of bytes that come in parts.
class RunningSum {
 public:
  RunningSum() : state_(XXH3_createState()) { XXH3_64bits_reset(state_); }
  ~RunningSum() { XXH3_freeState(state_); }
  RunningSum(const RunningSum&) = delete;
  RunningSum& operator=(const RunningSum&) = delete;

  void Add(const std::byte* bytes, size_t count) {
    XXH3_64bits_update(state_, bytes, count);
  }
  uint64_t Sum() const { return XXH3_64bits_digest(state_); }

 private:
  XXH3_state_t* const state_;
};

}  // namespace

uint64_t PromptInfo::FileBytes() const {
  return PageAt(*this, KeptLayers(*this), 0);
}

absl::StatusOr<std::unique_ptr<PromptFile>> PromptFile::Open(
    DiskCalls& disk, int file, std::string name, PromptInfo info, bool anew) {
  std::unique_ptr<PromptFile> opened(
      new PromptFile(disk, file, std::move(name), std::move(info)));
  const std::vector<std::byte> head = HeadOf(opened->info_);
  opened->head_sum_ = LastSumIn(head);
  const bool same = !anew && opened->HasHead(head);
  RETURN_IF_ERROR(same ? opened->ReadRecords() : opened->Clear());
  return opened;
}

absl::StatusOr<PromptFile::Finished> PromptFile::ReadFinished(
    DiskCalls& disk, int folder, const std::string& name) {
  const int file =
      disk.Open(folder, name.c_str(),
                O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY, 0);
  if (file < 0) return DiskError(name, "open it", errno);
  absl::Cleanup close = [&] { disk.Close(file); };
  ASSIGN_OR_RETURN(PromptInfo info, InfoIn(disk, file, name));
  PromptFile looked(disk, file, name, std::move(info));
  std::move(close).Cancel();
  const std::vector<std::byte> head = HeadOf(looked.info_);
  looked.head_sum_ = LastSumIn(head);
  if (!looked.HasHead(head)) {
    return InputError("text_damaged",
                      absl::StrCat(name, ": its head does not say what it is"));
  }
  RETURN_IF_ERROR(looked.ReadRecords());
  return Finished{looked.info_, looked.layers_};
}

PromptFile::~PromptFile() { disk_.Close(file_); }

// ---- Reading ----

bool PromptFile::HasHead(const std::vector<std::byte>& head) const {
  struct stat status;
  if (fstat(file_, &status) != 0 ||
      static_cast<uint64_t>(status.st_size) != info_.FileBytes()) {
    return false;
  }
  std::vector<std::byte> there(head.size());
  return ReadRange(disk_, file_, name_, 0, there.data(), there.size()).ok() &&
         there == head;
}

absl::Status PromptFile::ReadRecords() {
  for (size_t layer = 0; layer < KeptLayers(info_); ++layer) {
    std::vector<uint64_t> record(RecordNumbers(info_));
    RETURN_IF_ERROR(ReadRange(disk_, file_, name_, RecordAt(info_, layer),
                              reinterpret_cast<std::byte*>(record.data()),
                              record.size() * sizeof(uint64_t)));
    if (record[kMagicAt] != RecordMagic() || record[kLayerAt] != layer ||
        record[kHeadSumAt] != head_sum_ ||
        record.back() !=
            SumOf(record.data(), (record.size() - 1) * sizeof(uint64_t))) {
      break;
    }
    records_.push_back(std::move(record));
  }
  layers_ = static_cast<int>(records_.size());
  return absl::OkStatus();
}

absl::StatusOr<int> PromptFile::Read(KvStore::PutPage put,
                                     KvStore::PutState put_state,
                                     absl::FunctionRef<bool()> cancelled,
                                     DiskUse* use) {
  for (int tried = 0; tried < kStates && layers_ > 0; --layers_) {
    const auto index = static_cast<size_t>(layers_ - 1);
    if (records_[index][kStateSumAt] == kNoStates) continue;
    ASSIGN_OR_RETURN(const bool whole,
                     ReadState(layers_ - 1, put_state, cancelled, use));
    ++tried;
    if (!whole) continue;
    RETURN_IF_ERROR(ReadLayers(layers_, put, cancelled, use));
    return layers_;
  }
  layers_ = 0;
  return layers_;
}

// Returns true if the states have the sum in the layer's record.
absl::StatusOr<bool> PromptFile::ReadState(int layer, KvStore::PutState put,
                                           absl::FunctionRef<bool()> cancelled,
                                           DiskUse* use) const {
  const auto index = static_cast<size_t>(layer);
  const auto all = static_cast<size_t>(info_.StateBytes());
  std::vector<std::byte> buffer(std::min(all, FileWriter::kAtOnce));
  RunningSum sum;
  for (size_t done = 0; done < all; done += buffer.size()) {
    if (cancelled()) return CancelledError();
    buffer.resize(std::min(buffer.size(), all - done));
    RETURN_IF_ERROR(ReadRange(disk_, file_, name_, StateAt(info_, index) + done,
                              buffer.data(), buffer.size()));
    use->read_bytes += buffer.size();
    use->state_bytes += buffer.size();
    sum.Add(buffer.data(), buffer.size());
    RETURN_IF_ERROR(
        put(static_cast<int64_t>(done), buffer.data(), buffer.size()));
  }
  return sum.Sum() == records_[index][kStateSumAt];
}

absl::Status PromptFile::ReadLayers(int layers, KvStore::PutPage put,
                                    absl::FunctionRef<bool()> cancelled,
                                    DiskUse* use) const {
  const auto page_bytes = static_cast<size_t>(info_.layout.PageBytes());
  const size_t pages = PagesOf(info_);
  PageRuns runs = {
      .file = file_, .name = name_, .bytes = page_bytes, .offsets = {}};
  for (size_t run = 0; run < static_cast<size_t>(layers) * pages; ++run) {
    runs.offsets.push_back(PageAt(info_, run / pages, run % pages));
  }
  return ReadPages(
      disk_, runs,
      [&](size_t run, const std::byte* bytes) -> absl::Status {
        const size_t layer = run / pages;
        const size_t page = run % pages;
        if (PageSum(bytes, page_bytes) != records_[layer][kPageSumsAt + page]) {
          return InputError("text_damaged",
                            absl::StrCat(name_, ": page ", page, " of layer ",
                                         layer, " does not have its checksum"));
        }
        return put(static_cast<int>(layer),
                   info_.FirstPage() + static_cast<int64_t>(page), bytes);
      },
      cancelled, use);
}

// ---- Writing ----

absl::Status PromptFile::Clear() {
  records_.clear();
  layers_ = 0;
  // Shrinking the file to nothing first makes all its bytes 0.
  if (disk_.Allocate(file_, 0) != 0 ||
      disk_.Allocate(file_, info_.FileBytes()) != 0) {
    return DiskError(
        name_, absl::StrCat("make room for ", info_.FileBytes(), " bytes"),
        errno);
  }
  const std::vector<std::byte> head = HeadOf(info_);
  return FileWriter(disk_, file_, name_).Write(head.data(), head.size(), 0);
}

absl::Status PromptFile::Check(const HeldLayer& layer, size_t index,
                               bool last) const {
  const auto pages = static_cast<size_t>(layer.pages());
  const int64_t states = last ? info_.StateBytes() : 0;
  if (pages == PagesOf(info_) && layer.state_bytes() == states &&
      static_cast<size_t>(layer.layer()) == index &&
      index < KeptLayers(info_)) {
    return absl::OkStatus();
  }
  return InternalError(
      "internal", absl::StrCat(name_, ": layer ", layer.layer(), " with ",
                               pages, " pages is written as layer ", index));
}

absl::Status PromptFile::WritePages(const HeldLayer& layer,
                                    std::vector<uint64_t>* record) const {
  const auto index = static_cast<size_t>(layer.layer());
  const auto page_bytes = static_cast<size_t>(info_.layout.PageBytes());
  const size_t pages = PagesOf(info_);
  FileWriter writer(disk_, file_, name_);
  const size_t at_once = std::max<size_t>(1, FileWriter::kAtOnce / page_bytes);
  std::vector<std::byte> buffer(at_once * page_bytes);
  for (size_t first = 0; first < pages; first += at_once) {
    const size_t end = std::min(first + at_once, pages);
    for (size_t page = first; page < end; ++page) {
      std::byte* const to = buffer.data() + (page - first) * page_bytes;
      RETURN_IF_ERROR(layer.ReadPage(static_cast<int64_t>(page), to));
      (*record)[kPageSumsAt + page] = PageSum(to, page_bytes);
    }
    RETURN_IF_ERROR(writer.Write(buffer.data(), (end - first) * page_bytes,
                                 PageAt(info_, index, first)));
  }
  return absl::OkStatus();
}

absl::Status PromptFile::WriteState(const HeldLayer& layer,
                                    std::vector<uint64_t>* record) const {
  const auto index = static_cast<size_t>(layer.layer());
  const auto all = static_cast<size_t>(info_.StateBytes());
  FileWriter writer(disk_, file_, name_);
  std::vector<std::byte> buffer(std::min(all, FileWriter::kAtOnce));
  RunningSum sum;
  for (size_t done = 0; done < all;) {
    const size_t count = std::min(FileWriter::kAtOnce, all - done);
    layer.ReadState(static_cast<int64_t>(done), buffer.data(), count);
    sum.Add(buffer.data(), count);
    RETURN_IF_ERROR(
        writer.Write(buffer.data(), count, StateAt(info_, index) + done));
    done += count;
  }
  (*record)[kStateSumAt] = sum.Sum();
  return absl::OkStatus();
}

// The states use two places in turn, by the layer's number. An odd number of
// layers keeps the previous states whole while new ones are written, and the
// new ones are on the disk with their layers before the old place is reused.
absl::Status PromptFile::Write(absl::Span<const HeldLayer* const> layers) {
  const auto first = static_cast<size_t>(layers.front()->layer());
  if (first > records_.size() || layers.size() % kStates == 0) {
    return InternalError(
        "internal",
        absl::StrCat(name_, ": ", layers.size(), " layers from ", first,
                     " are written behind ", records_.size()));
  }
  std::vector<std::vector<uint64_t>> records;
  for (size_t i = 0; i < layers.size(); ++i) {
    const HeldLayer& layer = *layers[i];
    const bool last = i + 1 == layers.size();
    RETURN_IF_ERROR(Check(layer, first + i, last));
    std::vector<uint64_t>& record = records.emplace_back(RecordNumbers(info_));
    record[kMagicAt] = RecordMagic();
    record[kLayerAt] = first + i;
    record[kHeadSumAt] = head_sum_;
    record[kStateSumAt] = kNoStates;
    RETURN_IF_ERROR(WritePages(layer, &record));
    if (!last) continue;
    RETURN_IF_ERROR(WriteState(layer, &record));
  }
  // The records follow the pages and states of which they have the sums.
  FileWriter writer(disk_, file_, name_);
  for (std::vector<uint64_t>& record : records) {
    record.back() =
        SumOf(record.data(), (record.size() - 1) * sizeof(uint64_t));
    RETURN_IF_ERROR(writer.Write(
        reinterpret_cast<const std::byte*>(record.data()),
        record.size() * sizeof(uint64_t), RecordAt(info_, record[kLayerAt])));
  }
  RETURN_IF_ERROR(writer.Sync());
  records_.resize(first);
  std::move(records.begin(), records.end(), std::back_inserter(records_));
  layers_ = static_cast<int>(records_.size());
  return absl::OkStatus();
}

}  // namespace tiercel
