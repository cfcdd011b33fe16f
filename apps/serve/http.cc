#include "apps/serve/http.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <exception>
#include <list>
#include <mutex>
#include <optional>
#include <string_view>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "apps/cli/error.h"
#include "apps/serve/refusal.h"
#include "apps/terminal/signals.h"
#include "boost/asio/awaitable.hpp"
#include "boost/asio/co_spawn.hpp"
#include "boost/asio/detached.hpp"
#include "boost/asio/io_context.hpp"
#include "boost/asio/ip/tcp.hpp"
#include "boost/asio/posix/stream_descriptor.hpp"
#include "boost/asio/redirect_error.hpp"
#include "boost/asio/steady_timer.hpp"
#include "boost/asio/thread_pool.hpp"
#include "boost/asio/use_awaitable.hpp"
#include "boost/beast/core.hpp"
#include "boost/beast/http.hpp"
#include "lib/status/status_macros.h"

namespace tiercel::serve {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint32_t kMostHeaderBytes = 16 << 10;
constexpr uint64_t kMostBodyBytes = 64 << 20;  // as a document
constexpr size_t kMostConnections = 512;
constexpr milliseconds kPingTime(1000);
constexpr size_t kHandlerThreads = 2;

absl::Status NetworkError(const std::string& what,
                          const boost::system::error_code& error) {
  return cli::Error(cli::Exit::kIo, "io_error",
                    absl::StrCat(what, ": ", error.message()));
}

// One request and its answer, between the handler and the connection. The
// connection's thread takes what the handler puts.
class Talk final : public Exchange, public std::enable_shared_from_this<Talk> {
 public:
  explicit Talk(asio::io_context& context) : timer_(context) {}

  // ---- For the handler ----
  void Reply(HttpReply reply) override {
    Change([&] {
      reply_ = std::move(reply);
      ended_ = true;
    });
  }
  void BeginStream() override {
    Change([&] { streams_ = true; });
  }
  void Write(std::string events) override {
    Change([&] {
      if (!gone_) events_ += events;
    });
  }
  void EndStream() override {
    Change([&] { ended_ = true; });
  }
  void OnGone(std::function<void()> gone) override {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (ended_) return;
      if (!gone_) {
        on_gone_ = std::move(gone);
        return;
      }
    }
    gone();
  }
  bool IsGone() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return gone_;
  }

  // ---- For the connection ----
  struct Output {
    std::optional<HttpReply> reply;
    bool streams = false;
    std::string events;
    bool ended = false;
    bool gone = false;
    bool sends_no_more = false;  // since the last Take
  };
  Output Take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return {std::exchange(reply_, std::nullopt),
            streams_,
            std::exchange(events_, {}),
            ended_,
            gone_,
            std::exchange(sends_no_more_, false)};
  }
  // Waits for output; returns false if none comes for a while.
  asio::awaitable<bool> Wait() {
    timer_.expires_after(kPingTime);
    if (HasOutput()) co_return true;
    boost::system::error_code cancelled;
    co_await timer_.async_wait(
        asio::redirect_error(asio::use_awaitable, cancelled));
    co_return cancelled.failed();
  }
  void SendsNoMore() {
    Change([&] { sends_no_more_ = true; });
  }
  void Gone() {
    std::function<void()> gone;
    Change([&] {
      gone_ = true;
      if (!ended_) gone = std::move(on_gone_);
      on_gone_ = nullptr;
    });
    if (gone) gone();
  }

 private:
  template <typename Do>
  void Change(Do change) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      change();
    }
    asio::post(timer_.get_executor(),
               [self = shared_from_this()] { self->timer_.cancel(); });
  }
  bool HasOutput() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return reply_.has_value() || !events_.empty() || ended_ || sends_no_more_;
  }

  asio::steady_timer timer_;  // the connection's thread alone uses it
  std::mutex mutex_;
  // The lock guards these.
  std::optional<HttpReply> reply_;
  bool streams_ = false;
  std::string events_;
  bool ended_ = false;
  bool gone_ = false;
  bool sends_no_more_ = false;
  std::function<void()> on_gone_;
};

std::string QueryOf(std::string_view target) {
  const size_t mark = target.find('?');
  return std::string(mark == target.npos ? "" : target.substr(mark + 1));
}

// The host of a target that is a whole URL; empty: it is a path alone.
std::string_view AuthorityOf(std::string_view target) {
  const size_t scheme = target.find("://");
  if (target.starts_with('/') || scheme == target.npos) {
    return "";
  }
  target.remove_prefix(scheme + 3);
  return target.substr(0, target.find_first_of("/?"));
}

std::string PathOf(std::string_view target) {
  const std::string_view authority = AuthorityOf(target);
  if (!authority.empty()) {
    target.remove_prefix(authority.data() + authority.size() - target.data());
    if (!target.starts_with('/')) return "/";
  }
  target = target.substr(0, target.find('?'));
  std::string path;
  for (const char c : target) {
    if (c != '/' || path.empty() || path.back() != '/') path += c;
  }
  return path;
}

class Server;

// One client's connection: requests, one after the other.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket socket, Server& server);

  asio::awaitable<void> Serve();
  // Ends it if no request is being answered.
  void Drain();
  // Ends it soon, whatever the client takes.
  void End();

 private:
  using Parser = http::request_parser<http::string_body>;
  // Reads a request. Returns false at the end of the connection.
  asio::awaitable<bool> Read(Parser& parser);
  asio::awaitable<bool> Answer(Parser& parser);
  asio::awaitable<bool> AnswerError(const absl::Status& error);
  enum class Body { kWritten, kCounted };
  asio::awaitable<bool> WriteReply(const HttpReply& reply, Body body,
                                   bool keep_alive, unsigned version);
  asio::awaitable<bool> WriteStreamHead(bool chunked, bool keep_alive,
                                        unsigned version);
  asio::awaitable<bool> WriteBytes(std::string bytes);
  // Drops the empty lines that may come before a request.
  asio::awaitable<bool> SkipEmptyLines();
  // Calls Gone of the talk that is watched once the client leaves, and
  // SendsNoMore once it may have left, or may still read. What it sends
  // meanwhile is kept for the next request.
  void Watch();
  // Calls Gone once the client has answered that it does not read any more.
  void WatchForReset();
  // The time that a client has to take something.
  milliseconds WriteTime() const;

  Server& server_;
  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  std::shared_ptr<Talk> watched_;  // null: none
  bool answers_ = false;
  bool drains_ = false;
  bool ends_ = false;
};

class Server final : public HttpServer {
 public:
  Server(HttpHandler* handler, const HttpTimes& times)
      : handler_(*handler),
        times_(times),
        acceptor_(context_),
        signals_(context_),
        pause_(context_),
        pool_(kHandlerThreads) {}
  ~Server() override {
    pool_.stop();
    pool_.join();
  }

  absl::Status Open(const std::string& host, int64_t port) {
    boost::system::error_code error;
    const std::string name = absl::StrCat("--host ", host, " --port ", port);
    tcp::resolver resolver(context_);
    const auto found = resolver.resolve(
        host, std::to_string(port),
        tcp::resolver::passive | tcp::resolver::numeric_service, error);
    if (error || found.empty()) return NetworkError(name, error);
    const tcp::endpoint endpoint = *found.begin();
    acceptor_.open(endpoint.protocol(), error);
    if (!error) {
      acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    }
    if (!error) acceptor_.bind(endpoint, error);
    if (!error)
      acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (error) return NetworkError(name, error);
    const uint16_t bound = acceptor_.local_endpoint(error).port();
    const bool six = endpoint.address().is_v6();
    const std::string address = endpoint.address().to_string();
    url_ = absl::StrCat("http://", six ? "[" : "", address, six ? "]" : "", ":",
                        bound);
    return absl::OkStatus();
  }

  std::string url() const override { return url_; }

  absl::Status Run() override {
    const int file = dup(cli::SignalFile());
    if (file == -1) return cli::SystemError("waiting for signals");
    signals_.assign(file);
    asio::co_spawn(context_, WaitForSignals(), asio::detached);
    asio::co_spawn(context_, Accept(), asio::detached);
    context_.run();
    return absl::OkStatus();
  }

  void Stop() override {
    asio::post(context_, [this] { Drain(); });
  }

  HttpHandler& handler() { return handler_; }
  const HttpTimes& times() const { return times_; }
  asio::io_context& context() { return context_; }
  asio::thread_pool& pool() { return pool_; }
  bool drains() const { return drains_; }

 private:
  asio::awaitable<void> Accept() {
    boost::system::error_code error;
    while (!drains_) {
      tcp::socket socket(context_);
      co_await acceptor_.async_accept(
          socket, asio::redirect_error(asio::use_awaitable, error));
      if (drains_ || error == asio::error::operation_aborted) break;
      if (error) {  // there are no more files, say
        pause_.expires_after(milliseconds(100));
        co_await pause_.async_wait(
            asio::redirect_error(asio::use_awaitable, error));
        continue;
      }
      connections_.push_back(
          std::make_shared<Connection>(std::move(socket), *this));
      asio::co_spawn(context_, Keep(std::prev(connections_.end())),
                     asio::detached);
      while (connections_.size() >= kMostConnections && !drains_) {
        pause_.expires_after(milliseconds(100));
        co_await pause_.async_wait(
            asio::redirect_error(asio::use_awaitable, error));
      }
    }
  }

  // Serves a connection to its end.
  asio::awaitable<void> Keep(
      std::list<std::shared_ptr<Connection>>::iterator place) {
    const std::shared_ptr<Connection> connection = *place;
    try {
      co_await connection->Serve();
    } catch (const std::exception&) {
      // One connection's failure, of memory say, must not keep the server.
    }
    connections_.erase(place);
    EndIfDrained();
  }

  asio::awaitable<void> WaitForSignals() {
    boost::system::error_code error;
    for (int seen = 0; !error;) {
      co_await signals_.async_wait(
          asio::posix::stream_descriptor::wait_read,
          asio::redirect_error(asio::use_awaitable, error));
      if (error) break;
      char bytes[64];
      while (read(signals_.native_handle(), bytes, sizeof(bytes)) > 0) {
      }
      const int count = cli::SignalsCounted();
      if (seen == 0 && count > 0) Drain();
      if (seen < 2 && count > 1) {
        handler_.CancelAll();
        for (const auto& connection : connections_) connection->End();
      }
      seen = count;
    }
  }

  void Drain() {
    if (std::exchange(drains_, true)) return;
    boost::system::error_code ignored;
    acceptor_.close(ignored);
    pause_.cancel();
    handler_.Drain();
    for (const auto& connection : connections_) connection->Drain();
    EndIfDrained();
  }

  void EndIfDrained() {
    boost::system::error_code ignored;
    if (drains_ && connections_.empty()) signals_.close(ignored);
  }

  HttpHandler& handler_;
  const HttpTimes times_;
  asio::io_context context_{1};
  tcp::acceptor acceptor_;
  asio::posix::stream_descriptor signals_;
  asio::steady_timer pause_;
  asio::thread_pool pool_;
  std::list<std::shared_ptr<Connection>> connections_;
  std::string url_;
  bool drains_ = false;
};

// ---- Connections ----

Connection::Connection(tcp::socket socket, Server& server)
    : server_(server), stream_(std::move(socket)) {
  boost::system::error_code ignored;  // events go out at once
  stream_.socket().set_option(tcp::no_delay(true), ignored);
}

void Connection::Drain() {
  drains_ = true;
  if (!answers_) stream_.cancel();
}

milliseconds Connection::WriteTime() const {
  return ends_ ? server_.times().end : server_.times().write;
}

void Connection::End() {
  ends_ = true;
  stream_.cancel();  // a write that is under way gets no more time
}

asio::awaitable<void> Connection::Serve() {
  bool more = true;
  while (more && !server_.drains()) {
    Parser parser;
    parser.header_limit(kMostHeaderBytes);
    parser.body_limit(kMostBodyBytes);
    more = co_await Read(parser);
    if (more) more = co_await Answer(parser);
    answers_ = false;
  }
  boost::system::error_code ignored;
  stream_.socket().shutdown(tcp::socket::shutdown_both, ignored);
  stream_.close();
}

asio::awaitable<bool> Connection::SkipEmptyLines() {
  boost::system::error_code error;
  while (!error) {
    const auto* const bytes = static_cast<const char*>(buffer_.data().data());
    const std::string_view read(bytes, buffer_.size());
    const size_t begin = std::min(read.find_first_not_of("\r\n"), read.size());
    buffer_.consume(begin);
    if (buffer_.size() > 0) co_return true;
    buffer_.commit(co_await stream_.async_read_some(
        buffer_.prepare(1 << 12),
        asio::redirect_error(asio::use_awaitable, error)));
  }
  co_return false;
}

asio::awaitable<bool> Connection::Read(Parser& parser) {
  beast::error_code error;
  stream_.expires_after(server_.times().header);
  if (!co_await SkipEmptyLines()) co_return false;
  co_await http::async_read_header(
      stream_, buffer_, parser,
      asio::redirect_error(asio::use_awaitable, error));
  if (drains_ && error) co_return false;
  if (!error && !parser.is_done()) {
    const auto expects = parser.get()[http::field::expect];
    if (beast::iequals(expects, "100-continue") &&
        !co_await WriteBytes("HTTP/1.1 100 Continue\r\n\r\n")) {
      co_return false;
    }
    while (!error && !parser.is_done()) {
      stream_.expires_after(server_.times().body);
      co_await http::async_read_some(
          stream_, buffer_, parser,
          asio::redirect_error(asio::use_awaitable, error));
    }
    if (drains_ && error) co_return false;
  }
  answers_ = true;
  if (!error) co_return true;
  if (error == http::error::body_limit) {
    co_return co_await AnswerError(HttpError(
        413, "body_too_large",
        absl::StrCat("the body has more than ", kMostBodyBytes, " bytes")));
  }
  if (error == http::error::header_limit) {
    co_return co_await AnswerError(HttpError(
        431, "header_too_large",
        absl::StrCat("the header has more than ", kMostHeaderBytes, " bytes")));
  }
  const bool malformed =
      error.category() ==
          http::make_error_code(http::error::bad_method).category() &&
      error != http::error::end_of_stream &&
      error != http::error::partial_message;
  if (malformed) {
    co_return co_await AnswerError(HttpError(
        400, "invalid_http", absl::StrCat("no HTTP: ", error.message())));
  }
  co_return false;
}

asio::awaitable<bool> Connection::AnswerError(const absl::Status& error) {
  co_await WriteReply(server_.handler().Refused(error), Body::kWritten,
                      /*keep_alive=*/false, /*version=*/11);
  // The client may still be sending what is not read: a reset would lose the
  // answer.
  boost::system::error_code ended;
  stream_.socket().shutdown(tcp::socket::shutdown_send, ended);
  stream_.expires_after(seconds(2));
  for (size_t dropped = 0; !ended && dropped < (size_t{1} << 20);) {
    buffer_.clear();
    dropped += co_await stream_.async_read_some(
        buffer_.prepare(1 << 16),
        asio::redirect_error(asio::use_awaitable, ended));
  }
  co_return false;
}

void Connection::Watch() {
  // A client that sends more than this has not left, and is not watched.
  constexpr size_t kMostBytes = 64 << 10;
  if (buffer_.size() >= kMostBytes) return;
  stream_.socket().async_wait(
      tcp::socket::wait_read, [self = shared_from_this(), talk = watched_](
                                  const boost::system::error_code& error) {
        if (error == asio::error::operation_aborted || talk != self->watched_) {
          return;
        }
        constexpr size_t kBytes = 1 << 12;
        const ssize_t got =
            recv(self->stream_.socket().native_handle(),
                 self->buffer_.prepare(kBytes).data(), kBytes, MSG_DONTWAIT);
        if (error || (got == -1 && errno != EAGAIN)) {
          talk->Gone();
          return;
        }
        if (got == 0) {
          talk->SendsNoMore();
          self->WatchForReset();
          return;
        }
        if (got > 0) self->buffer_.commit(static_cast<size_t>(got));
        self->Watch();
      });
}

void Connection::WatchForReset() {
  stream_.socket().async_wait(
      tcp::socket::wait_error, [self = shared_from_this(), talk = watched_](
                                   const boost::system::error_code& error) {
        if (error == asio::error::operation_aborted || talk != self->watched_) {
          return;
        }
        talk->Gone();
      });
}

asio::awaitable<bool> Connection::Answer(Parser& parser) {
  const http::request<http::string_body>& got = parser.get();
  if (got.count(http::field::host) > 1) {
    co_return co_await AnswerError(
        HttpError(400, "invalid_http", "no HTTP: more than one Host"));
  }
  const auto text = [](beast::string_view view) {
    return std::string(view.data(), view.size());
  };
  const std::string target = text(got.target());
  const std::string_view authority = AuthorityOf(target);
  HttpRequest request = {
      text(got.method_string()),
      PathOf(target),
      authority.empty() ? text(got[http::field::host]) : std::string(authority),
      text(got[http::field::origin]),
      text(got[http::field::authorization]),
      std::move(parser.get().body()),
      QueryOf(target)};
  const Body body = request.method == "HEAD" ? Body::kCounted : Body::kWritten;
  const unsigned version = got.version();
  bool keep_alive = got.keep_alive();
  const auto talk = std::make_shared<Talk>(server_.context());
  asio::post(server_.pool(),
             [&handler = server_.handler(), request = std::move(request),
              talk]() mutable { handler.Handle(std::move(request), talk); });
  watched_ = talk;
  Watch();

  bool streams = false;
  bool well = true;
  const bool chunked = version >= 11;
  const auto framed = [&](const std::string& events) {
    return chunked
               ? absl::StrCat(absl::Hex(events.size()), "\r\n", events, "\r\n")
               : events;
  };
  for (;;) {
    const bool changed = co_await talk->Wait();
    Talk::Output output = talk->Take();
    if (output.gone) well = false;
    if (!well && !output.ended) continue;  // the handler will end it
    if (!well) break;
    keep_alive = keep_alive && !server_.drains();
    if (output.reply.has_value()) {
      well = co_await WriteReply(*output.reply, body, keep_alive, version);
      break;
    }
    if (output.streams && !std::exchange(streams, true)) {
      well = co_await WriteStreamHead(chunked, keep_alive, version);
    }
    // The end of what a client sends looks alike whether it has left or waits
    // for its answer: one that has left refuses what it is sent now.
    const bool asks = output.sends_no_more && !output.ended;
    if (streams && (asks || !changed) && output.events.empty() &&
        !output.ended) {
      output.events = ": ping\n\n";
    }
    if (asks && !streams && version >= 11) {
      well = co_await WriteBytes("HTTP/1.1 100 Continue\r\n\r\n");
    }
    if (well && !output.events.empty()) {
      well = co_await WriteBytes(framed(output.events));
    }
    if (output.ended && well && streams && chunked) {
      well = co_await WriteBytes("0\r\n\r\n");
    }
    if (!well) talk->Gone();
    if (output.ended) break;
  }
  watched_ = nullptr;
  boost::system::error_code ignored;  // it may be closed
  stream_.socket().cancel(ignored);
  co_return well&& keep_alive && (chunked || !streams);
}

asio::awaitable<bool> Connection::WriteReply(const HttpReply& reply, Body body,
                                             bool keep_alive,
                                             unsigned version) {
  http::response<http::string_body> response(
      static_cast<http::status>(reply.status), version);
  response.set(http::field::server, "tiercel");
  if (reply.status != 204) {
    response.set(http::field::content_type, reply.content_type);
  }
  response.set(http::field::cache_control, "no-store");
  for (const auto& [name, value] : reply.headers) response.set(name, value);
  response.keep_alive(keep_alive);
  if (body == Body::kWritten) response.body() = reply.body;
  if (reply.status != 204) response.content_length(reply.body.size());
  http::response_serializer<http::string_body> pieces(response);
  beast::error_code error;
  while (!error && !pieces.is_done()) {
    stream_.expires_after(WriteTime());
    co_await http::async_write_some(
        stream_, pieces, asio::redirect_error(asio::use_awaitable, error));
  }
  co_return !error;
}

asio::awaitable<bool> Connection::WriteStreamHead(bool chunked, bool keep_alive,
                                                  unsigned version) {
  return WriteBytes(absl::StrCat(
      version >= 11 ? "HTTP/1.1" : "HTTP/1.0",
      " 200 OK\r\nServer: tiercel\r\nContent-Type: text/event-stream\r\n"
      "Cache-Control: no-store\r\nX-Accel-Buffering: no\r\n",
      chunked ? "Transfer-Encoding: chunked\r\n" : "",
      chunked && keep_alive ? "" : "Connection: close\r\n", "\r\n"));
}

asio::awaitable<bool> Connection::WriteBytes(std::string bytes) {
  boost::system::error_code error;
  for (size_t written = 0; !error && written < bytes.size();) {
    stream_.expires_after(WriteTime());
    written += co_await stream_.async_write_some(
        asio::buffer(bytes) + written,
        asio::redirect_error(asio::use_awaitable, error));
  }
  co_return !error;
}

}  // namespace

std::string QueryValue(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), pair.size() + 1));
    const size_t sign = pair.find('=');
    if (pair.substr(0, sign) != name || sign == pair.npos) continue;
    std::string value;
    for (size_t i = sign + 1; i < pair.size(); ++i) {
      unsigned byte = 0;
      const auto digits = pair.substr(i).substr(0, 3);
      if (pair[i] == '%' && digits.size() == 3 &&
          absl::SimpleHexAtoi(absl::string_view(digits.data() + 1, 2), &byte)) {
        value += static_cast<char>(byte);
        i += 2;
      } else {
        value += pair[i] == '+' ? ' ' : pair[i];
      }
    }
    return value;
  }
  return "";
}

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Listen(
    const std::string& host, int64_t port, HttpHandler* handler,
    const HttpTimes& times) {
  auto server = std::make_unique<Server>(handler, times);
  RETURN_IF_ERROR(server->Open(host, port));
  return server;
}

}  // namespace tiercel::serve
