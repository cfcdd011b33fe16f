#ifndef TIERCEL_MODELS_FORMAT_GGUF_VALUES_H_
#define TIERCEL_MODELS_FORMAT_GGUF_VALUES_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "models/format/gguf_cursor.h"
#include "models/format/metadata.h"

namespace tiercel {

// The numbers of the value types, in the order of the format.
enum class GgufType : uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64,
};

// Reads a value and the number of its type before it; `what` names it in
// errors. An array may not hold arrays.
// Errors: those of GgufCursor; unsupported_type; invalid_value (a bool that is
// neither 0 nor 1).
absl::Status ReadGgufValue(GgufCursor& in, std::string_view what,
                           GgufType* type, MetadataValue* value);

}  // namespace tiercel

#endif  // TIERCEL_MODELS_FORMAT_GGUF_VALUES_H_
