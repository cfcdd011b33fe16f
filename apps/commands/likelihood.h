#ifndef TIERCEL_APPS_COMMANDS_LIKELIHOOD_H_
#define TIERCEL_APPS_COMMANDS_LIKELIHOOD_H_

#include <cstdint>
#include <cstdio>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tiercel::cli {

// -ln softmax(logits)[id], in double.
double NegativeLogLikelihood(const float* logits, int64_t vocab, int32_t id);

// The divergence of rows of logits from those of the full model.
class Divergence {
 public:
  explicit Divergence(int64_t vocab) : vocab_(vocab) {}

  // Adds one row of each, [vocab].
  void Add(const float* full, const float* other);

  // After at least one Add: the mean of sum_i p_i ln(p_i / q_i) in nats, where
  // p is the full distribution; the least value that 99 % of the rows do not
  // exceed; the share of rows whose likeliest token is the same.
  double MeanKl() const;
  double P99Kl() const;
  double Top1() const;

 private:
  const int64_t vocab_;
  std::vector<double> kl_;
  int64_t same_ = 0;
};

// Keeps rows of logits from one run for the next, in a temporary file without a
// name.
class LogitsFile {
 public:
  // Errors, of all of these: io_error.
  static absl::StatusOr<LogitsFile> Create(int64_t vocab);

  absl::Status Add(const float* row);
  // Returns the rows in the order in which they were added; each is valid until
  // the next call.
  absl::StatusOr<const float*> Next();

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  LogitsFile(std::FILE* file, int64_t vocab)
      : file_(file), row_(static_cast<size_t>(vocab)) {}

  std::unique_ptr<std::FILE, Close> file_;
  std::vector<float> row_;
  bool reads_ = false;
};

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_COMMANDS_LIKELIHOOD_H_
