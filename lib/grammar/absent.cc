#include "lib/grammar/grammar.h"
#include "lib/status/error.h"

namespace tiercel {

absl::Status CheckHasGrammars() {
  return UsageError(
      "not_built",
      "this build has no grammars, need one that was configured with "
      "-DTIERCEL_XGRAMMAR=$(tests/setup/xgrammar.sh)");
}

absl::StatusOr<std::unique_ptr<GrammarCompiler>> GrammarCompiler::Create(
    GrammarVocabulary /*vocabulary*/, int /*threads*/) {
  return CheckHasGrammars();
}

std::unique_ptr<GrammarMask> GrammarMask::Create(
    std::shared_ptr<const Grammar> /*grammar*/) {
  return nullptr;
}

}  // namespace tiercel
