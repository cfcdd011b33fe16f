#ifndef TIERCEL_RUNTIME_POLICIES_SETTINGS_H_
#define TIERCEL_RUNTIME_POLICIES_SETTINGS_H_

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace tiercel {

// The settings of one policy, written KEY=VALUE,KEY=VALUE. Each Take reads one
// key into `value`, which stays as it is if the key is not given. The first
// error is kept, and Finish returns it.
class Settings {
 public:
  Settings(std::string_view policy, const std::string& text);

  void TakeText(const char* key, std::string* value);
  // Takes any integer; the caller checks its range, which `needed` states.
  void TakeNumber(const char* key, const char* needed,
                  std::optional<int64_t>* value);
  void TakeCount(const char* key, int64_t least, int64_t most, int64_t* value);
  // Like TakeCount, but the word `ours` leaves `value` as it is.
  void TakeCountOr(const char* key, const char* ours, int64_t least,
                   int64_t most, int64_t* value);
  void TakeShare(const char* key, float* value);  // 0 to 1
  template <typename T>
  void TakeChoice(const char* key,
                  std::initializer_list<std::pair<const char*, T>> names,
                  T* value) {
    std::string text;
    if (!Find(key, &text)) return;
    std::string known;
    for (const auto& [name, meaning] : names) {
      if (text == name) {
        *value = meaning;
        return;
      }
      absl::StrAppend(&known, known.empty() ? "" : ", ", name);
    }
    Refuse(key, text, known);
  }

  // The keys among `keys` that the text has.
  std::vector<std::string> Given(std::initializer_list<const char*> keys) const;

  // Errors: invalid_argument, for a value that could not be read, for a key
  // that no Take has read, and for one that is there twice.
  absl::Status Finish() const;

 private:
  bool Find(const char* key, std::string* value);
  bool Peek(const char* key, std::string* value) const;
  void Refuse(const char* key, const std::string& got,
              const std::string& needed);
  void Fail(const std::string& what);

  const std::string policy_;
  std::vector<std::pair<std::string, std::string>> given_;
  std::vector<std::string> known_;
  absl::Status status_;
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_POLICIES_SETTINGS_H_
