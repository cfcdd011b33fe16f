#ifndef TIERCEL_KERNELS_TOKEN_TOKEN_MASK_H_
#define TIERCEL_KERNELS_TOKEN_TOKEN_MASK_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tiercel {

// A set of tokens of a vocabulary has words: token i is bit i % 32 of word i /
// 32, and bit 0 is the lowest.
inline uint32_t TokenBit(int32_t id) { return uint32_t{1} << (id % 32); }
inline void AddToken(int32_t id, std::span<uint32_t> words) {
  words[static_cast<size_t>(id) / 32] |= TokenBit(id);
}
inline void RemoveToken(int32_t id, std::span<uint32_t> words) {
  words[static_cast<size_t>(id) / 32] &= ~TokenBit(id);
}

// Such a set that owns its words.
class TokenSet {
 public:
  // All of `vocab` tokens.
  explicit TokenSet(int64_t vocab);

  bool Has(int32_t id) const {
    return (words_[static_cast<size_t>(id) / 32] & TokenBit(id)) != 0;
  }
  void Remove(int32_t id) { RemoveToken(id, words_); }
  bool IsEmpty() const;
  // Drops the bits of the last word that stand for no token.
  void DropSpareBits();

  std::vector<uint32_t>& words() { return words_; }
  const std::vector<uint32_t>& words() const { return words_; }

 private:
  int64_t vocab_;
  std::vector<uint32_t> words_;
};

// A rule about the tokens that may follow each beginning of an output, as of a
// grammar. It may be asked about any output that begins like the real one, in
// any order: drafted tokens are asked about before they are checked.
class TokenMask {
 public:
  // Clears the bits of the tokens that may not follow `output`; all are set
  // before. The same output always gets the same bits. An error ends the
  // generation.
  using Rule = std::function<absl::Status(std::span<const int32_t> output,
                                          std::span<uint32_t> allowed)>;

  // The output follows the first `begin` tokens of a text, and each of `ends`
  // ends it.
  TokenMask(Rule rule, int64_t begin, std::vector<int32_t> ends)
      : rule_(std::move(rule)),
        begin_(static_cast<size_t>(begin)),
        ends_(std::move(ends)) {}

  // The tokens of a vocabulary that may follow `text`, of which the output is
  // the end. Once it has ended all may, and the rule is not asked. Errors:
  // those of the rule; invalid_argument, if the text ends before the output.
  absl::StatusOr<TokenSet> Allowed(std::span<const int32_t> text,
                                   int64_t vocab) const;

 private:
  const Rule rule_;
  const size_t begin_;
  const std::vector<int32_t> ends_;
};

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_TOKEN_TOKEN_MASK_H_
