#include "models/format/content_hash.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "gtest/gtest.h"
#include "lib/status/error.h"

namespace tiercel {
namespace {

namespace fs = std::filesystem;

constexpr auto kGoOn = [] { return false; };

std::string HashOf(const std::string& path, int threads = 2) {
  const auto checkpoint = Checkpoint::Open(path);
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  ThreadPool pool(threads);
  const auto hash = ContentHash(**checkpoint, pool, kGoOn);
  EXPECT_TRUE(hash.ok()) << hash.status();
  return hash.value_or("");
}

class ContentHashTest : public testing::Test {
 protected:
  ContentHashTest() { EXPECT_NE(mkdtemp(folder_.data()), nullptr); }
  ~ContentHashTest() override { fs::remove_all(folder_); }

  std::string folder_ = testing::TempDir() + "/hash_XXXXXX";
};

TEST_F(ContentHashTest, ItFollowsFromTheBytesAlone) {
  const std::string copy = folder_ + "/copy.gguf";
  fs::copy_file("tests/golden/checkpoints/llama_chat.gguf", copy);
  const std::string hash = HashOf("tests/golden/checkpoints/llama_chat.gguf");
  EXPECT_EQ(hash.size(), 16u);
  EXPECT_EQ(HashOf(copy), hash);
  EXPECT_EQ(HashOf(copy, /*threads=*/1), hash);
  // One bit of a weight is flipped.
  std::fstream file(copy, std::ios::binary | std::ios::in | std::ios::out);
  file.seekg(-5, std::ios::end);
  const char byte = static_cast<char>(file.get() ^ 1);
  file.seekp(-5, std::ios::end);
  file.put(byte);
  file.close();
  EXPECT_NE(HashOf(copy), hash);
}

TEST_F(ContentHashTest, EveryFileCounts) {
  std::set<std::string> hashes = {
      HashOf("tests/golden/checkpoints/llama_chat"),
      HashOf("tests/golden/checkpoints/llama_bias.gguf"),
      HashOf("tests/golden/checkpoints/llama_bias-00001-of-00004.gguf")};
  EXPECT_EQ(hashes.size(), 3u);
  fs::copy("tests/golden/checkpoints/llama_chat", folder_ + "/chat",
           fs::copy_options::recursive);
  EXPECT_EQ(hashes.count(HashOf(folder_ + "/chat")), 1u);
  // The hash covers the tokenizer's settings and its chat template, which are
  // in no tensor.
  const std::string config = folder_ + "/chat/tokenizer_config.json";
  ASSERT_TRUE(fs::exists(config));
  std::ifstream in(config);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  text.insert(text.find('{') + 1, "\"another\": 1,");
  std::ofstream(config) << text;
  EXPECT_EQ(hashes.count(HashOf(folder_ + "/chat")), 0u);
}

TEST_F(ContentHashTest, WhatCannotBeReadHasNone) {
  const std::string copy = folder_ + "/copy.gguf";
  fs::copy_file("tests/golden/checkpoints/llama_chat.gguf", copy);
  const auto checkpoint = Checkpoint::Open(copy);
  ASSERT_TRUE(checkpoint.ok());
  ThreadPool pool(2);
  EXPECT_EQ(
      CodeOf(ContentHash(**checkpoint, pool, [] { return true; }).status()),
      "cancelled");
  std::ofstream(copy, std::ios::app) << "x";
  EXPECT_EQ(CodeOf(ContentHash(**checkpoint, pool, kGoOn).status()),
            "changed_during_load");
}

}  // namespace
}  // namespace tiercel
