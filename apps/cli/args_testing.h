#ifndef TIERCEL_APPS_CLI_ARGS_TESTING_H_
#define TIERCEL_APPS_CLI_ARGS_TESTING_H_

#include <cstdlib>
#include <string>
#include <vector>

#include "apps/cli/args.h"
#include "apps/cli/error.h"
#include "gtest/gtest.h"

namespace tiercel::cli {

using Args = std::vector<std::string>;

// A fixture that parses command lines while TIERCEL_MODEL names a model.
class ArgsTest : public ::testing::Test {
 protected:
  ArgsTest() { setenv("TIERCEL_MODEL", "env.gguf", /*overwrite=*/1); }

  static Options Parse(const Args& args) {
    const absl::StatusOr<CommandLine> line = ParseArgs(args);
    EXPECT_TRUE(line.ok()) << line.status();
    return line.ok() ? line->options : Options();
  }

  // Returns the error's message; the error must be kUsage.
  static std::string Refusal(const Args& args) {
    const absl::StatusOr<CommandLine> line = ParseArgs(args);
    EXPECT_FALSE(line.ok()) << ::testing::PrintToString(args);
    EXPECT_EQ(ExitOf(line.status()), Exit::kUsage);
    return std::string(line.status().message());
  }
};

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_CLI_ARGS_TESTING_H_
