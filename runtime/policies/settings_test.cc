#include "runtime/policies/settings.h"

#include <string>

#include "gtest/gtest.h"
#include "lib/status/error.h"
#include "runtime/policies/sadas/sadas_params.h"

namespace tiercel::settings_test {
namespace {

absl::Status Read(const std::string& text, std::string* word = nullptr,
                  int64_t* count = nullptr, bool* choice = nullptr) {
  std::string some_word;
  int64_t some_count = 0;
  bool some_choice = false;
  Settings settings("test", text);
  settings.TakeText("word", word != nullptr ? word : &some_word);
  settings.TakeCount("count", 1, 9, count != nullptr ? count : &some_count);
  settings.TakeChoice<bool>("choice", {{"yes", true}, {"no", false}},
                            choice != nullptr ? choice : &some_choice);
  return settings.Finish();
}

TEST(SettingsTest, ReadsWhatIsGivenAndKeepsTheRest) {
  std::string word = "before";
  int64_t count = 5;
  bool choice = true;
  ASSERT_TRUE(Read("", &word, &count, &choice).ok());
  EXPECT_EQ(word, "before");
  EXPECT_EQ(count, 5);
  EXPECT_TRUE(choice);
  ASSERT_TRUE(Read("choice=no,word=a=b,count=9", &word, &count, &choice).ok());
  EXPECT_EQ(word, "a=b");
  EXPECT_EQ(count, 9);
  EXPECT_FALSE(choice);
  ASSERT_TRUE(Read("word=", &word).ok());
  EXPECT_EQ(word, "");
}

TEST(SettingsTest, SaysWhatItGotAndWhatItNeeds) {
  const auto message = [](const std::string& text) {
    const absl::Status status = Read(text);
    EXPECT_EQ(CodeOf(status), "invalid_argument") << text;
    return std::string(status.message());
  };
  EXPECT_EQ(message("count=0"),
            "settings of test: count: got \"0\", need 1 to 9");
  EXPECT_EQ(message("count=10"),
            "settings of test: count: got \"10\", need 1 to 9");
  EXPECT_EQ(message("count=9x"),
            "settings of test: count: got \"9x\", need 1 to 9");
  EXPECT_EQ(message("choice=maybe"),
            "settings of test: choice: got \"maybe\", need yes, no");
  EXPECT_EQ(message("other=1"),
            "settings of test: got other, need word, count, choice");
  EXPECT_EQ(message("count=1,count=1"),
            "settings of test: count is given twice");
  for (const char* text : {"count", "=1", "count=1,", ","}) {
    EXPECT_NE(message(text).find("need KEY=VALUE"), std::string::npos) << text;
  }
  Settings none("full", "count=1");
  EXPECT_EQ(none.Finish().message(), "settings of full: got count, need none");
}

TEST(SettingsTest, Sadas) {
  SadasParams params;
  ASSERT_TRUE(params.Set("").ok());
  EXPECT_EQ(params.gate, ThinkGate::kState);
  EXPECT_EQ(params.open, "<think>");
  EXPECT_EQ(params.close, "</think>");
  EXPECT_FALSE(params.begins_open);
  EXPECT_EQ(params.most, 0);
  EXPECT_TRUE(params.latch);
  EXPECT_FALSE(params.pins_prompt);
  EXPECT_FALSE(params.keeps_window);
  ASSERT_TRUE(params
                  .Set("gate=literal,open=[,close=],think=on,most=7,latch=off,"
                       "pin=prompt,answer=kept")
                  .ok());
  EXPECT_EQ(params.gate, ThinkGate::kLiteral);
  EXPECT_EQ(params.open, "[");
  EXPECT_EQ(params.close, "]");
  EXPECT_TRUE(params.begins_open);
  EXPECT_EQ(params.most, 7);
  EXPECT_FALSE(params.latch);
  EXPECT_TRUE(params.pins_prompt);
  EXPECT_TRUE(params.keeps_window);
  ASSERT_TRUE(params.Set("gate=always").ok());
  EXPECT_EQ(params.gate, ThinkGate::kAlways);
  for (const char* wrong : {"open=", "close=", "open=a,close=a", "gate=on",
                            "most=-1", "latch=no", "interval=5", "cut=3"}) {
    EXPECT_EQ(CodeOf(SadasParams().Set(wrong)), "invalid_argument") << wrong;
  }
}

}  // namespace
}  // namespace tiercel::settings_test
