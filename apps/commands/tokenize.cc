#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "apps/commands/command.h"
#include "apps/commands/input.h"
#include "apps/terminal/output.h"
#include "lib/status/status_macros.h"

namespace tiercel::cli {
namespace {

uint32_t Flags(const TokenOptions& tokens) {
  return (tokens.add_bos ? TIERCEL_ADD_BOS : 0) |
         (tokens.parse_special ? TIERCEL_PARSE_SPECIAL : 0);
}

// Writes ids a part at a time, since a long text has many.
absl::Status WriteIds(std::string text, absl::Span<const int32_t> ids,
                      const char* separator, const char* end) {
  constexpr size_t kIdsAtOnce = 1 << 16;
  while (ids.size() > kIdsAtOnce) {
    absl::StrAppend(&text, absl::StrJoin(ids.first(kIdsAtOnce), separator),
                    separator);
    RETURN_IF_ERROR(WriteOut(text));
    text.clear();
    ids.remove_prefix(kIdsAtOnce);
  }
  return WriteOut(absl::StrCat(text, absl::StrJoin(ids, separator), end));
}

}  // namespace

absl::Status Tokenize(const Options& options) {
  const InputOptions& input = options.input;
  ASSIGN_OR_RETURN(std::string text, input.text.has_value()
                                         ? *input.text
                                         : ReadText(input.file.value_or("-")));
  ASSIGN_OR_RETURN(Model model, OpenModel(options, TIERCEL_LOAD_HEADER));
  ASSIGN_OR_RETURN(std::vector<int32_t> ids,
                   model.Tokenize(text, Flags(options.tokens), /*limits=*/{}));
  return options.json ? WriteIds(R"({"tokens":[)", ids, ",", "]}\n")
                      : WriteIds("", ids, " ", "\n");
}

absl::Status Detokenize(const Options& options) {
  const TokenOptions& tokens = options.tokens;
  ASSIGN_OR_RETURN(std::string list,
                   tokens.ids.empty()
                       ? ReadInput(options.input.tokens_file.value_or("-"))
                       : absl::StrJoin(tokens.ids, " "));
  ASSIGN_OR_RETURN(std::vector<int32_t> ids, ParseTokens(list));
  ASSIGN_OR_RETURN(Model model, OpenModel(options, TIERCEL_LOAD_HEADER));
  ASSIGN_OR_RETURN(std::string text, model.Detokenize(ids, Flags(tokens)));
  if (options.json) return WriteJson({{"text", text}});
  return WriteOut(text);
}

}  // namespace tiercel::cli
