#include "apps/serve/guard.h"

#include "apps/cli/error.h"
#include "apps/serve/refusal.h"
#include "gtest/gtest.h"

namespace tiercel::serve {
namespace {

TEST(GuardTest, NamesOfTheLoopback) {
  for (const char* host :
       {"localhost", "LocalHost:8080", "127.0.0.1", "127.0.0.1:1", "127.9.8.7",
        "[::1]:8080", "[::1]", "::1", "localhost."}) {
    EXPECT_TRUE(IsLoopback(host)) << host;
  }
  for (const char* host : {"", "evil.com", "localhost.evil.com", "127.evil.com",
                           "127.0.0.1.nip.io", "0.0.0.0", "192.168.0.1:80",
                           "[::2]", "[fe80::1]:80", "1270.0.0.1"}) {
    EXPECT_FALSE(IsLoopback(host)) << host;
  }
}

TEST(GuardTest, OnTheLoopbackOtherNamesAreRefused) {
  const Guard guard("127.0.0.1", {});
  EXPECT_TRUE(guard.CheckSource("localhost:8080", "").ok());
  for (const char* host : {"", "evil.com", "evil.com:8080"}) {
    const absl::Status status = guard.CheckSource(host, "");
    EXPECT_EQ(HttpStatusOf(status), 403);
    EXPECT_EQ(cli::CodeOf(status), "forbidden_host");
  }
  EXPECT_TRUE(Guard("0.0.0.0", {}).CheckSource("falcon.lan", "").ok());
}

TEST(GuardTest, PagesOfOtherOriginsAreRefused) {
  for (const char* host : {"127.0.0.1", "0.0.0.0"}) {
    const Guard guard(host, {"key"});
    EXPECT_TRUE(
        guard.CheckSource("localhost:8080", "http://LOCALHOST:8080").ok());
    for (const char* origin : {"http://evil.com", "null", "localhost:8080",
                               "http://localhost:80", "http://localhost"}) {
      const absl::Status status = guard.CheckSource("localhost:8080", origin);
      EXPECT_EQ(HttpStatusOf(status), 403) << origin;
      EXPECT_EQ(cli::CodeOf(status), "forbidden_origin");
    }
  }
}

TEST(GuardTest, OneOfTheKeysIsNeededIfThereAreAny) {
  EXPECT_TRUE(Guard("127.0.0.1", {}).CheckKey("").ok());
  EXPECT_TRUE(Guard("127.0.0.1", {}).CheckKey("Bearer none").ok());
  const Guard guard("127.0.0.1", {"sk-one", "sk-second"});
  EXPECT_TRUE(guard.CheckKey("Bearer sk-one").ok());
  EXPECT_TRUE(guard.CheckKey("bearer  sk-second").ok());
  for (const char* wrong :
       {"", "Bearer", "Bearer ", "sk-one", "Basic sk-one", "Bearer sk-on",
        "Bearer sk-onee", "Bearer sk-onesk-one", "Bearer SK-ONE",
        "Bearer sk-one sk-second"}) {
    const absl::Status status = guard.CheckKey(wrong);
    EXPECT_EQ(HttpStatusOf(status), 401) << wrong;
    EXPECT_EQ(cli::CodeOf(status), "invalid_api_key");
  }
}

}  // namespace
}  // namespace tiercel::serve
