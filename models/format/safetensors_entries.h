#ifndef TIERCEL_MODELS_FORMAT_SAFETENSORS_ENTRIES_H_
#define TIERCEL_MODELS_FORMAT_SAFETENSORS_ENTRIES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace tiercel {

// One tensor as the JSON header declares it; only its form is checked.
struct SafetensorsEntry {
  std::string name;
  std::string dtype;
  std::vector<uint64_t> shape;
  std::vector<uint64_t> offsets;  // begin, end
  bool has_dtype = false;
  bool has_shape = false;
  bool has_offsets = false;
};

// Returns the tensors in the order of the header's text. Errors: invalid_header
// (not JSON, another form, a duplicate key); limit_exceeded.
absl::StatusOr<std::vector<SafetensorsEntry>> ParseSafetensorsEntries(
    std::string_view text);

}  // namespace tiercel

#endif  // TIERCEL_MODELS_FORMAT_SAFETENSORS_ENTRIES_H_
