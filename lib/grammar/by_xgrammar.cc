#include <algorithm>
#include <exception>
#include <new>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lib/grammar/grammar.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"
#include "xgrammar/xgrammar.h"

namespace tiercel {
namespace {

// The sentences that xgrammar says while it compiles: each is about a part of a
// source that the grammar would not obey.
thread_local std::vector<std::string> warnings;

// Runs `work`, which calls xgrammar. `name` stands for the grammar in errors.
template <typename Work>
absl::Status Guarded(const char* code, const std::string& name, Work work) {
  try {
    work();
    return absl::OkStatus();
  } catch (const std::bad_alloc&) {
    return MemoryError("out_of_memory", absl::StrCat(name, ": no memory"));
  } catch (const std::exception& thrown) {
    return InputError(code, absl::StrCat(name, ": ", thrown.what()));
  }
}

}  // namespace

class Grammar {
 public:
  // A token is allowed if `compiled` allows it and its bit in `among` is set;
  // null: if `compiled` does.
  Grammar(xgrammar::CompiledGrammar compiled,
          std::shared_ptr<const std::vector<uint32_t>> among)
      : compiled_(std::move(compiled)), among_(std::move(among)) {}

  xgrammar::GrammarMatcher Matcher() const {
    return xgrammar::GrammarMatcher(compiled_);
  }
  const std::vector<uint32_t>* among() const { return among_.get(); }

 private:
  const xgrammar::CompiledGrammar compiled_;
  const std::shared_ptr<const std::vector<uint32_t>> among_;
};

namespace {

// The tokens that JSON may have. xgrammar keeps line feeds out of strings of a
// bounded length, but no other control characters, none of which may stand in a
// string, and none of which JSON needs.
std::shared_ptr<const std::vector<uint32_t>> TokensOfJson(
    const std::vector<std::string>& tokens) {
  auto bits = std::make_shared<std::vector<uint32_t>>((tokens.size() + 31) / 32,
                                                      ~uint32_t{0});
  for (size_t i = 0; i < tokens.size(); ++i) {
    const bool has_control =
        std::any_of(tokens[i].begin(), tokens[i].end(),
                    [](unsigned char c) { return c < 0x20 && c != '\n'; });
    if (has_control) (*bits)[i / 32] &= ~(uint32_t{1} << (i % 32));
  }
  return bits;
}

class Compiler : public GrammarCompiler {
 public:
  Compiler(const GrammarVocabulary& vocabulary, int threads)
      : compiler_(
            xgrammar::TokenizerInfo(vocabulary.tokens, xgrammar::VocabType::RAW,
                                    static_cast<int>(vocabulary.tokens.size()),
                                    vocabulary.ends),
            threads, /*cache_enabled=*/true, kMostCachedBytes),
        json_(TokensOfJson(vocabulary.tokens)) {}

  absl::StatusOr<std::shared_ptr<const Grammar>> Compile(
      const GrammarSource& source) override {
    RETURN_IF_ERROR(CheckGrammar(source));
    warnings.clear();
    std::shared_ptr<const Grammar> made;
    RETURN_IF_ERROR(Guarded("invalid_grammar", source.name, [&] {
      // A source with a warning is not compiled.
      const xgrammar::Grammar grammar = Read(source);
      if (!warnings.empty()) return;
      const bool json = source.kind != GrammarSource::Kind::kGbnf;
      made = std::make_shared<Grammar>(compiler_.CompileGrammar(grammar),
                                       json ? json_ : nullptr);
    }));
    if (warnings.empty()) return made;
    return InputError(
        "invalid_grammar",
        absl::StrCat(source.name, ": ", absl::StrJoin(warnings, "; ")));
  }

 private:
  static constexpr int64_t kMostCachedBytes = int64_t{256} << 20;

  static xgrammar::Grammar Read(const GrammarSource& source) {
    switch (source.kind) {
      case GrammarSource::Kind::kJson:
        return xgrammar::Grammar::FromJSONSchema(R"({"type":"object"})",
                                                 kAnyWhitespace, {}, {},
                                                 kStrict, kMostWhitespace);
      case GrammarSource::Kind::kJsonSchema:
        return xgrammar::Grammar::FromJSONSchema(
            source.text, kAnyWhitespace, {}, {}, kStrict, kMostWhitespace);
      case GrammarSource::Kind::kGbnf:
        return xgrammar::Grammar::FromEBNF(source.text);
    }
    return xgrammar::Grammar::BuiltinJSONGrammar();
  }

  // A small model that may go on with white space does.
  static constexpr bool kAnyWhitespace = true;
  static constexpr int kMostWhitespace = 8;
  // Objects have the properties that their schema names, unless it says more.
  static constexpr bool kStrict = true;

  xgrammar::GrammarCompiler compiler_;
  const std::shared_ptr<const std::vector<uint32_t>> json_;
};

class Mask : public GrammarMask {
 public:
  explicit Mask(std::shared_ptr<const Grammar> grammar)
      : grammar_(std::move(grammar)), matcher_(grammar_->Matcher()) {}

  absl::Status Ask(std::span<const int32_t> output,
                   std::span<uint32_t> allowed) override {
    return Guarded("grammar_failed", "grammar", [&] {
      if (!GoTo(output)) {
        std::fill(allowed.begin(), allowed.end(), 0);
        return;
      }
      std::vector<int32_t> bits(allowed.size());
      int64_t size = std::ssize(bits);
      DLTensor tensor = {.data = bits.data(),
                         .device = {kDLCPU, 0},
                         .ndim = 1,
                         .dtype = xgrammar::GetBitmaskDLType(),
                         .shape = &size,
                         .strides = nullptr,
                         .byte_offset = 0};
      if (matcher_.FillNextTokenBitmask(&tensor)) {
        for (size_t i = 0; i < bits.size(); ++i) {
          allowed[i] &= static_cast<uint32_t>(bits[i]);
        }
      }
      if (const std::vector<uint32_t>* const among = grammar_->among()) {
        for (size_t i = 0; i < among->size(); ++i) allowed[i] &= (*among)[i];
      }
    });
  }

 private:
  // Returns false if the grammar does not allow `output`, or if it has ended.
  bool GoTo(std::span<const int32_t> output) {
    const auto same = std::mismatch(tokens_.begin(), tokens_.end(),
                                    output.begin(), output.end())
                          .first -
                      tokens_.begin();
    const auto back = static_cast<int>(std::ssize(tokens_) - same);
    if (back > 0) matcher_.Rollback(back);
    tokens_.resize(static_cast<size_t>(same));
    for (const int32_t id : output.subspan(static_cast<size_t>(same))) {
      if (!matcher_.AcceptToken(id)) return false;
      tokens_.push_back(id);
    }
    return !matcher_.IsTerminated();
  }

  const std::shared_ptr<const Grammar> grammar_;
  xgrammar::GrammarMatcher matcher_;
  std::vector<int32_t> tokens_;  // the matcher is behind these
};

}  // namespace

absl::Status CheckHasGrammars() { return absl::OkStatus(); }

absl::StatusOr<std::unique_ptr<GrammarCompiler>> GrammarCompiler::Create(
    GrammarVocabulary vocabulary, int threads) {
  std::unique_ptr<GrammarCompiler> made;
  RETURN_IF_ERROR(Guarded("invalid_grammar", "vocabulary", [&] {
    made = std::make_unique<Compiler>(vocabulary, threads);
  }));
  return made;
}

std::unique_ptr<GrammarMask> GrammarMask::Create(
    std::shared_ptr<const Grammar> grammar) {
  return std::make_unique<Mask>(std::move(grammar));
}

}  // namespace tiercel

// xgrammar calls these where it is compiled with XGRAMMAR_LOG_CUSTOMIZE.
namespace xgrammar {

[[noreturn]] void LogFatalImpl(const std::string& /*file*/, int /*lineno*/,
                               const std::string& message) {
  throw std::runtime_error(message);
}

void LogMessageImpl(const std::string& /*file*/, int /*lineno*/, int /*level*/,
                    const std::string& message) {
  tiercel::warnings.push_back(message);
}

}  // namespace xgrammar
