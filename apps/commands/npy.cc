#include "apps/commands/npy.h"

#include <bit>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/status/status_macros.h"

namespace tiercel::cli {
namespace {

static_assert(std::endian::native == std::endian::little);

}  // namespace

std::string NpyHeader(int64_t rows, int64_t columns) {
  constexpr size_t kPrefix = 10;  // magic, version, length of the rest
  std::string dict =
      absl::StrCat("{'descr': '<f4', 'fortran_order': False, 'shape': (", rows,
                   ", ", columns, "), }");
  while ((kPrefix + dict.size() + 1) % 64 != 0) dict += ' ';
  dict += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(dict.size() % 256);
  header += static_cast<char>(dict.size() / 256);
  return header + dict;
}

absl::StatusOr<NpyWriter> NpyWriter::Create(const std::string& path,
                                            int64_t rows, int64_t columns) {
  const std::string header = NpyHeader(rows, columns);
  ASSIGN_OR_RETURN(WholeFile file,
                   WholeFile::Create(path, /*mode=*/0666,
                                     static_cast<int64_t>(header.size()) +
                                         rows * columns * 4));
  RETURN_IF_ERROR(file.Write(header));
  return NpyWriter(std::move(file), columns);
}

absl::Status NpyWriter::WriteRow(const float* row) {
  return file_.Write({reinterpret_cast<const char*>(row),
                      static_cast<size_t>(columns_) * sizeof(float)});
}

}  // namespace tiercel::cli
