#include "apps/terminal/history_file.h"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tiercel::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class HistoryFileTest : public ::testing::Test {
 protected:
  HistoryFileTest() {
    std::string name = ::testing::TempDir() + "history.XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~HistoryFileTest() override { std::filesystem::remove_all(folder_); }

  static mode_t ModeOf(const std::string& path) {
    struct stat info = {};
    EXPECT_EQ(stat(path.c_str(), &info), 0) << path;
    return info.st_mode & 07777;
  }

  std::string folder_;
};

TEST_F(HistoryFileTest, KeepsLinesForItsOwnerAlone) {
  const std::string path = folder_ + "/a/b/history";
  const HistoryFile file(path);
  EXPECT_THAT(file.Load(), IsEmpty());
  ASSERT_TRUE(file.Append("who?").ok());
  ASSERT_TRUE(HistoryFile(path).Append("où est le 猫?").ok());
  EXPECT_THAT(file.Load(), ElementsAre("who?", "où est le 猫?"));
  EXPECT_EQ(ModeOf(path), 0600u);
  EXPECT_EQ(ModeOf(folder_ + "/a/b"), 0700u);
  EXPECT_EQ(ModeOf(folder_ + "/a"), 0700u);
}

TEST_F(HistoryFileTest, ForgetsTheOldest) {
  const std::string path = folder_ + "/history";
  const size_t most = HistoryFile::kMostLines;
  for (const size_t lines : {2 * most, 2 * most + 1}) {
    {
      std::ofstream file(path);
      for (size_t i = 0; i < lines; ++i) file << i << "\n";
    }
    const std::vector<std::string> kept = HistoryFile(path).Load();
    ASSERT_EQ(kept.size(), most);
    EXPECT_EQ(kept.front(), std::to_string(lines - most));
    EXPECT_EQ(kept.back(), std::to_string(lines - 1));
    std::ifstream file(path);
    const auto left =
        std::count(std::istreambuf_iterator<char>(file), {}, '\n');
    EXPECT_EQ(static_cast<size_t>(left), lines > 2 * most ? most : lines);
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}),
              1);
  }
}

TEST_F(HistoryFileTest, WhatCannotBeKeptIsAnError) {
  EXPECT_TRUE(HistoryFile("").Append("x").ok());
  const absl::Status kept = HistoryFile("/proc/none/history").Append("x");
  EXPECT_FALSE(kept.ok());
  EXPECT_THAT(std::string(kept.message()), ::testing::HasSubstr("/proc/none"));
  std::filesystem::create_symlink("elsewhere", folder_ + "/history");
  EXPECT_FALSE(HistoryFile(folder_ + "/history").Append("x").ok());
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/elsewhere"));
}

}  // namespace
}  // namespace tiercel::cli
