#ifndef TIERCEL_MODELS_FORMAT_METADATA_H_
#define TIERCEL_MODELS_FORMAT_METADATA_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"

namespace tiercel {

// GGUF's typed key-values. Integers of every width become int64_t or uint64_t,
// floats double; an array keeps its elements in one vector.
using MetadataValue =
    std::variant<bool, int64_t, uint64_t, double, std::string,
                 std::vector<bool>, std::vector<int64_t>, std::vector<uint64_t>,
                 std::vector<double>, std::vector<std::string>>;

class Metadata {
 public:
  void Set(std::string key, MetadataValue value);
  bool Has(std::string_view key) const;
  const std::map<std::string, MetadataValue, std::less<>>& all() const {
    return values_;
  }

  // Typed access. The Get* forms fail with invalid_metadata if the key is
  // absent, of another kind or out of range; the Find* forms return nothing if
  // it is absent, and fail likewise otherwise.
  absl::StatusOr<int64_t> GetInt(std::string_view key, int64_t least,
                                 int64_t most) const;
  absl::StatusOr<std::optional<int64_t>> FindInt(std::string_view key,
                                                 int64_t least,
                                                 int64_t most) const;
  absl::StatusOr<std::optional<double>> FindFloat(std::string_view key) const;
  absl::StatusOr<std::optional<bool>> FindBool(std::string_view key) const;
  absl::StatusOr<std::optional<std::string>> FindString(
      std::string_view key) const;
  // Returns null if the key is absent; valid as long as this object.
  absl::StatusOr<const std::vector<std::string>*> FindStrings(
      std::string_view key) const;
  // Reads arrays of any integer or float kind, converted.
  absl::StatusOr<std::optional<std::vector<int64_t>>> FindInts(
      std::string_view key) const;
  absl::StatusOr<std::optional<std::vector<double>>> FindFloats(
      std::string_view key) const;

 private:
  std::map<std::string, MetadataValue, std::less<>> values_;
};

}  // namespace tiercel

#endif  // TIERCEL_MODELS_FORMAT_METADATA_H_
