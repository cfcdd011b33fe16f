#include "kernels/device/cuda/blas_lt.h"

#include <stdlib.h>

#include <memory>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/device/cuda/blas_lt_for_test.h"
#include "kernels/system/faults.h"
#include "lib/status/error.h"

namespace tiercel {
namespace {

constexpr BlasLt::Product kProduct = {DType::kF16, 48,      64,
                                      nullptr,     nullptr, nullptr};

absl::Status Multiply(const BlasLt::Product& p) {
  absl::StatusOr<std::unique_ptr<BlasLt>> blas =
      BlasLt::Create(FakeBlas::Functions());
  if (!blas.ok()) return blas.status();
  return (*blas)->Multiply(nullptr, p);
}

TEST(BlasLtTest, AProductIsAskedForInColumns) {
  FakeBlas fake;
  int calls = 0;
  fake.multiply = [&](const FakeBlas::Call& call) {
    ++calls;
    EXPECT_EQ(call.product.compute, 68);
    EXPECT_EQ(call.product.scale, 0);
    EXPECT_EQ(call.product.transposed, 1);
    EXPECT_EQ(call.a_layout.type, calls < 3 ? 2 : 14);
    EXPECT_EQ(call.a_layout.rows, 64u);
    EXPECT_EQ(call.a_layout.columns, 48u);
    EXPECT_EQ(call.a_layout.stride, 64);
    EXPECT_EQ(call.b_layout.type, calls < 3 ? 2 : 14);
    EXPECT_EQ(call.b_layout.rows, 64u);
    EXPECT_EQ(call.b_layout.columns, 256u);
    EXPECT_EQ(call.b_layout.stride, 64);
    EXPECT_EQ(call.d_layout.type, 0);
    EXPECT_EQ(call.d_layout.rows, 48u);
    EXPECT_EQ(call.d_layout.columns, 256u);
    EXPECT_EQ(call.d_layout.stride, 48);
    EXPECT_EQ(call.algorithm, FakeBlas::kAlgorithm);
    return 0;
  };
  {
    const auto blas = *BlasLt::Create(FakeBlas::Functions());
    BlasLt::Product p = kProduct;
    EXPECT_TRUE(blas->Multiply(nullptr, p).ok());
    EXPECT_TRUE(blas->Multiply(nullptr, p).ok());
    p.type = DType::kBF16;
    EXPECT_TRUE(blas->Multiply(nullptr, p).ok());
    EXPECT_EQ(calls, 3);
    EXPECT_EQ(fake.calls["choose"], 2);  // one algorithm for each shape
    EXPECT_EQ(fake.reductions, 0u);      // no sum is split
    EXPECT_EQ(fake.workspace, 0u);
    EXPECT_THAT(fake.alignments, testing::Each(16u));
    EXPECT_EQ(fake.alive, 1 + 2 * 4);
    EXPECT_FALSE(fake.signals_in_create);
  }
  EXPECT_EQ(fake.alive, 0);
}

// Any call that fails returns its error, no handle is left, and the next call
// makes new ones.
TEST(BlasLtTest, WhatFailsIsTold) {
  for (const std::string call :
       {"create", "create_product", "set_product", "create_layout",
        "create_preference", "set_preference", "choose", "multiply"}) {
    FakeBlas fake;
    FailingCall refused(Callee::kBlasLt, call, FakeBlas::kRefused);
    refused.Arm(1, FailAt::kAll);
    const absl::Status status = Multiply(kProduct);
    EXPECT_EQ(CodeOf(status), "device_failed") << call;
    EXPECT_NE(std::string(status.message()).find("its status 13"),
              std::string::npos)
        << status;
    EXPECT_EQ(fake.alive, 0) << call;
  }
  FakeBlas fake;
  const auto blas = *BlasLt::Create(FakeBlas::Functions());
  fake.found = 0;
  EXPECT_EQ(blas->Multiply(nullptr, kProduct).message(),
            "cuBLASLt: it has no algorithm for a shape");
  EXPECT_EQ(fake.alive, 1);
  fake.found = 1;
  EXPECT_TRUE(blas->Multiply(nullptr, kProduct).ok());
}

TEST(BlasLtTest, AnotherVersionIsRefused) {
  FakeBlas fake;
  fake.version = 120805;
  const absl::Status status = Multiply(kProduct);
  EXPECT_EQ(CodeOf(status), "no_library");
  EXPECT_EQ(status.message(), "cuBLASLt: got version 12.8, need 13");
  EXPECT_EQ(fake.alive, 0);
}

TEST(BlasLtTest, ALibraryHasToBeThereAndHaveAllOfIt) {
  const absl::Status missing = BlasLt::Load("libnothing.so.13").status();
  EXPECT_EQ(CodeOf(missing), "no_library");
  EXPECT_NE(std::string(missing.message()).find("libnothing.so.13"),
            std::string::npos);
  EXPECT_EQ(BlasLt::Load("libm.so.6").status().message(),
            "cuBLASLt: libm.so.6 has no cublasLtGetVersion");
}

TEST(BlasLtTest, ItIsAskedForByTheEnvironment) {
  for (const char* off : {"", "0"}) {
    setenv("TIERCEL_CUBLASLT", off, /*overwrite=*/1);
    const auto blas = BlasLt::FromEnvironment();
    ASSERT_TRUE(blas.ok());
    EXPECT_EQ(*blas, nullptr);
  }
  setenv("TIERCEL_CUBLASLT", "yes", /*overwrite=*/1);
  EXPECT_EQ(BlasLt::FromEnvironment().status().message(),
            "TIERCEL_CUBLASLT: got \"yes\", need 0 or 1");
  unsetenv("TIERCEL_CUBLASLT");
  EXPECT_EQ(*BlasLt::FromEnvironment(), nullptr);
}

TEST(BlasLtTest, WhatItTakes) {
  EXPECT_TRUE(BlasLt::Takes(DType::kF16, 64));
  EXPECT_TRUE(BlasLt::Takes(DType::kBF16, 8));
  EXPECT_FALSE(BlasLt::Takes(DType::kF16, 68));
  EXPECT_FALSE(BlasLt::Takes(DType::kF32, 64));
  EXPECT_FALSE(BlasLt::Takes(DType::kQ8_0, 64));
}

}  // namespace
}  // namespace tiercel
