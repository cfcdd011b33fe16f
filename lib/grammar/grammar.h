#ifndef TIERCEL_LIB_GRAMMAR_GRAMMAR_H_
#define TIERCEL_LIB_GRAMMAR_GRAMMAR_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tiercel {

// The texts that are allowed as an answer.
struct GrammarSource {
  enum class Kind {
    kJsonSchema,  // JSON that a schema allows (json-schema.org)
    kJson,        // any JSON object; `text` has no meaning
    kGbnf,        // llama.cpp's GBNF, whose first rule is "root"
  };
  Kind kind = Kind::kJsonSchema;
  std::string text;
  std::string name;  // stands for it in errors
};

// The tokens of which answers are made.
struct GrammarVocabulary {
  std::vector<std::string> tokens;  // bytes of each; empty: it is never allowed
  std::vector<int32_t> ends;        // tokens that end an answer
};

// Limits of a source, so that no request takes long to be refused.
inline constexpr size_t kMostGrammarBytes = size_t{64} << 10;
inline constexpr int kMostGrammarDepth = 64;
inline constexpr int64_t kMostGrammarRepeats = 10000;

// Returns not_built in a build without xgrammar.
absl::Status CheckHasGrammars();

// Returns OK if `source` keeps to the limits, and its schema has no keyword
// that a grammar would not obey. Errors: invalid_grammar.
absl::Status CheckGrammar(const GrammarSource& source);

// A source made ready for a vocabulary. Immutable and thread-safe.
class Grammar;

// Makes grammars for one vocabulary, by xgrammar (Dong et al. 2024, "XGrammar:
// Flexible and Efficient Structured Generation Engine for Large Language
// Models"). Thread-safe; what was compiled lately is compiled once.
class GrammarCompiler {
 public:
  // Errors: not_built.
  static absl::StatusOr<std::unique_ptr<GrammarCompiler>> Create(
      GrammarVocabulary vocabulary, int threads);
  virtual ~GrammarCompiler() = default;

  // Errors: invalid_grammar.
  virtual absl::StatusOr<std::shared_ptr<const Grammar>> Compile(
      const GrammarSource& source) = 0;
};

// Tells which tokens of the vocabulary may follow an output. One thread at a
// time may use it; it remembers where the output asked about last has led.
class GrammarMask {
 public:
  static std::unique_ptr<GrammarMask> Create(
      std::shared_ptr<const Grammar> grammar);
  virtual ~GrammarMask() = default;

  // Clears the bits of the tokens that may not follow `output`: token i is bit
  // i % 32 of allowed[i / 32]. None may follow an output that the grammar does
  // not allow. Errors: grammar_failed.
  virtual absl::Status Ask(std::span<const int32_t> output,
                           std::span<uint32_t> allowed) = 0;
};

}  // namespace tiercel

#endif  // TIERCEL_LIB_GRAMMAR_GRAMMAR_H_
