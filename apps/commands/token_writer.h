#ifndef TIERCEL_APPS_COMMANDS_TOKEN_WRITER_H_
#define TIERCEL_APPS_COMMANDS_TOKEN_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "apps/cli/options.h"
#include "apps/terminal/output.h"

namespace tiercel::cli {

// Writes the tokens of one text as they come: as text, as JSON Lines, or
// nothing until the end.
class TokenWriter {
 public:
  // `question`: that which the text answers, its title; empty: none. `as_ids`:
  // tokens have no texts. `index`: its place among several texts.
  TokenWriter(const Options& options, bool as_ids, std::string question,
              uint64_t seed, std::optional<size_t> index = {})
      : options_(options),
        as_ids_(as_ids),
        question_(std::move(question)),
        seed_(seed),
        index_(index) {}

  absl::Status Begin();
  // `text` and `thought`: the token's parts of the answer and of the thought
  // before it, which a terminal alone shows.
  absl::Status Write(int32_t id, std::string_view text,
                     std::string_view thought);
  // Ends the line that is open, also after an error.
  absl::Status End();
  // Returns true if each token is a line that says whose it is, so that lines
  // of several texts may mix.
  bool MayMix() const { return options_.stream && index_.has_value(); }

 private:
  const Options& options_;
  const bool as_ids_;
  const std::string question_;
  const uint64_t seed_;
  const std::optional<size_t> index_;
  ProseWriter prose_;
  bool open_line_ = false;
};

// Writes texts that are made at once one after the other, as if they were made
// so: the first that has not ended as its tokens come, those behind it once it
// is their turn. Lines that may mix are written as they come.
class InOrder {
 public:
  // `ended(i)`: text i gets no more tokens.
  InOrder(std::vector<TokenWriter> writers, std::function<bool(size_t)> ended)
      : ended_(std::move(ended)) {
    for (TokenWriter& writer : writers) texts_.push_back({std::move(writer)});
  }

  absl::Status Write(size_t text, int32_t id, std::string_view piece,
                     std::string_view thought);
  // Writes all that is left of the texts that have ended.
  absl::Status Advance();
  // Ends the line that is open, also after an error.
  absl::Status End();

 private:
  struct Token {
    int32_t id;
    std::string text;
    std::string thought;
  };
  struct Text {
    TokenWriter writer;
    std::vector<Token> waiting = {};
  };
  absl::Status Begin();

  const std::function<bool(size_t)> ended_;
  std::vector<Text> texts_;
  size_t next_ = 0;  // the text that is being written
  bool begun_ = false;
};

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_COMMANDS_TOKEN_WRITER_H_
