#ifndef TIERCEL_APPS_COMMANDS_TREE_H_
#define TIERCEL_APPS_COMMANDS_TREE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apps/cli/options.h"
#include "apps/commands/book_summary.h"
#include "apps/commands/model.h"
#include "apps/commands/requests.h"
#include "lib/documents/document.h"

namespace tiercel::cli {

// A tree of texts about a book that is read in parts:
//
//   level 0    one about each of the longest runs of sections that fit
//   level 1..  one about each run of the texts below, as long as these are too
//              many for the last level
//   the last   one, or a few, each made of its share of the texts below, so
//              that the place of each in the book is known
struct TreeForm {
  TalkFn part;  // the request about a part
  // The request about texts of parts, joined, for about so many words; 0: the
  // length is not said.
  std::function<TalkFn(int64_t words)> join;
  bool sections = false;  // a small model reads sections (ReadsInSections)
  bool shows = true;      // the last level is written as soon as it is made
  // The question that the texts answer; empty: none. There is one on the last
  // level; those that say nothing are dropped, and the KV of the parts is kept
  // for the next question. --effort chooses the parts.
  std::string question;
  std::optional<size_t> index;  // the answer's, if there are several

  bool answers() const { return !question.empty(); }
};

// Makes the tree. It says the plan before it reads, and loads `model`, which
// was opened by its header, once all is known to fit. Each finished text is
// kept (Reading), and the same command goes on from there. `warnings` go before
// its own. Returns `too_long` with advice if the context does not hold even a
// part of the book, the request and an answer.
absl::StatusOr<BookSummary> ReadAsTree(const Options& options, Model* model,
                                       const document::Document& book,
                                       TreeForm form,
                                       std::vector<std::string> warnings,
                                       const absl::Status& too_long);

// Returns `too_long` with advice if ReadAsTree would.
absl::Status CheckHasRoom(const Options& options, Model* model,
                          const document::Document& book, TreeForm form,
                          const absl::Status& too_long);

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_COMMANDS_TREE_H_
