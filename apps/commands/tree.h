#ifndef TIERCEL_APPS_COMMANDS_TREE_H_
#define TIERCEL_APPS_COMMANDS_TREE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apps/cli/options.h"
#include "apps/commands/api.h"
#include "lib/documents/document.h"

namespace tiercel::cli {

// Summarizes a book that the context does not hold, or that is read in sections
// (ReadsInSections), as a tree:
//
//   level 0    summaries of the longest runs of sections that fit
//   level 1..  summaries of runs of the summaries below, as long as these are
//              too many for the last level
//   the last   a few paragraphs, each made of its share of the summaries, so
//              that the place of each in the book is known
//
// It says the plan before it reads, and loads `model`, which was opened by its
// header, once all is known to fit. Each finished part is kept (Reading), and
// the same command goes on from there. Writes the summary, each paragraph as
// soon as it is made, or the JSON document, and notes. Returns the summary, or
// `too_long` with advice if the context does not hold even a part of the book,
// the request and an answer.
enum class Leaves { kLongest, kSections };
absl::StatusOr<std::string> SummarizeAsTree(const Options& options,
                                            Model* model,
                                            const document::Document& book,
                                            Leaves leaves,
                                            std::vector<std::string> warnings,
                                            const absl::Status& too_long);

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_COMMANDS_TREE_H_
