#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/status/error.h"
#include "models/format/files_for_test.h"
#include "models/format/gguf.h"
#include "models/format/gguf_writer_for_test.h"

// The name A29 is a line of the project's table of bad inputs.

namespace tiercel::gguf_set_test {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

// Three parts of one model, one tensor in each.
std::map<std::string, std::string> ThreeParts() {
  std::map<std::string, std::string> files;
  for (uint16_t part = 0; part < 3; ++part) {
    GgufWriter w;
    if (part == 0) w.Key("general.architecture", "llama");
    w.Key<uint16_t>("split.no", part).Key<uint16_t>("split.count", 3);
    w.Key<int32_t>("split.tensors.count", 3);
    w.Tensor(absl::StrCat("t", part), {8}, DType::kF32,
             std::string(32, static_cast<char>('a' + part)));
    files[absl::StrCat("dir/m-0000", part + 1, "-of-00003.gguf")] = w.Bytes();
  }
  return files;
}
constexpr char kFirst[] = "dir/m-00001-of-00003.gguf";
constexpr char kSecond[] = "dir/m-00002-of-00003.gguf";
constexpr char kThird[] = "dir/m-00003-of-00003.gguf";

absl::Status OpenStatus(const std::map<std::string, std::string>& files,
                        const std::string& path = kFirst) {
  return OpenGguf(path, MemoryOpener(files)).status();
}

TEST(GgufSet, IsOneCheckpoint) {
  const std::map<std::string, std::string> files = ThreeParts();
  const auto checkpoint = OpenGguf(kFirst, MemoryOpener(files));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  ASSERT_THAT((*checkpoint)->tensors(), SizeIs(3));
  for (int part = 0; part < 3; ++part) {
    const TensorInfo* tensor = (*checkpoint)->Find(absl::StrCat("t", part));
    ASSERT_NE(tensor, nullptr);
    EXPECT_EQ(tensor->file, part);
    std::string data(32, '?');
    ASSERT_TRUE(
        (*checkpoint)
            ->Read(*tensor, 0, {reinterpret_cast<std::byte*>(data.data()), 32})
            .ok());
    EXPECT_EQ(data, std::string(32, static_cast<char>('a' + part)));
  }
  EXPECT_TRUE((*checkpoint)->metadata().Has("general.architecture"));
  uint64_t bytes = 0;
  for (const auto& [name, content] : files) bytes += content.size();
  EXPECT_EQ((*checkpoint)->file_bytes(), bytes);
}

// Some converters write this; the file may have any name.
TEST(GgufSet, OneOfOneIsAFileByItself) {
  for (const uint16_t count : {uint16_t{0}, uint16_t{1}}) {
    GgufWriter w;
    w.Key<uint16_t>("split.no", 0).Key<uint16_t>("split.count", count);
    w.Tensor("t", {8}, DType::kF32);
    EXPECT_TRUE(OpenStatus({{"any.gguf", w.Bytes()}}, "any.gguf").ok())
        << count;
  }
}

TEST(GgufSet, A29MissingPart) {
  std::map<std::string, std::string> files = ThreeParts();
  files.erase(kThird);
  const absl::Status status = OpenStatus(files);
  EXPECT_EQ(CodeOf(status), "file_not_found");
  EXPECT_EQ(ClassOf(status), ErrorClass::kIo);
  EXPECT_THAT(std::string(status.message()), HasSubstr("part 3 of 3"));
  EXPECT_THAT(std::string(status.message()), HasSubstr(kThird));
}

// Headers are enough to describe a model.
TEST(GgufSet, WhatIsMissingIsToldWhereHeadersAreEnough) {
  const auto missing = [](const std::map<std::string, std::string>& files,
                          const std::string& path, size_t tensors) {
    const auto checkpoint =
        OpenGguf(path, MemoryOpener(files), Checkpoint::Need::kHeaders);
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
    if (!checkpoint.ok()) return std::string();
    EXPECT_THAT((*checkpoint)->tensors(), SizeIs(tensors));
    return std::string((*checkpoint)->missing().message());
  };
  std::map<std::string, std::string> files = ThreeParts();
  EXPECT_EQ(missing(files, kFirst, 3), "");
  EXPECT_THAT(missing(files, kSecond, 1), HasSubstr("by its first part"));
  files[kThird].pop_back();
  EXPECT_THAT(missing(files, kFirst, 3), HasSubstr("tensor \"t2\" ends at"));
  files[kThird].resize(16);
  EXPECT_THAT(missing(files, kFirst, 2), HasSubstr("part 3 of 3"));
  files.erase(kThird);
  EXPECT_THAT(missing(files, kFirst, 2), HasSubstr("part 3 of 3"));
  files[kFirst].resize(16);
  EXPECT_EQ(
      CodeOf(OpenGguf(kFirst, MemoryOpener(files), Checkpoint::Need::kHeaders)
                 .status()),
      "model_truncated");
}

TEST(GgufSet, APartThatIsAPointerOfGitLfs) {
  for (const char* part : {kFirst, kThird}) {
    std::map<std::string, std::string> files = ThreeParts();
    files[part] =
        "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 9\n";
    EXPECT_EQ(CodeOf(OpenStatus(files)), "git_lfs_pointer");
    EXPECT_EQ(
        CodeOf(OpenGguf(kFirst, MemoryOpener(files), Checkpoint::Need::kHeaders)
                   .status()),
        "git_lfs_pointer");
    EXPECT_THAT(std::string(OpenStatus(files).message()), HasSubstr(part));
  }
}

TEST(GgufSet, A29RepeatedPart) {
  std::map<std::string, std::string> files = ThreeParts();
  files[kThird] = files[kSecond];
  const absl::Status status = OpenStatus(files);
  EXPECT_EQ(CodeOf(status), "invalid_split");
  EXPECT_THAT(std::string(status.message()), HasSubstr(kThird));
  EXPECT_THAT(std::string(status.message()), HasSubstr("it is part 2"));
}

TEST(GgufSet, A29ReorderedParts) {
  std::map<std::string, std::string> files = ThreeParts();
  std::swap(files[kSecond], files[kThird]);
  const absl::Status status = OpenStatus(files);
  EXPECT_EQ(CodeOf(status), "invalid_split");
  EXPECT_THAT(std::string(status.message()), HasSubstr(kSecond));
}

TEST(GgufSet, A29PartOfAnotherModel) {
  std::map<std::string, std::string> files = ThreeParts();
  GgufWriter other;
  other.Key("general.architecture", "qwen2");
  other.Key<uint16_t>("split.no", 1).Key<uint16_t>("split.count", 3);
  other.Key<int32_t>("split.tensors.count", 3);
  other.Tensor("t1", {8}, DType::kF32);
  files[kSecond] = other.Bytes();
  EXPECT_EQ(CodeOf(OpenStatus(files)), "invalid_split");
  EXPECT_THAT(std::string(OpenStatus(files).message()), HasSubstr(kSecond));

  // A part that repeats another part's tensor.
  GgufWriter same;
  same.Key<uint16_t>("split.no", 1).Key<uint16_t>("split.count", 3);
  same.Key<int32_t>("split.tensors.count", 3);
  same.Tensor("t0", {8}, DType::kF32);
  files[kSecond] = same.Bytes();
  EXPECT_EQ(CodeOf(OpenStatus(files)), "duplicate_tensor");
  EXPECT_THAT(std::string(OpenStatus(files).message()), HasSubstr(kSecond));

  // A file that belongs to no set.
  GgufWriter single;
  single.Tensor("t1", {8}, DType::kF32);
  files[kSecond] = single.Bytes();
  EXPECT_EQ(CodeOf(OpenStatus(files)), "invalid_split");
}

TEST(GgufSet, A29CountsThatLie) {
  const auto with = [](int64_t count, int32_t tensors) {
    std::map<std::string, std::string> files = ThreeParts();
    GgufWriter w;
    w.Key<uint16_t>("split.no", 0).Key<int64_t>("split.count", count);
    w.Key<int32_t>("split.tensors.count", tensors);
    w.Tensor("t0", {8}, DType::kF32);
    files[kFirst] = w.Bytes();
    return CodeOf(OpenStatus(files));
  };
  EXPECT_EQ(with(2, 3), "invalid_split");
  EXPECT_EQ(with(4, 3), "invalid_split");
  EXPECT_EQ(with(-1, 3), "invalid_split");
  EXPECT_EQ(with(1 << 20, 3), "invalid_split");
  EXPECT_EQ(with(3, 4), "invalid_split");
  EXPECT_EQ(with(3, -1), "invalid_split");

  // All parts declare the same wrong number of tensors.
  std::map<std::string, std::string> files;
  for (uint16_t part = 0; part < 3; ++part) {
    GgufWriter w;
    w.Key<uint16_t>("split.no", part).Key<uint16_t>("split.count", 3);
    w.Key<int32_t>("split.tensors.count", 4);
    w.Tensor(absl::StrCat("t", part), {8}, DType::kF32);
    files[absl::StrCat("dir/m-0000", part + 1, "-of-00003.gguf")] = w.Bytes();
  }
  EXPECT_EQ(CodeOf(OpenStatus(files)), "invalid_split");
}

TEST(GgufSet, OtherPartThanTheFirst) {
  const absl::Status status = OpenStatus(ThreeParts(), kSecond);
  EXPECT_EQ(CodeOf(status), "invalid_split");
  EXPECT_THAT(std::string(status.message()), HasSubstr("first part"));
}

TEST(GgufSet, RenamedFirstPart) {
  std::map<std::string, std::string> files = ThreeParts();
  files["dir/model.gguf"] = files[kFirst];
  const absl::Status status = OpenStatus(files, "dir/model.gguf");
  EXPECT_EQ(CodeOf(status), "invalid_split");
  EXPECT_THAT(std::string(status.message()), HasSubstr("-00001-of-00003.gguf"));
}

}  // namespace
}  // namespace tiercel::gguf_set_test
