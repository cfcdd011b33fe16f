#include "runtime/session/session.h"

#include <atomic>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/status/error.h"
#include "runtime/generate/generate.h"
#include "tests/golden.h"

namespace tiercel::session_test {
namespace {

using ::testing::ElementsAreArray;

class SessionTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const Model::Options options = {.path = CheckpointPath("llama_chat.gguf"),
                                    .machine = {.threads = 2}};
    model_ = OpenModel(options).release();
    reference_ = OpenReference(options).release();
    ids_ = new std::vector<int32_t>(
        ReadTokens(CheckpointPath("llama_chat/tokens.txt")));
  }
  static void TearDownTestSuite() {
    delete ids_;
    delete reference_;
    delete model_;
  }

  static std::unique_ptr<Session> Prefilled(const Model& model = *model_) {
    std::unique_ptr<Session> session = MakeSession(model);
    const absl::Status status =
        Prefill(*session, ids_->data(), ids_->size(), kNoProgress).status();
    EXPECT_TRUE(status.ok()) << status;
    return session;
  }

  static Report Generated(Session& session, const GenerateParams& params) {
    Report report = Generate(session, params, nullptr);
    EXPECT_TRUE(report.status.ok()) << report.status;
    return report;
  }
  static std::vector<int32_t> Continue(Session& session,
                                       const GenerateParams& params) {
    return Generated(session, params).tokens;
  }

  static Model* model_;
  static Model* reference_;  // the same, on the CPU
  static std::vector<int32_t>* ids_;
};

Model* SessionTest::model_ = nullptr;
Model* SessionTest::reference_ = nullptr;
std::vector<int32_t>* SessionTest::ids_ = nullptr;

const GenerateParams kSampled = {.max_tokens = 40,
                                 .seed = 11,
                                 .distribution = {.temperature = 1.0f},
                                 .ignore_eos = true,
                                 .stops = {}};

TEST_F(SessionTest, PrefillInPiecesIsPrefill) {
  const auto whole = Prefilled(*reference_);
  for (size_t piece : {1, 50, 128, 159}) {
    const auto session = MakeSession(*model_);
    for (size_t i = 0; i < ids_->size(); i += piece) {
      const size_t count = std::min(piece, ids_->size() - i);
      ASSERT_TRUE(Prefill(*session, ids_->data() + i, count, kNoProgress).ok());
    }
    EXPECT_EQ(NextLogits(*session), NextLogits(*whole)) << piece;
  }
}

TEST_F(SessionTest, SameSeedSameText) {
  const auto a = Prefilled(*reference_);
  const auto b = Prefilled();
  const std::vector<int32_t> tokens = Continue(*a, kSampled);
  EXPECT_EQ(tokens.size(), 40u);
  EXPECT_EQ(Continue(*b, kSampled), tokens);
  GenerateParams other = kSampled;
  other.seed = 12;
  const auto c = Prefilled();
  EXPECT_NE(Continue(*c, other), tokens);
}

// A draw is keyed by (seed, position, token): another position, other noise.
TEST_F(SessionTest, EveryTokenIsDrawnAtItsPosition) {
  const auto session = Prefilled(*reference_);
  const std::vector<int32_t> tokens = Continue(*session, kSampled);
  const auto again = Prefilled();
  for (const int32_t token : tokens) {
    ASSERT_TRUE(again->CatchUp(Phase::kVerify).ok());
    const auto distributions = MakeDistributions(
        again->runner().stream(), {.logits = again->NextLogits().data(),
                                   .rows = 1,
                                   .vocab = model_->config.vocab,
                                   .tokens = nullptr,
                                   .before = 0,
                                   .distribution = kSampled.distribution});
    ASSERT_TRUE(distributions.ok());
    const auto position =
        static_cast<int64_t>(again->sequence().tokens().size());
    ASSERT_EQ(Draw(distributions->front(), kSampled.seed, position), token)
        << position;
    ASSERT_TRUE(again->Append(&token, 1).ok());
  }
}

TEST_F(SessionTest, FewerTokensAreAPrefix) {
  const auto all = Prefilled(*reference_);
  const std::vector<int32_t> tokens = Continue(*all, kSampled);
  for (int64_t n : {1, 2, 17, 39}) {
    const auto session = Prefilled();
    GenerateParams params = kSampled;
    params.max_tokens = n;
    EXPECT_THAT(Continue(*session, params),
                ElementsAreArray(tokens.data(), static_cast<size_t>(n)));
    // The text goes on as if it had never stopped.
    params.max_tokens = 40 - n;
    EXPECT_THAT(
        Continue(*session, params),
        ElementsAreArray(tokens.data() + n, static_cast<size_t>(40 - n)));
  }
}

TEST_F(SessionTest, TruncateForgets) {
  const auto session = Prefilled();
  const std::vector<int32_t> first = Continue(*session, kSampled);
  session->Truncate(ids_->size());
  EXPECT_EQ(Continue(*session, kSampled), first);
  session->Truncate(3);
  ASSERT_TRUE(
      Prefill(*session, ids_->data() + 3, ids_->size() - 3, kNoProgress).ok());
  EXPECT_EQ(Continue(*session, kSampled), first);
}

TEST_F(SessionTest, ForksGoTheirOwnWay) {
  const auto session = Prefilled();
  auto fork = session->Fork();
  ASSERT_TRUE(fork.ok()) << fork.status();
  GenerateParams other = kSampled;
  other.seed = 5;
  const std::vector<int32_t> forked = Continue(**fork, other);
  const std::vector<int32_t> own = Continue(*session, kSampled);
  const auto fresh = Prefilled();
  EXPECT_EQ(Continue(*fresh, kSampled), own);
  fresh->Truncate(ids_->size());
  EXPECT_EQ(Continue(*fresh, other), forked);
}

TEST_F(SessionTest, CancelledPrefillLeavesTheSessionAsItWas) {
  const auto whole = Prefilled();
  const auto session = MakeSession(*model_);
  ASSERT_TRUE(Prefill(*session, ids_->data(), 60, kNoProgress).ok());
  const std::vector<float> logits = NextLogits(*session);
  // It is cancelled at every call of the progress callback.
  for (int stop_at = 0;; ++stop_at) {
    int calls = 0;
    const absl::Status status =
        Prefill(*session, ids_->data() + 60, ids_->size() - 60,
                [&](uint64_t, uint64_t) { return calls++ != stop_at; })
            .status();
    if (status.ok()) {
      EXPECT_GT(stop_at, 1);
      break;
    }
    ASSERT_EQ(ClassOf(status), ErrorClass::kCancelled);
    ASSERT_EQ(session->sequence().tokens().size(), 60u);
    ASSERT_TRUE(session->CatchUp(Phase::kVerify).ok());
    ASSERT_EQ(NextLogits(*session), logits);
  }
  EXPECT_EQ(NextLogits(*session), NextLogits(*whole));
}

TEST_F(SessionTest, CancelFromTheTokenCallbackKeepsTheToken) {
  const auto session = Prefilled();
  int count = 0;
  const Report report = Generate(
      *session, kSampled, [&](const OutputToken&) { return ++count < 5; });
  EXPECT_EQ(ClassOf(report.status), ErrorClass::kCancelled);
  EXPECT_EQ(report.tokens.size(), 5u);
  EXPECT_EQ(session->sequence().tokens().size(), ids_->size() + 5);
  // A second call generates the rest.
  const auto whole = Prefilled();
  std::vector<int32_t> tokens = Continue(*whole, kSampled);
  GenerateParams rest = kSampled;
  rest.max_tokens = 35;
  EXPECT_THAT(Continue(*session, rest),
              ElementsAreArray(tokens.data() + 5, 35));
}

TEST_F(SessionTest, TextEndsBeforeTheStop) {
  const auto free = Prefilled();
  const std::string text = Generated(*free, kSampled).text;
  ASSERT_GT(text.size(), 20u);
  const std::string stop = text.substr(10, 3);
  const size_t cut = text.find(stop);
  GenerateParams params = kSampled;
  params.stops = {stop};
  const auto session = Prefilled();
  std::string streamed;
  const Report report =
      Generate(*session, params, [&](const OutputToken& token) {
        streamed += token.text;
        return true;
      });
  ASSERT_TRUE(report.status.ok()) << report.status;
  EXPECT_EQ(report.text, text.substr(0, cut));
  EXPECT_EQ(streamed, text.substr(0, cut));
  EXPECT_EQ(report.finish_reason, "stop");
  EXPECT_EQ(session->sequence().tokens().size(),
            ids_->size() + report.tokens.size());
}

TEST_F(SessionTest, AStopTextMayEndWithTheLastTokenThereMayBe) {
  const auto session = Prefilled();
  GenerateParams params = kSampled;
  std::string text;
  // Bytes of an unfinished character are not returned.
  for (params.max_tokens = 12; text.empty() || (text.back() & 0x80) != 0;
       ++params.max_tokens) {
    session->Truncate(ids_->size());
    text = Generated(*session, params).text;
  }
  --params.max_tokens;
  const size_t cut = text.size() - 8;
  params.stops = {text.substr(cut)};
  ASSERT_EQ(text.find(params.stops[0]), cut);
  session->Truncate(ids_->size());
  const Report report = Generated(*session, params);
  EXPECT_EQ(report.text, text.substr(0, cut));
  EXPECT_EQ(report.finish_reason, "stop");
}

TEST_F(SessionTest, EndOfTextStopsUnlessIgnored) {
  // Made certain: the greedy token is declared the end of the text.
  const auto session = Prefilled();
  GenerateParams greedy;
  greedy.max_tokens = 4;
  greedy.ignore_eos = true;
  const int32_t first = Continue(*session, greedy).front();
  const std::vector<int32_t> ends = model_->config.eos_ids;
  model_->config.eos_ids = {first};
  greedy.ignore_eos = false;
  session->Truncate(ids_->size());
  const Report report = Generated(*session, greedy);
  EXPECT_TRUE(report.tokens.empty());
  EXPECT_EQ(report.finish_reason, "stop");
  EXPECT_EQ(session->sequence().tokens().size(), ids_->size());
  model_->config.eos_ids = ends;
}

TEST_F(SessionTest, ContextBoundsPromptAndOutput) {
  const auto session = MakeSession(*model_, {.context = 100});
  const absl::Status status =
      Prefill(*session, ids_->data(), 101, kNoProgress).status();
  EXPECT_EQ(CodeOf(status), "context_length_exceeded");
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("101"));
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("100"));
  EXPECT_TRUE(session->sequence().tokens().empty());
  ASSERT_TRUE(Prefill(*session, ids_->data(), 95, kNoProgress).ok());
  const Report report = Generated(*session, kSampled);
  EXPECT_EQ(report.tokens.size(), 5u);
  EXPECT_EQ(report.finish_reason, "length");
}

TEST_F(SessionTest, WrongTokensAndOptionsAreErrors) {
  const auto session = MakeSession(*model_);
  for (int32_t bad : {-1, static_cast<int32_t>(model_->config.vocab),
                      std::numeric_limits<int32_t>::max()}) {
    EXPECT_EQ(CodeOf(session->Append(&bad, 1)), "invalid_token");
  }
  EXPECT_TRUE(session->sequence().tokens().empty());
  EXPECT_EQ(CodeOf(Generate(*session, kSampled, nullptr).status),
            "empty_prompt");
  for (const Session::Options& options : std::vector<Session::Options>{
           {.context = -1},
           {.context = model_->config.context + 1},
           {.first_position = -1},
           {.first_position = std::numeric_limits<int64_t>::min()},
           {.first_position = std::numeric_limits<int64_t>::max()},
       }) {
    EXPECT_FALSE(Session::Create(*model_, options).ok());
  }
  EXPECT_EQ(CodeOf(Session::Create(*model_, {.type_k = DType::kQ4_0}).status()),
            "invalid_kv_type");
  GenerateParams params = kSampled;
  params.stops = {""};
  EXPECT_EQ(CodeOf(Generate(*Prefilled(), params, nullptr).status),
            "invalid_stop");
  params.stops = {std::string(1 << 20, 'x')};
  EXPECT_EQ(CodeOf(Generate(*Prefilled(), params, nullptr).status),
            "invalid_stop");
}

TEST_F(SessionTest, TwoSessionsInTwoThreads) {
  const auto one = Prefilled();
  const std::vector<int32_t> expected = Continue(*one, kSampled);
  std::vector<std::vector<int32_t>> results(2);
  std::vector<std::thread> threads;
  for (auto& result : results) {
    threads.emplace_back([&result] {
      const auto session = Prefilled();
      result = Continue(*session, kSampled);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& result : results) EXPECT_EQ(result, expected);
}

TEST_F(SessionTest, CancelFromAnotherThreadEndsTheCall) {
  const auto session = Prefilled();
  GenerateParams forever = kSampled;
  forever.max_tokens = 0;  // 16K tokens: far longer than the test
  std::atomic<bool> begun = false;
  std::thread canceller([&] {
    while (!begun) std::this_thread::yield();
    session->cancellation().Cancel();
  });
  session->cancellation().Clear();
  const Report report = Generate(*session, forever, [&](const OutputToken&) {
    begun = true;
    return true;
  });
  canceller.join();
  EXPECT_EQ(ClassOf(report.status), ErrorClass::kCancelled);
  EXPECT_EQ(session->sequence().tokens().size(),
            ids_->size() + report.tokens.size());
}

}  // namespace
}  // namespace tiercel::session_test
