// Programs ask for DRY.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "include/tiercel.h"
#include "runtime/api/api_fixture_for_test.h"

namespace tiercel::dry_api_test {
namespace {

using api_test::Generated;
using api_test::Sized;
using ::testing::HasSubstr;
using ::testing::Not;

using Ids = std::vector<int32_t>;

class DryApiTest : public api_test::ApiTest {
 protected:
  static tiercel_sampling Greedy() {
    auto sampling = Sized<tiercel_sampling>();
    sampling.max_tokens = 60;
    sampling.ignore_eos = 1;
    return sampling;
  }
  static tiercel_sampling Dry() {
    tiercel_sampling sampling = Greedy();
    sampling.dry_multiplier = 2;
    return sampling;
  }

  // The tokens generated behind the same prompt.
  Ids Text(const tiercel_sampling& sampling) {
    const Ids prompt = Tokenize("the falcon and the heron\n");
    EXPECT_EQ(tiercel_session_read(session_, prompt.data(), prompt.size(),
                                   nullptr, nullptr, &error_),
              TIERCEL_OK)
        << error_.message;
    return Generated(session_, sampling);
  }
  // The number of `ids` that end a run of three that was there before.
  static int Repetitions(const Ids& ids) {
    int count = 0;
    for (size_t i = 3; i < ids.size(); ++i) {
      for (size_t j = 2; j < i; ++j) {
        if (std::equal(&ids[i - 2], &ids[i] + 1, &ids[j - 2])) {
          ++count;
          break;
        }
      }
    }
    return count;
  }
};

TEST_F(DryApiTest, NoRunComesAgain) {
  tiercel_sampling sampling = Dry();
  sampling.dry_no_breakers = 1;
  EXPECT_GT(Repetitions(Text(Greedy())), 30);  // a model that makes no sense
  EXPECT_LT(Repetitions(Text(sampling)), 5);
}

TEST_F(DryApiTest, ZeroIsLlamaCppsDefault) {
  tiercel_sampling named = Dry();
  named.dry_base = 1.75f;
  named.dry_allowed_length = 2;
  const char* const usual[] = {"\n", ":", "\"", "*"};
  named.dry_breakers = usual;
  named.num_dry_breakers = 4;
  const Ids text = Text(Dry());
  EXPECT_EQ(Text(named), text);
  EXPECT_THAT(Text(Greedy()), Not(text));
  // Each parameter matters.
  tiercel_sampling other = Dry();
  other.dry_allowed_length = 1;
  EXPECT_THAT(Text(other), Not(text));
  other = Dry();
  other.dry_multiplier = 0.1f;
  const Ids weak = Text(other);
  EXPECT_THAT(weak, Not(text));
  other.dry_base = 8;
  EXPECT_THAT(Text(other), Not(weak));
  // With a multiplier of 0 DRY changes nothing.
  other.dry_multiplier = 0;
  EXPECT_EQ(Text(other), Text(Greedy()));
}

// Every letter of the text breaks, so nothing is a repetition.
TEST_F(DryApiTest, BreakersAreTexts) {
  std::vector<char> piece(64);
  std::vector<std::string> pieces;
  for (const int32_t id : Text(Greedy())) {
    size_t size = piece.size();
    ASSERT_EQ(
        tiercel_detokenize(model_, &id, 1, 0, piece.data(), &size, &error_),
        TIERCEL_OK);
    const std::string text(piece.data(), size);
    if (!text.empty() && text.find('\0') == std::string::npos &&
        std::find(pieces.begin(), pieces.end(), text) == pieces.end()) {
      pieces.push_back(text);
    }
  }
  ASSERT_FALSE(pieces.empty());
  std::vector<const char*> texts;
  for (const std::string& text : pieces) texts.push_back(text.c_str());
  tiercel_sampling sampling = Dry();
  sampling.dry_breakers = texts.data();
  sampling.num_dry_breakers = std::min<size_t>(texts.size(), 64);
  EXPECT_EQ(Text(sampling), Text(Greedy()));
  EXPECT_THAT(Text(Dry()), Not(Text(Greedy())));
}

// Any number of calls makes the same answer.
TEST_F(DryApiTest, TokenByToken) {
  const Ids text = Text(Dry());
  tiercel_sampling one = Dry();
  one.max_tokens = 1;
  Ids tokens = Text(one);
  while (tokens.size() < text.size()) {
    tokens.push_back(Generated(session_, one).front());
  }
  EXPECT_EQ(tokens, text);
}

TEST_F(DryApiTest, AModelWithoutATokenizerHasNoBreakers) {
  tiercel_model* const model = Open(api_test::kIdsOnly, TIERCEL_LOAD_ALL);
  const auto params = Sized<tiercel_session_params>();
  const auto text = [&](const tiercel_sampling& sampling) {
    tiercel_session* session = nullptr;
    EXPECT_EQ(tiercel_session_create(model, &params, &session, &error_),
              TIERCEL_OK);
    const Ids prompt = {1, 2, 3};
    EXPECT_EQ(tiercel_session_prefill(session, prompt.data(), 3, nullptr,
                                      nullptr, &error_),
              TIERCEL_OK);
    const Ids ids = Generated(session, sampling);
    tiercel_session_free(session);
    return ids;
  };
  tiercel_sampling none = Dry();
  none.dry_no_breakers = 1;
  EXPECT_EQ(text(Dry()), text(none));
  EXPECT_THAT(text(Dry()), Not(text(Greedy())));
  tiercel_model_free(model);
}

TEST_F(DryApiTest, ParametersAreChecked) {
  const Ids prompt = Tokenize("a b c");
  ASSERT_EQ(tiercel_session_prefill(session_, prompt.data(), prompt.size(),
                                    nullptr, nullptr, &error_),
            TIERCEL_OK);
  const auto refused = [&](const tiercel_sampling& sampling) {
    EXPECT_EQ(tiercel_session_generate(session_, &sampling, nullptr, nullptr,
                                       &error_),
              TIERCEL_USAGE);
    EXPECT_EQ(tiercel_session_length(session_), prompt.size());
    return std::string(error_.code) + ": " + error_.message;
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const float bad : {-1.0f, 101.0f, nan}) {
    tiercel_sampling sampling = Greedy();
    sampling.dry_multiplier = bad;
    EXPECT_THAT(refused(sampling), HasSubstr("invalid_sampling: dry_multipl"));
    sampling = Dry();
    sampling.dry_base = bad;
    EXPECT_THAT(refused(sampling), HasSubstr("invalid_sampling: dry_base"));
  }
  tiercel_sampling sampling = Dry();
  sampling.dry_base = 0.5f;
  EXPECT_THAT(refused(sampling), HasSubstr("dry_base: got 0.5"));
  sampling = Dry();
  sampling.dry_allowed_length = -1;
  EXPECT_THAT(refused(sampling), HasSubstr("dry_allowed_length: got -1"));

  const std::string longest(40, 'a');
  const std::string too_long(41, 'a');
  const char* texts[] = {"x", longest.c_str()};
  sampling = Dry();
  sampling.num_dry_breakers = 2;
  EXPECT_THAT(refused(sampling), HasSubstr("null_argument: dry_breakers 0"));
  sampling.dry_breakers = texts;
  Generated(session_, sampling);
  ASSERT_EQ(tiercel_session_truncate(session_, prompt.size(), &error_),
            TIERCEL_OK);
  texts[1] = too_long.c_str();
  EXPECT_THAT(refused(sampling), HasSubstr("dry_breakers 1: got 41 bytes"));
  texts[1] = "";
  EXPECT_THAT(refused(sampling), HasSubstr("dry_breakers 1: got 0 bytes"));
  texts[1] = nullptr;
  EXPECT_THAT(refused(sampling), HasSubstr("dry_breakers 1: got NULL"));
  sampling.num_dry_breakers = 65;
  EXPECT_THAT(refused(sampling), HasSubstr("got 65, at most 64"));
}

}  // namespace
}  // namespace tiercel::dry_api_test
