// The vocabularies that llama.cpp tests itself with: NAME.gguf, texts in
// NAME.gguf.inp and their ids in NAME.gguf.out. TIERCEL_PEER_VOCABS names the
// folder; they are not ours to keep.

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "models/tokenizer/tokenizer.h"

namespace tiercel::peer_vocabs_test {
namespace {

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::vector<std::string> Texts(const std::string& path) {
  const std::string all = ReadFile(path);
  const std::string mark = "\n__ggml_vocab_test__\n";
  std::vector<std::string> texts;
  size_t begin = 0;
  for (size_t end; (end = all.find(mark, begin)) != std::string::npos;
       begin = end + mark.size()) {
    texts.push_back(all.substr(begin, end - begin));
  }
  return texts;
}

class PeerVocabsTest : public testing::TestWithParam<std::string> {};

TEST_P(PeerVocabsTest, EveryVector) {
  const char* folder = std::getenv("TIERCEL_PEER_VOCABS");
  if (folder == nullptr) GTEST_SKIP() << "TIERCEL_PEER_VOCABS is not set";
  const std::string path =
      std::string(folder) + "/ggml-vocab-" + GetParam() + ".gguf";
  auto checkpoint = Checkpoint::Open(path);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  auto tokenizer = Tokenizer::Create(**checkpoint);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();

  const std::vector<std::string> texts = Texts(path + ".inp");
  std::istringstream lines(ReadFile(path + ".out"));
  ASSERT_GT(texts.size(), 20u);
  for (const std::string& text : texts) {
    std::string line;
    ASSERT_TRUE(std::getline(lines, line));
    std::istringstream numbers(line);
    const std::vector<int32_t> expected(
        (std::istream_iterator<int32_t>(numbers)), {});
    std::vector<int32_t> ids;
    ASSERT_TRUE(
        (*tokenizer)->Encode(text, Tokenizer::Special::kPlain, &ids).ok());
    EXPECT_EQ(ids, expected) << text;
    EXPECT_EQ(*(*tokenizer)->Decode(ids, Tokenizer::Special::kPlain), text);
  }
}

INSTANTIATE_TEST_SUITE_P(All, PeerVocabsTest,
                         testing::Values("gpt-2", "llama-bpe", "qwen2",
                                         "llama-spm", "starcoder", "refact",
                                         "command-r", "mpt", "falcon",
                                         "deepseek-llm", "deepseek-coder",
                                         "qwen35", "phi-3", "gemma-4"),
                         [](const auto& family) {
                           std::string name = family.param;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

}  // namespace
}  // namespace tiercel::peer_vocabs_test
