#include "apps/serve/metrics.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tiercel::serve {
namespace {

std::string Value(const char* name, const char* type, const char* help,
                  double value) {
  return absl::StrCat("# HELP ", name, " ", help, "\n# TYPE ", name, " ", type,
                      "\n", name, " ", value, "\n");
}

std::string Counter(const char* name, const char* help, int64_t value) {
  return absl::StrCat("# HELP ", name, " ", help, "\n# TYPE ", name,
                      " counter\n", name, " ", value, "\n");
}

}  // namespace

void Metrics::Histogram::Add(double seconds) {
  ++count;
  sum += seconds;
  for (size_t i = 0; i < kBounds.size(); ++i) {
    if (seconds <= kBounds[i]) ++up_to[i];
  }
}

std::string Metrics::Histogram::Text(const char* name, const char* help) const {
  std::string text = absl::StrCat("# HELP ", name, " ", help, "\n# TYPE ", name,
                                  " histogram\n");
  for (size_t i = 0; i < kBounds.size(); ++i) {
    absl::StrAppend(&text, name, "_bucket{le=\"", kBounds[i], "\"} ", up_to[i],
                    "\n");
  }
  absl::StrAppend(&text, name, "_bucket{le=\"+Inf\"} ", count, "\n", name,
                  "_sum ", absl::StrFormat("%.17g", sum), "\n", name, "_count ",
                  count, "\n");
  return text;
}

void Metrics::AddRequest(const std::string& path, int http_status) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++requests_[{path, http_status}];
}

void Metrics::AddAnswer(const Answer& answer, double first_token_s) {
  const std::lock_guard<std::mutex> lock(mutex_);
  prompt_tokens_ += answer.prompt_tokens;
  cached_tokens_ += answer.cached_tokens;
  output_tokens_ += answer.output_tokens;
  drafted_ += answer.drafted;
  accepted_ += answer.accepted;
  if (answer.output_tokens == 0) return;
  first_token_s_.Add(first_token_s);
  if (answer.output_tokens == 1) return;
  between_tokens_s_.Add(answer.output_ms / 1e3 /
                        static_cast<double>(answer.output_tokens - 1));
}

std::string Metrics::Text(size_t running, size_t waiting) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::string text =
      "# HELP tiercel_requests_total Requests that were answered.\n"
      "# TYPE tiercel_requests_total counter\n";
  for (const auto& [key, count] : requests_) {
    absl::StrAppend(&text, "tiercel_requests_total{path=\"", key.first,
                    "\",status=\"", key.second, "\"} ", count, "\n");
  }
  absl::StrAppend(
      &text,
      Value("tiercel_requests_running", "gauge",
            "Generations that are made now.", static_cast<double>(running)),
      Value("tiercel_requests_waiting", "gauge", "Generations that wait.",
            static_cast<double>(waiting)),
      Counter("tiercel_prompt_tokens_total", "Tokens of prompts.",
              prompt_tokens_),
      Counter("tiercel_cached_tokens_total",
              "Tokens of prompts that were found in a session or on disk.",
              cached_tokens_),
      Counter("tiercel_output_tokens_total", "Tokens that were generated.",
              output_tokens_),
      Counter("tiercel_drafted_tokens_total", "Tokens that were drafted.",
              drafted_),
      Counter("tiercel_accepted_tokens_total", "Drafts that held.", accepted_),
      first_token_s_.Text("tiercel_time_to_first_token_seconds",
                          "From a request to its first token, thought or "
                          "answer."),
      between_tokens_s_.Text("tiercel_time_per_output_token_seconds",
                             "From a token to the next, the mean of an "
                             "answer."));
  return text;
}

}  // namespace tiercel::serve
