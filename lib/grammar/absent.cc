#include "lib/grammar/grammar.h"
#include "lib/status/error.h"

namespace tiercel {

bool HasGrammars() { return false; }

absl::StatusOr<std::unique_ptr<GrammarCompiler>> GrammarCompiler::Create(
    GrammarVocabulary /*vocabulary*/, int /*threads*/) {
  return UsageError(
      "not_built",
      "grammars: this build has none, need one that was configured with "
      "-DTIERCEL_XGRAMMAR=$(tests/setup/xgrammar.sh)");
}

std::unique_ptr<GrammarMask> GrammarMask::Create(
    std::shared_ptr<const Grammar> /*grammar*/) {
  return nullptr;
}

}  // namespace tiercel
