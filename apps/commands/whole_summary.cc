#include "apps/commands/whole_summary.h"

#include <cstdint>
#include <utility>

#include "apps/commands/book_summary.h"
#include "apps/commands/requests.h"
#include "lib/status/status_macros.h"

namespace tiercel::cli {

TreeForm SummaryForm(const BookOptions& book, bool sections,
                     size_t whole_bytes) {
  TreeForm form;
  form.sections = sections;
  form.part = [&book, sections, whole_bytes](const std::string& text) {
    if (sections) return SectionTalk(book, text);
    return whole_bytes > 0 && text.size() >= whole_bytes
               ? SummaryTalk(book, text)
               : PartTalk(book, /*words=*/0, text);
  };
  form.join = [&book, sections](int64_t words) -> TalkFn {
    return [&book, sections, words](const std::string& text) {
      return sections ? SectionTalk(book, text) : JoinTalk(book, words, text);
    };
  };
  return form;
}

absl::StatusOr<std::string> SummarizeAsTree(const Options& options,
                                            Model* model,
                                            const document::Document& book,
                                            Leaves leaves,
                                            std::vector<std::string> warnings,
                                            const absl::Status& too_long) {
  TreeForm form = SummaryForm(options.book, leaves == Leaves::kSections,
                              /*whole_bytes=*/0);
  ASSIGN_OR_RETURN(BookSummary summary,
                   ReadAsTree(options, model, book, std::move(form),
                              std::move(warnings), too_long));
  return WriteBookSummary(options, book, std::move(summary));
}

}  // namespace tiercel::cli
