#include "apps/commands/npy.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <fstream>
#include <iterator>

#include "apps/cli/error.h"
#include "gtest/gtest.h"

namespace tiercel::cli {
namespace {

class NpyTest : public ::testing::Test {
 protected:
  NpyTest() {
    std::string pattern = ::testing::TempDir() + "npy_XXXXXX";
    directory_ = mkdtemp(pattern.data());
  }
  ~NpyTest() override {
    for (const std::string& name : Names()) unlink(Path(name).c_str());
    rmdir(directory_.c_str());
  }

  std::string Path(const std::string& name) const {
    return directory_ + "/" + name;
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    DIR* dir = opendir(directory_.c_str());
    while (const dirent* entry = readdir(dir)) {
      if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
    }
    closedir(dir);
    return names;
  }
  std::string Read(const std::string& name) const {
    std::ifstream file(Path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::string directory_;
};

TEST_F(NpyTest, HeaderIsWhatNumpyReads) {
  const std::string header = NpyHeader(3, 5);
  ASSERT_EQ(header.size() % 64, 0u);
  EXPECT_EQ(header.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  const size_t length = static_cast<unsigned char>(header[8]) +
                        256u * static_cast<unsigned char>(header[9]);
  EXPECT_EQ(header.size(), 10 + length);
  EXPECT_EQ(header.substr(10, 57),
            "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 5),");
  EXPECT_EQ(header.back(), '\n');
}

TEST_F(NpyTest, HeaderStaysAlignedForAnyShape) {
  for (int64_t n = 1; n < int64_t{1} << 50; n *= 10) {
    EXPECT_EQ(NpyHeader(n, n + 1).size() % 64, 0u) << n;
  }
}

TEST_F(NpyTest, AppearsWholeAndOnlyThen) {
  const std::array<float, 6> values = {1.5f, -2, 0, 3, 1e-40f, 6};
  {
    absl::StatusOr<NpyWriter> writer = NpyWriter::Create(Path("a.npy"), 2, 3);
    ASSERT_TRUE(writer.ok()) << writer.status();
    ASSERT_TRUE(writer->WriteRow(values.data()).ok());
    ASSERT_TRUE(writer->WriteRow(values.data() + 3).ok());
    EXPECT_NE(Names(), std::vector<std::string>{"a.npy"});
    ASSERT_TRUE(writer->Finish().ok());
  }
  ASSERT_EQ(Names(), std::vector<std::string>{"a.npy"});
  const std::string file = Read("a.npy");
  const std::string header = NpyHeader(2, 3);
  ASSERT_EQ(file.size(), header.size() + sizeof(values));
  EXPECT_EQ(file.substr(0, header.size()), header);
  EXPECT_EQ(
      std::memcmp(file.data() + header.size(), values.data(), sizeof(values)),
      0);
}

TEST_F(NpyTest, UnfinishedLeavesNothingAndTheOldFile) {
  std::ofstream(Path("a.npy")) << "old";
  {
    const float row = 1;
    absl::StatusOr<NpyWriter> writer = NpyWriter::Create(Path("a.npy"), 2, 1);
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE(writer->WriteRow(&row).ok());
  }
  EXPECT_EQ(Names(), std::vector<std::string>{"a.npy"});
  EXPECT_EQ(Read("a.npy"), "old");
}

TEST_F(NpyTest, FollowsALink) {
  std::ofstream(Path("target")) << "old";
  ASSERT_EQ(symlink("target", Path("link").c_str()), 0);
  const float row = 1;
  absl::StatusOr<NpyWriter> writer = NpyWriter::Create(Path("link"), 1, 1);
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(writer->WriteRow(&row).ok());
  ASSERT_TRUE(writer->Finish().ok());
  struct stat info;
  ASSERT_EQ(lstat(Path("link").c_str(), &info), 0);
  EXPECT_TRUE(S_ISLNK(info.st_mode));
  EXPECT_EQ(Read("target").size(), NpyHeader(1, 1).size() + sizeof(float));
}

TEST_F(NpyTest, AFullDiskIsAnIoError) {
  // /dev/full takes no byte. It must still be a device afterwards.
  const absl::StatusOr<NpyWriter> writer = NpyWriter::Create("/dev/full", 1, 1);
  EXPECT_EQ(ExitOf(writer.status()), Exit::kIo);
  struct stat info;
  ASSERT_EQ(stat("/dev/full", &info), 0);
  EXPECT_TRUE(S_ISCHR(info.st_mode));
}

TEST_F(NpyTest, NoSuchDirectoryIsAnIoError) {
  const absl::StatusOr<NpyWriter> writer =
      NpyWriter::Create(Path("no/a.npy"), 1, 1);
  EXPECT_EQ(ExitOf(writer.status()), Exit::kIo);
}

}  // namespace
}  // namespace tiercel::cli
