#include "models/tokenizer/regex_oracle.h"

#include <oniguruma.h>

#include <cstddef>

namespace tiercel {
namespace {

const OnigUChar* Bytes(std::string_view text) {
  return reinterpret_cast<const OnigUChar*>(text.data());
}

}  // namespace

struct RegexOracle::Impl {
  regex_t* regex = nullptr;
  OnigRegion* region = onig_region_new();

  ~Impl() {
    if (regex != nullptr) onig_free(regex);
    onig_region_free(region, /*free_self=*/1);
  }
};

RegexOracle::RegexOracle(std::string_view pattern)
    : impl_(std::make_unique<Impl>()) {
  OnigErrorInfo error;
  const int status =
      onig_new(&impl_->regex, Bytes(pattern), Bytes(pattern) + pattern.size(),
               ONIG_OPTION_NONE, ONIG_ENCODING_UTF8, ONIG_SYNTAX_RUBY, &error);
  if (status != ONIG_NORMAL) impl_.reset();
}

RegexOracle::~RegexOracle() = default;

void RegexOracle::Split(const std::string& text,
                        std::vector<std::string>* pieces) const {
  const OnigUChar* base = Bytes(text);
  const OnigUChar* end = base + text.size();
  size_t at = 0;
  while (at < text.size()) {
    const bool found = onig_search(impl_->regex, base, end, base + at, end,
                                   impl_->region, ONIG_OPTION_NONE) >= 0;
    const size_t begin = found ? impl_->region->beg[0] : text.size();
    const size_t stop = found ? impl_->region->end[0] : text.size();
    if (begin > at) pieces->push_back(text.substr(at, begin - at));
    if (stop > begin) pieces->push_back(text.substr(begin, stop - begin));
    at = stop;
  }
}

bool RegexOracle::Matches(const std::string& text) const {
  const OnigUChar* base = Bytes(text);
  const OnigUChar* end = base + text.size();
  return onig_match(impl_->regex, base, end, base, /*region=*/nullptr,
                    ONIG_OPTION_NONE) == static_cast<int>(text.size());
}

}  // namespace tiercel
