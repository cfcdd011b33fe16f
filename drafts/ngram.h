#ifndef TIERCEL_DRAFTS_NGRAM_H_
#define TIERCEL_DRAFTS_NGRAM_H_

#include "drafts/drafter.h"

namespace tiercel {

// Prompt lookup (Saxena 2023): a text that quotes itself goes on as it did
// before. Finds the longest run of the newest tokens that stands earlier in the
// text, and proposes the tokens that followed there, each with probability 1.
// It has no weights.
class NgramDrafter final : public Drafter {
 public:
  // Matches of `longest` down to `shortest` tokens count.
  explicit NgramDrafter(int64_t longest = 4, int64_t shortest = 2)
      : longest_(longest), shortest_(shortest) {}

  const char* name() const override { return "ngram"; }
  absl::StatusOr<DraftBlock> Draft(const std::vector<int32_t>& tokens,
                                   int64_t most, const DrawKey& key) override;

 private:
  const int64_t longest_;
  const int64_t shortest_;
};

}  // namespace tiercel

#endif  // TIERCEL_DRAFTS_NGRAM_H_
