#include "models/format/content_hash.h"

#include <xxhash.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/status/error.h"
#include "models/format/json.h"

namespace tiercel {
namespace {

// Pieces are hashed in parallel, this many at a time; the caller may cancel in
// between.
constexpr int64_t kPiece = int64_t{1} << 20;
constexpr int64_t kPiecesAtOnce = 32;

struct Piece {
  const File* file;
  uint64_t offset;
  uint64_t bytes;
};

}  // namespace

absl::StatusOr<std::string> ContentHash(const Checkpoint& checkpoint,
                                        ThreadPool& pool,
                                        absl::FunctionRef<bool()> cancelled) {
  std::vector<Piece> pieces;
  for (const std::unique_ptr<File>& file : checkpoint.files()) {
    for (uint64_t at = 0; at < file->size(); at += kPiece) {
      pieces.push_back(
          {file.get(), at, std::min<uint64_t>(kPiece, file->size() - at)});
    }
  }
  const auto threads = static_cast<size_t>(pool.num_threads());
  std::vector<std::vector<std::byte>> buffers(threads);
  for (std::vector<std::byte>& buffer : buffers) buffer.resize(kPiece);
  std::vector<absl::Status> failed(threads);
  std::vector<uint64_t> sums(pieces.size());
  const auto count = static_cast<int64_t>(pieces.size());
  for (int64_t first = 0; first < count; first += kPiecesAtOnce) {
    if (cancelled()) return CancelledError();
    pool.ParallelFor(
        std::min(kPiecesAtOnce, count - first), /*grain=*/1,
        [&](int64_t begin, int64_t end, int thread) {
          const auto own = static_cast<size_t>(thread);
          for (int64_t i = first + begin; i < first + end; ++i) {
            const Piece& piece = pieces[static_cast<size_t>(i)];
            const std::span<std::byte> bytes(buffers[own].data(), piece.bytes);
            failed[own].Update(piece.file->Read(piece.offset, bytes));
            sums[static_cast<size_t>(i)] =
                XXH3_64bits(bytes.data(), bytes.size());
          }
        });
    for (const absl::Status& status : failed) {
      if (!status.ok()) return status;
    }
  }
  // The hash covers the border between one file and the next.
  for (const std::unique_ptr<File>& file : checkpoint.files()) {
    sums.push_back(file->size());
  }
  const std::string side_files = WriteJson(checkpoint.side_files());
  sums.push_back(XXH3_64bits(side_files.data(), side_files.size()));
  return absl::StrCat(
      absl::Hex(XXH3_64bits(sums.data(), sums.size() * sizeof(sums[0])),
                absl::kZeroPad16));
}

}  // namespace tiercel
