#include "apps/commands/grammars.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "apps/cli/error.h"
#include "apps/commands/input.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel::cli {

absl::StatusOr<std::unique_ptr<GrammarCompiler>> GrammarsOf(
    const Model& model) {
  const tiercel_model_info& info = model.info();
  if (info.has_tokenizer == 0) {
    return Error(Exit::kInput, "no_tokenizer",
                 "the model has no tokenizer, which a grammar needs");
  }
  GrammarVocabulary vocabulary;
  vocabulary.ends.assign(info.end_ids, info.end_ids + info.num_end_ids);
  vocabulary.tokens.reserve(static_cast<size_t>(info.vocab));
  for (int64_t id = 0; id < info.vocab; ++id) {
    const absl::StatusOr<std::string> piece =
        model.Detokenize({static_cast<int32_t>(id)}, TIERCEL_WITHIN_TEXT);
    // The model may have more rows than its tokenizer has tokens.
    vocabulary.tokens.push_back(piece.ok() ? *piece : std::string());
  }
  return GrammarCompiler::Create(std::move(vocabulary), info.threads);
}

absl::StatusOr<Options> WithGrammar(Options options, const Model& model) {
  SamplingOptions& sampling = options.sampling;
  const bool schema = !sampling.json_schema_path.empty();
  const std::string& path =
      schema ? sampling.json_schema_path : sampling.grammar_path;
  if (path.empty()) return options;
  GrammarSource source;
  source.kind =
      schema ? GrammarSource::Kind::kJsonSchema : GrammarSource::Kind::kGbnf;
  source.name = absl::StrCat(schema ? "--json-schema " : "--grammar ", path);
  ASSIGN_OR_RETURN(source.text, ReadText(path));
  ASSIGN_OR_RETURN(const std::unique_ptr<GrammarCompiler> grammars,
                   GrammarsOf(model));
  absl::StatusOr<std::shared_ptr<const Grammar>> compiled =
      grammars->Compile(source);
  if (!compiled.ok()) {
    return Error(Exit::kInput, tiercel::CodeOf(compiled.status()),
                 std::string(compiled.status().message()));
  }
  sampling.grammar = *std::move(compiled);
  return options;
}

}  // namespace tiercel::cli
