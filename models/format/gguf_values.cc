#include "models/format/gguf_values.h"

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"
#include "models/format/gguf.h"

namespace tiercel {
namespace {

constexpr uint32_t kTypes = 13;

// Reads one element of type T, and widens it to the type that Metadata keeps.
template <typename T>
absl::Status ReadElement(GgufCursor& in, std::string_view what, T* out) {
  return in.Number(what, out);
}
absl::Status ReadElement(GgufCursor& in, std::string_view what, bool* out) {
  uint8_t byte;
  RETURN_IF_ERROR(in.Number(what, &byte));
  if (byte > 1) {
    return in.Fail("invalid_value",
                   absl::StrCat(std::string(what), " is a bool of value ",
                                static_cast<int>(byte), "; need 0 or 1"));
  }
  *out = byte == 1;
  return absl::OkStatus();
}
absl::Status ReadElement(GgufCursor& in, std::string_view what,
                         std::string* out) {
  return in.String(what, GgufLimits::kStringBytes, out);
}

template <typename T>
using Kept = std::conditional_t<
    std::is_same_v<T, bool> || std::is_same_v<T, std::string>, T,
    std::conditional_t<
        std::is_floating_point_v<T>, double,
        std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>>;

template <typename T>
absl::Status ReadScalar(GgufCursor& in, std::string_view what,
                        MetadataValue* value) {
  T element;
  RETURN_IF_ERROR(ReadElement(in, what, &element));
  *value = static_cast<Kept<T>>(std::move(element));
  return absl::OkStatus();
}

template <typename T>
absl::Status ReadArray(GgufCursor& in, std::string_view what,
                       MetadataValue* value) {
  constexpr uint64_t kLeastBytes =
      std::is_same_v<T, std::string> ? sizeof(uint64_t) : sizeof(T);
  uint64_t count;
  RETURN_IF_ERROR(
      in.Count(what, GgufLimits::kArrayElements, kLeastBytes, &count));
  std::vector<Kept<T>> elements;
  elements.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    T element;
    RETURN_IF_ERROR(ReadElement(in, what, &element));
    elements.push_back(static_cast<Kept<T>>(std::move(element)));
  }
  *value = std::move(elements);
  return absl::OkStatus();
}

absl::Status ReadType(GgufCursor& in, std::string_view what, GgufType* type) {
  uint32_t number;
  RETURN_IF_ERROR(in.Number(what, &number));
  if (number >= kTypes) {
    return in.Fail("unsupported_type",
                   absl::StrCat(std::string(what), " has value type ", number,
                                "; need 0 to 12"));
  }
  *type = static_cast<GgufType>(number);
  return absl::OkStatus();
}

// Calls `read` with a value of the C++ type for `type` on disk.
template <typename Read>
absl::Status OfType(GgufType type, Read read) {
  switch (type) {
    case GgufType::kU8:
      return read(uint8_t{});
    case GgufType::kI8:
      return read(int8_t{});
    case GgufType::kU16:
      return read(uint16_t{});
    case GgufType::kI16:
      return read(int16_t{});
    case GgufType::kU32:
      return read(uint32_t{});
    case GgufType::kI32:
      return read(int32_t{});
    case GgufType::kF32:
      return read(float{});
    case GgufType::kBool:
      return read(bool{});
    case GgufType::kString:
      return read(std::string{});
    case GgufType::kU64:
      return read(uint64_t{});
    case GgufType::kI64:
      return read(int64_t{});
    case GgufType::kF64:
      return read(double{});
    case GgufType::kArray:
      break;  // the caller handles this case
  }
  return InternalError("internal", "GGUF array type");
}

}  // namespace

absl::Status ReadGgufValue(GgufCursor& in, std::string_view what,
                           GgufType* type, MetadataValue* value) {
  RETURN_IF_ERROR(ReadType(in, what, type));
  if (*type != GgufType::kArray) {
    return OfType(*type, [&](auto element) {
      return ReadScalar<decltype(element)>(in, what, value);
    });
  }
  GgufType element_type;
  RETURN_IF_ERROR(ReadType(in, what, &element_type));
  if (element_type == GgufType::kArray) {
    return in.Fail("unsupported_type",
                   absl::StrCat(std::string(what), " is an array of arrays"));
  }
  return OfType(element_type, [&](auto element) {
    return ReadArray<decltype(element)>(in, what, value);
  });
}

}  // namespace tiercel
