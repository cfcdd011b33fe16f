#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "apps/commands/command.h"
#include "apps/commands/input.h"
#include "apps/terminal/output.h"

namespace tiercel::cli {
namespace {

uint32_t Flags(const TokenOptions& tokens) {
  return (tokens.add_bos ? TIERCEL_ADD_BOS : 0) |
         (tokens.parse_special ? TIERCEL_PARSE_SPECIAL : 0);
}

// A part at a time: of a long text there are many.
absl::Status WriteIds(std::string text, absl::Span<const int32_t> ids,
                      const char* separator, const char* end) {
  constexpr size_t kIdsAtOnce = 1 << 16;
  while (ids.size() > kIdsAtOnce) {
    absl::StrAppend(&text, absl::StrJoin(ids.first(kIdsAtOnce), separator),
                    separator);
    if (absl::Status s = WriteOut(text); !s.ok()) return s;
    text.clear();
    ids.remove_prefix(kIdsAtOnce);
  }
  return WriteOut(absl::StrCat(text, absl::StrJoin(ids, separator), end));
}

}  // namespace

absl::Status Tokenize(const Options& options) {
  const InputOptions& input = options.input;
  absl::StatusOr<std::string> text =
      input.text.has_value() ? *input.text : ReadText(input.file.value_or("-"));
  if (!text.ok()) return text.status();
  absl::StatusOr<Model> model = OpenModel(options, TIERCEL_LOAD_HEADER);
  if (!model.ok()) return model.status();
  absl::StatusOr<std::vector<int32_t>> ids =
      model->Tokenize(*text, Flags(options.tokens), /*limits=*/{});
  if (!ids.ok()) return ids.status();
  return options.json ? WriteIds(R"({"tokens":[)", *ids, ",", "]}\n")
                      : WriteIds("", *ids, " ", "\n");
}

absl::Status Detokenize(const Options& options) {
  const TokenOptions& tokens = options.tokens;
  absl::StatusOr<std::string> list =
      tokens.ids.empty() ? ReadInput(options.input.tokens_file.value_or("-"))
                         : absl::StrJoin(tokens.ids, " ");
  if (!list.ok()) return list.status();
  absl::StatusOr<std::vector<int32_t>> ids = ParseTokens(*list);
  if (!ids.ok()) return ids.status();
  absl::StatusOr<Model> model = OpenModel(options, TIERCEL_LOAD_HEADER);
  if (!model.ok()) return model.status();
  absl::StatusOr<std::string> text = model->Detokenize(*ids, Flags(tokens));
  if (!text.ok()) return text.status();
  if (options.json) return WriteJson({{"text", *text}});
  return WriteOut(*text);
}

}  // namespace tiercel::cli
