#include "apps/commands/book.h"
#include "apps/commands/command.h"
#include "apps/terminal/output.h"
#include "lib/status/status_macros.h"

namespace tiercel::cli {

absl::Status Text(const Options& options) {
  ASSIGN_OR_RETURN(const document::Document book, OpenBook(options));
  return options.json ? WriteJson(Described(book)) : WriteProse(book.text);
}

}  // namespace tiercel::cli
