#include "models/format/metadata.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"
#include "lib/text/quote.h"

namespace tiercel {
namespace {

constexpr int64_t kMostInt64 = std::numeric_limits<int64_t>::max();

std::string KindOf(const MetadataValue& value) {
  static constexpr const char* kKinds[] = {"a bool",
                                           "an integer",
                                           "an integer",
                                           "a float",
                                           "a string",
                                           "an array of bools",
                                           "an array of integers",
                                           "an array of integers",
                                           "an array of floats",
                                           "an array of strings"};
  static_assert(std::size(kKinds) == std::variant_size_v<MetadataValue>);
  return kKinds[value.index()];
}

absl::Status WrongKind(std::string_view key, const MetadataValue& value,
                       const char* needed) {
  return InputError(
      "invalid_metadata",
      absl::StrCat(Quoted(key), " is ", KindOf(value), "; need ", needed));
}

// Returns the value under `key` as a T; null if the key is absent.
template <typename T>
absl::StatusOr<const T*> Find(
    const std::map<std::string, MetadataValue, std::less<>>& values,
    std::string_view key, const char* needed) {
  const auto it = values.find(key);
  if (it == values.end()) return static_cast<const T*>(nullptr);
  const T* value = std::get_if<T>(&it->second);
  if (value == nullptr) return WrongKind(key, it->second, needed);
  return value;
}

}  // namespace

void Metadata::Set(std::string key, MetadataValue value) {
  values_.insert_or_assign(std::move(key), std::move(value));
}

bool Metadata::Has(std::string_view key) const {
  return values_.find(key) != values_.end();
}

absl::StatusOr<int64_t> Metadata::GetInt(std::string_view key, int64_t least,
                                         int64_t most) const {
  ASSIGN_OR_RETURN(const std::optional<int64_t> value,
                   FindInt(key, least, most));
  if (!value.has_value()) {
    return InputError("invalid_metadata",
                      absl::StrCat(Quoted(key), " is missing"));
  }
  return *value;
}

absl::StatusOr<std::optional<int64_t>> Metadata::FindInt(std::string_view key,
                                                         int64_t least,
                                                         int64_t most) const {
  const auto it = values_.find(key);
  if (it == values_.end()) return std::optional<int64_t>();
  const auto* as_unsigned = std::get_if<uint64_t>(&it->second);
  const auto* as_signed = std::get_if<int64_t>(&it->second);
  if (as_unsigned == nullptr && as_signed == nullptr) {
    return WrongKind(key, it->second, "an integer");
  }
  const bool fits = as_signed != nullptr || *as_unsigned <= kMostInt64;
  const int64_t value = as_signed != nullptr
                            ? *as_signed
                            : static_cast<int64_t>(fits ? *as_unsigned : 0);
  if (!fits || value < least || value > most) {
    return InputError(
        "invalid_metadata",
        absl::StrCat(Quoted(key), " is ",
                     as_signed != nullptr ? absl::StrCat(*as_signed)
                                          : absl::StrCat(*as_unsigned),
                     "; need ", least, " to ", most));
  }
  return std::optional<int64_t>(value);
}

absl::StatusOr<std::optional<double>> Metadata::FindFloat(
    std::string_view key) const {
  ASSIGN_OR_RETURN(const double* value, Find<double>(values_, key, "a float"));
  return value == nullptr ? std::optional<double>()
                          : std::optional<double>(*value);
}

absl::StatusOr<std::optional<bool>> Metadata::FindBool(
    std::string_view key) const {
  ASSIGN_OR_RETURN(const bool* value, Find<bool>(values_, key, "a bool"));
  return value == nullptr ? std::optional<bool>() : std::optional<bool>(*value);
}

absl::StatusOr<std::optional<std::string>> Metadata::FindString(
    std::string_view key) const {
  ASSIGN_OR_RETURN(const std::string* value,
                   Find<std::string>(values_, key, "a string"));
  return value == nullptr ? std::optional<std::string>()
                          : std::optional<std::string>(*value);
}

absl::StatusOr<const std::vector<std::string>*> Metadata::FindStrings(
    std::string_view key) const {
  return Find<std::vector<std::string>>(values_, key, "an array of strings");
}

absl::StatusOr<std::optional<std::vector<int64_t>>> Metadata::FindInts(
    std::string_view key) const {
  const auto it = values_.find(key);
  if (it == values_.end()) return std::optional<std::vector<int64_t>>();
  if (const auto* ints = std::get_if<std::vector<int64_t>>(&it->second)) {
    return std::optional<std::vector<int64_t>>(*ints);
  }
  const auto* unsigneds = std::get_if<std::vector<uint64_t>>(&it->second);
  if (unsigneds == nullptr) {
    return WrongKind(key, it->second, "an array of integers");
  }
  std::vector<int64_t> converted;
  converted.reserve(unsigneds->size());
  for (const uint64_t value : *unsigneds) {
    if (value > static_cast<uint64_t>(kMostInt64)) {
      return InputError("invalid_metadata",
                        absl::StrCat(Quoted(key), " holds ", value,
                                     "; need at most ", kMostInt64));
    }
    converted.push_back(static_cast<int64_t>(value));
  }
  return std::optional<std::vector<int64_t>>(std::move(converted));
}

absl::StatusOr<std::optional<std::vector<double>>> Metadata::FindFloats(
    std::string_view key) const {
  const auto it = values_.find(key);
  if (it == values_.end()) return std::optional<std::vector<double>>();
  if (const auto* floats = std::get_if<std::vector<double>>(&it->second)) {
    return std::optional<std::vector<double>>(*floats);
  }
  if (const auto* ints = std::get_if<std::vector<int64_t>>(&it->second)) {
    return std::optional<std::vector<double>>(
        std::vector<double>(ints->begin(), ints->end()));
  }
  if (const auto* ints = std::get_if<std::vector<uint64_t>>(&it->second)) {
    return std::optional<std::vector<double>>(
        std::vector<double>(ints->begin(), ints->end()));
  }
  return WrongKind(key, it->second, "an array of numbers");
}

}  // namespace tiercel
