#include "apps/serve/request.h"

#include <string>

#include "apps/cli/error.h"
#include "apps/serve/refusal.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tiercel::serve {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const char kTalk[] = R"("messages":[{"role":"user","content":"Who?"}])";

absl::StatusOr<Request> Read(Endpoint endpoint, const std::string& text,
                             const cli::Options& defaults = {}) {
  const absl::StatusOr<Body> body = ParseBody(text);
  if (!body.ok()) return body.status();
  return ReadRequest(endpoint, *body, defaults);
}

Request Chat(const std::string& members, const cli::Options& defaults = {}) {
  const auto request =
      Read(Endpoint::kChat, std::string("{") + kTalk + members + "}", defaults);
  EXPECT_TRUE(request.ok()) << members << ": " << request.status();
  return request.ok() ? *request : Request();
}

// Returns the error, which blames `field`.
Json Refused(Endpoint endpoint, const std::string& text,
             const std::string& field, const std::string& code) {
  const auto request = Read(endpoint, text);
  EXPECT_FALSE(request.ok()) << text;
  if (request.ok()) return Json::object();
  EXPECT_EQ(HttpStatusOf(request.status()), 400);
  Json error = ErrorDocument(request.status()).at("error");
  EXPECT_EQ(error.at("param"), field.empty() ? Json() : Json(field)) << text;
  EXPECT_EQ(error.at("code"), code) << text;
  EXPECT_EQ(error.at("type"), "invalid_request_error");
  EXPECT_THAT(error.at("message").get<std::string>(), HasSubstr(field));
  return error;
}

void ChatRefused(const std::string& members, const std::string& field,
                 const std::string& code) {
  Refused(Endpoint::kChat, std::string("{") + kTalk + "," + members + "}",
          field, code);
}

TEST(RequestTest, AnythingButAnObjectIsRefused) {
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[]"), std::string("7"),
        std::string("{\"a\":\"\xff\"}"), std::string("{\"a\":\"\\ud83d\"}"),
        std::string("{}\0x", 4), std::string("{\"a\":1e999}")}) {
    Refused(Endpoint::kChat, text, "", "invalid_json");
  }
  EXPECT_THAT(std::string(ParseBody("{\"a\": b}").status().message()),
              HasSubstr("at byte 7"));
  const std::string deep(101, '[');
  const auto parsed = ParseBody("{\"a\":" + deep + std::string(101, ']') + "}");
  EXPECT_THAT(std::string(parsed.status().message()),
              HasSubstr("nested deeper than 100"));
  EXPECT_TRUE(ParseBody("{\"a\":\"" + deep + "\\\"" + deep + "\"}").ok());
}

TEST(RequestTest, ContentIsAStringOrParts) {
  const auto request = Read(Endpoint::kChat, R"({"messages":[
      {"role":"developer","content":"Be brief."},
      {"role":"user","content":[{"type":"text","text":"a"},
                                {"type":"text","text":"b"}]},
      {"role":"assistant","content":null,"reasoning_content":"hm"},
      {"role":"user","content":"c"}]})");
  ASSERT_TRUE(request.ok()) << request.status();
  ASSERT_EQ(request->messages.size(), 4u);
  EXPECT_EQ(request->messages[0].role, "system");
  EXPECT_EQ(request->messages[1].content, "ab");
  EXPECT_EQ(request->messages[2].content, "");
  EXPECT_EQ(request->messages[2].reasoning, "hm");
  EXPECT_TRUE(request->sampling.split_thought);
}

TEST(RequestTest, AnEmptyAnswerAtTheEndIsLeftOut) {
  const std::string talk = R"({"messages":[{"role":"user","content":"a"},
                               {"role":"assistant","content":)";
  EXPECT_EQ(Read(Endpoint::kChat, talk + "\"\"}]}")->messages.size(), 1u);
  EXPECT_EQ(Read(Endpoint::kChat, talk + "\"b\"}]}")->messages.size(), 2u);
}

TEST(RequestTest, MessagesThatCannotBeReadAreNamed) {
  const auto refused = [](const std::string& messages, const std::string& field,
                          const std::string& code) {
    Refused(Endpoint::kChat, "{\"messages\":" + messages + "}", field, code);
  };
  refused("[]", "messages", "invalid_request");
  refused("\"a\"", "messages", "invalid_request");
  refused("[7]", "messages[0]", "invalid_request");
  refused(R"([{"role":"king","content":"a"}])", "messages[0].role",
          "invalid_request");
  refused(R"([{"role":"tool","content":"a"}])", "messages[0].role",
          "unsupported_parameter");
  refused(R"([{"role":"user","content":7}])", "messages[0].content",
          "invalid_request");
  refused(R"([{"role":"user","content":[{"type":"image_url"}]}])",
          "messages[0].content", "unsupported_parameter");
  refused(R"([{"role":"assistant","content":"","tool_calls":[{}]}])",
          "messages[0].tool_calls", "unsupported_parameter");
}

TEST(RequestTest, MembersReplaceTheDefaults) {
  cli::Options defaults;
  defaults.sampling.temperature = 0.5;
  defaults.sampling.max_tokens = 7;
  defaults.sampling.stops = {"x"};
  const Request silent = Chat("", defaults);
  EXPECT_EQ(silent.sampling.temperature, 0.5);
  EXPECT_EQ(silent.sampling.max_tokens, 7);
  EXPECT_THAT(silent.sampling.stops, ElementsAre("x"));
  const Request request = Chat(
      R"(,"temperature":1,"top_p":0.9,"top_k":-1,"min_p":0.1,"seed":-1,
          "max_tokens":5,"max_completion_tokens":6.0,"stop":"a",
          "repetition_penalty":1.1,"dry_multiplier":0.8,"dry_base":2,
          "dry_allowed_length":3,"dry_sequence_breakers":["b","c"],
          "ignore_eos":true,"user":"u","store":{"x":1},"unknown":[1])",
      defaults);
  EXPECT_EQ(request.sampling.temperature, 1);
  EXPECT_EQ(request.sampling.top_p, 0.9);
  EXPECT_EQ(request.sampling.top_k, 0);
  EXPECT_EQ(request.sampling.min_p, 0.1);
  EXPECT_EQ(request.sampling.seed, UINT64_MAX);
  EXPECT_EQ(request.sampling.max_tokens, 6);
  EXPECT_THAT(request.sampling.stops, ElementsAre("a"));
  EXPECT_EQ(request.sampling.repeat_penalty, 1.1);
  EXPECT_EQ(request.sampling.dry_multiplier, 0.8);
  EXPECT_EQ(request.sampling.dry_base, 2);
  EXPECT_EQ(request.sampling.dry_allowed_length, 3);
  EXPECT_THAT(*request.sampling.dry_breakers, ElementsAre("b", "c"));
  EXPECT_TRUE(request.sampling.ignore_eos);
  EXPECT_THAT(Chat(R"(,"stop":["a","b"])").sampling.stops,
              ElementsAre("a", "b"));
  EXPECT_EQ(Chat(R"(,"seed":null,"max_tokens":null)").sampling.seed,
            std::nullopt);
}

TEST(RequestTest, AWrongMemberIsNamed) {
  for (const auto& [member, value] :
       {std::pair("temperature", "-1"), std::pair("temperature", "\"hot\""),
        std::pair("top_p", "1.5"), std::pair("min_p", "2"),
        std::pair("top_k", "0.5"), std::pair("seed", "1e30"),
        std::pair("seed", "18446744073709551615"), std::pair("max_tokens", "0"),
        std::pair("max_tokens", "true"), std::pair("stop", "7"),
        std::pair("stop", "[\"\"]"), std::pair("stop", "\"a\\u0000b\""),
        std::pair("stream", "1"), std::pair("stream_options", "[]"),
        std::pair("model", "{}"), std::pair("chat_template_kwargs", "\"a\""),
        std::pair("dry_multiplier", "-1")}) {
    ChatRefused(std::string("\"") + member + "\":" + value, member,
                "invalid_request");
  }
}

TEST(RequestTest, WhatWouldChangeTheAnswerIsRefusedByName) {
  for (const auto& [member, value] :
       {std::pair("n", "2"), std::pair("n", "0"),
        std::pair("tools", "[{\"type\":\"function\"}]"),
        std::pair("tool_choice", "\"required\""),
        std::pair("logit_bias", "{\"5\":1}"),
        std::pair("presence_penalty", "0.5"),
        std::pair("response_format", "{\"type\":\"json_object\"}"),
        std::pair("add_generation_prompt", "false"),
        std::pair("chat_template", "\"{{ 1 }}\""),
        std::pair("stop_token_ids", "[3]"), std::pair("bad_words", "[\"a\"]"),
        std::pair("allowed_token_ids", "[3]"),
        std::pair("documents", "[{\"text\":\"a\"}]"),
        std::pair("grammar", "\"root\""),
        std::pair("continue_final_message", "true")}) {
    ChatRefused(std::string("\"") + member + "\":" + value, member,
                "unsupported_parameter");
  }
  Refused(Endpoint::kCompletion, R"({"prompt":"a","top_logprobs":3})",
          "top_logprobs", "unsupported_parameter");
  Refused(Endpoint::kCompletion, R"({"prompt":"a","echo":true})", "echo",
          "unsupported_parameter");
}

TEST(RequestTest, LogProbsAreOfAChatOrACompletion) {
  const auto of_chat = [](const std::string& members) {
    return Chat(members).sampling.top_log_probs;
  };
  EXPECT_EQ(of_chat(""), std::nullopt);
  EXPECT_EQ(of_chat(R"(,"logprobs":false,"top_logprobs":0)"), std::nullopt);
  EXPECT_EQ(of_chat(R"(,"logprobs":true)"), 0);
  EXPECT_EQ(of_chat(R"(,"logprobs":true,"top_logprobs":20)"), 20);
  const auto of_text = [](const std::string& members) {
    const auto read =
        Read(Endpoint::kCompletion, "{\"prompt\":\"a\"" + members + "}");
    EXPECT_TRUE(read.ok()) << members << ": " << read.status();
    return read.ok() ? read->sampling.top_log_probs : -1;
  };
  EXPECT_EQ(of_text(""), std::nullopt);
  EXPECT_EQ(of_text(R"(,"logprobs":null,"top_logprobs":null)"), std::nullopt);
  EXPECT_EQ(of_text(R"(,"logprobs":0)"), 0);
  EXPECT_EQ(of_text(R"(,"logprobs":20)"), 20);
  for (const std::string wrong : {"21", "-1", "0.5", "true", "\"3\""}) {
    Refused(Endpoint::kCompletion,
            "{\"prompt\":\"a\",\"logprobs\":" + wrong + "}", "logprobs",
            "invalid_request");
    ChatRefused("\"logprobs\":true,\"top_logprobs\":" + wrong, "top_logprobs",
                "invalid_request");
  }
  ChatRefused(R"("logprobs":1)", "logprobs", "invalid_request");
  ChatRefused(R"("top_logprobs":3)", "top_logprobs", "invalid_request");
  ChatRefused(R"("logprobs":false,"top_logprobs":3)", "top_logprobs",
              "invalid_request");
}

TEST(RequestTest, WhatChangesNothingIsTaken) {
  Chat(R"(,"n":1,"tools":[],"tool_choice":"auto","logprobs":false,
       "top_logprobs":0,"logit_bias":{},"presence_penalty":0.0,
       "frequency_penalty":0,"response_format":{"type":"text"},
       "modalities":["text"],"add_generation_prompt":true,"typical_p":1.0)");
  // Clients with types write all of their fields.
  Chat(R"(,"response_format":{"type":"text","json_schema":null,"strict":true},
       "add_generation_prompt":null,"chat_template":null)");
}

TEST(RequestTest, TheMostTokensHaveThreeNames) {
  for (const std::string name :
       {"n_predict", "max_tokens", "max_completion_tokens"}) {
    EXPECT_EQ(Chat(",\"" + name + "\":7").sampling.max_tokens, 7) << name;
    ChatRefused("\"" + name + "\":0", name, "invalid_request");
  }
}

TEST(RequestTest, VariablesOfTheTemplateAddToTheDefaults) {
  cli::Options defaults;
  defaults.model.template_kwargs = R"({"a":1,"b":2})";
  EXPECT_EQ(Chat("", defaults).template_kwargs, R"({"a":1,"b":2})");
  EXPECT_EQ(Chat(R"(,"chat_template_kwargs":{"b":3,"enable_thinking":false})",
                 defaults)
                .template_kwargs,
            R"({"a":1,"b":3,"enable_thinking":false})");
}

TEST(RequestTest, StreamsSayWhatTheyWant) {
  const Request request = Chat(
      R"(,"stream":true,"stream_options":{"include_usage":true},
          "return_progress":true)");
  EXPECT_TRUE(request.stream && request.include_usage &&
              request.return_progress);
  EXPECT_FALSE(Chat("").stream);
}

TEST(RequestTest, APromptIsATextOrIds) {
  const auto read = [](const std::string& prompt) {
    return Read(Endpoint::kCompletion, "{\"prompt\":" + prompt + "}");
  };
  EXPECT_EQ(read("\"a\"")->prompt, "a");
  EXPECT_EQ(read("[\"a\"]")->prompt, "a");
  EXPECT_THAT(read("[1,2]")->prompt_ids, ElementsAre(1, 2));
  EXPECT_THAT(read("[7]")->prompt_ids, ElementsAre(7));
  EXPECT_THAT(read("[[1,2]]")->prompt_ids, ElementsAre(1, 2));
  EXPECT_FALSE(read("\"a\"")->sampling.split_thought);
  const auto refused = [](const std::string& prompt, const std::string& code) {
    Refused(Endpoint::kCompletion, "{\"prompt\":" + prompt + "}", "prompt",
            code);
  };
  refused("[\"a\",\"b\"]", "unsupported_parameter");
  refused("[]", "invalid_request");
  refused("[-1]", "invalid_request");
  refused("[1.5]", "invalid_request");
  refused("null", "invalid_request");
}

TEST(RequestTest, ADocumentIsTheOnlyExtension) {
  EXPECT_EQ(Chat(R"(,"tiercel":{"document":"a.epub"})").document, "a.epub");
  ChatRefused(R"("tiercel":{"chapters":"1"})", "tiercel.chapters",
              "invalid_request");
  ChatRefused(R"("tiercel":{"document":7})", "tiercel.document",
              "invalid_request");
}

TEST(RefusalTest, ErrorsSayWhatHttpSays) {
  EXPECT_EQ(HttpStatusOf(HttpError(429, "queue_full", "full")), 429);
  EXPECT_EQ(HttpStatusOf(cli::Interrupted()), 503);
  EXPECT_EQ(HttpStatusOf(cli::Error(cli::Exit::kMemory, "x", "y")), 503);
  EXPECT_EQ(HttpStatusOf(cli::Error(cli::Exit::kInput, "x", "y")), 400);
  EXPECT_EQ(HttpStatusOf(cli::Error(cli::Exit::kFailed, "x", "y")), 500);
  const Json error =
      ErrorDocument(TooLong(900, /*counted=*/true, 512)).at("error");
  EXPECT_EQ(error.at("code"), "context_length_exceeded");
  EXPECT_EQ(error.at("n_prompt_tokens"), 900);
  EXPECT_EQ(error.at("n_ctx"), 512);
  EXPECT_EQ(error.at("message"),
            "the prompt has 900 tokens, the context holds 512");
  EXPECT_EQ(ErrorDocument(HttpError(500, "internal", "x"))["error"]["type"],
            "server_error");
}

}  // namespace
}  // namespace tiercel::serve
