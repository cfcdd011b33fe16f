#include "apps/commands/likelihood.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "apps/cli/error.h"

namespace tiercel::cli {
namespace {

// Returns ln sum_i e^logits[i]. It factors out the greatest logit, so that no
// exponential overflows, and the sum is at least 1.
double LogSum(const float* logits, int64_t vocab) {
  const double greatest = *std::max_element(logits, logits + vocab);
  double sum = 0;
  for (int64_t i = 0; i < vocab; ++i) {
    sum += std::exp(static_cast<double>(logits[i]) - greatest);
  }
  return std::log(sum) + greatest;
}

absl::Status FileError() {
  return Error(Exit::kIo, "io_error",
               "a temporary file for the logits cannot be written and read");
}

}  // namespace

double NegativeLogLikelihood(const float* logits, int64_t vocab, int32_t id) {
  return LogSum(logits, vocab) - static_cast<double>(logits[id]);
}

void Divergence::Add(const float* full, const float* other) {
  const double p_sum = LogSum(full, vocab_);
  const double q_sum = LogSum(other, vocab_);
  double kl = 0;
  for (int64_t i = 0; i < vocab_; ++i) {
    const double log_p = static_cast<double>(full[i]) - p_sum;
    const double log_q = static_cast<double>(other[i]) - q_sum;
    kl += std::exp(log_p) * (log_p - log_q);
  }
  kl_.push_back(std::max(kl, 0.0));
  same_ += std::max_element(full, full + vocab_) - full ==
           std::max_element(other, other + vocab_) - other;
}

double Divergence::MeanKl() const {
  return std::accumulate(kl_.begin(), kl_.end(), 0.0) /
         static_cast<double>(kl_.size());
}

double Divergence::P99Kl() const {
  std::vector<double> sorted = kl_;
  std::sort(sorted.begin(), sorted.end());
  const auto rank = std::ceil(0.99 * static_cast<double>(sorted.size()));
  return sorted[static_cast<size_t>(rank) - 1];
}

double Divergence::Top1() const {
  return static_cast<double>(same_) / static_cast<double>(kl_.size());
}

absl::StatusOr<LogitsFile> LogitsFile::Create(int64_t vocab) {
  std::FILE* const file = std::tmpfile();
  if (file == nullptr) return FileError();
  return LogitsFile(file, vocab);
}

absl::Status LogitsFile::Add(const float* row) {
  const size_t written =
      std::fwrite(row, sizeof(float), row_.size(), file_.get());
  return written == row_.size() ? absl::OkStatus() : FileError();
}

absl::StatusOr<const float*> LogitsFile::Next() {
  if (!reads_) std::rewind(file_.get());
  reads_ = true;
  const size_t read =
      std::fread(row_.data(), sizeof(float), row_.size(), file_.get());
  if (read != row_.size()) return FileError();
  return row_.data();
}

}  // namespace tiercel::cli
