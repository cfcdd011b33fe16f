#ifndef TIERCEL_APPS_SERVE_HTTP_H_
#define TIERCEL_APPS_SERVE_HTTP_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tiercel::serve {

// HTTP/1.1 alone: connections, limits, time-outs. What a request means is the
// handler's.

struct HttpRequest {
  std::string method;  // "GET"
  std::string path;    // without a query; // became /
  std::string host;
  std::string origin;
  std::string authorization;
  std::string body;
  std::string query = {};  // behind the path's ?
};

// The value of `name` in a query, decoded; empty: it has none.
std::string QueryValue(std::string_view query, std::string_view name);

struct HttpReply {
  int status = 200;
  std::string body = {};  // none with 204
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers = {};
};

// The way in which a request is answered: by one whole reply, or by a stream of
// events. Thread-safe; nothing in it waits. What is written after the client
// has left goes nowhere.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual void Reply(HttpReply reply) = 0;
  // Begins a stream. While nothing is written a comment goes out now and then,
  // so that the client sees that the server lives.
  virtual void BeginStream() = 0;
  virtual void Write(std::string events) = 0;
  virtual void EndStream() = 0;
  // `gone` is called once if the client leaves before the end, also if it has
  // left already, on some thread.
  virtual void OnGone(std::function<void()> gone) = 0;
  // Returns true once the client has left before the end.
  virtual bool IsGone() = 0;
};

class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  // Called on one of several threads. It may answer later.
  virtual void Handle(HttpRequest request,
                      std::shared_ptr<Exchange> exchange) = 0;
  // The reply to something that is no whole request.
  virtual HttpReply Refused(const absl::Status& status) = 0;
  // A signal came: after the first no new request is taken, the second ends
  // those that run.
  virtual void Drain() = 0;
  virtual void CancelAll() = 0;
};

// The times after which a connection is closed.
struct HttpTimes {
  // A request's header must be whole by then.
  std::chrono::milliseconds header = std::chrono::seconds(30);
  // A client may send no byte of a body for so long.
  std::chrono::milliseconds body = std::chrono::seconds(60);
  // A client may take no byte of an answer for so long.
  std::chrono::milliseconds write = std::chrono::seconds(60);
  // `write` after a second signal.
  std::chrono::milliseconds end = std::chrono::seconds(2);
};

class HttpServer {
 public:
  // Listens. Errors: io_error, for an address that cannot be had.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Listen(
      const std::string& host, int64_t port, HttpHandler* handler,
      const HttpTimes& times = {});
  virtual ~HttpServer() = default;
  virtual std::string url() const = 0;
  // Serves until Stop, or signals, which CountSignals counts, have ended it.
  virtual absl::Status Run() = 0;
  // Drains, as a signal does; from any thread.
  virtual void Stop() = 0;
};

}  // namespace tiercel::serve

#endif  // TIERCEL_APPS_SERVE_HTTP_H_
