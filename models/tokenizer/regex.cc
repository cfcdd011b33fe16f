#include "models/tokenizer/regex.h"

#include <oniguruma.h>

#include <array>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/status/error.h"
#include "lib/text/quote.h"

namespace tiercel {
namespace {

// A pattern for words takes a step or two for a byte.
constexpr size_t kStepsOfByte = 64;
constexpr size_t kLeastSteps = 10'000'000;
// The engine keeps a place to return to for each character of a run: 200 MB.
constexpr unsigned kMostPlaces = 1U << 22;

const OnigUChar* Bytes(std::string_view text) {
  return reinterpret_cast<const OnigUChar*>(text.data());
}

std::string MessageOf(int code, const OnigErrorInfo* info) {
  std::array<OnigUChar, ONIG_MAX_ERROR_MESSAGE_LEN> text = {};
  const int size = info == nullptr
                       ? onig_error_code_to_str(text.data(), code)
                       : onig_error_code_to_str(text.data(), code, info);
  return std::string(reinterpret_cast<const char*>(text.data()),
                     static_cast<size_t>(size));
}

}  // namespace

struct Regex::Room::Impl {
  OnigRegion* region = onig_region_new();
  OnigMatchParam* param = onig_new_match_param();
};

Regex::Room::Room() : impl_(std::make_unique<Impl>()) {}

Regex::Room::~Room() {
  onig_region_free(impl_->region, /*free_self=*/1);
  onig_free_match_param(impl_->param);
}

struct Regex::Impl {
  regex_t* regex = nullptr;
  ~Impl() {
    if (regex != nullptr) onig_free(regex);
  }
};

absl::StatusOr<Regex> Regex::Compile(std::string_view pattern) {
  auto impl = std::make_shared<Impl>();
  OnigErrorInfo error = {};
  const int status =
      onig_new(&impl->regex, Bytes(pattern), Bytes(pattern) + pattern.size(),
               ONIG_OPTION_NONE, ONIG_ENCODING_UTF8, ONIG_SYNTAX_RUBY, &error);
  if (status != ONIG_NORMAL) {
    impl->regex = nullptr;
    return InputError(
        "unsupported_tokenizer",
        absl::StrCat("tokenizer: the pattern ", Quoted(pattern),
                     " is no regular expression: ", MessageOf(status, &error)));
  }
  return Regex(std::move(impl));
}

absl::StatusOr<TextRange> Regex::Find(std::string_view text, size_t from,
                                      Room* room) const {
  OnigRegion* const region = room->impl_->region;
  OnigMatchParam* const param = room->impl_->param;
  const size_t steps = kLeastSteps + kStepsOfByte * (text.size() - from);
  onig_initialize_match_param(param);
  onig_set_match_stack_limit_size_of_match_param(param, kMostPlaces);
  onig_set_retry_limit_in_match_of_match_param(param, steps);
  onig_set_retry_limit_in_search_of_match_param(param, steps);
  const OnigUChar* const base = Bytes(text);
  const OnigUChar* const end = base + text.size();
  const int status =
      onig_search_with_param(impl_->regex, base, end, base + from, end, region,
                             ONIG_OPTION_NONE, param);
  if (status == ONIG_MISMATCH) return TextRange{text.size(), text.size()};
  if (status < 0) {
    return InputError("invalid_text",
                      absl::StrCat("tokenizer: the vocabulary's pattern cannot "
                                   "cut the text behind byte ",
                                   from, ": ", MessageOf(status, nullptr)));
  }
  return TextRange{static_cast<size_t>(region->beg[0]),
                   static_cast<size_t>(region->end[0])};
}

}  // namespace tiercel
