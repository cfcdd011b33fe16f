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

// Writes a result to stdout, unbuffered; on a terminal as Printable makes it.
// Errors: kIo; ReaderGone for a closed pipe.
absl::Status WriteOut(std::string_view text);

// Writes one line of JSON; on a terminal as PrintableJson makes it, which is
// the same document. Invalid UTF-8 becomes U+FFFD.
absl::Status WriteJson(const Json& document);
std::string Dump(const Json& document);

// Returns "name      value\n", with the value from `column` on.
std::string TableRow(const std::string& name, const std::string& value,
                     size_t column);

// Writes a whole text for people to stderr, as Printable makes it; on a
// terminal its lines break between words. A failure is ignored: it cannot be
// reported.
void WriteNote(std::string_view text);

// Writes each warning as a line "warning: TEXT".
void WriteWarnings(const std::vector<std::string>& warnings);
// Writes those that this function has not written before: what holds for the
// machine or the model is the same for each text.
void WriteNewWarnings(const std::vector<std::string>& warnings);

// Writes running text to stdout while a model makes it. On a terminal of known
// width lines break between words, and a word shows once it is whole; elsewhere
// it does the same as WriteOut.
class ProseWriter {
 public:
  absl::Status Write(std::string_view text);
  // Writes, in grey, what a model thinks before it answers: on a terminal
  // alone.
  absl::Status WriteThought(std::string_view text);
  // Writes the word that still waits. Called at the end, also after a failure.
  absl::Status Finish();

 private:
  WordWrap wrap_;
  bool thinks_ = false;  // the text so far is a thought
};
// Writes a whole text in the same way.
absl::Status WriteProse(std::string_view text);

// Writes all of `text`, in parts if need be. Errors: kIo; ReaderGone;
// Interrupted if a signal came and the reader takes nothing.
absl::Status WriteAll(int fd, std::string_view text, std::string_view name);

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_TERMINAL_OUTPUT_H_
