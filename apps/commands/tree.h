#ifndef TIERCEL_APPS_COMMANDS_TREE_H_
#define TIERCEL_APPS_COMMANDS_TREE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apps/cli/options.h"
#include "apps/commands/api.h"
#include "apps/document/document.h"

namespace tiercel::cli {

// Summarizes a book that the context does not hold, or that is read in sections
// (ReadsInSections), as a tree:
//
//   level 0    the longest runs of its sections that fit, each summarized
//   level 1..  runs of summaries, each summarized again, while they are too
//              many for
//   the last   a few paragraphs, each made of its share of the summaries, so
//              that it is known where each comes from
//
// The plan is said before anything is read, and `model`, opened by its header,
// is loaded when it is known that all fits. Each finished part is kept
// (Reading), and the same command goes on from there. Writes the summary, each
// paragraph as soon as it is made, or the JSON document, and notes. `too_long`
// is what is wrong with the book otherwise: the error where the context holds
// no part of it, with what is asked and an answer. Returns the summary.
enum class Leaves { kLongest, kSections };
absl::StatusOr<std::string> SummarizeAsTree(const Options& options,
                                            Model* model,
                                            const document::Document& book,
                                            Leaves leaves,
                                            std::vector<std::string> warnings,
                                            const absl::Status& too_long);

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_COMMANDS_TREE_H_
