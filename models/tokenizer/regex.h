#ifndef TIERCEL_MODELS_TOKENIZER_REGEX_H_
#define TIERCEL_MODELS_TOKENIZER_REGEX_H_

#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"

namespace tiercel {

// A stretch of a text, as offsets in bytes.
struct TextRange {
  size_t begin;
  size_t end;
};

// A regular expression of Oniguruma with Ruby's syntax: the engine and the
// syntax of the patterns in tokenizer.json files. Copies and
// threads share one.
class Regex {
 public:
  // The room in which matches are found; one search at a time.
  class Room {
   public:
    Room();
    ~Room();
    Room(const Room&) = delete;
    Room& operator=(const Room&) = delete;

   private:
    friend class Regex;
    struct Impl;
    std::unique_ptr<Impl> impl_;
  };

  // Errors: unsupported_tokenizer, with the engine's own words.
  static absl::StatusOr<Regex> Compile(std::string_view pattern);

  // Returns the leftmost match in `text`, valid UTF-8, that begins at `from` or
  // behind it; an empty range at the end of `text` if there is none. Errors:
  // invalid_text, if the match takes more steps or memory than a pattern should
  // (some grow without bound on texts made for it).
  absl::StatusOr<TextRange> Find(std::string_view text, size_t from,
                                 Room* room) const;

 private:
  struct Impl;
  explicit Regex(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

}  // namespace tiercel

#endif  // TIERCEL_MODELS_TOKENIZER_REGEX_H_
