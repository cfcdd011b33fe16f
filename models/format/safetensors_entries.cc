#include "models/format/safetensors_entries.h"

#include <unordered_set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/status/error.h"
#include "lib/text/quote.h"
#include "models/format/safetensors.h"
#include "nlohmann/json.hpp"

namespace tiercel {
namespace {

// Follows the parser through the only valid form of a header, and stops it at
// the first deviation. Only a field of a tensor that the format does not know
// is skipped, whatever its value.
class HeaderParser : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::vector<SafetensorsEntry>&& TakeEntries() { return std::move(entries_); }
  absl::Status status() const { return status_; }

  bool null() override {
    if (at_ == At::kMetadataStart) {
      at_ = At::kTop;
      return true;
    }
    return Skipped() || Misplaced("null");
  }
  bool boolean(bool) override { return Skipped() || Misplaced("a bool"); }
  bool number_integer(number_integer_t) override {
    return Skipped() || Misplaced("a negative number");
  }
  bool number_float(number_float_t, const string_t&) override {
    return Skipped() || Misplaced("a fraction or a number of 65 or more bits");
  }
  bool binary(binary_t&) override { return Misplaced("a binary value"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (at_ != At::kNumbers) return Skipped() || Misplaced("a number");
    if (numbers_->size() == SafetensorsLimits::kDims) {
      return Fail("limit_exceeded",
                  absl::StrCat("more than ", SafetensorsLimits::kDims,
                               " numbers in an array"));
    }
    numbers_->push_back(value);
    return true;
  }

  bool string(string_t& value) override {
    if (at_ == At::kMetadataValue) {
      at_ = At::kMetadata;
      return true;
    }
    if (at_ != At::kDtype) return Skipped() || Misplaced("a string");
    entries_.back().dtype = std::move(value);
    at_ = At::kEntry;
    return true;
  }

  bool start_object(size_t) override {
    switch (at_) {
      case At::kStart:
        at_ = At::kTop;
        return true;
      case At::kEntryValue:
        at_ = At::kEntry;
        return true;
      case At::kMetadataStart:
        at_ = At::kMetadata;
        return true;
      case At::kSkipped:
        return Deeper();
      default:
        return Misplaced("an object");
    }
  }

  bool end_object() override {
    if (at_ == At::kSkipped) return Higher();
    if (at_ == At::kTop) {
      at_ = At::kEnd;
      return true;
    }
    if (at_ == At::kEntry) {
      const SafetensorsEntry& entry = entries_.back();
      if (!entry.has_dtype || !entry.has_shape || !entry.has_offsets) {
        return Fail("invalid_header",
                    "need dtype, shape and data_offsets, one of each");
      }
    }
    at_ = At::kTop;
    return true;
  }

  bool start_array(size_t) override {
    if (at_ == At::kSkipped) return Deeper();
    if (at_ == At::kShape) {
      numbers_ = &entries_.back().shape;
    } else if (at_ == At::kOffsets) {
      numbers_ = &entries_.back().offsets;
    } else {
      return Misplaced("an array");
    }
    at_ = At::kNumbers;
    return true;
  }

  bool end_array() override {
    if (at_ == At::kSkipped) return Higher();
    at_ = At::kEntry;
    return true;
  }

  bool key(string_t& name) override {
    switch (at_) {
      case At::kTop:
        return TopKey(name);
      case At::kEntry:
        return EntryKey(name);
      case At::kSkipped:
        return true;
      default:  // a key of __metadata__
        at_ = At::kMetadataValue;
        return metadata_keys_.insert(name).second || Twice(name);
    }
  }

  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    return Fail("invalid_header",
                absl::StrCat("not JSON at byte ", position, " of the header"));
  }

 private:
  // The next element that may come.
  enum class At {
    kStart,
    kTop,            // a tensor's name, or the end
    kEntryValue,     // a tensor's object
    kEntry,          // a key of it, or its end
    kDtype,          // the string of dtype
    kShape,          // the array of shape
    kOffsets,        // the array of data_offsets
    kSkipped,        // a value of another key, or its end
    kNumbers,        // a number of an array, or its end
    kMetadataStart,  // the object of __metadata__
    kMetadata,       // a key of it, or its end
    kMetadataValue,  // a string
    kEnd,
  };

  bool Fail(std::string_view code, std::string_view message) {
    const bool inside = at_ >= At::kEntryValue && at_ <= At::kNumbers;
    status_ = InputError(
        code, inside ? absl::StrCat("tensor ", Quoted(entries_.back().name),
                                    ": ", std::string(message))
                     : std::string(message));
    return false;
  }
  bool Misplaced(std::string_view what) {
    return Fail("invalid_header",
                absl::StrCat(std::string(what), " is out of place"));
  }
  bool Twice(std::string_view name) {
    return Fail("invalid_header",
                absl::StrCat("key ", Quoted(name), " is there twice"));
  }

  // Returns whether this is a value that is skipped, or stands in one.
  bool Skipped() {
    if (at_ != At::kSkipped) return false;
    if (depth_ == 0) at_ = At::kEntry;
    return true;
  }
  bool Deeper() {
    if (++depth_ <= kMostDepth) return true;
    return Fail("invalid_header",
                absl::StrCat("a field with more than ", kMostDepth, " levels"));
  }
  bool Higher() {
    --depth_;
    return Skipped();
  }

  bool TopKey(std::string& name) {
    if (!names_.insert(name).second) return Twice(name);
    if (name == "__metadata__") {
      at_ = At::kMetadataStart;
      return true;
    }
    if (entries_.size() == SafetensorsLimits::kTensors) {
      return Fail(
          "limit_exceeded",
          absl::StrCat("more than ", SafetensorsLimits::kTensors, " tensors"));
    }
    entries_.emplace_back().name = std::move(name);
    at_ = At::kEntryValue;
    return true;
  }

  bool EntryKey(const std::string& name) {
    SafetensorsEntry& entry = entries_.back();
    bool twice = false;
    if (name == "dtype") {
      twice = std::exchange(entry.has_dtype, true);
      at_ = At::kDtype;
    } else if (name == "shape") {
      twice = std::exchange(entry.has_shape, true);
      at_ = At::kShape;
    } else if (name == "data_offsets") {
      twice = std::exchange(entry.has_offsets, true);
      at_ = At::kOffsets;
    } else {
      at_ = At::kSkipped;
    }
    return twice ? Twice(name) : true;
  }

  static constexpr int kMostDepth = 125;  // as the library safetensors has it

  At at_ = At::kStart;
  int depth_ = 0;  // arrays and objects that are open in a skipped value
  std::vector<SafetensorsEntry> entries_;
  std::vector<uint64_t>* numbers_ = nullptr;
  std::unordered_set<std::string> names_;
  std::unordered_set<std::string> metadata_keys_;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<std::vector<SafetensorsEntry>> ParseSafetensorsEntries(
    std::string_view text) {
  if (text.empty() || text.front() != '{') {
    return InputError("invalid_header", "the header does not start with '{'");
  }
  // The parser would take a NUL for the end of the text.
  if (const size_t nul = text.find('\0'); nul != text.npos) {
    return InputError("invalid_header",
                      absl::StrCat("NUL at byte ", nul, " of the header"));
  }
  HeaderParser parser;
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &parser)) {
    return parser.status();
  }
  return parser.TakeEntries();
}

}  // namespace tiercel
