#ifndef TIERCEL_APPS_COMMANDS_EACH_CHAPTER_H_
#define TIERCEL_APPS_COMMANDS_EACH_CHAPTER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "apps/cli/options.h"
#include "apps/commands/model.h"
#include "lib/documents/document.h"

namespace tiercel::cli {

// Summarizes each chapter of a book by itself, in parts if the context does not
// hold it (ReadAsTree). Writes each summary below the chapter's name once it is
// made, or the JSON document, and notes, with a section for each. Errors:
// no_chapters; those of ReadAsTree.
absl::Status SummarizeEach(const Options& options, Model* model,
                           const document::Document& book,
                           std::vector<std::string> warnings);

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_COMMANDS_EACH_CHAPTER_H_
