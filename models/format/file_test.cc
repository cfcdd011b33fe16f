#include "models/format/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <deque>

#include "lib/status/error.h"
#include "models/format/files_for_test.h"

namespace tiercel {
namespace {

using ::testing::HasSubstr;

// A file whose calls follow a script: each read takes the next step, and after
// the last one reads are whole.
class ScriptedSource : public FileSource {
 public:
  struct Step {
    ssize_t most;  // bytes to give; -1 fails with `error`
    int error = 0;
  };
  ScriptedSource(std::string bytes, std::deque<Step> steps)
      : memory_(std::move(bytes)), steps_(std::move(steps)) {
    memory_.Stat(&identity);
  }

  ssize_t Pread(std::byte* out, size_t count, uint64_t offset) const override {
    if (steps_.empty()) return memory_.Pread(out, count, offset);
    const Step step = steps_.front();
    steps_.pop_front();
    if (step.most >= 0) {
      return memory_.Pread(out, std::min<size_t>(count, step.most), offset);
    }
    errno = step.error;
    return -1;
  }
  int Stat(Identity* out) const override {
    *out = identity;
    return 0;
  }

  Identity identity;

 private:
  const MemorySource memory_;
  mutable std::deque<Step> steps_;
};

constexpr char kBytes[] = "0123456789";

// Reads [2, 8) by the script and returns the bytes, or the error's code.
std::string ReadWith(std::deque<ScriptedSource::Step> steps) {
  const std::unique_ptr<File> file =
      *File::Over("f", std::make_unique<ScriptedSource>(kBytes, steps));
  std::string out(6, '?');
  const absl::Status status =
      file->Read(2, {reinterpret_cast<std::byte*>(out.data()), out.size()});
  return status.ok() ? out : CodeOf(status);
}

TEST(File, ContinuesShortAndInterruptedReads) {
  EXPECT_EQ(ReadWith({}), "234567");
  EXPECT_EQ(ReadWith({{1}, {1}, {1}, {1}, {1}, {1}}), "234567");
  EXPECT_EQ(ReadWith({{3}}), "234567");
  EXPECT_EQ(ReadWith({{5}}), "234567");
  EXPECT_EQ(ReadWith({{-1, EINTR}, {2}, {-1, EINTR}, {-1, EAGAIN}}), "234567");
  EXPECT_EQ(ReadWith(std::deque<ScriptedSource::Step>(100, {-1, EAGAIN})),
            "234567");
}

TEST(File, RetriesEndSometime) {
  EXPECT_EQ(ReadWith(std::deque<ScriptedSource::Step>(100'000, {-1, EAGAIN})),
            "io_error");
}

TEST(File, RetriesCountFromTheLastProgress) {
  std::deque<ScriptedSource::Step> steps;
  for (int byte = 0; byte < 6; ++byte) {
    for (int i = 0; i < 600; ++i) steps.push_back({-1, EINTR});
    steps.push_back({1});
  }
  EXPECT_EQ(ReadWith(steps), "234567");
}

TEST(File, SystemErrorsAreIoErrors) {
  for (const int error : {EIO, ENODEV, ENOMEM, ESTALE}) {
    EXPECT_EQ(ReadWith({{2}, {-1, error}}), "io_error");
  }
  EXPECT_EQ(ReadWith({{2}, {0}}), "io_error");  // ends early, size unchanged
}

TEST(File, ErrorsNameFileAndByte) {
  const std::unique_ptr<File> file = *File::Over(
      "dir/name",
      std::make_unique<ScriptedSource>(
          kBytes, std::deque<ScriptedSource::Step>{{4}, {-1, EIO}}));
  std::byte out[6];
  const absl::Status status = file->Read(2, {out, 6});
  EXPECT_EQ(ClassOf(status), ErrorClass::kIo);
  EXPECT_THAT(std::string(status.message()), HasSubstr("dir/name"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("2 bytes at byte 6"));
}

TEST(File, EmptyReadSucceedsAnywhere) {
  const std::unique_ptr<File> file = MemoryFile(kBytes);
  EXPECT_TRUE(file->Read(10, {}).ok());
}

// A31: each attribute by which one state of a file differs from another.
TEST(File, A31ChangesAreSeenByTheNextRead) {
  const auto code_after = [](auto change) {
    auto source = std::make_unique<ScriptedSource>(
        kBytes, std::deque<ScriptedSource::Step>());
    ScriptedSource* script = source.get();
    script->identity = {10, 1'000'000'000, 7, 8, true};
    const std::unique_ptr<File> file = *File::Over("f", std::move(source));
    std::byte out[4];
    EXPECT_TRUE(file->Read(0, {out, 4}).ok());
    change(script->identity);
    const absl::Status status = file->Read(0, {out, 4});
    EXPECT_EQ(ClassOf(status), ErrorClass::kIo);
    return CodeOf(status);
  };
  using Identity = FileSource::Identity;
  for (const auto& change : std::vector<void (*)(Identity&)>{
           [](Identity& i) { i.size = 9; }, [](Identity& i) { i.size = 11; },
           [](Identity& i) { ++i.mtime_ns; }, [](Identity& i) { ++i.inode; },
           [](Identity& i) { ++i.device; },
           [](Identity& i) { i.linked = false; }}) {
    EXPECT_EQ(code_after(change), "changed_during_load");
  }
}

TEST(File, A31ShrunkFileIsNotCalledBroken) {
  auto source = std::make_unique<ScriptedSource>(
      "0123", std::deque<ScriptedSource::Step>());
  ScriptedSource* script = source.get();
  script->identity.size = 10;
  const std::unique_ptr<File> file = *File::Over("f", std::move(source));
  script->identity.size = 4;
  std::byte out[8];
  EXPECT_EQ(CodeOf(file->Read(0, {out, 8})), "changed_during_load");
}

}  // namespace
}  // namespace tiercel
