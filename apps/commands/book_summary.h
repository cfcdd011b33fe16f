#ifndef TIERCEL_APPS_COMMANDS_BOOK_SUMMARY_H_
#define TIERCEL_APPS_COMMANDS_BOOK_SUMMARY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apps/cli/options.h"
#include "apps/commands/forecast.h"
#include "apps/commands/spent.h"
#include "apps/document/document.h"
#include "apps/reader/journal.h"

namespace tiercel::cli {

// One part of the book, or of its summaries, and what was written about it.
struct Node {
  size_t begin;  // of the book's text, in bytes
  size_t end;
  size_t first_token;  // where those of level 0 are counted one by one
  size_t last_token;
  reader::Writing writing;
};

// What was made of a book, and how.
struct BookSummary {
  using Level = std::vector<Node>;

  // From the parts of the book up to those that the summary is made of.
  std::vector<Level> levels;
  size_t book_tokens = 0;
  size_t context = 0;      // tokens that it holds
  size_t answer = 0;       // of them for each text
  size_t made = 0;         // texts, in this run
  size_t resumed = 0;      // ... and before it
  size_t cut = 0;          // of both: at the end of `answer`
  int resumed_layers = 0;  // of a text's prompt that was finished before
  Spent spent;
  double seconds = 0;
  // What they were expected to take at most; absent: not known.
  std::optional<Forecast::Times> predicted;
  std::vector<std::string> warnings;
};

// "1 part", "2 parts"
std::string Parts(size_t count);

// Writes a text that is a part of the summary, each paragraph with where it
// comes from; `follows` another.
absl::Status WriteParagraphs(const document::Document& book, size_t book_tokens,
                             const Node& node, bool follows);

// Writes the JSON document (apps/README.md), where that is wanted, and notes;
// says what the summary took. Returns its text.
absl::StatusOr<std::string> WriteBookSummary(const Options& options,
                                             const document::Document& book,
                                             BookSummary summary);

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_COMMANDS_BOOK_SUMMARY_H_
