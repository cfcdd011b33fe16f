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
#include "apps/commands/total_cost.h"
#include "apps/notes/journal.h"
#include "lib/documents/document.h"

namespace tiercel::cli {

// One part of the book, or of its summaries, and the text written about it.
struct Node {
  size_t begin;  // byte offset in the book's text
  size_t end;
  size_t first_token;  // counted over the parts of level 0 one by one
  size_t last_token;
  reader::Writing writing;
  bool skipped = false;  // by --effort

  size_t tokens() const { return last_token - first_token; }
};

// The summary of a book, and how it was made.
struct BookSummary {
  using Level = std::vector<Node>;

  // The first level has the parts of the book, the last the paragraphs of the
  // summary.
  std::vector<Level> levels;
  size_t book_tokens = 0;
  size_t context = 0;      // tokens
  size_t answer = 0;       // most tokens of each text, within `context`
  size_t made = 0;         // texts made in this run
  size_t resumed = 0;      // texts made before it
  size_t cut = 0;          // texts, of both kinds, that were cut at `answer`
  size_t unanswered = 0;   // texts made that ended within a thought
  size_t at_once = 0;      // most texts that were made at once
  int resumed_layers = 0;  // layers of prompts that earlier runs had finished
  TotalCost spent;
  double seconds = 0;
  // The time that the texts of this run were expected to take at most; absent:
  // not known.
  std::optional<Forecast::Times> predicted;
  std::vector<std::string> warnings;
};

// Texts of a level, joined.
struct JoinedTexts {
  std::string text;
  std::vector<size_t> begins;  // offset of each
};
JoinedTexts JoinTexts(const BookSummary::Level& level, size_t first,
                      size_t last);
// The node of the text to be made of a level's joined texts from `begin` to
// `end`.
Node NodeOver(const BookSummary::Level& level, const JoinedTexts& joined,
              size_t begin, size_t end);

// "1 part", "2 parts"
std::string Parts(size_t count);

// The place of a text in the book, by chapters or pages if it has any, else by
// tokens; "" for all of a book that has neither.
std::string PlaceOf(const document::Document& book, size_t book_tokens,
                    const Node& node);
// The text of the last level.
std::string TextOf(const BookSummary& summary);
// The ids of the last level's texts, a JSON array.
Json TokensOf(const BookSummary& summary);
// Returns true if there is no text, and parts were cut or not answered.
bool IsLost(const BookSummary& summary);
// Returns true if one of the last level's texts was cut, or all are lost.
bool WasCut(const BookSummary& summary);
// Sentences on texts of parts that were cut, or are lost; `text` and `texts`
// are the words for one and for several.
std::vector<std::string> LossesOf(const BookSummary& tree, const char* text,
                                  const char* texts);
// Adds to `all` the warnings of a tree that it lacks.
void AddNewWarnings(const std::vector<std::string>& warnings,
                    std::vector<std::string>* all);
// The entry in "parts" of a text.
Json PartOf(const document::Document& book, size_t level, const Node& node);
// The entries of all levels; `first_token` is that of `book` in a longer one.
Json PartsOf(const document::Document& book, const BookSummary& summary,
             size_t first_token);
// The document of a command that made `trees`, one at least: `head`, what they
// took together, `more`, and the fields with which every such document ends.
Json TreesDocument(const Options& options, const Json& head,
                   const std::vector<const BookSummary*>& trees,
                   const Json& more, const std::vector<std::string>& warnings);
// The predicted figures; each is null if it is not known.
Json PredictedOf(const Options& options, const BookSummary& summary);
// The cost of the reading, for people.
std::string TookOf(const Options& options, const BookSummary& summary);

// Writes a text of the summary, each paragraph with its place in the book;
// `follows`: another text was written before it.
absl::Status WriteParagraphs(const document::Document& book, size_t book_tokens,
                             const Node& node, bool follows);

// Writes the JSON document (apps/README.md), if it is wanted, and notes; says
// the cost of the summary. Returns the summary's text.
absl::StatusOr<std::string> WriteBookSummary(const Options& options,
                                             const document::Document& book,
                                             BookSummary summary);

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_COMMANDS_BOOK_SUMMARY_H_
