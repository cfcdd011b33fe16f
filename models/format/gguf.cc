#include "models/format/gguf.h"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/base/checked.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"
#include "lib/text/quote.h"
#include "models/format/gguf_cursor.h"
#include "models/format/gguf_values.h"

namespace tiercel {
namespace {

// ---------------------------------------------------------------------------
// The fixed part

// Guesses the kind of a file that is no GGUF.
std::string_view Guess(std::string_view start) {
  struct Known {
    std::string_view start, what;
  };
  static constexpr Known kKnown[] = {
      {"version https://git-lfs",
       "a Git LFS pointer, not the file itself (run: git lfs pull)"},
      {"<", "an HTML or XML page, perhaps a failed download"},
      {"PK\x03\x04", "a ZIP archive"},
      {"%PDF", "a PDF document"},
      {"lmgg", "a GGML file of before 2023, which needs conversion to GGUF"},
      {"fmgg", "a GGMF file of 2023, which needs conversion to GGUF"},
      {"tjgg", "a GGJT file of 2023, which needs conversion to GGUF"},
      {"GGML", "a GGML file of before 2023, which needs conversion to GGUF"},
      {"GGJT", "a GGJT file of 2023, which needs conversion to GGUF"},
  };
  for (const Known& known : kKnown) {
    if (start.substr(0, known.start.size()) == known.start) return known.what;
  }
  return "not a GGUF file";
}

absl::Status ReadMagicAndVersion(GgufCursor& in) {
  std::string start(4, '\0');
  const auto append = [&](size_t bytes) {
    const size_t begin = start.size() - bytes;
    return in.Bytes("the magic number",
                    {reinterpret_cast<std::byte*>(&start[begin]), bytes});
  };
  RETURN_IF_ERROR(append(4));
  if (start != "GGUF") {
    const size_t more = std::min<uint64_t>(in.left(), 32);
    start.resize(start.size() + more);
    RETURN_IF_ERROR(append(more));
    return InputError("not_gguf",
                      absl::StrCat("this is ", std::string(Guess(start))));
  }
  uint32_t version;
  RETURN_IF_ERROR(in.Number("the version", &version));
  if (version == 2 || version == 3) return absl::OkStatus();
  const uint32_t swapped = __builtin_bswap32(version);
  if (swapped >= 1 && swapped <= 3) {
    return in.Fail("wrong_endianness",
                   "the file is big-endian; need a little-endian one");
  }
  return in.Fail("unsupported_version",
                 absl::StrCat("GGUF version ", version, "; need 2 or 3"));
}

// ---------------------------------------------------------------------------
// Key-values

bool IsUsualKey(std::string_view key) {
  return std::all_of(key.begin(), key.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
  });
}

// Reads general.alignment, if this key is it: it decides where the tensors'
// data begins.
absl::Status ReadAlignment(GgufCursor& in, GgufType type,
                           const MetadataValue& value, GgufHeader* header,
                           uint64_t* alignment) {
  if (type != GgufType::kU32) {
    return in.Fail(
        "invalid_alignment",
        absl::StrCat("general.alignment has value type ",
                     static_cast<uint32_t>(type), "; need a u32 (type 4)"));
  }
  *alignment = std::get<uint64_t>(value);
  if (!std::has_single_bit(*alignment) || *alignment > GgufLimits::kAlignment) {
    return in.Fail(
        "invalid_alignment",
        absl::StrCat("general.alignment is ", *alignment,
                     "; need a power of two up to ", GgufLimits::kAlignment));
  }
  if (*alignment < 8) {
    header->warnings.push_back(absl::StrCat("general.alignment is ", *alignment,
                                            "; the format asks for a "
                                            "multiple of 8"));
  }
  return absl::OkStatus();
}

absl::Status ReadKeyValues(GgufCursor& in, uint64_t count, GgufHeader* header,
                           uint64_t* alignment) {
  bool unusual_key_seen = false;
  for (uint64_t i = 0; i < count; ++i) {
    std::string key;
    absl::Status s = in.String("a key", GgufLimits::kKeyBytes, &key);
    if (!s.ok()) return s;
    if (key.empty() || key.find('\0') != key.npos) {
      return in.Fail("invalid_key", absl::StrCat("key ", Quoted(key),
                                                 " is empty or holds a NUL"));
    }
    if (header->metadata.Has(key)) {
      return in.Fail("duplicate_key",
                     absl::StrCat("key ", Quoted(key), " is there twice"));
    }
    if (!IsUsualKey(key) && !unusual_key_seen) {
      unusual_key_seen = true;
      header->warnings.push_back(absl::StrCat(
          "key ", Quoted(key),
          " (and perhaps others) has characters the format does not allow"));
    }
    const std::string what = Quoted(key);
    GgufType type;
    MetadataValue value;
    if (s = ReadGgufValue(in, what, &type, &value); !s.ok()) return s;
    if (key == "general.alignment") {
      s = ReadAlignment(in, type, value, header, alignment);
      if (!s.ok()) return s;
    }
    header->metadata.Set(std::move(key), std::move(value));
  }
  return absl::OkStatus();
}

// ---------------------------------------------------------------------------
// Tensors

// The names of the tensor types by number; empty for a number without a type.
// The names of supported types are those of DType.
constexpr std::array<std::string_view, 43> kTensorTypes = {
    "F32",   "F16",   "Q4_0",    "Q4_1",   "",        "",      "Q5_0",
    "Q5_1",  "Q8_0",  "Q8_1",    "Q2_K",   "Q3_K",    "Q4_K",  "Q5_K",
    "Q6_K",  "Q8_K",  "IQ2_XXS", "IQ2_XS", "IQ3_XXS", "IQ1_S", "IQ4_NL",
    "IQ3_S", "IQ2_S", "IQ4_XS",  "I8",     "I16",     "I32",   "I64",
    "F64",   "IQ1_M", "BF16",    "",       "",        "",      "TQ1_0",
    "TQ2_0", "",      "",        "",       "MXFP4",   "NVFP4", "Q1_0",
    "Q2_0"};

// A tensor's type: its name and, if it is supported, its DType.
struct TensorType {
  std::string_view name;
  std::optional<DType> read;
};

absl::Status ReadTensorType(GgufCursor& in, const std::string& name,
                            TensorType* type) {
  uint32_t number;
  RETURN_IF_ERROR(in.Number(name, &number));
  if (number >= kTensorTypes.size() || kTensorTypes[number].empty()) {
    return in.Fail("unsupported_type",
                   absl::StrCat("tensor ", name, " has type number ", number,
                                ", which is none"));
  }
  *type = {kTensorTypes[number], ParseDType(kTensorTypes[number])};
  return absl::OkStatus();
}

// Reads the dimensions into `shape`, outermost first.
absl::Status ReadShape(GgufCursor& in, const std::string& name,
                       std::vector<int64_t>* shape) {
  uint32_t dims;
  RETURN_IF_ERROR(in.Number(name, &dims));
  if (dims > GgufLimits::kDims) {
    return in.Fail("invalid_shape", absl::StrCat("tensor ", name, " has ", dims,
                                                 " dimensions; need at most ",
                                                 GgufLimits::kDims));
  }
  for (uint32_t i = 0; i < dims; ++i) {
    uint64_t dim;
    RETURN_IF_ERROR(in.Number(name, &dim));
    if (dim > uint64_t{INT64_MAX}) {
      return in.Fail("overflow", absl::StrCat("tensor ", name,
                                              " has a dimension of ", dim));
    }
    if (dim == 0) {
      return in.Fail("invalid_shape",
                     absl::StrCat("tensor ", name, " has a dimension of 0"));
    }
    shape->insert(shape->begin(), static_cast<int64_t>(dim));
  }
  return absl::OkStatus();
}

// Computes the size of the tensor's data.
absl::Status ComputeBytes(const GgufCursor& in, const std::string& name,
                          TensorInfo* tensor) {
  const DTypeInfo& type = InfoOf(tensor->type);
  if (tensor->shape.empty() && tensor->type != DType::kF32) {
    return in.Fail("invalid_shape",
                   absl::StrCat("tensor ", name, " is a scalar of type ",
                                std::string(type.name), "; need F32"));
  }
  const int64_t row = tensor->shape.empty() ? 1 : tensor->shape.back();
  if (row % type.block_elements != 0) {
    return in.Fail("invalid_shape",
                   absl::StrCat("tensor ", name, " has rows of ", row,
                                " elements; ", std::string(type.name),
                                " needs a multiple of ", type.block_elements));
  }
  std::optional<uint64_t> elements = 1;
  for (const int64_t dim : tensor->shape) {
    if (elements.has_value()) elements = CheckedMul(*elements, dim);
  }
  std::optional<uint64_t> bytes;
  if (elements.has_value() && *elements <= uint64_t{INT64_MAX}) {
    bytes = CheckedMul(*elements / type.block_elements, type.block_bytes);
  }
  if (!bytes.has_value()) {
    return in.Fail("overflow",
                   absl::StrCat("tensor ", name, " of shape ",
                                absl::StrJoin(tensor->shape, "x"),
                                " has more bytes than a number can hold"));
  }
  tensor->bytes = *bytes;
  return absl::OkStatus();
}

// The end of the data of the tensors so far, padding included. Like
// TensorInfo::offset it counts from the start of the data until the header's
// end is known. Behind a tensor that is not read the next may begin anywhere.
struct DataEnd {
  uint64_t at = 0;
  bool known = true;
};

// Reads one tensor's description.
absl::Status ReadTensor(GgufCursor& in, uint64_t alignment, TensorInfo* tensor,
                        TensorType* type, DataEnd* end) {
  absl::Status s =
      in.String("a tensor's name", GgufLimits::kStringBytes, &tensor->name);
  if (!s.ok()) return s;
  const std::string name = Quoted(tensor->name);
  if (tensor->name.empty() || tensor->name.size() > GgufLimits::kNameBytes ||
      tensor->name.find('\0') != std::string::npos ||
      !IsValidUtf8(tensor->name)) {
    return in.Fail(
        "invalid_name",
        absl::StrCat("tensor name ", name, " of ", tensor->name.size(),
                     " bytes; need 1 to ", GgufLimits::kNameBytes,
                     " bytes of UTF-8 without NUL"));
  }
  if (s = ReadShape(in, name, &tensor->shape); !s.ok()) return s;
  if (s = ReadTensorType(in, name, type); !s.ok()) return s;
  tensor->bytes = 0;
  if (type->read.has_value()) {
    tensor->type = *type->read;
    if (s = ComputeBytes(in, name, tensor); !s.ok()) return s;
  }
  if (s = in.Number(name, &tensor->offset); !s.ok()) return s;
  // Tensors follow each other without a gap, so no two overlap.
  const bool in_place =
      end->known ? tensor->offset == end->at
                 : tensor->offset >= end->at && tensor->offset % alignment == 0;
  if (!in_place) {
    return in.Fail(
        "invalid_offset",
        absl::StrCat("tensor ", name, " is at offset ", tensor->offset,
                     "; need ", end->at, end->known ? "" : " or more"));
  }
  end->known = type->read.has_value();
  std::optional<uint64_t> next = CheckedAdd(tensor->offset, tensor->bytes);
  if (next.has_value()) next = CheckedAlignUp(*next, alignment);
  if (!next.has_value()) {
    return in.Fail("overflow",
                   absl::StrCat("tensor ", name, " of ", tensor->bytes,
                                " bytes at offset ", tensor->offset,
                                " ends beyond what a number can hold"));
  }
  end->at = *next;
  tensor->file = 0;
  return absl::OkStatus();
}

// Makes the offsets absolute and checks them against the file's size. The first
// tensor that ends beyond it goes into `missing`, unless that is null.
absl::Status PlaceTensors(const GgufCursor& in, uint64_t file_size,
                          uint64_t alignment, const DataEnd& end,
                          absl::Status* missing, GgufHeader* header) {
  // No sum of sizes below this leaves 64 bits.
  constexpr uint64_t kMostBytes = uint64_t{1} << 60;
  if (header->tensors.empty()) return absl::OkStatus();
  const std::optional<uint64_t> begin =
      CheckedAlignUp(in.position(), alignment);
  const std::optional<uint64_t> padded_end =
      begin.has_value() ? CheckedAdd(*begin, end.at) : std::nullopt;
  if (!padded_end.has_value()) {
    return in.Fail("overflow", absl::StrCat("the tensors' ", end.at,
                                            " bytes end beyond what a number "
                                            "can hold"));
  }
  for (TensorInfo& tensor : header->tensors) {
    tensor.offset += *begin;  // both at most *padded_end
    if (tensor.offset > file_size || tensor.bytes > file_size - tensor.offset) {
      const absl::Status error =
          in.Fail("model_truncated",
                  absl::StrCat("tensor ", Quoted(tensor.name), " ends at ",
                               tensor.offset + tensor.bytes, "; the file has ",
                               file_size, " bytes"));
      if (missing == nullptr || *padded_end > kMostBytes) return error;
      missing->Update(error);
    }
  }
  if (end.known && file_size > *padded_end) {
    header->warnings.push_back(
        absl::StrCat(file_size - *padded_end, " bytes follow the last tensor"));
  }
  return absl::OkStatus();
}

absl::StatusOr<GgufHeader> ReadHeader(const File& file, absl::Status* missing) {
  GgufCursor in(file);
  GgufHeader header;
  uint64_t tensors;
  uint64_t key_values;
  uint64_t alignment = 32;  // the format's default
  // These are the fewest bytes: a key is 8 + 1, its type 4 and its value 1; a
  // tensor's name is 8 + 1, its dimension count 4, its type 4, its offset 8.
  RETURN_IF_ERROR(ReadMagicAndVersion(in));
  RETURN_IF_ERROR(
      in.Count("the number of tensors", GgufLimits::kTensors, 25, &tensors));
  RETURN_IF_ERROR(
      in.Count("the number of keys", GgufLimits::kKeyValues, 14, &key_values));
  RETURN_IF_ERROR(ReadKeyValues(in, key_values, &header, &alignment));
  std::unordered_set<std::string> names;
  DataEnd end;
  for (uint64_t i = 0; i < tensors; ++i) {
    TensorInfo tensor;
    TensorType type;
    RETURN_IF_ERROR(ReadTensor(in, alignment, &tensor, &type, &end));
    if (!names.insert(tensor.name).second) {
      return in.Fail(
          "duplicate_tensor",
          absl::StrCat("tensor ", Quoted(tensor.name), " is there twice"));
    }
    if (type.read.has_value()) {
      header.tensors.push_back(std::move(tensor));
    } else {
      header.unread.emplace(std::move(tensor.name), type.name);
    }
  }
  RETURN_IF_ERROR(
      PlaceTensors(in, file.size(), alignment, end, missing, &header));
  return header;
}

}  // namespace

absl::StatusOr<GgufHeader> ReadGgufHeader(const File& file,
                                          absl::Status* missing) {
  return ReadHeaderOf(file, missing, ReadHeader);
}

}  // namespace tiercel
