#include "apps/serve/reply.h"

#include "gtest/gtest.h"

namespace tiercel::serve {
namespace {

Answer SomeAnswer() {
  Answer answer;
  answer.text = "He.";
  answer.thought = "hm";
  answer.log_probs = {{"content", {"some"}}};
  answer.finish_reason = "length";
  answer.prompt_tokens = 30;
  answer.cached_tokens = 10;
  answer.output_tokens = 4;
  answer.prompt_ms = 100;
  answer.output_ms = 20;
  answer.drafted = 3;
  answer.accepted = 2;
  return answer;
}

Reply ReplyOf(Endpoint endpoint, bool usage = false) {
  Request request;
  request.endpoint = endpoint;
  request.include_usage = usage;
  return Reply(request, "id-1", 17, "falcon");
}

TEST(ReplyTest, AChatHasAMessage) {
  const Json document = ReplyOf(Endpoint::kChat).Whole(SomeAnswer());
  EXPECT_EQ(document.at("id"), "id-1");
  EXPECT_EQ(document.at("object"), "chat.completion");
  EXPECT_EQ(document.at("created"), 17);
  EXPECT_EQ(document.at("model"), "falcon");
  const Json& choice = document.at("choices").at(0);
  EXPECT_EQ(choice.at("index"), 0);
  EXPECT_EQ(choice.at("finish_reason"), "length");
  EXPECT_EQ(choice.at("logprobs"), Json({{"content", {"some"}}}));
  EXPECT_EQ(choice.at("message"), Json({{"role", "assistant"},
                                        {"content", "He."},
                                        {"reasoning_content", "hm"}}));
  EXPECT_EQ(document.at("usage"),
            Json({{"prompt_tokens", 30},
                  {"completion_tokens", 4},
                  {"total_tokens", 34},
                  {"prompt_tokens_details", {{"cached_tokens", 10}}}}));
  const Json& timings = document.at("timings");
  EXPECT_EQ(timings.at("prompt_n"), 20);
  EXPECT_EQ(timings.at("prompt_ms"), 100);
  EXPECT_EQ(timings.at("prompt_per_second"), 200);
  EXPECT_EQ(timings.at("predicted_n"), 4);
  EXPECT_EQ(timings.at("predicted_ms"), 20);
  EXPECT_EQ(timings.at("draft_n"), 3);
  EXPECT_EQ(timings.at("draft_n_accepted"), 2);
}

TEST(ReplyTest, AnAnswerWithoutAThoughtHasNone) {
  Answer answer = SomeAnswer();
  answer.thought.clear();
  const Json document = ReplyOf(Endpoint::kChat).Whole(answer);
  EXPECT_FALSE(document["choices"][0]["message"].contains("reasoning_content"));
}

TEST(ReplyTest, ACompletionHasAText) {
  const Json document = ReplyOf(Endpoint::kCompletion).Whole(SomeAnswer());
  EXPECT_EQ(document.at("object"), "text_completion");
  EXPECT_EQ(document.at("choices").at(0).at("text"), "He.");
  EXPECT_FALSE(document["choices"][0].contains("message"));
}

TEST(ReplyTest, ChunksOfAChatHaveDeltas) {
  const Reply reply = ReplyOf(Endpoint::kChat);
  const auto delta = [](const Json& chunk) {
    EXPECT_EQ(chunk.at("object"), "chat.completion.chunk");
    EXPECT_FALSE(chunk.contains("usage"));
    return chunk.at("choices").at(0).at("delta");
  };
  EXPECT_EQ(delta(reply.FirstChunk()),
            Json({{"role", "assistant"}, {"content", ""}}));
  EXPECT_EQ(delta(reply.TextChunk("", "hm", nullptr)),
            Json({{"reasoning_content", "hm"}}));
  const Json said = reply.TextChunk("He", "", "some");
  EXPECT_EQ(delta(said), Json({{"content", "He"}}));
  EXPECT_EQ(said["choices"][0]["logprobs"], "some");
  const Json last = reply.LastChunk(SomeAnswer());
  EXPECT_EQ(delta(last), Json::object());
  EXPECT_EQ(last["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(last["choices"][0]["logprobs"], SomeAnswer().log_probs);
  EXPECT_TRUE(reply.FirstChunk()["choices"][0]["finish_reason"].is_null());
  EXPECT_TRUE(reply.FirstChunk()["choices"][0]["logprobs"].is_null());
  EXPECT_EQ(last.at("timings").at("predicted_n"), 4);
  EXPECT_EQ(
      reply.ProgressChunk({30, 10, 15, 2.5}).at("prompt_progress"),
      Json(
          {{"total", 30}, {"cache", 10}, {"processed", 15}, {"time_ms", 2.5}}));
}

TEST(ReplyTest, ChunksOfACompletionHaveTexts) {
  const Json chunk =
      ReplyOf(Endpoint::kCompletion).TextChunk("He", "", nullptr);
  EXPECT_EQ(chunk.at("object"), "text_completion");
  EXPECT_EQ(chunk["choices"][0]["text"], "He");
  EXPECT_FALSE(chunk["choices"][0].contains("delta"));
}

TEST(ReplyTest, UsageComesLastWhereItIsAskedFor) {
  const Reply reply = ReplyOf(Endpoint::kChat, /*usage=*/true);
  EXPECT_TRUE(reply.FirstChunk().at("usage").is_null());
  EXPECT_TRUE(reply.LastChunk(SomeAnswer()).at("usage").is_null());
  const Json chunk = reply.UsageChunk(SomeAnswer());
  EXPECT_EQ(chunk.at("choices"), Json::array());
  EXPECT_EQ(chunk.at("usage").at("total_tokens"), 34);
}

TEST(ReplyTest, AReportGivesTheCounts) {
  const Json report = {
      {"prompt_tokens", 9},
      {"cached_tokens", 4},
      {"output", {{{"finish_reason", "stop"}, {"tokens", {1, 2, 3}}}}},
      {"speculation",
       {{"levels",
         {{{"drafted", 5}, {"accepted", 2}},
          {{"drafted", 3}, {"accepted", 3}}}}}}};
  Answer answer;
  AddReport(report, &answer);
  EXPECT_EQ(answer.finish_reason, "stop");
  EXPECT_EQ(answer.prompt_tokens, 9);
  EXPECT_EQ(answer.cached_tokens, 4);
  EXPECT_EQ(answer.output_tokens, 3);
  EXPECT_EQ(answer.drafted, 8);
  EXPECT_EQ(answer.accepted, 5);
}

TEST(ReplyTest, AModelIsNamedAsItsFile) {
  EXPECT_EQ(ModelName("/a/falcon.Q4.gguf"), "falcon.Q4");
  EXPECT_EQ(ModelName("a/falcon-1.5/"), "falcon-1.5");
  EXPECT_EQ(ModelName("falcon"), "falcon");
}

}  // namespace
}  // namespace tiercel::serve
