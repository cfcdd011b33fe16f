#ifndef TIERCEL_RUNTIME_GENERATE_STOP_MATCHER_H_
#define TIERCEL_RUNTIME_GENERATE_STOP_MATCHER_H_

#include <string>
#include <string_view>
#include <vector>

namespace tiercel {

// Finds the first of several stop texts in a text that arrives in pieces, and
// holds back a tail that may still become one. The outcome does not depend on
// how the text was cut: of several occurrences the one that ends first counts,
// and of those with the same end the one that begins first.
class StopMatcher {
 public:
  explicit StopMatcher(std::vector<std::string> stops);  // none may be empty

  // Adds a piece and returns the text that is now certain not to be part of a
  // stop. Once matched(), that is the text before the stop, and Push must not
  // be called again.
  std::string Push(std::string_view piece);
  // Returns the text still held back, at the end.
  std::string Finish();

  bool matched() const { return matched_; }

 private:
  const std::vector<std::string> stops_;
  std::string held_;
  bool matched_ = false;
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_GENERATE_STOP_MATCHER_H_
