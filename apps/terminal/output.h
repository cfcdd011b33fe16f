#ifndef TIERCEL_APPS_TERMINAL_OUTPUT_H_
#define TIERCEL_APPS_TERMINAL_OUTPUT_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "apps/terminal/word_wrap.h"
#include "nlohmann/json.hpp"

namespace tiercel::cli {

// Keeps the order in which fields were added: documents read top to bottom.
using Json = nlohmann::ordered_json;

// Results go to stdout, at once and unbuffered; to a terminal as it takes them
// (Printable), else as they are. Errors: kIo; ReaderGone for a closed pipe.
absl::Status WriteOut(std::string_view text);

// One line of JSON, the same document on a terminal (PrintableJson). Text that
// is no UTF-8 becomes U+FFFD.
absl::Status WriteJson(const Json& document);
std::string Dump(const Json& document);

// "name      value\n", the value from `column` on.
std::string TableRow(const std::string& name, const std::string& value,
                     size_t column);

// Text for people, a whole one, goes to stderr as a terminal takes it
// (Printable), and on a terminal its lines break between words. That it fails
// cannot be told.
void WriteNote(std::string_view text);

// "warning: TEXT", each on a line.
void WriteWarnings(const std::vector<std::string>& warnings);

// Running text on stdout, which a model writes as it comes: on a terminal that
// says how wide it is, lines break between words, and a word is seen when it is
// whole. Otherwise as WriteOut does it.
class ProseWriter {
 public:
  absl::Status Write(std::string_view text);
  // At the end, also where writing failed: the word that waits.
  absl::Status Finish();

 private:
  WordWrap wrap_;
};
// Likewise, of a whole text.
absl::Status WriteProse(std::string_view text);

// Writes all of `text`, in parts if need be. Errors: kIo; ReaderGone;
// Interrupted where a signal came and nobody reads.
absl::Status WriteAll(int fd, std::string_view text, std::string_view name);

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_TERMINAL_OUTPUT_H_
