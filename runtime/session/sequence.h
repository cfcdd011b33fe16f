#ifndef TIERCEL_RUNTIME_SESSION_SEQUENCE_H_
#define TIERCEL_RUNTIME_SESSION_SEQUENCE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "offload/kv/view.h"
#include "runtime/session/sequence_extent.h"

namespace tiercel {

// The tokens of one text, and the facts about their KV: how many of them have
// it, and which part of it a prompt of the same tokens would have too. It is a
// value, and knows neither ranks nor memory: a session changes it, then brings
// the stores that hold the KV into line.
//
// Invariants
//   1. settled() <= kv_length() <= tokens().size().
//   2. answer_begin() <= tokens().size().
class Sequence {
 public:
  // At most `context` tokens, of which the first has position `begin`. `extent`
  // of its KV; absent: rows go through all layers and read everything.
  Sequence(int64_t begin, int64_t context,
           std::optional<SequenceExtent> extent = {})
      : begin_(begin), context_(context), extent_(std::move(extent)) {}

  // ---- Tokens ----

  const std::vector<int32_t>& tokens() const { return tokens_; }
  int64_t first_position() const { return begin_; }
  // The number of tokens that still fit.
  int64_t room() const {
    return context_ - static_cast<int64_t>(tokens_.size());
  }
  // The number of tokens before the answer.
  int64_t answer_begin() const { return static_cast<int64_t>(answer_begin_); }

  // There is room for them.
  void Append(const int32_t* ids, size_t count) {
    tokens_.insert(tokens_.end(), ids, ids + count);
  }
  // Keeps the first `length` tokens and their KV, if there are more.
  void Truncate(size_t length);
  // Begins a prompt: the tokens that follow belong to it, not to the answer
  // before it, until EndPrompt. AbandonPrompt removes these tokens again, and
  // the answer goes on.
  void BeginPrompt();
  void AbandonPrompt();
  // The number of layers of the last prompt that were finished before its rows
  // entered: in this session, or in another that has saved them.
  int resumed_layers() const { return resumed_layers_; }
  void NoteResumed(int layers) { resumed_layers_ = layers; }
  // Notes that the prompt's rows exist. `extent`: NextExtent before they did.
  void EndPrompt(std::optional<SequenceExtent> extent);
  // Notes that the answer follows the first `length` tokens, which are held.
  void BeginAnswer(size_t length) { answer_begin_ = length; }

  // ---- KV, of the first kv_length() tokens ----

  int64_t kv_length() const { return kv_length_; }
  // The number of tokens whose KV is missing.
  int64_t pending() const {
    return static_cast<int64_t>(tokens_.size()) - kv_length_;
  }
  // The number of positions whose KV is not provisional: it is what a prompt of
  // the same tokens would have.
  int64_t settled() const { return settled_; }
  bool IsSettled() const { return settled_ == kv_length_; }
  // Returns true if all of it was computed, none drawn at random.
  bool IsComputed() const { return filled_from_ >= kv_length_; }

  // Notes the KV of the next `rows` tokens. `as_prompt`: a prompt's rows would
  // have the same, if they followed KV that is not provisional.
  void AddKv(int64_t rows, bool as_prompt);
  // Notes KV of the next `rows` tokens that was drawn at random; else it counts
  // as a prompt's.
  void FillKv(int64_t rows);
  // Cuts the KV to the first `length` positions; the tokens stay.
  void TruncateKv(int64_t length);

  // ---- Rows that end early ----

  // Returns true if the next rows are a prompt's.
  bool prompt_begins() const { return prompt_begins_; }
  const std::optional<SequenceExtent>& extent() const { return extent_; }
  // The extent with the answer to which the next rows belong. Errors: those of
  // SequenceExtent::BeginAnswer.
  absl::StatusOr<std::optional<SequenceExtent>> NextExtent() const;

 private:
  int64_t begin_;
  int64_t context_;
  std::vector<int32_t> tokens_;
  size_t answer_begin_ = 0;
  int64_t kv_length_ = 0;
  int64_t settled_ = 0;
  int64_t filled_from_ = kAllPositions;  // the KV from here on was drawn
  std::optional<SequenceExtent> extent_;
  bool prompt_begins_ = true;
  // prompt_begins_ and the number of tokens before the last BeginPrompt.
  bool prompt_had_begun_ = true;
  size_t tokens_before_ = 0;
  int resumed_layers_ = 0;
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_SESSION_SEQUENCE_H_
