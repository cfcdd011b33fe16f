#include "apps/serve/service.h"

#include <memory>
#include <optional>
#include <string>

#include "gtest/gtest.h"
#include "include/tiercel.h"

namespace tiercel::serve {
namespace {

// Keeps the reply.
class FakeExchange final : public Exchange {
 public:
  void Reply(HttpReply reply) override { reply_ = std::move(reply); }
  void BeginStream() override { FAIL(); }
  void Write(std::string) override { FAIL(); }
  void EndStream() override { FAIL(); }
  void OnGone(std::function<void()>) override { FAIL(); }
  bool IsGone() override { return false; }
  std::optional<HttpReply> reply_;
};

class ServiceTest : public ::testing::Test {
 protected:
  ServiceTest() {
    options_.model.path = "tests/golden/checkpoints/llama_chat.gguf";
    auto params = defaults<tiercel_model_params>();
    params.path = options_.model.path.c_str();
    params.load = TIERCEL_LOAD_HEADER;
    auto opened = cli::Model::Open(params, nullptr);
    EXPECT_TRUE(opened.ok()) << opened.status();
    model_ = std::make_unique<cli::Model>(*std::move(opened));
    service_ = std::make_unique<Service>(options_, *model_,
                                         Guard("127.0.0.1", {"key"}));
  }

  HttpReply Ask(const std::string& method, const std::string& path,
                const std::string& body = "",
                const std::string& authorization = "Bearer key") {
    const auto exchange = std::make_shared<FakeExchange>();
    service_->Handle({method, path, "localhost", "", authorization, body},
                     exchange);
    EXPECT_TRUE(exchange->reply_.has_value()) << path;
    return exchange->reply_.value_or(HttpReply());
  }
  std::string CodeOf(const HttpReply& reply) {
    return Json::parse(reply.body).at("error").at("code").get<std::string>();
  }

  cli::Options options_;
  std::unique_ptr<cli::Model> model_;
  std::unique_ptr<Service> service_;
};

TEST_F(ServiceTest, WhileTheModelIsLoadedNothingIsGenerated) {
  // The model may not be used then, not even its header.
  for (const auto& [method, path] :
       {std::pair("GET", "/health"), std::pair("GET", "/v1/models"),
        std::pair("GET", "/props"), std::pair("POST", "/tokenize"),
        std::pair("POST", "/detokenize"), std::pair("POST", "/v1/completions"),
        std::pair("POST", "/v1/chat/completions")}) {
    const HttpReply reply = Ask(method, path, R"({"prompt":"a"})");
    EXPECT_EQ(reply.status, 503) << path;
    EXPECT_EQ(CodeOf(reply), "loading");
    EXPECT_EQ(reply.headers.at(0).first, "Retry-After");
  }
  for (const char* path : {"/", "/metrics"}) {
    EXPECT_EQ(Ask("GET", path).status, 200) << path;
  }
}

TEST_F(ServiceTest, WhileItDrainsItSaysSo) {
  service_->Drain();
  EXPECT_EQ(CodeOf(Ask("POST", "/documents", "A")), "shutting_down");
  EXPECT_EQ(CodeOf(Ask("GET", "/health")), "shutting_down");
  EXPECT_EQ(Ask("POST", "/v1/completions", "{}").status, 503);
}

TEST_F(ServiceTest, OnlyHealthAndThePageAreForAll) {
  EXPECT_EQ(Ask("GET", "/health", "", "").status, 503);
  EXPECT_EQ(Ask("GET", "/", "", "").content_type, "text/html; charset=utf-8");
  EXPECT_EQ(Ask("POST", "/documents", "A", "").status, 401);
  for (const char* path : {"/v1/models", "/models", "/props", "/metrics"}) {
    const HttpReply reply = Ask("GET", path, "", "");
    EXPECT_EQ(reply.status, 401) << path;
    EXPECT_EQ(reply.headers.at(0).first, "WWW-Authenticate");
  }
  EXPECT_EQ(Ask("POST", "/v1/completions", "{}", "Bearer no").status, 401);
}

}  // namespace
}  // namespace tiercel::serve
