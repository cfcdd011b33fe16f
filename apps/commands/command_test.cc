#include "apps/commands/command.h"

#include "gtest/gtest.h"

namespace tiercel::cli {
namespace {

TEST(SessionParamsTest, EveryFlagIsHanded) {
  Options options;
  options.session.context = 4096;
  options.session.kv_type_k = "f32";
  options.session.kv_type_v = "q8_0";
  options.session.cache_dir = "/cache";
  options.session.budget = 256;
  options.session.sink = 40;
  options.session.window = 48;
  options.session.chunk = 16;
  options.sampling.policy = "triforce";
  const tiercel_session_params params = SessionParams(options);
  EXPECT_EQ(params.context, 4096);
  EXPECT_STREQ(params.kv_type_k, "f32");
  EXPECT_STREQ(params.kv_type_v, "q8_0");
  EXPECT_STREQ(params.cache_dir, "/cache");
  EXPECT_EQ(params.view_budget, 256);
  EXPECT_EQ(params.view_sink, 40);
  EXPECT_EQ(params.view_window, 48);
  EXPECT_EQ(params.view_chunk, 16);
}

TEST(SessionParamsTest, AViewIsAsLargeAsThoseWhoDraftNeed) {
  Options options;
  EXPECT_EQ(SessionParams(options).view_budget, 0);
  EXPECT_EQ(SessionParams(options).cache_dir, nullptr);
  options.sampling.policy = "triforce";
  EXPECT_EQ(SessionParams(options).view_budget, 1024);
  options.sampling.policy = "full";
  options.sampling.draft = "ngram";
  EXPECT_EQ(SessionParams(options).view_budget, 0);
  // A drafter over a window sees the sinks too, nothing else.
  options.sampling.draft = "self";
  EXPECT_EQ(SessionParams(options).view_budget, 32);
  options.session.sink = 40;
  EXPECT_EQ(SessionParams(options).view_budget, 40);
}

TEST(VersionNumberTest, IsTheNumberAlone) {
  EXPECT_EQ(VersionNumber().find_first_not_of("0123456789."),
            std::string::npos);
}

}  // namespace
}  // namespace tiercel::cli
