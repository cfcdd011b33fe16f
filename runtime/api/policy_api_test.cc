// Policies through tiercel.h: their forms and settings, and scores of plain
// forms.

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/api/api_fixture_for_test.h"

namespace tiercel::api_test {
namespace {

using ::testing::HasSubstr;

class PolicyApiTest : public ApiTest {
 protected:
  tiercel_session* Create(const tiercel_policy& policy, tiercel_status want) {
    auto params = Sized<tiercel_session_params>();
    params.policy = &policy;
    tiercel_session* session = nullptr;
    EXPECT_EQ(tiercel_session_create(model_, &params, &session, &error_), want)
        << error_.message;
    return session;
  }

  static tiercel_policy Sadas(const char* form, const char* settings) {
    auto policy = Sized<tiercel_policy>();
    policy.name = "sadas";
    policy.form = form;
    policy.settings = settings;
    policy.window = 16;
    policy.sink = 2;
    return policy;
  }

  // One logit after each of `ids`, in millionths; the first `prompt` of them
  // are read as a prompt.
  std::vector<int64_t> LogitsAfter(tiercel_session* session,
                                   const std::vector<int32_t>& ids,
                                   size_t prompt) {
    EXPECT_EQ(tiercel_session_prefill(session, ids.data(), prompt, nullptr,
                                      nullptr, &error_),
              TIERCEL_OK)
        << error_.message;
    std::vector<int64_t> logits_of;
    EXPECT_EQ(tiercel_session_score(
                  session, ids.data() + prompt, ids.size() - prompt, 1,
                  [](void* out, size_t, const float* logits) {
                    static_cast<std::vector<int64_t>*>(out)->push_back(
                        static_cast<int64_t>(1e6 * double{logits[7]}));
                    return 0;
                  },
                  &logits_of, &error_),
              TIERCEL_OK)
        << error_.message;
    return logits_of;
  }
};

TEST_F(PolicyApiTest, APlainFormScoresByItsOwnSteps) {
  const std::vector<int32_t> ids = Tokenize(
      "the sea saw the falcon and the falcon saw the sea again and "
      "again until the sea was tired of falcons");
  ASSERT_GT(ids.size(), 40u);
  const std::vector<int64_t> full = LogitsAfter(session_, ids, 20);
  for (const auto& [form, settings, same] :
       {std::tuple("verified", "gate=always", true),
        std::tuple("baseline", "gate=always", true),
        std::tuple("plain", "gate=always", false),
        std::tuple("plain", "think=off", true)}) {
    tiercel_session* const session = Create(Sadas(form, settings), TIERCEL_OK);
    ASSERT_NE(session, nullptr);
    EXPECT_EQ(LogitsAfter(session, ids, 20) == full, same)
        << form << " " << settings;
    tiercel_session_free(session);
  }
  // A plain form scores one row at a time, never several.
  tiercel_session* const plain = Create(Sadas("plain", nullptr), TIERCEL_OK);
  EXPECT_EQ(tiercel_session_score(plain, ids.data(), ids.size(), 2, nullptr,
                                  nullptr, &error_),
            TIERCEL_USAGE);
  EXPECT_EQ(tiercel_session_length(plain), 0u);
  EXPECT_EQ(tiercel_session_score(plain, ids.data(), ids.size(), 0, nullptr,
                                  nullptr, &error_),
            TIERCEL_OK);
  EXPECT_EQ(tiercel_session_length(plain), ids.size());
  tiercel_session_free(plain);
}

// A program that lists policies and settings for its user can offer all of
// them: each is taken, with its default, in the forms that the list names.
TEST_F(PolicyApiTest, ListedPoliciesAndSettingsAreTaken) {
  const nlohmann::json list =
      JsonFrom([&](char* json, size_t* size, tiercel_error* error) {
        return tiercel_policies(json, size, error);
      });
  std::vector<std::string> names;
  size_t settings = 0;
  for (const nlohmann::json& one : list) {
    names.push_back(one.at("name").get<std::string>());
    EXPECT_FALSE(one.at("help").get<std::string>().empty());
    EXPECT_TRUE(one.at("plain") || one.at("plain_sizes").empty());
    auto policy = Sized<tiercel_policy>();
    policy.name = names.back().c_str();
    policy.form = "plain";
    tiercel_session_free(Create(
        policy, one.at("plain").get<bool>() ? TIERCEL_OK : TIERCEL_USAGE));
    policy.form = "verified";
    for (const nlohmann::json& setting : one.at("settings")) {
      EXPECT_FALSE(setting.at("help").get<std::string>().empty());
      if (setting.at("default") == "N") continue;  // it depends on the model
      const std::string text = setting.at("key").get<std::string>() + "=" +
                               setting.at("default").get<std::string>();
      policy.settings = text.c_str();
      tiercel_session_free(Create(policy, TIERCEL_OK));
      ++settings;
    }
    policy.settings = "unknown=1";
    EXPECT_EQ(Create(policy, TIERCEL_USAGE), nullptr);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"full", "triforce", "sfi", "sadas",
                                             "speed"}));
  EXPECT_GT(settings, 20u);
}

// 0 means that the caller has not named the sinks.
TEST_F(PolicyApiTest, SinksThatNobodyNamesFitTheBudget) {
  for (const char* name : {"triforce", "sfi", "speed", "sadas"}) {
    auto policy = Sized<tiercel_policy>();
    policy.name = name;
    policy.chunk = 8;
    policy.budget = 3;
    tiercel_session_free(Create(policy, TIERCEL_OK));
    policy.sink = 3;
    tiercel_session_free(Create(policy, TIERCEL_OK));
    policy.sink = 4;
    const bool of_window = std::string(name) == "sadas";
    tiercel_session_free(
        Create(policy, of_window ? TIERCEL_OK : TIERCEL_USAGE));
    if (!of_window) {
      EXPECT_STREQ(error_.message, "budget: got 3, need at least the sink's 4");
    }
    policy.sink = 0;
    policy.budget = -3;
    EXPECT_EQ(Create(policy, TIERCEL_USAGE), nullptr);
    const std::string said = error_.message;
    EXPECT_NE(said.find("budget"), std::string::npos) << said;
    EXPECT_NE(said.find("-3"), std::string::npos) << said;
  }
}

TEST_F(PolicyApiTest, PoliciesAreChecked) {
  std::vector<tiercel_policy> bad(17, Sized<tiercel_policy>());
  bad[0].name = "nothing";
  bad[1].draft = "nobody";
  bad[2].verify = "";
  bad[3].gamma1 = -2;
  bad[4].gamma2 = 64;
  bad[5].draft = "small";  // without draft_model
  bad[6].draft_layers = -1;
  bad[7].draft_layers = 3;  // the model has 2
  bad[8].cost_ratio = -1;
  bad[9].name = "triforce";
  bad[9].chunk = 24;
  bad[10].struct_size = 0;
  bad[11].branches = 1;  // "full" drafts none
  bad[12].name = "sfi";
  bad[12].branches = 1;
  bad[13].name = "triforce";
  bad[13].branches = 17;
  bad[14].name = "triforce";
  bad[14].branches = -2;
  bad[15].draft_ahead = 1;  // "full" has no view
  bad[15].verify = "coupled";
  bad[16].name = "triforce";
  bad[16].draft_ahead = 1;  // it needs coupled
  for (size_t i = 0; i < bad.size(); ++i) {
    auto params = Sized<tiercel_session_params>();
    params.policy = &bad[i];
    tiercel_session* session = nullptr;
    EXPECT_EQ(tiercel_session_create(model_, &params, &session, &error_),
              TIERCEL_USAGE)
        << i;
    EXPECT_EQ(session, nullptr);
    size_t size = 0;
    EXPECT_EQ(tiercel_plan(model_, &params, nullptr, &size, &error_),
              TIERCEL_USAGE)
        << i;
  }
}

// There is no lack of memory.
TEST_F(PolicyApiTest, AViewMayBeTooLargeForTheContext) {
  auto policy = Sized<tiercel_policy>();
  policy.name = "sfi";
  policy.budget = 16384;  // the context, which the newest tokens need, too
  EXPECT_EQ(Create(policy, TIERCEL_USAGE), nullptr);
  EXPECT_STREQ(error_.code, "view_too_large");
  EXPECT_THAT(error_.message, HasSubstr("16384 chosen"));
  policy.budget = 32;
  policy.window = 24;
  tiercel_session_free(Create(policy, TIERCEL_OK));
}

TEST_F(PolicyApiTest, FormsAndSettingsAreChecked) {
  for (const auto& [form, settings] :
       {std::pair("lossy", ""), std::pair("plain", "interval=4"),
        std::pair("plain", "latch"), std::pair("plain", "close=<think>")}) {
    EXPECT_EQ(Create(Sadas(form, settings), TIERCEL_USAGE), nullptr);
  }
  tiercel_policy window = Sadas("plain", nullptr);
  window.window = -1;
  EXPECT_EQ(Create(window, TIERCEL_USAGE), nullptr);
  EXPECT_NE(std::string(error_.message).find("window"), std::string::npos);
  tiercel_policy drafts = Sadas("plain", nullptr);
  drafts.draft = "ngram";
  EXPECT_EQ(Create(drafts, TIERCEL_USAGE), nullptr);
  for (const char* name : {"full", "triforce"}) {
    tiercel_policy other = Sadas("plain", nullptr);
    other.name = name;
    EXPECT_EQ(Create(other, TIERCEL_USAGE), nullptr);
    other.form = nullptr;
    other.settings = "think=on";
    EXPECT_EQ(Create(other, TIERCEL_USAGE), nullptr);
    EXPECT_NE(std::string(error_.message).find(name), std::string::npos);
  }
}

}  // namespace
}  // namespace tiercel::api_test
