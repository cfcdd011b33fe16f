#include "models/format/checkpoint.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "kernels/system/no_privileges_for_test.h"
#include "lib/status/error.h"
#include "models/format/gguf_writer_for_test.h"

// Tests that need real files. A30 ... are lines of the project's table of bad
// inputs.

namespace tiercel {
namespace {

using ::testing::HasSubstr;

class CheckpointFiles : public testing::Test {
 protected:
  CheckpointFiles() {
    std::string name = testing::TempDir() + "/checkpoint_XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~CheckpointFiles() override { std::filesystem::remove_all(folder_); }

  std::string Path(std::string_view name) const {
    return absl::StrCat(folder_, "/", std::string(name));
  }
  std::string Write(std::string_view name, const std::string& bytes) const {
    std::ofstream(Path(name), std::ios::binary) << bytes;
    return Path(name);
  }
  static std::string CodeFor(const std::string& path) {
    return CodeOf(Checkpoint::Open(path).status());
  }
  static ErrorClass ClassFor(const std::string& path) {
    return ClassOf(Checkpoint::Open(path).status());
  }
  static std::string Model(size_t data_bytes = 64) {
    GgufWriter w;
    w.Key("general.architecture", "llama");
    w.Tensor("t", {data_bytes / 4}, DType::kF32, std::string(data_bytes, 'd'));
    return w.Bytes();
  }
  static absl::Status ReadAll(const Checkpoint& checkpoint) {
    const TensorInfo& tensor = checkpoint.tensors().front();
    std::vector<std::byte> out(tensor.bytes);
    return checkpoint.Read(tensor, 0, {out.data(), out.size()});
  }

  std::string folder_;
};

TEST_F(CheckpointFiles, ReadsAnyPartOfATensor) {
  GgufWriter w;
  w.Tensor("a", {8}, DType::kF32, std::string(32, 'a'));
  w.Tensor("b", {8}, DType::kF32, "0123456789ABCDEF0123456789abcdef");
  const auto checkpoint = Checkpoint::Open(Write("m.gguf", w.Bytes()));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ((*checkpoint)->format(), Checkpoint::Format::kGguf);
  EXPECT_EQ((*checkpoint)->file_bytes(), w.Bytes().size());
  EXPECT_TRUE((*checkpoint)->side_files().empty());
  const TensorInfo* b = (*checkpoint)->Find("b");
  ASSERT_NE(b, nullptr);
  std::string out(5, '?');
  const std::span<std::byte> span(reinterpret_cast<std::byte*>(out.data()), 5);
  ASSERT_TRUE((*checkpoint)->Read(*b, 13, span).ok());
  EXPECT_EQ(out, "DEF01");
  ASSERT_TRUE((*checkpoint)->Read(*b, 27, span).ok());
  EXPECT_EQ(out, "bcdef");
  EXPECT_FALSE((*checkpoint)->Read(*b, 28, span).ok());
  EXPECT_FALSE((*checkpoint)->Read(*b, UINT64_MAX, span).ok());
}

TEST_F(CheckpointFiles, SafetensorsFileAloneIsExplained) {
  const std::string path = Write("model.safetensors", "x");
  EXPECT_EQ(CodeFor(path), "not_a_checkpoint");
  EXPECT_THAT(std::string(Checkpoint::Open(path).status().message()),
              HasSubstr("directory"));
}

TEST_F(CheckpointFiles, A30NothingThere) {
  EXPECT_EQ(CodeFor(Path("absent")), "file_not_found");
  EXPECT_EQ(ClassFor(Path("absent")), ErrorClass::kIo);
  EXPECT_EQ(ClassFor(""), ErrorClass::kIo);
  ASSERT_EQ(symlink("nowhere", Path("dangling").c_str()), 0);
  EXPECT_EQ(ClassFor(Path("dangling")), ErrorClass::kIo);
  ASSERT_EQ(symlink("loop", Path("loop").c_str()), 0);
  EXPECT_EQ(CodeFor(Path("loop")), "io_error");
  EXPECT_EQ(ClassFor(Write("file", "x") + "/below"), ErrorClass::kIo);
}

TEST_F(CheckpointFiles, A30NoPermission) {
  const std::string path = Write("secret.gguf", Model());
  chmod(path.c_str(), 0);
  const NoPrivileges as_any_user;
  EXPECT_EQ(CodeFor(path), "io_error");
}

// Opening or reading each of these plainly would block or never end.
TEST_F(CheckpointFiles, A30WhatIsNoRegularFile) {
  ASSERT_EQ(mkfifo(Path("fifo").c_str(), 0600), 0);
  const int server = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  ASSERT_LT(Path("socket").size(), sizeof(address.sun_path));
  std::strcpy(address.sun_path, Path("socket").c_str());
  ASSERT_EQ(
      bind(server, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  for (const std::string& path :
       {Path("fifo"), Path("socket"), std::string("/dev/zero"),
        std::string("/dev/random"), std::string("/dev/null")}) {
    EXPECT_EQ(CodeFor(path), "not_a_regular_file") << path;
    EXPECT_EQ(ClassFor(path), ErrorClass::kInput) << path;
  }
  close(server);
  // A file in /proc is regular and appears empty.
  EXPECT_EQ(CodeFor("/proc/self/maps"), "model_truncated");
  EXPECT_EQ(CodeFor(folder_), "not_a_checkpoint");
}

TEST_F(CheckpointFiles, A30SpecialSideFile) {
  ASSERT_EQ(mkfifo(Path("config.json").c_str(), 0600), 0);
  EXPECT_EQ(CodeFor(folder_), "not_a_regular_file");
}

TEST_F(CheckpointFiles, A31ShrunkAfterOpening) {
  const std::string path = Write("m.gguf", Model(1 << 20));
  const auto checkpoint = Checkpoint::Open(path);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  ASSERT_TRUE(ReadAll(**checkpoint).ok());
  ASSERT_EQ(truncate(path.c_str(), 4096), 0);
  EXPECT_EQ(CodeOf(ReadAll(**checkpoint)), "changed_during_load");
}

TEST_F(CheckpointFiles, A31GrownAfterOpening) {
  const std::string path = Write("m.gguf", Model());
  const auto checkpoint = Checkpoint::Open(path);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  std::ofstream(path, std::ios::app) << "more";
  EXPECT_EQ(CodeOf(ReadAll(**checkpoint)), "changed_during_load");
}

TEST_F(CheckpointFiles, A31WrittenInPlaceAfterOpening) {
  const std::string path = Write("m.gguf", Model());
  const auto checkpoint = Checkpoint::Open(path);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  // The clock of file times is coarse, so a time is set that surely differs.
  const timespec times[2] = {{1, 0}, {1, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  EXPECT_EQ(CodeOf(ReadAll(**checkpoint)), "changed_during_load");
}

TEST_F(CheckpointFiles, A31ReplacedAfterOpening) {
  const std::string path = Write("m.gguf", Model());
  const auto checkpoint = Checkpoint::Open(path);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  std::filesystem::rename(Write("new.gguf", Model()), path);
  const absl::Status status = ReadAll(**checkpoint);
  EXPECT_EQ(CodeOf(status), "changed_during_load");
  EXPECT_THAT(std::string(status.message()), HasSubstr("replaced"));
}

// The file has 20 GB but takes no room on the disk. Reading it would take
// minutes.
TEST_F(CheckpointFiles, A32SparseFileIsValidatedByItsHeader) {
  GgufWriter w;
  constexpr uint64_t kElements = uint64_t{5} << 30;
  w.RawTensor("first", {kElements / 2}, 0, 0);
  w.RawTensor("last", {kElements / 2}, 0, kElements * 2);
  std::string bytes = w.Header();
  bytes.resize((bytes.size() + 31) / 32 * 32, '\0');
  const std::string path = Write("sparse.gguf", bytes);
  const auto size = static_cast<off_t>(bytes.size() + kElements * 4);
  if (truncate(path.c_str(), size) != 0) {
    GTEST_SKIP() << "no sparse files here";
  }
  const auto checkpoint = Checkpoint::Open(path);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  // Offsets beyond 4 GB are not truncated.
  const TensorInfo* last = (*checkpoint)->Find("last");
  std::string out(16, '?');
  const std::span<std::byte> span(reinterpret_cast<std::byte*>(out.data()), 16);
  ASSERT_TRUE((*checkpoint)->Read(*last, last->bytes - 16, span).ok());
  EXPECT_EQ(out, std::string(16, '\0'));

  ASSERT_EQ(truncate(path.c_str(), size - 1), 0);
  EXPECT_EQ(CodeFor(path), "model_truncated");
}

}  // namespace
}  // namespace tiercel
