#ifndef TIERCEL_APPS_TERMINAL_OUTPUT_H_
#define TIERCEL_APPS_TERMINAL_OUTPUT_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "nlohmann/json.hpp"

namespace tiercel::cli {

// Keeps the order in which fields were added: documents read top to bottom.
using Json = nlohmann::ordered_json;

// Results go to stdout, at once and unbuffered: a token is seen when it is
// known. Errors: kIo; ReaderGone for a closed pipe.
absl::Status WriteOut(std::string_view text);

// One line of JSON. Text that is no UTF-8 (a model may stop inside a character)
// becomes U+FFFD.
absl::Status WriteJson(const Json& document);
std::string Dump(const Json& document);

// "name      value\n", the value from `column` on.
std::string TableRow(const std::string& name, const std::string& value,
                     size_t column);

// Text for people goes to stderr; there is nobody to tell if that fails.
void WriteNote(std::string_view text);

// "warning: TEXT", each on a line.
void WriteWarnings(const std::vector<std::string>& warnings);

// With '?' for control characters, line ends excepted: names from files and
// arguments must not drive the terminal.
std::string Printable(std::string text);

// Writes all of `text`, in parts if need be. Errors: kIo; ReaderGone;
// Interrupted where a signal came and nobody reads.
absl::Status WriteAll(int fd, std::string_view text, std::string_view name);

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_TERMINAL_OUTPUT_H_
