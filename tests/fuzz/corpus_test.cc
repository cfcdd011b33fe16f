// Reads each file of each corpus once, as the fuzz target of that name does: a
// promise that is broken ends the program.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "gtest/gtest.h"

// TARGETS: the build has TARGET(name) for each.
#define TARGET(name) \
  extern "C" int name##_fuzz(const uint8_t* data, size_t size);
TARGETS
#undef TARGET

namespace tiercel {
namespace {

struct Target {
  const char* name;
  int (*read)(const uint8_t* data, size_t size);
};

class CorpusTest : public testing::TestWithParam<Target> {};

TEST_P(CorpusTest, EachFileIsRead) {
  const std::filesystem::path corpus = "tests/fuzz/corpus";
  int files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(corpus / GetParam().name)) {
    std::cout << entry.path().filename() << std::endl;
    std::ifstream file(entry.path(), std::ios::binary);
    const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
    GetParam().read(reinterpret_cast<const uint8_t*>(bytes.data()),
                    bytes.size());
    ++files;
  }
  EXPECT_GT(files, 0);
}

#define TARGET(name) Target{#name, name##_fuzz},
INSTANTIATE_TEST_SUITE_P(Targets, CorpusTest,
                         testing::ValuesIn(std::vector<Target>{TARGETS}),
                         [](const auto& target) {
                           return std::string(target.param.name);
                         });
#undef TARGET

}  // namespace
}  // namespace tiercel
