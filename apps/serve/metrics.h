#ifndef TIERCEL_APPS_SERVE_METRICS_H_
#define TIERCEL_APPS_SERVE_METRICS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "apps/serve/reply.h"

namespace tiercel::serve {

// Counts of a server since it began, as Prometheus reads them. Thread-safe.
class Metrics {
 public:
  // Counts a request to a path that the server has; "other": one that it has
  // not.
  void AddRequest(const std::string& path, int http_status);
  // Counts what a generation read and wrote, also one that was cancelled.
  void AddAnswer(const Answer& answer, double first_token_s);

  // The text format, with the numbers of requests that are answered and that
  // wait now.
  std::string Text(size_t running, size_t waiting) const;

 private:
  static constexpr std::array<double, 9> kBounds = {0.01, 0.03, 0.1, 0.3, 1,
                                                    3,    10,   30,  100};
  // Numbers of seconds up to each bound, and all.
  struct Histogram {
    std::array<uint64_t, kBounds.size()> up_to = {};
    uint64_t count = 0;
    double sum = 0;

    void Add(double seconds);
    std::string Text(const char* name, const char* help) const;
  };

  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, uint64_t> requests_;
  int64_t prompt_tokens_ = 0;
  int64_t cached_tokens_ = 0;
  int64_t output_tokens_ = 0;
  int64_t drafted_ = 0;
  int64_t accepted_ = 0;
  Histogram first_token_s_;
  Histogram between_tokens_s_;
};

}  // namespace tiercel::serve

#endif  // TIERCEL_APPS_SERVE_METRICS_H_
