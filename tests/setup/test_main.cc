// main of every test program. The files of one folder are one program, and its
// first argument may name one of them: `kernels_layer_tests
// kernels/layer/rope_test.cc` runs the cases of that file, but for those that
// GTEST_FILTER excludes, if it begins with "-". GoogleTest's own flags work
// without it. Cases run in the root of the repository, so that their
// paths begin there and their objects are the same in every clone; where there
// is no repository, TIERCEL_TEST_FOLDER names a folder. TempDir() is a folder
// of this process alone, so tests can run beside each other.
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace {

// GoogleTest's filter for the cases of the file whose path ends with `path`.
std::string CasesOf(std::string_view path) {
  std::string filter;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *all.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const testing::TestInfo& test = *suite.GetTestInfo(j);
      const std::string_view file = test.file();
      if (file.size() < path.size() ||
          file.substr(file.size() - path.size()) != path) {
        continue;
      }
      if (!filter.empty()) filter += ':';
      filter += std::string(suite.name()) + '.' + test.name();
    }
  }
  return filter;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  if (argc > 1) {
    const std::string filter = CasesOf(argv[1]);
    if (filter.empty()) {
      std::fprintf(stderr, "%s: no case is of the file %s\n", argv[0], argv[1]);
      return 2;
    }
    const std::string given = testing::GTEST_FLAG(filter);
    testing::GTEST_FLAG(filter) =
        given.starts_with('-') ? filter + given : filter;
  }
  const char* carried = getenv("TIERCEL_TEST_FOLDER");
  const char* folder = carried != nullptr ? carried : TIERCEL_SOURCE_DIR;
  if (chdir(folder) != 0) {
    std::perror(folder);
    return 2;
  }
  std::string made = testing::TempDir() + "tiercel_XXXXXX";
  if (mkdtemp(made.data()) == nullptr) {
    std::perror(made.c_str());
    return 2;
  }
  setenv("TEST_TMPDIR", (made + "/").c_str(), /*overwrite=*/1);
  const int failed = RUN_ALL_TESTS();
  std::error_code ignored;  // a folder that stays harms no other test
  std::filesystem::remove_all(made, ignored);
  return failed;
}
