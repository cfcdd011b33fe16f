#ifndef TIERCEL_APPS_COMMANDS_WHOLE_SUMMARY_H_
#define TIERCEL_APPS_COMMANDS_WHOLE_SUMMARY_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apps/cli/options.h"
#include "apps/commands/model.h"
#include "apps/commands/tree.h"
#include "lib/documents/document.h"

namespace tiercel::cli {

// The form of a summary. A part of `whole_bytes`, if they are not 0, is all of
// a text, of which a summary of the wanted length is asked at once.
TreeForm SummaryForm(const BookOptions& book, bool sections,
                     size_t whole_bytes);

// Summarizes a book that the context does not hold, or that is read in
// sections, and writes the summary, or the JSON document, and notes. Returns
// the summary.
enum class Leaves { kLongest, kSections };
absl::StatusOr<std::string> SummarizeAsTree(const Options& options,
                                            Model* model,
                                            const document::Document& book,
                                            Leaves leaves,
                                            std::vector<std::string> warnings,
                                            const absl::Status& too_long);

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_COMMANDS_WHOLE_SUMMARY_H_
