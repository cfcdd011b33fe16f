#include "apps/serve/http.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "apps/terminal/signals.h"
#include "gtest/gtest.h"

namespace tiercel::serve {
namespace {

using std::chrono::milliseconds;

constexpr size_t kManyBytes = size_t{64} << 20;  // more than a socket holds

// Answers with what it was asked; at /many with many bytes, and at /never not
// before the client has left, or AnswerKept.
class Echo final : public HttpHandler {
 public:
  void Handle(HttpRequest request,
              std::shared_ptr<Exchange> exchange) override {
    if (request.path == "/many") {
      exchange->Reply({200, std::string(kManyBytes, 'm')});
    } else if (request.path == "/stream") {
      exchange->BeginStream();
      exchange->Write("data: 1\n\n");
      exchange->EndStream();
    } else if (request.path == "/never") {
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        kept_.push_back(exchange);
      }
      exchange->OnGone([this, exchange] {
        ++gone_;
        exchange->Reply({503, ""});
      });
    } else {
      exchange->Reply({200, request.method + " " + request.path + " at " +
                                request.host + " " + request.body});
    }
  }
  void AnswerKept() {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& exchange : kept_) exchange->Reply({200, "late"});
  }
  bool IsLastGone() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return kept_.back()->IsGone();
  }
  HttpReply Refused(const absl::Status& status) override {
    return {400, std::string(status.message())};
  }
  void Drain() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& exchange : kept_) exchange->Reply({503, ""});
  }
  void CancelAll() override {}
  int gone() const { return gone_; }

 private:
  std::atomic<int> gone_ = 0;
  std::mutex mutex_;
  std::vector<std::shared_ptr<Exchange>> kept_;  // the lock guards it
};

class HttpTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { cli::InstallSignalHandlers(/*json=*/false); }
  void Begin(const HttpTimes& times = {}) {
    auto server = HttpServer::Listen("127.0.0.1", 0, &echo_, times);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    thread_ = std::thread([this] { EXPECT_TRUE(server_->Run().ok()); });
  }
  // Waits until the server has ended.
  void End() {
    server_->Stop();
    thread_.join();
  }

  int Connect() {
    const std::string url = server_->url();
    const int port = std::stoi(url.substr(url.rfind(':') + 1));
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const timeval most = {.tv_sec = 60, .tv_usec = 0};  // no test waits on
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&address),
                      sizeof(address)),
              0);
    return fd;
  }
  static void Send(int fd, const std::string& bytes) {
    EXPECT_EQ(send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  // Reads until the server closes, with pauses between pieces.
  static std::string ReadAll(int fd, milliseconds pause = milliseconds(0)) {
    std::string all;
    std::string piece(1 << 22, 0);
    for (ssize_t got;
         (got = recv(fd, piece.data(), piece.size(), MSG_WAITALL)) > 0;) {
      all.append(piece, 0, static_cast<size_t>(got));
      std::this_thread::sleep_for(pause);
    }
    close(fd);
    return all;
  }
  std::string Ask(const std::string& request) {
    const int fd = Connect();
    Send(fd, request);
    return ReadAll(fd);
  }

  Echo echo_;
  cli::CountSignals counts_;
  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
};

TEST_F(HttpTest, TargetsMayBeWholeUrls) {
  Begin();
  const std::string close = " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
  EXPECT_NE(Ask("GET /x//y?z=1" + close).find("GET /x/y at a"),
            std::string::npos);
  EXPECT_NE(Ask("GET http://b:1/x?z=1" + close).find("GET /x at b:1"),
            std::string::npos);
  EXPECT_NE(Ask("GET http://b" + close).find("GET / at b"), std::string::npos);
  EXPECT_NE(Ask("GET /a://b" + close).find("GET /a:/b at a"),
            std::string::npos);
  End();
}

TEST_F(HttpTest, OneHostAndEmptyLinesBefore) {
  Begin();
  EXPECT_NE(Ask("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n").find(" 400 "),
            std::string::npos);
  // Some clients end a body with a line end.
  const std::string two = Ask(
      "\r\nPOST /p HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nb\r\n\r\n"
      "GET /q HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_NE(two.find("POST /p at a b"), std::string::npos);
  EXPECT_NE(two.find("GET /q at a"), std::string::npos);
  End();
}

TEST_F(HttpTest, AStreamSaysThatItsConnectionEnds) {
  Begin();
  const std::string closed =
      Ask("GET /stream HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_NE(closed.find("\r\nConnection: close\r\n"), std::string::npos);
  const std::string kept =
      Ask("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n"
          "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(kept.find("Connection: close"), kept.rfind("Connection: close"));
  EXPECT_GT(kept.find("Connection: close"), kept.find("data: 1"));
  End();
}

TEST_F(HttpTest, AClientThatLeavesIsMissedWhateverItHasSent) {
  Begin();
  int left = 0;
  for (const char* more : {"", "\r\n", "GET / HTTP/1.1\r\n"}) {
    const int fd = Connect();
    Send(fd, "GET /never HTTP/1.1\r\nHost: a\r\n\r\n");
    std::this_thread::sleep_for(milliseconds(50));
    Send(fd, more);
    std::this_thread::sleep_for(milliseconds(50));
    EXPECT_EQ(echo_.gone(), left);
    close(fd);
    ++left;
    for (int i = 0; i < 1000 && echo_.gone() < left; ++i) {
      std::this_thread::sleep_for(milliseconds(10));
    }
    EXPECT_EQ(echo_.gone(), left) << more;
    EXPECT_TRUE(echo_.IsLastGone());
  }
  End();
}

TEST_F(HttpTest, AClientThatSendsNoMoreIsAnswered) {
  Begin();
  for (const char* version : {"1.1", "1.0"}) {
    const int fd = Connect();
    Send(fd, std::string("POST /never HTTP/") + version +
                 "\r\nHost: a\r\nContent-Length: 1\r\n\r\nb");
    std::this_thread::sleep_for(milliseconds(50));
    shutdown(fd, SHUT_WR);
    std::this_thread::sleep_for(milliseconds(100));
    EXPECT_EQ(echo_.gone(), 0);
    EXPECT_FALSE(echo_.IsLastGone());
    echo_.AnswerKept();
    const std::string answer = ReadAll(fd);
    const std::string head = std::string("HTTP/") + version + " ";
    const bool is_new = head == "HTTP/1.1 ";
    EXPECT_EQ(answer.find(head + "100 Continue\r\n\r\n"),
              is_new ? 0 : answer.npos);
    EXPECT_EQ(answer.find(head + "200 OK\r\n"), is_new ? 25u : 0u);
    EXPECT_NE(answer.find("\r\n\r\nlate"), std::string::npos);
  }
  End();
}

// The times are those without any progress.
TEST_F(HttpTest, SlowClientsAreServedAndDeadOnesForgotten) {
  Begin({.body = milliseconds(1000), .write = milliseconds(1000)});
  const std::string close = " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n";
  const int slow = Connect();
  Send(slow, "GET /many" + close + "\r\n");
  EXPECT_GT(ReadAll(slow, milliseconds(150)).size(), kManyBytes);

  const int sender = Connect();
  Send(sender, "POST /slow" + close + "Content-Length: 6\r\n\r\n");
  for (int i = 0; i < 6; ++i) {
    std::this_thread::sleep_for(milliseconds(250));
    Send(sender, "x");
  }
  EXPECT_NE(ReadAll(sender).find("POST /slow at a xxxxxx"), std::string::npos);

  const int dead = Connect();
  Send(dead, "GET /many" + close + "\r\n");
  std::this_thread::sleep_for(milliseconds(1500));
  const auto began = std::chrono::steady_clock::now();
  End();  // would never return if the connection were still known
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(60));
  ::close(dead);
}

TEST(QueryTest, ValuesAreDecoded) {
  EXPECT_EQ(QueryValue("name=a%20b%C3%A9+c.epub", "name"),
            "a b\xc3\xa9 c.epub");
  EXPECT_EQ(QueryValue("names=1&name=2&name=3", "name"), "2");
  EXPECT_EQ(QueryValue("a=b=c", "a"), "b=c");
  EXPECT_EQ(QueryValue("a=%26%3d", "a"), "&=");
  for (const char* query : {"", "name", "&&", "name=", "a=name", "nam=e"}) {
    EXPECT_EQ(QueryValue(query, "name"), "") << query;
  }
  // An escape that is none is kept.
  for (const char* value : {"%", "%4", "%zz", "100%"}) {
    EXPECT_EQ(QueryValue(std::string("a=") + value, "a"), value);
  }
}

}  // namespace
}  // namespace tiercel::serve
