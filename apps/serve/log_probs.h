#ifndef TIERCEL_APPS_SERVE_LOG_PROBS_H_
#define TIERCEL_APPS_SERVE_LOG_PROBS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "apps/commands/model.h"
#include "apps/serve/request.h"

namespace tiercel::serve {

using cli::Json;

// A token as the vocabulary spells it.
struct Spelling {
  std::string bytes;  // may begin or end within a character
  bool is_control = false;
};

// Returns the spelling of a token as it stands within a text.
absl::StatusOr<Spelling> SpellingOf(const cli::Model& model, int32_t id);

using Speller = std::function<Spelling(int32_t id)>;
// Spells the tokens of a model, which must outlive it.
Speller SpellerOf(const cli::Model& model);

// The tokens of one answer with their log-probabilities, in the form of its
// endpoint, for clients that ask for them. The tokens of a thought, with its
// tags, are left out.
class LogProbs {
 public:
  LogProbs(const Request& request, Speller spell)
      : wanted_(request.sampling.top_log_probs.has_value()),
        chat_(request.endpoint == Endpoint::kChat),
        spell_(std::move(spell)) {}

  void Add(const Token& token);

  // The document of the tokens since the last call; null if there are none.
  Json Rest();
  // The document of these tokens, empty if there are none; null only for
  // clients that did not ask.
  Json Whole();

 private:
  struct Scored {
    Spelling spelling;
    double log_prob;
    std::vector<std::pair<Spelling, double>> top;  // the likeliest first
    size_t offset;                                 // in characters
  };
  // Drops the tokens before `first`, the first that has text of the answer, but
  // those with the beginning of its first character.
  void BeginAnswer(const Spelling& first);
  Json ChatDocument() const;
  Json CompletionDocument() const;

  const bool wanted_;
  const bool chat_;
  Speller spell_;
  bool answers_ = false;      // a token had text of the answer
  size_t characters_ = 0;     // the length of the answer
  std::vector<Scored> rest_;  // the tokens since the last call
};

}  // namespace tiercel::serve

#endif  // TIERCEL_APPS_SERVE_LOG_PROBS_H_
