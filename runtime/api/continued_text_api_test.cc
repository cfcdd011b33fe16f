// Many calls of tiercel.h write one text, each going on after the last: it is
// the text of a single call, whatever bytes the tokens have.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "runtime/api/api_fixture_for_test.h"

namespace tiercel::api_test {
namespace {

namespace fs = std::filesystem;

class ContinuedTextTest : public ApiTest {
 protected:
  // A checkpoint like kModel with a SentencePiece vocabulary: spaces belong to
  // the words behind them, and other characters come byte by byte.
  std::string SentencePieceModel() {
    const fs::path model = TempFolder() + "/model";
    fs::copy("tests/golden/checkpoints/llama_chat", model);
    nlohmann::json spec;
    std::ifstream("tests/golden/tokens/spm/tokenizer.json") >> spec;
    constexpr int kVocab = 384;
    auto vocab = spec["model"]["vocab"].get<std::map<std::string, int>>();
    std::erase_if(vocab, [](const auto& word) {  //
      return word.second >= kVocab;
    });
    auto merges = nlohmann::json::array();
    for (const nlohmann::json& merge : spec["model"]["merges"]) {
      const std::string left = merge[0];
      const std::string right = merge[1];
      if (vocab.count(left) && vocab.count(right) &&
          vocab.count(left + right)) {
        merges.push_back(merge);
      }
    }
    auto added = nlohmann::json::array();
    for (const nlohmann::json& token : spec["added_tokens"]) {
      if (token["id"] < kVocab) added.push_back(token);
    }
    spec["model"]["vocab"] = vocab;
    spec["model"]["merges"] = merges;
    spec["added_tokens"] = added;
    std::ofstream(model / "tokenizer.json") << spec;
    return model;
  }

  // From here on the session belongs to such a model.
  void OpenSentencePiece() {
    tiercel_session_free(session_);
    tiercel_model_free(model_);
    session_ = nullptr;
    model_ = Open(SentencePieceModel().c_str(), TIERCEL_LOAD_ALL);
    ASSERT_NE(model_, nullptr);
    const auto params = Sized<tiercel_session_params>();
    ASSERT_EQ(tiercel_session_create(model_, &params, &session_, &error_),
              TIERCEL_OK)
        << error_.message;
  }

  // Generates, and appends to `text`.
  void Write(tiercel_session* session, int64_t tokens, std::string* text) {
    auto sampling = Sized<tiercel_sampling>();
    sampling.temperature = 1.5f;
    sampling.ignore_eos = 1;
    sampling.seed = seed_;
    sampling.max_tokens = tokens;
    const auto add = [](void* to, const tiercel_token* token) {
      static_cast<std::string*>(to)->append(token->text, token->text_bytes);
      return 0;
    };
    ASSERT_EQ(tiercel_session_generate(session, &sampling, add, text, &error_),
              TIERCEL_OK)
        << error_.message;
  }

  tiercel_session* Fork(tiercel_session* session) {
    tiercel_session* copy = nullptr;
    EXPECT_EQ(tiercel_session_fork(session, &copy, &error_), TIERCEL_OK)
        << error_.message;
    return copy;
  }

  void Read(const std::vector<int32_t>& ids) {
    ASSERT_EQ(tiercel_session_read(session_, ids.data(), ids.size(), nullptr,
                                   nullptr, &error_),
              TIERCEL_OK)
        << error_.message;
  }

  void CheckManyCalls() {
    const std::vector<int32_t> ids = Tokenize("one two three");
    constexpr int64_t kTokens = 40;
    int waited = 0;  // calls whose tokens were no whole character yet
    for (seed_ = 0; seed_ < 10; ++seed_) {
      Read(ids);
      std::string whole;
      Write(session_, kTokens, &whole);
      for (const int64_t each : {1, 3}) {
        ASSERT_EQ(tiercel_session_truncate(session_, ids.size(), &error_),
                  TIERCEL_OK);
        std::string text;
        tiercel_session* now = Fork(session_);
        for (int64_t done = 0; done < kTokens; done += each) {
          const size_t before = text.size();
          Write(now, std::min(each, kTokens - done), &text);
          waited += text.size() == before;
          tiercel_session* next = Fork(now);  // the fork goes on
          tiercel_session_free(now);
          now = next;
        }
        tiercel_session_free(now);
        EXPECT_EQ(text, whole) << seed_;
      }
    }
    EXPECT_GT(waited, 0);
  }

  uint64_t seed_ = 0;
};

TEST_F(ContinuedTextTest, ManyCallsWriteTheTextOfOne) { CheckManyCalls(); }

TEST_F(ContinuedTextTest, NoSpaceBetweenCallsIsLost) {
  OpenSentencePiece();
  CheckManyCalls();

  // The answer to a prompt is a text of its own, without its first space. The
  // same tokens behind generated ones have theirs.
  const std::vector<int32_t> ids = Tokenize("one two three");
  for (seed_ = 0; seed_ < 100; ++seed_) {
    Read(ids);
    std::string text;
    Write(session_, 20, &text);
    size_t size = ids.size() + 20;
    std::vector<int32_t> held(size);
    ASSERT_EQ(tiercel_session_ids(session_, held.data(), &size, &error_),
              TIERCEL_OK);
    const size_t word = text.find(' ', 1);
    if (word == std::string::npos) continue;
    // Finds the token that brings the space.
    for (size_t at = ids.size() + 1; at < held.size(); ++at) {
      ASSERT_EQ(tiercel_session_truncate(session_, at, &error_), TIERCEL_OK);
      std::string rest;
      Write(session_, 1, &rest);
      if (rest.empty() || rest[0] != ' ') continue;
      Read({held.begin(), held.begin() + static_cast<std::ptrdiff_t>(at)});
      std::string same;  // no token was added: the text goes on
      Write(session_, 1, &same);
      EXPECT_EQ(same, rest);
      Read({held.begin(), held.begin() + static_cast<std::ptrdiff_t>(at) - 1});
      Read({held.begin(), held.begin() + static_cast<std::ptrdiff_t>(at)});
      std::string own;
      Write(session_, 1, &own);
      EXPECT_EQ(own, rest.substr(1));
      return;
    }
  }
  FAIL() << "no word was generated";
}

// However a prompt came, its answer begins without a space and goes on with
// one, even if the session was longer before.
TEST_F(ContinuedTextTest, EveryPromptBeginsATextOfItsOwn) {
  OpenSentencePiece();
  const std::vector<int32_t> ids = Tokenize("one two three four five");
  const size_t size = ids.size();
  const std::vector<std::function<tiercel_status()>> ways = {
      [&] {
        return tiercel_session_prefill(session_, ids.data(), size, nullptr,
                                       nullptr, &error_);
      },
      [&] {
        return tiercel_session_fill(session_, ids.data(), size, seed_, nullptr,
                                    nullptr, &error_);
      },
      [&] {
        return tiercel_session_score(session_, ids.data(), size, 0, nullptr,
                                     nullptr, &error_);
      },
      [&] {
        Read(ids);
        return tiercel_session_truncate(session_, 2, &error_);
      },
  };
  for (size_t way = 0; way < ways.size(); ++way) {
    int spaces = 0;
    for (seed_ = 0; seed_ < 60; ++seed_) {
      ASSERT_EQ(tiercel_session_truncate(session_, 0, &error_), TIERCEL_OK);
      ASSERT_EQ(ways[way](), TIERCEL_OK) << way << ": " << error_.message;
      std::string first;
      std::string second;
      Write(session_, 1, &first);
      Write(session_, 1, &second);
      EXPECT_FALSE(way < 3 && first.starts_with(' ')) << way;
      spaces += second.starts_with(' ');
    }
    EXPECT_GT(spaces, 0) << way;
  }
}

}  // namespace
}  // namespace tiercel::api_test
