#include "apps/serve/mended_json.h"

#include <utility>

#include "gtest/gtest.h"

namespace tiercel::serve {
namespace {

using namespace std::string_literals;

TEST(MendedJsonTest, ReplacesWhatCannotBeHeld) {
  for (const auto& [text, mended] : {
           std::pair(R"(["a\ud83d"])"s, R"(["a\ufffd"])"s),
           std::pair(R"(["\uDC00\ud83d\ud83d\ude00\\ud83d"])"s,
                     R"(["\ufffd\ufffd\ud83d\ude00\\ud83d"])"s),
           std::pair("[\"\xE9\xFF\", \"a\tb\0\"]"s,
                     "[\"\uFFFD\uFFFD\", \"a b \"]"s),
           std::pair("[1e999,\t-1e999, 1e9]"s, "[0,\t0, 1e9]"s),
           std::pair(R"({"1e999": "1e999"})"s, R"({"1e999": "1e999"})"s),
       }) {
    EXPECT_EQ(MendedJson(text), mended);
  }
}

TEST(MendedJsonTest, LeavesTheRest) {
  for (const char* text :
       {"", "{", "\"", "\"\\", R"("\u")", R"("\u12")", R"("\ud83d\)", R"(-)",
        R"({"a": [true, null, "é\n\u00e9", 12.5e-3]})"}) {
    const std::string mended = MendedJson(text);
    EXPECT_EQ(mended, text == R"("\ud83d\)"s ? R"("\ufffd\)" : text);
  }
}

}  // namespace
}  // namespace tiercel::serve
