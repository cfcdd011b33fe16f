#include "kernels/device/cuda/blas_lt.h"

#include <cstdlib>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "kernels/device/cuda/blas_lt_abi.h"
#include "kernels/device/cuda/dynamic_library.h"
#include "kernels/system/no_signals.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {
namespace {

constexpr const char* kLibrary = "libcublasLt.so.13";

absl::Status NoLibrary(const std::string& why) {
  return DeviceError("no_library", absl::StrCat("cuBLASLt: ", why));
}

absl::Status StatusOf(std::string_view call, int error) {
  if (error == 0) return absl::OkStatus();
  return DeviceError("device_failed",
                     absl::StrCat("cuBLASLt: ", std::string(call),
                                  " ended with its status ", error));
}

}  // namespace

absl::StatusOr<BlasLtFunctions> BlasLt::Load(const char* library) {
  ASSIGN_OR_RETURN(DynamicLibrary loaded,
                   DynamicLibrary::Load("cuBLASLt", library));
  BlasLtFunctions f;
  loaded.Find("cublasLtGetVersion", &f.version);
  loaded.Find("cublasLtCreate", &f.create);
  loaded.Find("cublasLtDestroy", &f.destroy);
  loaded.Find("cublasLtMatmulDescCreate", &f.create_product);
  loaded.Find("cublasLtMatmulDescDestroy", &f.destroy_product);
  loaded.Find("cublasLtMatmulDescSetAttribute", &f.set_product);
  loaded.Find("cublasLtMatrixLayoutCreate", &f.create_layout);
  loaded.Find("cublasLtMatrixLayoutDestroy", &f.destroy_layout);
  loaded.Find("cublasLtMatmulPreferenceCreate", &f.create_preference);
  loaded.Find("cublasLtMatmulPreferenceDestroy", &f.destroy_preference);
  loaded.Find("cublasLtMatmulPreferenceSetAttribute", &f.set_preference);
  loaded.Find("cublasLtMatmulAlgoGetHeuristic", &f.choose);
  loaded.Find("cublasLtMatmul", &f.multiply);
  RETURN_IF_ERROR(loaded.HasAll());
  return f;
}

absl::StatusOr<std::unique_ptr<BlasLt>> BlasLt::Create(
    const BlasLtFunctions& functions) {
  const size_t version = functions.version();
  if (version / 10000 != kVersion) {
    return NoLibrary(absl::StrCat("got version ", version / 10000, ".",
                                  version / 100 % 100, ", need ", kVersion));
  }
  std::unique_ptr<BlasLt> blas(new BlasLt(functions));
  const NoSignals no_signals;  // for threads that the library makes
  if (absl::Status s = StatusOf("Create", functions.create(&blas->library_));
      !s.ok()) {
    blas->library_ = nullptr;
    return s;
  }
  return blas;
}

bool BlasLt::IsAsked() {
  const char* const asked = std::getenv("TIERCEL_CUBLASLT");
  return asked != nullptr && std::string_view(asked) == "1";
}

absl::StatusOr<std::unique_ptr<BlasLt>> BlasLt::FromEnvironment() {
  const char* const asked = std::getenv("TIERCEL_CUBLASLT");
  const std::string_view value = asked == nullptr ? "" : asked;
  if (value.empty() || value == "0") return nullptr;
  if (value != "1") {
    return UsageError("invalid_environment",
                      absl::StrCat("TIERCEL_CUBLASLT: got \"",
                                   std::string(value), "\", need 0 or 1"));
  }
  const absl::StatusOr<BlasLtFunctions> functions = Load(kLibrary);
  if (!functions.ok()) {
    return Annotate(functions.status(), "TIERCEL_CUBLASLT=1");
  }
  return Create(*functions);
}

BlasLt::~BlasLt() {
  for (const auto& [shape, plan] : plans_) Destroy(plan);
  if (library_ != nullptr) call_.destroy(library_);
}

bool BlasLt::Takes(DType type, int64_t k) {
  return (type == DType::kF16 || type == DType::kBF16) && k % 8 == 0;
}

absl::Status BlasLt::Multiply(CUstream_st* stream, const Product& p) {
  const auto [known, is_new] = plans_.try_emplace({p.type, p.n, p.k});
  Plan& plan = known->second;
  if (is_new) {
    absl::Status made = MakePlan(p, &plan);
    if (made.ok()) made = Choose(&plan);
    if (!made.ok()) {
      Destroy(plan);
      plans_.erase(known);
      return made;
    }
  }
  const float one = 1.0f;
  const float nothing = 0.0f;
  return StatusOf("Matmul",
                  call_.multiply(library_, plan.product, &one, p.w, plan.w, p.x,
                                 plan.x, &nothing, p.out, plan.out, p.out,
                                 plan.out, plan.choice.algorithm,
                                 /*workspace=*/nullptr, 0, stream));
}

// The library's matrices are column-major, so our rows are its columns.
absl::Status BlasLt::MakePlan(const Product& p, Plan* plan) {
  const int type =
      p.type == DType::kF16 ? blas_lt::kTypeF16 : blas_lt::kTypeBf16;
  const auto n = static_cast<uint64_t>(p.n);
  const auto k = static_cast<uint64_t>(p.k);
  const auto rows = static_cast<uint64_t>(kRows);
  const int32_t transposed = blas_lt::kTransposed;
  RETURN_IF_ERROR(
      StatusOf("MatmulDescCreate",
               call_.create_product(&plan->product, blas_lt::kComputeF32,
                                    blas_lt::kTypeF32)));
  RETURN_IF_ERROR(
      StatusOf("MatmulDescSetAttribute",
               call_.set_product(plan->product, blas_lt::kTransposeOfFirst,
                                 &transposed, sizeof(transposed))));
  const struct {
    void** layout;
    int type;
    uint64_t rows;
    uint64_t columns;
  } layouts[] = {{&plan->w, type, k, n},
                 {&plan->x, type, k, rows},
                 {&plan->out, blas_lt::kTypeF32, n, rows}};
  for (const auto& l : layouts) {
    RETURN_IF_ERROR(
        StatusOf("MatrixLayoutCreate",
                 call_.create_layout(l.layout, l.type, l.rows, l.columns,
                                     static_cast<int64_t>(l.rows))));
  }
  return absl::OkStatus();
}

// Takes the library's first algorithm that needs no workspace, splits no sum
// and expects matrices to be aligned to kAlignment only: by default the library
// expects more.
absl::Status BlasLt::Choose(Plan* plan) {
  void* preference = nullptr;
  absl::Status status =
      StatusOf("MatmulPreferenceCreate", call_.create_preference(&preference));
  if (!status.ok()) return status;
  const auto prefer = [&](int attribute, const auto& value) {
    status.Update(StatusOf(
        "MatmulPreferenceSetAttribute",
        call_.set_preference(preference, attribute, &value, sizeof(value))));
  };
  prefer(blas_lt::kReductionSchemes, uint32_t{0});
  prefer(blas_lt::kMostWorkspace, uint64_t{0});
  for (const int alignment : blas_lt::kLeastAlignments) {
    prefer(alignment, kAlignment);
  }
  int found = 0;
  if (status.ok()) {
    status = StatusOf(
        "MatmulAlgoGetHeuristic",
        call_.choose(library_, plan->product, plan->w, plan->x, plan->out,
                     plan->out, preference, 1, &plan->choice, &found));
  }
  call_.destroy_preference(preference);
  if (!status.ok()) return status;
  if (found < 1) {
    return DeviceError("device_failed",
                       "cuBLASLt: it has no algorithm for a shape");
  }
  return StatusOf("the chosen algorithm", plan->choice.status);
}

void BlasLt::Destroy(const Plan& plan) {
  for (void* layout : {plan.w, plan.x, plan.out}) {
    if (layout != nullptr) call_.destroy_layout(layout);
  }
  if (plan.product != nullptr) call_.destroy_product(plan.product);
}

}  // namespace tiercel
