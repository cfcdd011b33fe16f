#include "runtime/policies/settings.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "lib/status/error.h"

namespace tiercel {

Settings::Settings(std::string_view policy, const std::string& text)
    : policy_(policy) {
  if (text.empty()) return;
  for (const std::string& one :
       std::vector<std::string>(absl::StrSplit(text, ','))) {
    const size_t equals = one.find('=');
    if (equals == 0 || equals == std::string::npos) {
      Fail(absl::StrCat("got \"", one, "\", need KEY=VALUE"));
      return;
    }
    const std::string key = one.substr(0, equals);
    const auto same = [&](const auto& given) { return given.first == key; };
    if (std::any_of(given_.begin(), given_.end(), same)) {
      Fail(absl::StrCat(key, " is given twice"));
      return;
    }
    given_.emplace_back(key, one.substr(equals + 1));
  }
}

bool Settings::Find(const char* key, std::string* value) {
  known_.emplace_back(key);
  return Peek(key, value);
}

bool Settings::Peek(const char* key, std::string* value) const {
  for (const auto& [name, text] : given_) {
    if (name != key) continue;
    *value = text;
    return true;
  }
  return false;
}

void Settings::TakeText(const char* key, std::string* value) {
  Find(key, value);
}

void Settings::TakeNumber(const char* key, const char* needed,
                          std::optional<int64_t>* value) {
  std::string text;
  if (!Find(key, &text)) return;
  int64_t number = 0;
  if (absl::SimpleAtoi(text, &number)) {
    *value = number;
  } else {
    Refuse(key, text, needed);
  }
}

void Settings::TakeCount(const char* key, int64_t least, int64_t most,
                         int64_t* value) {
  std::string text;
  if (!Find(key, &text)) return;
  int64_t count = 0;
  if (absl::SimpleAtoi(text, &count) && count >= least && count <= most) {
    *value = count;
    return;
  }
  Refuse(key, text, absl::StrCat(least, " to ", most));
}

void Settings::TakeCountOr(const char* key, const char* ours, int64_t least,
                           int64_t most, int64_t* value) {
  std::string text;
  if (Peek(key, &text) && text == ours) {
    known_.emplace_back(key);
  } else {
    TakeCount(key, least, most, value);
  }
}

void Settings::TakeShare(const char* key, float* value) {
  std::string text;
  if (!Find(key, &text)) return;
  float share = 0;
  if (absl::SimpleAtof(text, &share) && share >= 0 && share <= 1) {
    *value = share;
    return;
  }
  Refuse(key, text, "0 to 1");
}

std::vector<std::string> Settings::Given(
    std::initializer_list<const char*> keys) const {
  std::vector<std::string> given;
  std::string value;
  for (const char* key : keys) {
    if (Peek(key, &value)) given.emplace_back(key);
  }
  return given;
}

absl::Status Settings::Finish() const {
  if (!status_.ok()) return status_;
  for (const auto& [key, value] : given_) {
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    const std::string needed =
        known_.empty() ? "none" : absl::StrJoin(known_, ", ");
    return UsageError("invalid_argument",
                      absl::StrCat("settings of ", policy_, ": got ", key,
                                   ", need ", needed));
  }
  return absl::OkStatus();
}

void Settings::Refuse(const char* key, const std::string& got,
                      const std::string& needed) {
  Fail(absl::StrCat(key, ": got \"", got, "\", need ", needed));
}

void Settings::Fail(const std::string& what) {
  if (!status_.ok()) return;
  status_ = UsageError("invalid_argument",
                       absl::StrCat("settings of ", policy_, ": ", what));
}

}  // namespace tiercel
