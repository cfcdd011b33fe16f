#include "apps/cli/args.h"

#include <cstdlib>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "apps/cli/args_testing.h"
#include "apps/cli/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tiercel::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(ArgsTest, Defaults) {
  const Options options = Parse({"generate", "-p", "hello"});
  EXPECT_EQ(options.command, "generate");
  EXPECT_EQ(options.input.text, "hello");
  EXPECT_EQ(options.model.path, "env.gguf");
  EXPECT_TRUE(options.model.from_environment);
  EXPECT_EQ(options.model.device, "auto");
  EXPECT_EQ(options.model.compute, "q8");
  EXPECT_EQ(options.model.threads, 0);
  EXPECT_EQ(options.session.context, 0);
  EXPECT_EQ(options.session.kv_type_k, "f16");
  EXPECT_EQ(options.session.kv_type_v, "f16");
  EXPECT_EQ(options.sampling.max_tokens, -1);
  EXPECT_FALSE(options.sampling.seed.has_value());
  EXPECT_EQ(options.sampling.temperature, 0);
  EXPECT_EQ(options.sampling.top_k, 0);
  EXPECT_EQ(options.sampling.top_p, 1);
  EXPECT_EQ(options.sampling.min_p, 0);
  EXPECT_EQ(options.sampling.repeat_penalty, 1);
  EXPECT_EQ(options.sampling.dry_multiplier, 0);
  EXPECT_FALSE(options.sampling.dry_base.has_value());
  EXPECT_FALSE(options.sampling.dry_allowed_length.has_value());
  EXPECT_FALSE(options.sampling.dry_breakers.has_value());
  EXPECT_FALSE(options.sampling.ignore_eos);
  EXPECT_FALSE(options.json);
  EXPECT_TRUE(options.progress);
}

TEST_F(ArgsTest, AskTakesAFileAndQuestions) {
  const Options options =
      Parse({"ask", "book.txt", "why?", "-n", "9", "who is it?"});
  EXPECT_EQ(options.document, "book.txt");
  EXPECT_THAT(options.questions, testing::ElementsAre("why?", "who is it?"));
  EXPECT_EQ(options.sampling.max_tokens, 9);
}

TEST_F(ArgsTest, BracketsAndCommasAreText) {
  const Args odd = {"[a,b]", "[a]", "[]", "a,b", "'q'", "=", "%%"};
  Args args = {"ask", "[book]"};
  args.insert(args.end(), odd.begin(), odd.end());
  EXPECT_EQ(Parse(args).document, "[book]");
  EXPECT_EQ(Parse(args).questions, odd);
  EXPECT_EQ(Parse({"detokenize", "[5,6]"}).tokens.ids, Args({"[5,6]"}));
  for (const std::string& text : odd) {
    EXPECT_EQ(Parse({"generate", "-p", text}).input.text, text);
    EXPECT_EQ(Parse({"generate", "-p", "x", "--stop", text}).sampling.stops,
              Args({text}));
  }
}

TEST_F(ArgsTest, SimulateIsADeviceAndALink) {
  const Options options =
      Parse({"generate", "-p", "x", "--simulate", "device=1GiB,link=2GB/s"});
  ASSERT_TRUE(options.model.simulation.has_value());
  EXPECT_EQ(options.model.simulation->device_bytes, uint64_t{1} << 30);
  EXPECT_EQ(options.model.simulation->link_bytes_per_s, 2e9);
}

TEST_F(ArgsTest, EveryFlagOfGenerate) {
  setenv("TIERCEL_CUBLASLT", "1", /*overwrite=*/1);
  const Options options = Parse({"generate",
                                 "-f",
                                 "text",
                                 "-m",
                                 "a.gguf",
                                 "-t",
                                 "3",
                                 "-c",
                                 "4096",
                                 "-ctk",
                                 "q8_0",
                                 "-ctv",
                                 "bf16",
                                 "--device",
                                 "ref",
                                 "--compute",
                                 "f32",
                                 "-n",
                                 "7",
                                 "--seeds",
                                 "2:4",
                                 "--temp",
                                 "0.8",
                                 "--top-k",
                                 "40",
                                 "--top-p",
                                 "0.9",
                                 "--min-p",
                                 "0.05",
                                 "--repeat-penalty",
                                 "1.1",
                                 "--dry-multiplier",
                                 "0.7",
                                 "--dry-base",
                                 "2.5",
                                 "--dry-allowed-length",
                                 "3",
                                 "--dry-sequence-breaker",
                                 "\n",
                                 "--dry-sequence-breaker",
                                 "- ",
                                 "--stop",
                                 "[end]",
                                 "--stop",
                                 "\n",
                                 "--stop-id",
                                 "0",
                                 "--stop-id",
                                 "151645",
                                 "--ignore-eos",
                                 "--json",
                                 "--stream",
                                 "--no-progress",
                                 "--rope-scaling",
                                 "yarn",
                                 "--rope-scale",
                                 "4",
                                 "--rope-freq-base",
                                 "5e5",
                                 "--yarn-orig-ctx",
                                 "2048",
                                 "--check-tensors",
                                 "--deterministic",
                                 "--host-layers",
                                 "9",
                                 "--policy",
                                 "full",
                                 "--draft",
                                 "none"});
  // --deterministic excludes libraries whose products have other bits.
  EXPECT_EQ(getenv("TIERCEL_CUBLASLT"), nullptr);
  EXPECT_TRUE(options.model.deterministic);
  EXPECT_EQ(options.model.host_layers, 9);
  EXPECT_EQ(options.input.file, "text");
  EXPECT_EQ(options.model.path, "a.gguf");
  EXPECT_FALSE(options.model.from_environment);
  EXPECT_EQ(options.model.threads, 3);
  EXPECT_EQ(options.session.context, 4096);
  EXPECT_EQ(options.session.kv_type_k, "q8_0");
  EXPECT_EQ(options.session.kv_type_v, "bf16");
  EXPECT_EQ(options.model.device, "ref");
  EXPECT_EQ(options.model.compute, "f32");
  EXPECT_EQ(options.sampling.max_tokens, 7);
  EXPECT_EQ(options.sampling.seeds->first, 2u);
  EXPECT_EQ(options.sampling.seeds->last, 4u);
  EXPECT_EQ(options.sampling.temperature, 0.8);
  EXPECT_EQ(options.sampling.top_k, 40);
  EXPECT_EQ(options.sampling.top_p, 0.9);
  EXPECT_EQ(options.sampling.min_p, 0.05);
  EXPECT_EQ(options.sampling.repeat_penalty, 1.1);
  EXPECT_EQ(options.sampling.dry_multiplier, 0.7);
  EXPECT_EQ(options.sampling.dry_base, 2.5);
  EXPECT_EQ(options.sampling.dry_allowed_length, 3);
  EXPECT_EQ(options.sampling.dry_breakers, Args({"\n", "- "}));
  EXPECT_EQ(options.sampling.stops, Args({"[end]", "\n"}));
  EXPECT_EQ(options.sampling.stop_ids, std::vector<int32_t>({0, 151645}));
  EXPECT_TRUE(options.sampling.ignore_eos);
  EXPECT_TRUE(options.json);
  EXPECT_TRUE(options.stream);
  EXPECT_FALSE(options.progress);
  EXPECT_EQ(options.model.rope_scaling, "yarn");
  EXPECT_EQ(options.model.rope_scale, 4);
  EXPECT_EQ(options.model.rope_freq_base, 5e5);
  EXPECT_EQ(options.model.yarn_orig_ctx, 2048);
  EXPECT_TRUE(options.model.check_tensors);
}

TEST_F(ArgsTest, ASeedIsAnyOf64Bits) {
  EXPECT_EQ(Parse({"generate", "-p", "x", "-s", "18446744073709551615"})
                .sampling.seed,
            18446744073709551615u);
  EXPECT_EQ(Parse({"generate", "-p", "x", "-s", "0"}).sampling.seed, 0u);
}

TEST_F(ArgsTest, StreamIsJson) {
  EXPECT_TRUE(Parse({"generate", "-p", "x", "--stream"}).json);
}

TEST_F(ArgsTest, AnEqualsSignTakesAnyText) {
  EXPECT_EQ(Parse({"generate", "--prompt=--json"}).input.text, "--json");
  EXPECT_EQ(Parse({"generate", "-p=a=b"}).input.text, "a=b");
  EXPECT_EQ(Parse({"generate", "-p", "-hello"}).input.text, "-hello");
  EXPECT_EQ(Parse({"generate", "-p", "--"}).input.text, "--");
}

TEST_F(ArgsTest, AValueIsNotAFlag) {
  EXPECT_THAT(Refusal({"generate", "-p", "--json"}), HasSubstr("--prompt"));
  EXPECT_THAT(Refusal({"generate", "-p", "x", "-m", "-n=3"}),
              HasSubstr("--model"));
}

TEST_F(ArgsTest, AfterTwoDashesNothingIsAFlag) {
  EXPECT_EQ(Parse({"summarize", "--", "-m"}).document, "-m");
  EXPECT_EQ(Parse({"detokenize", "1", "--", "-2"}).tokens.ids,
            Args({"1", "-2"}));
}

TEST_F(ArgsTest, ADocumentMayBeNamedAsACommand) {
  EXPECT_EQ(Parse({"summarize", "eval"}).document, "eval");
}

TEST_F(ArgsTest, RefusalsNameTheFlag) {
  const struct {
    Args args;
    const char* name;
  } kCases[] = {
      {{"generate", "-p", "x", "--bogus"}, "--bogus"},
      {{"generate", "-p", "x", "-ngl", "3"}, "-ngl"},
      {{"generate", "-p", "x", "--bogus=3"}, "--bogus"},
      {{"generate", "-p"}, "-p"},
      {{"generate", "-p", "x", "-m", ""}, "-m"},
      {{"generate", "--prompt="}, "--prompt"},
      {{"generate", "-p", "x", "-m", "a", "-m", "b"}, "-m"},
      {{"generate", "-p", "x", "-m", "a", "--model", "b"}, "-m"},
      {{"generate", "-p", "x", "--json", "--json"}, "--json"},
      {{"generate", "-p", "x", "--json=1"}, "--json"},
      {{"generate", "-p", "x", "-t", "0"}, "-t"},
      {{"generate", "-p", "x", "-t", "-1"}, "-t"},
      {{"generate", "-p", "x", "-t", "two"}, "-t"},
      {{"generate", "-p", "x", "-t", "2x"}, "-t"},
      {{"generate", "-p", "x", "-t", " 2"}, "-t"},
      {{"generate", "-p", "x", "-t", "1025"}, "-t"},
      {{"generate", "-p", "x", "-c", "-1"}, "-c"},
      {{"generate", "-p", "x", "-c", "2147483648"}, "-c"},
      {{"generate", "-p", "x", "-n", "0"}, "-n"},
      {{"generate", "-p", "x", "-n", "-2"}, "-n"},
      {{"generate", "-p", "x", "-n", "1.5"}, "-n"},
      {{"generate", "-p", "x", "-n", "9223372036854775808"}, "-n"},
      {{"generate", "-p", "x", "-s", "-1"}, "-s"},
      {{"generate", "-p", "x", "-s", "18446744073709551616"}, "-s"},
      {{"generate", "-p", "x", "--seeds", "3"}, "--seeds"},
      {{"generate", "-p", "x", "--seeds", "3:2"}, "--seeds"},
      {{"generate", "-p", "x", "--seeds", "0:1000000"}, "--seeds"},
      {{"generate", "-p", "x", "--seeds", "0:1", "-s", "0"}, "--seeds"},
      {{"bench", "--parallel", "2"}, "-d above 0"},
      {{"bench", "--parallel", "1,65", "-d", "9"}, "--parallel"},
      {{"bench", "--parallel", "2", "-d", "9", "-f", "x", "--draft", "ngram",
        "--verify-against", "full"},
       "exclude each other"},
      {{"generate", "-p", "x", "--temp", "1", "--best-of", "0"}, "--best-of"},
      {{"generate", "-p", "x", "--best-of", "2"}, "--temp above 0"},
      {{"generate", "-p", "x", "--temp", "1", "--best-of", "2", "--seeds",
        "1:2"},
       "exclude each other"},
      {{"generate", "-p", "x", "--temp", "1", "--best-of", "2", "--stream"},
       "--stream"},
      {{"generate", "-p", "x", "--temp", "1", "--best-of", "2", "--draft",
        "ngram", "--verify-against", "full"},
       "exclude each other"},
      {{"generate", "-p", "x", "--temp", "1", "--best-of", "2", "-s",
        "18446744073709551614"},
       "there are not 2 seeds"},
      {{"generate", "-p", "x", "--temp", "nan"}, "--temp"},
      {{"generate", "-p", "x", "--temp", "-1"}, "--temp"},
      {{"generate", "-p", "x", "--temp", "1e30"}, "--temp"},
      {{"generate", "-p", "x", "--top-k", "-5"}, "--top-k"},
      {{"generate", "-p", "x", "--top-p", "0"}, "--top-p"},
      {{"generate", "-p", "x", "--top-p", "2"}, "--top-p"},
      {{"generate", "-p", "x", "--min-p", "1.5"}, "--min-p"},
      {{"generate", "-p", "x", "--repeat-penalty", "0"}, "--repeat-penalty"},
      {{"generate", "-p", "x", "--dry-multiplier", "-1"}, "--dry-multiplier"},
      {{"generate", "-p", "x", "--dry-multiplier", "101"}, "--dry-multiplier"},
      {{"generate", "-p", "x", "--dry-base", "0.9"}, "--dry-base"},
      {{"generate", "-p", "x", "--dry-allowed-length", "0"},
       "--dry-allowed-length"},
      {{"generate", "-p", "x", "--dry-sequence-breaker", ""},
       "--dry-sequence-breaker"},
      {{"generate", "-p", "x", "--dry-sequence-breaker", std::string(41, 'a')},
       "--dry-sequence-breaker"},
      {{"generate", "-p", "x", "--stop", ""}, "--stop"},
      {{"generate", "-p", "x", "--stop", std::string(5000, 'a')}, "--stop"},
      {{"generate", "-p", "x", "--stop-id", "-1"}, "--stop-id"},
      {{"generate", "-p", "x", "--stop-id", "</s>"}, "--stop-id"},
      {{"generate", "-p", "x", "--stop-id", "2147483648"}, "--stop-id"},
      {{"generate", "-p", "x", "-ctk", "q4_1"}, "-ctk"},
      {{"generate", "-p", "x", "-ctv", "q4_1"}, "-ctv"},
      {{"generate", "-p", "x", "--device", "tpu"}, "--device"},
      {{"generate", "-p", "x", "--compute", "f16"}, "--compute"},
      {{"generate", "-p", "x", "--policy", "best"}, "--policy"},
      {{"generate", "-p", "x", "--draft", "me"}, "--draft"},
      {{"generate", "-p", "x", "--gamma2", "some"}, "--gamma2"},
      {{"generate", "-p", "x", "--draft-layers", "2"}, "--draft self"},
      {{"generate", "-p", "x", "--draft", "ngram", "--draft-layers", "2"},
       "--draft-layers"},
      {{"generate", "-p", "x", "--draft", "self", "--cost-ratio", "2"},
       "--cost-ratio"},
      {{"generate", "-p", "x", "--draft", "self", "--draft-layers", "0"},
       "--draft-layers"},
      {{"generate", "-p", "x", "--cost-ratio", "0"}, "--cost-ratio"},
      {{"generate", "-p", "x", "--verify-against", "sfi"}, "--verify-against"},
      {{"generate", "-p", "x", "--draft", "small"}, "-md"},
      {{"generate", "-p", "x", "-md", "y", "--draft", "ngram"}, "-md"},
      {{"generate", "-p", "x", "-md", "y", "--draft", "none"}, "none"},
      {{"generate", "-p", "x", "-md", ""}, "-md"},
      {{"generate", "-p", "x", "-md"}, "-md"},
      {{"plan", "--draft", "small"}, "-md"},
      {{"plan", "-md", "y", "--gamma1", "4"}, "--gamma1"},
      {{"eval", "-f", "x", "-md", "y"}, "-md"},
      {{"generate", "-p", "x", "--rope-scaling", "ntk"}, "--rope-scaling"},
      {{"generate", "-p", "x", "--rope-scale", "0.5"}, "--rope-scale"},
      {{"generate", "-p", "x", "--rope-freq-base", "0"}, "--rope-freq-base"},
      {{"generate", "-p", "x", "--yarn-orig-ctx", "0"}, "--yarn-orig-ctx"},
      {{"generate", "-p", "x", "-f", "y"}, "-f"},
      {{"generate"}, "-p"},
      {{"generate", "-p", "x", "stray"}, "stray"},
      {{"eval"}, "-f"},
      {{"eval", "-f", "x", "-ub", "0"}, "-ub"},
      {{"eval", "-f", "x", "--temp", "1"}, "--temp"},
      {{"summarize"}, "FILE"},
      {{"summarize", ""}, "FILE"},
      {{"summarize", "a", "b"}, "'b'"},
      {{"summarize", "a", "--seeds", "0:1"}, "--seeds"},
      {{"summarize", "a", "--chapters", "1", "--pages", "2"}, "--pages"},
      {{"summarize", "a", "--chapters", ""}, "--chapters"},
      {{"summarize", "a", "--words", "0"}, "--words"},
      {{"summarize", "a", "--format", "md"}, "--format"},
      {{"summarize", "a", "--output", "b", "--format", "pdf"}, "--format"},
      {{"summarize", "a", "--output", "b", "--toc"}, "--output"},
      {{"summarize", "a", "--restart", "--no-cache"}, "--restart"},
      {{"ask", "a", "b", "--cache-size", "1GB", "--no-cache"}, "--cache-size"},
      {{"ask", "a", "b", "--cache-size", "9"}, "--cache-size"},
      {{"chat", "--cache-size", "1GB"}, "--cache-size"},
      {{"ask", "a", "why?", "--toc"}, "QUESTION"},
      {{"chat", "--json"}, "--json"},
      {{"chat", "--stream"}, "--stream"},
      {{"chat", "--verify-against", "full", "--draft", "ngram"},
       "--verify-against"},
      {{"chat", "--chapters", "1"}, "--chapters"},
      {{"chat", "stray"}, "stray"},
      {{"ask", "-"}, "QUESTION"},
      {{"ask", "a", ""}, "QUESTION"},
      {{"ask", "a", "--json"}, "--json"},
      {{"ask", "a", "--output", "b"}, "--output"},
      {{"detokenize", "1", "--tokens", "x"}, "--tokens"},
      {{"inspect", "a", "-m", "b"}, "--model"},
      {{"bench", "-p", "1,"}, "-p"},
      {{"bench", "-p", "-1"}, "-p"},
      {{"bench", "-t", "0"}, "-t"},
      {{"bench", "-r", "0"}, "-r"},
      {{"bench", "-o", "xml"}, "-o"},
      {{"bench", "-o", "md", "--json"}, "--json"},
      {{"bench", "-p", "0", "-n", "0"}, "-p"},
      {{"bench", "--verify-against", "full"}, "--verify-against"},
      {{"bench", "--policy", "triforce", "-d", "9"}, "-f FILE"},
      {{"bench", "--draft", "ngram", "-d", "9"}, "-f FILE"},
      {{"bench", "-md", "y", "-d", "9"}, "-f FILE"},
      {{"bench", "--draft", "ngram", "-f", "x"}, "-d,--n-depth"},
      {{"bench", "--draft", "ngram", "-f", "x", "-d", "9,0"}, "-d,--n-depth"},
      {{"bench", "--draft", "small", "-f", "x", "-d", "9"}, "-md"},
      {{"bench", "--draft", "ngram", "--draft-layers", "2"}, "--draft-layers"},
      {{"bench", "-f", "x", "--tokens", "y"}, "--tokens"},
      {{"bench", "-f", "x", "--seeds", "1:2"}, "--seeds"},
      {{"frobnicate"}, "frobnicate"},
      {{"--json"}, "--json"},
      {{""}, "''"},
      {{}, "no command"},
  };
  for (const auto& [args, name] : kCases) {
    EXPECT_THAT(Refusal(args), HasSubstr(name))
        << ::testing::PrintToString(args);
  }
}

TEST_F(ArgsTest, AtMost64Stops) {
  for (const std::string flag : {"--stop", "--stop-id"}) {
    Args args = {"generate", "-p", "x"};
    for (int i = 0; i < 64; ++i) {
      args.push_back(flag);
      args.push_back("7");
    }
    const SamplingOptions sampling = Parse(args).sampling;
    EXPECT_EQ(
        flag == "--stop" ? sampling.stops.size() : sampling.stop_ids.size(),
        64u);
    args.push_back(flag);
    args.push_back("7");
    EXPECT_THAT(Refusal(args), HasSubstr(flag));
  }
}

TEST_F(ArgsTest, ADraftModelDrafts) {
  for (const Args& draft : std::vector<Args>{{}, {"--draft", "small"}}) {
    for (const char* flag : {"-md", "--model-draft"}) {
      Args args = {"generate", "-p", "x", flag, "y.gguf"};
      args.insert(args.end(), draft.begin(), draft.end());
      EXPECT_EQ(Parse(args).sampling.draft_path, "y.gguf");
      args[0] = "ask";
      args[1] = "book.txt";
      EXPECT_EQ(Parse(args).sampling.draft_path, "y.gguf");
    }
  }
  EXPECT_EQ(Parse({"generate", "-p", "x"}).sampling.draft_path, "");
}

TEST_F(ArgsTest, LayersDraft) {
  const Args self = {"generate", "-p", "x", "--draft", "self"};
  EXPECT_EQ(Parse(self).sampling.draft_layers, 0);
  Args eight = self;
  eight.insert(eight.end(), {"--draft-layers", "8"});
  EXPECT_EQ(Parse(eight).sampling.draft_layers, 8);
}

TEST_F(ArgsTest, ABudgetIsASize) {
  EXPECT_EQ(Parse({"plan", "-m", "x"}).model.device_memory_bytes, 0u);
  EXPECT_EQ(Parse({"plan", "-m", "x", "--device-memory", "1.5KiB"})
                .model.device_memory_bytes,
            1536u);
  // A size of 8 bytes is a mistake: its unit was left out.
  for (const char* wrong : {"", "0", "8", "1e9", "much", "-1GB", "1GBs"}) {
    EXPECT_THAT(Refusal({"plan", "-m", "x", "--device-memory", wrong}),
                HasSubstr("--device-memory"));
  }
}

TEST_F(ArgsTest, TextsAtOnceAreACount) {
  for (const char* command : {"summarize", "ask"}) {
    EXPECT_EQ(
        Parse({command, "-m", "x", "book", "--at-once", "3"}).session.at_once,
        3);
  }
  EXPECT_EQ(Parse({"generate", "-p", "x"}).session.at_once, 0);
  for (const char* wrong : {"0", "-1", "65", "two", ""}) {
    EXPECT_THAT(Refusal({"generate", "-p", "x", "--at-once", wrong}),
                HasSubstr("--at-once"));
  }
}

TEST_F(ArgsTest, RanksAreACount) {
  EXPECT_EQ(Parse({"plan", "-m", "x"}).model.tensor_parallel, 1);
  EXPECT_EQ(Parse({"plan", "-m", "x", "--tensor-parallel", "3"})
                .model.tensor_parallel,
            3);
  EXPECT_EQ(Parse({"plan", "-m", "x", "--tensor-parallel", "auto"})
                .model.tensor_parallel,
            kBestRanks);
  for (const char* wrong : {"0", "-1", "65", "two", "Auto", ""}) {
    EXPECT_THAT(Refusal({"plan", "-m", "x", "--tensor-parallel", wrong}),
                HasSubstr("--tensor-parallel"));
  }
}

TEST_F(ArgsTest, EffortIsACountOfTokensOrFull) {
  const auto effort = [&](const char* typed) {
    return Parse({"ask", "x", "who?", "-m", "x", "--effort", typed})
        .book.effort;
  };
  EXPECT_EQ(effort("20k"), 20'480);
  EXPECT_EQ(effort("100"), 100);
  EXPECT_EQ(effort("full"), 0);
  for (const char* wrong : {"0", "-1", "all"}) {
    EXPECT_THAT(Refusal({"ask", "x", "who?", "-m", "x", "--effort", wrong}),
                HasSubstr("a count of tokens, or full"));
  }
}

TEST_F(ArgsTest, WhatIsNotBuiltSaysSo) {
  for (const Args& args : std::vector<Args>{
           {"detokenize", "--add-bos", "1"},
           {"generate", "-p", "x", "-sys", "y"},
           {"summarize", "x", "--json-schema", "x.json"},
           {"serve", "--grammar", "x.gbnf"},
       }) {
    EXPECT_THAT(Refusal(args), HasSubstr("not in this version"))
        << ::testing::PrintToString(args);
  }
}

TEST_F(ArgsTest, TheIsaIsCheckedWhereNoModelIsLoaded) {
  const char* forced = getenv("TIERCEL_ISA");
  const std::string before = forced == nullptr ? "" : forced;
  setenv("TIERCEL_ISA", "avx9", /*overwrite=*/1);
  for (const Args& args : {Args{"--version"}, Args{"cache", "list"},
                           Args{"tokenize", "-p", "x"}, Args{"plan"}}) {
    EXPECT_THAT(Refusal(args), HasSubstr("TIERCEL_ISA: got \"avx9\""));
  }
  EXPECT_THAT(Page({"plan", "--help-all"}), HasSubstr("TIERCEL_ISA"));
  setenv("TIERCEL_ISA", before.c_str(), /*overwrite=*/1);
}

TEST_F(ArgsTest, RefusalsSayWhatWasMeant) {
  const struct {
    Args args;
    const char* hint;
  } kCases[] = {
      {{"summarise", "x"}, "did you mean summarize?"},
      {{"help", "sumarize"}, "did you mean summarize?"},
      {{"generate", "-p", "x", "--modle", "y"}, "did you mean --model?"},
      {{"generate", "-p", "x", "-seed", "3"}, "did you mean --seed?"},
      {{"generate", "-p", "x", "--ctx", "3"}, "did you mean --ctx-size?"},
      {{"generate", "-p", "x", "--frob"}, "; tiercel help generate lists"},
      {{"--verison"}, "did you mean --version?"},
      {{"vesrion"}, "did you mean version?"},
      {{"hlep"}, "did you mean help?"},
      {{"ask", "-"}, "; usage: tiercel ask [FLAGS] FILE QUESTION..."},
      {{"generate", "-p", "x", "-c", "9m"}, "an integer (4k is 4096) from 0"},
      {{"generate", "hello"}, "did you mean -p 'hello'?"},
      {{"eval", "book.txt"}, "did you mean -f 'book.txt'?"},
      {{"tokenize", "hello"}, "did you mean -p 'hello'?"},
      {{"plan", "x.gguf"}, "did you mean -m 'x.gguf'?"},
      {{"bench", "x.gguf"}, "did you mean -m 'x.gguf'?"},
      {{"plan", "8k"}, "did you mean -c '8k'?"},
      {{"bench", "512"}, "did you mean -p '512'?"},
      // These are existing files.
      {{"generate", "README.md"}, "did you mean -f 'README.md'?"},
      {{"tokenize", "README.md"}, "did you mean -f 'README.md'?"},
      {{"detokenize", "README.md"}, "did you mean --tokens 'README.md'?"},
      {{"README.md"}, "; a command comes first, as in tiercel summarize FILE"},
      {{"-p", "x"}, "no command before '-p'; tiercel help lists them"},
      {{"help", "--json"}, "help: unexpected argument '--json'"},
      {{"help", "plan", "--json"}, "help: unexpected argument '--json'"},
      {{"--version", "--json"}, "--version: unexpected argument '--json'"},
      {{"-m", "x", "generate", "-p", "y"}, "tiercel generate -m ..."},
      {{"--json", "plan"}, "tiercel plan --json ..."},
  };
  for (const auto& [args, hint] : kCases) {
    EXPECT_THAT(Refusal(args), HasSubstr(hint))
        << ::testing::PrintToString(args);
  }
  EXPECT_THAT(Refusal({"frobnicate"}), Not(HasSubstr("did you mean")));
}

TEST_F(ArgsTest, ANumberMayFollowItsShortFlagAtOnce) {
  const Options options = Parse({"generate", "-p", "x", "-n10", "-c4k", "-t2"});
  EXPECT_EQ(options.sampling.max_tokens, 10);
  EXPECT_EQ(options.session.context, 4096);
  EXPECT_EQ(options.model.threads, 2);
  EXPECT_EQ(Parse({"bench", "-p512,1024"}).bench.prompts,
            std::vector<int64_t>({512, 1024}));
  EXPECT_THAT(Refusal({"generate", "-p", "x", "-t10", "-t", "3"}),
              HasSubstr("given twice"));
  EXPECT_THAT(Refusal({"generate", "-p", "x", "-n1x"}), HasSubstr("-n"));
  EXPECT_THAT(Refusal({"generate", "-p", "x", "-n1=2"}), HasSubstr("'1=2'"));
  EXPECT_THAT(Refusal({"generate", "-p", "x", "-z10"}), HasSubstr("-z10"));
}

TEST_F(ArgsTest, OfSeveralLimitsOfAnAnswerTheLastCounts) {
  for (const char* command : {"generate", "chat"}) {
    Args args = {command};
    if (args[0] == "generate") args.insert(args.end(), {"-p", "x"});
    args.insert(args.end(), {"-n", "5", "-t", "2", "--n-predict=7", "-n10"});
    const Options options = Parse(args);
    EXPECT_EQ(options.sampling.max_tokens, 10);
    EXPECT_EQ(options.model.threads, 2);
    args.insert(args.end(), {"--predict", "3"});
    EXPECT_EQ(Parse(args).sampling.max_tokens, 3);
    args.push_back("-n");
    EXPECT_THAT(Refusal(args), HasSubstr("its value is missing"));
    args.push_back("x");
    EXPECT_THAT(Refusal(args), HasSubstr("got 'x'"));
  }
  // Any other flag may be given once.
  for (const char* flag : {"-t", "-c", "--seed", "--temp", "--top-k"}) {
    EXPECT_THAT(Refusal({"generate", "-p", "x", flag, "1", flag, "1"}),
                HasSubstr("given twice"));
  }
}

TEST_F(ArgsTest, TokensAreCountedInThousandsToo) {
  EXPECT_EQ(Parse({"plan", "-c", "128k"}).session.context, 131072);
  EXPECT_EQ(Parse({"plan", "-md", "y"}).sampling.draft_path, "y");
  EXPECT_EQ(Parse({"plan", "-c", "4K"}).session.context, 4096);
  EXPECT_EQ(Parse({"generate", "-p", "x", "-n", "1k"}).sampling.max_tokens,
            1024);
  for (const char* wrong : {"k", "4kk", "4 k", "-4k", "3000000k", "4m"}) {
    EXPECT_THAT(Refusal({"plan", "-c", wrong}), HasSubstr("-c")) << wrong;
  }
}

TEST_F(ArgsTest, ASummaryReadsWellByDefault) {
  for (const Args& args :
       std::vector<Args>{{"summarize", "x"}, {"ask", "x", "who?"}, {"chat"}}) {
    const SamplingOptions usual = Parse(args).sampling;
    EXPECT_EQ(usual.dry_multiplier, 0.8);
    EXPECT_EQ(usual.repeat_penalty, 1);
    EXPECT_EQ(usual.temperature, 0);
    EXPECT_THAT(Page({args[0], "--help-all"}), HasSubstr("(default 0.8)"));
    const auto with = [&](const Args& more) {
      Args all = args;
      all.insert(all.end(), more.begin(), more.end());
      return Parse(all).sampling;
    };
    // A repeat penalty that is given, even one of 1, replaces the default DRY,
    // but not a DRY multiplier that is given too.
    for (const char* penalty : {"1", "1.15"}) {
      EXPECT_EQ(with({"--repeat-penalty", penalty}).dry_multiplier, 0);
      for (const Args& both :
           {Args{"--repeat-penalty", penalty, "--dry-multiplier", "0.5"},
            Args{"--dry-multiplier", "0.5", "--repeat-penalty", penalty}}) {
        EXPECT_EQ(with(both).dry_multiplier, 0.5);
        EXPECT_EQ(with(both).repeat_penalty, std::stod(penalty));
      }
    }
    EXPECT_EQ(with({"--temp", "0.3"}).dry_multiplier, 0.8);
    EXPECT_EQ(with({"--dry-multiplier", "0"}).dry_multiplier, 0);
    // DRY is on by default, so its numbers have an effect.
    EXPECT_EQ(with({"--dry-base", "2"}).dry_base, 2);
  }
  EXPECT_THAT(Refusal({"ask", "x", "who?", "--repeat-penalty", "1.1",
                       "--dry-base", "2"}),
              HasSubstr("--dry-base: it has no effect without"));
}

TEST_F(ArgsTest, BreakersMayBeNone) {
  const auto breakers = [](const Args& texts) {
    Args args = {"generate", "-p", "x", "--dry-multiplier", "1"};
    for (const std::string& text : texts) {
      args.insert(args.end(), {"--dry-sequence-breaker", text});
    }
    return Parse(args).sampling.dry_breakers;
  };
  EXPECT_EQ(breakers({"none"}), Args());
  EXPECT_EQ(breakers({"x", "none"}), Args());  // as in llama.cpp
  EXPECT_EQ(breakers({"none", "x"}), Args({"x"}));
  EXPECT_EQ(breakers(Args(64, "x"))->size(), 64u);
  Args many = {"generate", "-p", "x", "--dry-multiplier", "1"};
  for (int i = 0; i < 65; ++i) {
    many.insert(many.end(), {"--dry-sequence-breaker", "x"});
  }
  EXPECT_THAT(Refusal(many), HasSubstr("at most 64 texts"));
}

TEST_F(ArgsTest, BenchLists) {
  const Options options = Parse({"bench", "-p", "0", "-n", "8,16", "-d",
                                 "0,2048", "-t", "1,2", "-r", "3", "--json"});
  EXPECT_EQ(options.bench.prompts, std::vector<int64_t>({0}));
  EXPECT_EQ(options.bench.generations, std::vector<int64_t>({8, 16}));
  EXPECT_EQ(options.bench.depths, std::vector<int64_t>({0, 2048}));
  EXPECT_EQ(options.bench.threads, std::vector<int64_t>({1, 2}));
  EXPECT_EQ(options.bench.repetitions, 3);
  EXPECT_TRUE(options.bench.warms_up);
  EXPECT_FALSE(Parse({"bench", "--no-warmup"}).bench.warms_up);
  EXPECT_EQ(options.bench.output, "json");
  EXPECT_EQ(Parse({"bench"}).bench.output, "md");
  EXPECT_TRUE(Parse({"bench", "-o", "jsonl"}).json);
}

TEST_F(ArgsTest, BenchTakesDraftsAsGenerateDoes) {
  const Args flags = {"-f",
                      "x",
                      "--policy",
                      "triforce",
                      "--draft",
                      "self",
                      "--budget",
                      "256",
                      "--chunk",
                      "16",
                      "--sink",
                      "24",
                      "--window",
                      "40",
                      "--gamma1",
                      "auto",
                      "--gamma2",
                      "9",
                      "--branches",
                      "auto",
                      "--draft-ahead",
                      "--cost-ratio",
                      "2.5",
                      "--verify",
                      "coupled",
                      "--draft-layers",
                      "3",
                      "-s",
                      "5",
                      "--temp",
                      "0.6",
                      "--top-k",
                      "7",
                      "--top-p",
                      "0.9",
                      "--min-p",
                      "0.1",
                      "--repeat-penalty",
                      "1.1"};
  Args bench = {"bench", "-d", "100,200"};
  Args generate = {"generate"};
  bench.insert(bench.end(), flags.begin(), flags.end());
  generate.insert(generate.end(), flags.begin(), flags.end());
  const Options of_bench = Parse(bench);
  const Options of_generate = Parse(generate);
  for (const Options& options : {of_bench, of_generate}) {
    EXPECT_EQ(options.input.file, "x");
    EXPECT_EQ(options.sampling.policy, "triforce");
    EXPECT_EQ(options.sampling.draft, "self");
    EXPECT_EQ(options.session.budget, 256);
    EXPECT_EQ(options.session.chunk, 16);
    EXPECT_EQ(options.session.sink, 24);
    EXPECT_EQ(options.session.window, 40);
    EXPECT_EQ(options.sampling.gamma1, -1);
    EXPECT_EQ(options.sampling.gamma2, 9);
    EXPECT_EQ(options.sampling.branches, -1);
    EXPECT_TRUE(options.sampling.draft_ahead);
    EXPECT_EQ(options.sampling.cost_ratio, 2.5);
    EXPECT_EQ(options.sampling.verify, "coupled");
    EXPECT_EQ(options.sampling.draft_layers, 3);
    EXPECT_EQ(options.sampling.seed, 5u);
    EXPECT_EQ(options.sampling.temperature, 0.6);
    EXPECT_EQ(options.sampling.top_k, 7);
    EXPECT_EQ(options.sampling.top_p, 0.9);
    EXPECT_EQ(options.sampling.min_p, 0.1);
    EXPECT_EQ(options.sampling.repeat_penalty, 1.1);
  }
  for (const char* action : {"list", "clear"}) {
    const Options of_cache = Parse({"cache", action});
    EXPECT_EQ(of_cache.cache_action, action);
    EXPECT_EQ(of_cache.session.cache_dir, of_bench.session.cache_dir);
    EXPECT_EQ(of_cache.session.prompt_cache_dir,
              of_cache.session.cache_dir + "/prompt_cache");
    EXPECT_EQ(of_cache.model.path, "");  // it needs none
  }
  EXPECT_EQ(of_bench.session.cache_dir, of_generate.session.cache_dir);
  EXPECT_EQ(Parse({"bench"}).session.cache_dir, of_bench.session.cache_dir);
  // `generate` and `bench` do not use the prompt cache: they read every prompt.
  EXPECT_EQ(of_bench.session.prompt_cache_dir, "");
  EXPECT_EQ(of_generate.session.prompt_cache_dir, "");
  for (const Args& args : {Args{"summarize", "x"}, Args{"ask", "x", "who?"}}) {
    EXPECT_EQ(Parse(args).session.prompt_cache_dir,
              of_bench.session.cache_dir + "/prompt_cache");
    Args without = args;
    without.push_back("--no-cache");
    EXPECT_EQ(Parse(without).session.prompt_cache_dir, "");
    EXPECT_EQ(Parse(without).session.cache_dir, of_bench.session.cache_dir);
    Args sized = args;
    sized.insert(sized.end(), {"--cache-size", "40GiB"});
    EXPECT_EQ(Parse(sized).session.prompt_cache_bytes, uint64_t{40} << 30);
    EXPECT_EQ(Parse(args).session.prompt_cache_bytes, 0u);
  }
  // Without drafts no text is needed.
  EXPECT_EQ(
      Parse({"bench", "--policy", "full", "--draft", "none"}).bench.depths,
      std::vector<int64_t>({0}));
  EXPECT_EQ(Parse({"bench", "-md", "y", "--tokens", "x", "-d", "1"})
                .sampling.draft_path,
            "y");
}

TEST_F(ArgsTest, InspectTakesTheModelEitherWay) {
  EXPECT_EQ(Parse({"inspect", "a.gguf"}).model.path, "a.gguf");
  EXPECT_EQ(Parse({"inspect", "-m", "a.gguf"}).model.path, "a.gguf");
  EXPECT_EQ(Parse({"inspect"}).model.path, "env.gguf");
}

TEST_F(ArgsTest, AnEmptyVariableIsNamed) {
  setenv("TIERCEL_MODEL", "", /*overwrite=*/1);
  EXPECT_THAT(Refusal({"inspect"}), HasSubstr("TIERCEL_MODEL"));
  EXPECT_EQ(Parse({"inspect", "-m", "a"}).model.path, "a");
}

TEST_F(ArgsTest, TheInstalledModelIsTheLastResort) {
  unsetenv("TIERCEL_MODEL");
  std::string home = ::testing::TempDir() + "args_home_XXXXXX";
  ASSERT_NE(mkdtemp(home.data()), nullptr);
  const std::string models = home + "/.cache/tiercel/models";
  ASSERT_EQ(std::system(("mkdir -p '" + models + "'").c_str()), 0);
  const std::string file = models + "/SmolLM2-135M-Instruct.Q4_1.gguf";
  setenv("HOME", home.c_str(), 1);
  unsetenv("XDG_CACHE_HOME");
  EXPECT_THAT(Refusal({"inspect"}), HasSubstr("TIERCEL_MODEL"));
  std::ofstream(file) << "x";
  EXPECT_EQ(Parse({"inspect"}).model.path, file);
  // A relative path is ignored; an absolute one replaces ~/.cache.
  setenv("XDG_CACHE_HOME", "relative", 1);
  EXPECT_EQ(Parse({"inspect"}).model.path, file);
  setenv("XDG_CACHE_HOME", "/nonexistent", 1);
  Refusal({"inspect"});
  unsetenv("XDG_CACHE_HOME");
  unsetenv("HOME");
  EXPECT_THAT(Refusal({"inspect"}), HasSubstr("no model"));
  ASSERT_EQ(std::system(("rm -r '" + home + "'").c_str()), 0);
}

TEST(WantsJsonTest, AlsoWhereParsingFails) {
  EXPECT_TRUE(WantsJson({"generate", "--bogus", "--json"}));
  EXPECT_TRUE(WantsJson({"generate", "--stream"}));
  EXPECT_FALSE(WantsJson({"summarize", "--", "--json"}));
  EXPECT_FALSE(WantsJson({}));
}

}  // namespace
}  // namespace tiercel::cli
