#include "models/format/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/base/checked.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"
#include "lib/text/quote.h"
#include "models/format/safetensors_entries.h"

namespace tiercel {
namespace {

static_assert(std::endian::native == std::endian::little,
              "safetensors numbers are read as the machine's own");

struct ElementType {
  std::string_view name;
  uint64_t bits;
};

constexpr std::array<ElementType, 22> kElementTypes = {{
    {"F32", 32},        {"F16", 16},        {"BF16", 16},   {"I64", 64},
    {"I32", 32},        {"I16", 16},        {"I8", 8},      {"U64", 64},
    {"U32", 32},        {"U16", 16},        {"U8", 8},      {"BOOL", 8},
    {"F64", 64},        {"C64", 64},        {"F8_E4M3", 8}, {"F8_E5M2", 8},
    {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"F8_E8M0", 8}, {"F6_E2M3", 6},
    {"F6_E3M2", 6},     {"F4", 4},
}};

// Checks one entry by itself. Returns true if its type is supported.
absl::StatusOr<bool> CheckEntry(const SafetensorsEntry& entry,
                                TensorInfo* tensor) {
  const auto type =
      std::find_if(kElementTypes.begin(), kElementTypes.end(),
                   [&](const ElementType& t) { return t.name == entry.dtype; });
  if (type == kElementTypes.end()) {
    return InputError("unsupported_dtype",
                      absl::StrCat("unknown dtype ", Quoted(entry.dtype)));
  }
  if (entry.offsets.size() != 2 ||
      entry.offsets.front() > entry.offsets.back()) {
    return InputError(
        "invalid_offset",
        absl::StrCat("data_offsets [", absl::StrJoin(entry.offsets, ", "),
                     "]; need [begin, end], begin <= end"));
  }
  std::optional<uint64_t> bits = type->bits;
  for (const uint64_t dim : entry.shape) {
    if (bits.has_value()) bits = CheckedMul(*bits, dim);
    if (dim > uint64_t{INT64_MAX}) bits.reset();
  }
  if (!bits.has_value()) {
    return InputError("overflow",
                      absl::StrCat("shape [", absl::StrJoin(entry.shape, ", "),
                                   "] is more than a number can hold"));
  }
  const uint64_t bytes = entry.offsets.back() - entry.offsets.front();
  if (*bits % 8 != 0 || *bits / 8 != bytes) {
    return InputError("invalid_shape",
                      absl::StrCat("shape [", absl::StrJoin(entry.shape, ", "),
                                   "] of ", entry.dtype, " needs ", *bits,
                                   " bits; data_offsets "
                                   "give ",
                                   bytes, " bytes"));
  }
  const std::optional<DType> read = ParseDType(type->name);
  if (read.has_value()) tensor->type = *read;
  tensor->name = entry.name;
  tensor->shape.assign(entry.shape.begin(), entry.shape.end());
  tensor->bytes = bytes;
  tensor->file = 0;
  return read.has_value();
}

absl::StatusOr<SafetensorsHeader> HeaderOf(const File& file,
                                           absl::Status* missing) {
  // No sum of sizes below this leaves 64 bits.
  constexpr uint64_t kMostBytes = uint64_t{1} << 60;
  uint64_t length;
  if (file.size() < sizeof(length)) {
    return InputError(
        "header_truncated",
        absl::StrCat("the file has ", file.size(), " bytes; need at least 8"));
  }
  const std::span<std::byte> length_bytes(reinterpret_cast<std::byte*>(&length),
                                          sizeof(length));
  RETURN_IF_ERROR(file.Read(0, length_bytes));
  if (length > SafetensorsLimits::kHeaderBytes) {
    return InputError(
        "header_too_large",
        absl::StrCat("the header has ", length, " bytes; at most ",
                     SafetensorsLimits::kHeaderBytes, " are allowed"));
  }
  if (length > file.size() - sizeof(length)) {
    return InputError(
        "header_truncated",
        absl::StrCat("the header has ", length, " bytes; the file has ",
                     file.size() - sizeof(length), " more"));
  }
  std::string text(length, '\0');
  const std::span<std::byte> bytes(reinterpret_cast<std::byte*>(text.data()),
                                   text.size());
  RETURN_IF_ERROR(file.Read(sizeof(length), bytes));
  ASSIGN_OR_RETURN(std::vector<SafetensorsEntry> entries,
                   ParseSafetensorsEntries(text));
  std::sort(entries.begin(), entries.end(),
            [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
              return a.offsets < b.offsets;
            });

  SafetensorsHeader header;
  const uint64_t data_begin = sizeof(length) + length;
  uint64_t end = 0;  // end of the tensors so far
  bool is_whole = true;
  for (const SafetensorsEntry& entry : entries) {
    const std::string who = absl::StrCat("tensor ", Quoted(entry.name));
    TensorInfo tensor;
    const absl::StatusOr<bool> read = CheckEntry(entry, &tensor);
    if (!read.ok()) return Annotate(read.status(), who);
    if (entry.offsets.front() != end) {
      return InputError(
          "invalid_offset",
          absl::StrCat(who, " begins at ", entry.offsets.front(), "; need ",
                       end, ", without a gap or an overlap"));
    }
    end = entry.offsets.back();
    if (end > file.size() - data_begin) {
      const absl::Status error =
          InputError("invalid_offset",
                     absl::StrCat(who, " ends at ", end, "; the file has ",
                                  file.size() - data_begin, " bytes of data"));
      if (missing == nullptr || end > kMostBytes) return error;
      missing->Update(error);
      is_whole = false;
    }
    if (!*read) {
      header.unread.emplace(entry.name, entry.dtype);
      continue;
    }
    tensor.offset = data_begin + entry.offsets.front();
    header.tensors.push_back(std::move(tensor));
  }
  if (is_whole && end != file.size() - data_begin) {
    return InputError(
        "invalid_offset",
        absl::StrCat("the tensors end at ", end, "; the file has ",
                     file.size() - data_begin, " bytes of data"));
  }
  return header;
}

}  // namespace

absl::StatusOr<SafetensorsHeader> ReadSafetensorsHeader(const File& file,
                                                        absl::Status* missing) {
  return ReadHeaderOf(file, missing, HeaderOf);
}

}  // namespace tiercel
