#include "lib/status/status_macros.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tiercel {
namespace {

absl::StatusOr<int> Half(int n) {
  if (n % 2 != 0) return absl::InvalidArgumentError("odd");
  return n / 2;
}

// The number of steps that went well is counted, so that a step after a failure
// would be seen.
absl::Status Check(int n, int* steps) {
  RETURN_IF_ERROR(Half(n).status());
  ++*steps;
  RETURN_IF_ERROR(n > 10 ? absl::OutOfRangeError("great") : absl::OkStatus());
  ++*steps;
  return absl::OkStatus();
}

TEST(ReturnIfErrorTest, ReturnsTheFirstErrorAlone) {
  int steps = 0;
  EXPECT_EQ(Check(3, &steps), absl::InvalidArgumentError("odd"));
  EXPECT_EQ(steps, 0);
  EXPECT_EQ(Check(12, &steps), absl::OutOfRangeError("great"));
  EXPECT_EQ(steps, 1);
  EXPECT_TRUE(Check(4, &steps).ok());
  EXPECT_EQ(steps, 3);
}

TEST(ReturnIfErrorTest, IsOneStatementBehindACondition) {
  const auto check = [](bool wanted) -> absl::Status {
    if (wanted)
      RETURN_IF_ERROR(absl::InternalError("wanted"));
    else
      return absl::UnknownError("not wanted");
    return absl::OkStatus();
  };
  EXPECT_EQ(check(true), absl::InternalError("wanted"));
  EXPECT_EQ(check(false), absl::UnknownError("not wanted"));
}

absl::StatusOr<int> Quarter(int n, int* assigned) {
  ASSIGN_OR_RETURN(const int half, Half(n));
  ASSIGN_OR_RETURN(*assigned, Half(half));
  return *assigned;
}

TEST(AssignOrReturnTest, DeclaresAndAssigns) {
  int assigned = -1;
  EXPECT_EQ(Quarter(8, &assigned).value(), 2);
  EXPECT_EQ(assigned, 2);
}

TEST(AssignOrReturnTest, LeavesWhatWasAssignedOnFailure) {
  int assigned = -1;
  EXPECT_EQ(Quarter(6, &assigned).status(), absl::InvalidArgumentError("odd"));
  EXPECT_EQ(Quarter(7, &assigned).status(), absl::InvalidArgumentError("odd"));
  EXPECT_EQ(assigned, -1);
}

absl::StatusOr<std::unique_ptr<int>> Moved(
    absl::StatusOr<std::unique_ptr<int>> from) {
  ASSIGN_OR_RETURN(std::unique_ptr<int> value, std::move(from));
  return value;
}

TEST(AssignOrReturnTest, MovesTheValue) {
  EXPECT_EQ(**Moved(std::make_unique<int>(7)), 7);
  EXPECT_EQ(Moved(absl::NotFoundError("none")).status(),
            absl::NotFoundError("none"));
}

TEST(AssignOrReturnTest, TakesCommasInTheExpression) {
  const auto find = [](int key) -> absl::StatusOr<int> {
    ASSIGN_OR_RETURN(const auto found,
                     absl::StatusOr<std::map<int, int>>({{1, 2}, {3, 4}}));
    const auto it = found.find(key);
    return it == found.end() ? -1 : it->second;
  };
  EXPECT_EQ(find(3).value(), 4);
}

}  // namespace
}  // namespace tiercel
