#include "runtime/api/build_identity.h"

#include <dlfcn.h>
#include <stdlib.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tiercel {
namespace {

TEST(BuildIdentityTest, IsThatOfThisProgram) {
  const std::string id = BuildIdentity();
  ASSERT_GE(id.size(), 16u);
  // A system tool reads the notes of the running file.
  std::FILE* pipe = popen("readelf -n /proc/$PPID/exe 2>&1", "r");
  ASSERT_NE(pipe, nullptr);
  std::string notes;
  std::array<char, 4096> part;
  for (size_t got; (got = fread(part.data(), 1, part.size(), pipe)) > 0;) {
    notes.append(part.data(), got);
  }
  pclose(pipe);
  EXPECT_THAT(notes, testing::HasSubstr(id));
}

// ---- Without a build id ----

namespace fs = std::filesystem;

// A loaded copy of one of the two builds, which differ in a number.
class LoadedBuild {
 public:
  LoadedBuild(const std::string& folder, const char* build)
      : path_(folder + "/" + fs::path(build).filename().string()) {
    fs::copy_file(build, path_, fs::copy_options::overwrite_existing);
    object_ = dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(object_, nullptr) << dlerror();
  }
  ~LoadedBuild() {
    // The identity is never destroyed, and LeakSanitizer looks for it in
    // objects that are loaded.
#if !defined(__SANITIZE_ADDRESS__)
    dlclose(object_);
#endif
  }
  LoadedBuild(const LoadedBuild&) = delete;
  LoadedBuild& operator=(const LoadedBuild&) = delete;

  const std::string& path() const { return path_; }
  std::string Identity() const {
    return reinterpret_cast<const char* (*)()>(
        dlsym(object_, "IdentityForTests"))();
  }
  double& Number() const {
    return *reinterpret_cast<double* (*)()>(dlsym(object_, "NumberForTests"))();
  }

 private:
  std::string path_;
  void* object_;
};

class NoBuildIdTest : public testing::Test {
 protected:
  NoBuildIdTest() {
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
    other_ = folder_ + "/other";
    fs::create_directory(other_);
  }
  ~NoBuildIdTest() override { fs::remove_all(folder_); }

  std::string folder_ = testing::TempDir() + "builds_XXXXXX";
  std::string other_;  // a folder within folder_
};

TEST_F(NoBuildIdTest, TheFileTellsBuildsApart) {
  const LoadedBuild one(folder_, TIERCEL_BUILD_1);
  one.Number() = 7;  // later writes make no difference
  const LoadedBuild same(other_, TIERCEL_BUILD_1);
  const LoadedBuild two(folder_, TIERCEL_BUILD_2);
  EXPECT_EQ(one.Identity().size(), 5u + 32u);
  EXPECT_EQ(one.Identity(), same.Identity());
  EXPECT_NE(one.Identity(), two.Identity());
}

// A file that is gone or replaced says nothing of the one that was loaded.
TEST_F(NoBuildIdTest, AnotherFileIsNotBelieved) {
  const LoadedBuild gone(folder_, TIERCEL_BUILD_1);
  fs::remove(gone.path());
  EXPECT_EQ(gone.Identity(), "");
  const LoadedBuild replaced(folder_, TIERCEL_BUILD_2);
  fs::remove(replaced.path());
  fs::copy_file("/proc/self/exe", replaced.path());
  EXPECT_EQ(replaced.Identity(), "");
  const LoadedBuild cut(other_, TIERCEL_BUILD_1);
  fs::remove(cut.path());
  std::ofstream(cut.path()) << "";
  EXPECT_EQ(cut.Identity(), "");
}

}  // namespace
}  // namespace tiercel
