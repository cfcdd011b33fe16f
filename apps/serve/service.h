#ifndef TIERCEL_APPS_SERVE_SERVICE_H_
#define TIERCEL_APPS_SERVE_SERVICE_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apps/cli/options.h"
#include "apps/commands/model.h"
#include "apps/serve/document_queue.h"
#include "apps/serve/generations.h"
#include "apps/serve/grammars.h"
#include "apps/serve/guard.h"
#include "apps/serve/http.h"
#include "apps/serve/metrics.h"

namespace tiercel::serve {

// The endpoints of the server. Until the model is loaded, and once it drains,
// it generates nothing and says so.
class Service final : public HttpHandler {
 public:
  // It uses the model from Begin on. The references outlive it.
  Service(const cli::Options& options, const cli::Model& model, Guard guard);

  // From here on requests are answered, by `generations`, which outlive what is
  // answered.
  void Begin(Generations* generations) { generations_.store(generations); }

  // ---- HttpHandler ----
  void Handle(HttpRequest request, std::shared_ptr<Exchange> exchange) override;
  HttpReply Refused(const absl::Status& status) override;
  void Drain() override { drains_.store(true); }
  void CancelAll() override;

 private:
  // One request, for its line of the log.
  struct Visit {
    std::string method;
    std::string path;
    std::shared_ptr<Exchange> exchange;
    std::chrono::steady_clock::time_point begin =
        std::chrono::steady_clock::now();
  };
  class Flow;

  absl::Status Route(HttpRequest request, const Visit& visit);
  // The reply of an endpoint that answers at once; absent status: none of
  // these.
  absl::StatusOr<HttpReply> ReplyTo(const HttpRequest& request) const;
  absl::Status CheckReady() const;
  absl::Status Generate(const HttpRequest& request, const Visit& visit);
  absl::Status ReadDocument(HttpRequest request, const Visit& visit);

  Json Models() const;
  Json Props() const;
  HttpReply Health() const;
  absl::StatusOr<Json> Tokenize(std::string_view body) const;
  absl::StatusOr<Json> Detokenize(std::string_view body) const;

  void Answer(const Visit& visit, HttpReply reply);
  // Notes a request that has ended; `more` is about its tokens.
  void Note(const Visit& visit, int status, const std::string& more);

  const cli::Options& options_;
  const cli::Model& model_;
  Grammars grammars_;
  const Guard guard_;
  const std::string name_;  // the model's
  const int64_t created_ = std::time(nullptr);
  std::atomic<Generations*> generations_{nullptr};
  std::atomic<bool> drains_{false};
  std::atomic<uint64_t> last_id_{0};
  Metrics metrics_;
  DocumentQueue documents_;  // ends first: its callbacks use the rest
};

}  // namespace tiercel::serve

#endif  // TIERCEL_APPS_SERVE_SERVICE_H_
