#include "kernels/layer/expert_choice.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "kernels/device/cuda/cuda_driver.h"
#include "kernels/device/op.h"
#include "kernels/number/reference_math.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {

float ExpertPowersReference(const float* logits, int experts, float* powers) {
  float max = logits[0];
  for (int e = 1; e < experts; ++e) {
    if (std::isnan(logits[e]) || logits[e] > max) max = logits[e];
  }
  float lane[16] = {};
  for (int e = 0; e < experts; ++e) {
    powers[e] = ExpLane(logits[e] - max);
    lane[e % 16] += powers[e];
  }
  return SumLanes(lane);
}

namespace {

constexpr PerIsa<ExpertPowersFn*> kPowers = {
    portable::ExpertPowers, avx2::ExpertPowers, avx512::ExpertPowers,
    avx512::ExpertPowers};

absl::Status Validate(const ExpertChoiceParams& p) {
  if (p.rows < 0 || p.experts < 1 ||
      p.experts > ExpertChoiceParams::kMostExperts || p.used < 1 ||
      p.used > p.experts) {
    return UsageError(
        "invalid_sizes",
        absl::StrCat("ExpertChoice: rows=", p.rows, ", experts=", p.experts,
                     ", used=", p.used, "; need rows >= 0, experts 1 to ",
                     ExpertChoiceParams::kMostExperts, ", used 1 to experts"));
  }
  if (p.rows == 0) return absl::OkStatus();
  const char* const missing = p.logits == nullptr   ? "logits"
                              : p.chosen == nullptr ? "chosen"
                              : p.shares == nullptr ? "shares"
                                                    : nullptr;
  if (missing == nullptr) return absl::OkStatus();
  return UsageError("invalid_argument",
                    absl::StrCat("ExpertChoice: ", missing, " is null"));
}

// Orders experts by their logits and, if these are equal, by their indices, the
// lower one first.
uint64_t OrderOf(float logit, int expert) {
  return uint64_t{ExpertOrder(logit)} << 32 |
         (~uint32_t{0} - static_cast<uint32_t>(expert));
}

void ChooseOf(const ExpertChoiceParams& p, int64_t row, const float* powers,
              float sum) {
  const float* const logits = p.logits.raw() + row * p.experts;
  int32_t* const chosen = p.chosen.raw() + row * p.used;
  float* const shares = p.shares.raw() + row * p.used;
  // The order of the last one that is chosen.
  uint64_t least = ~uint64_t{0};
  for (int i = 0; i < p.used; ++i) {
    uint64_t next = 0;
    for (int e = 0; e < p.experts; ++e) {
      const uint64_t order = OrderOf(logits[e], e);
      if (order < least && order > next) next = order;
    }
    least = next;
  }
  int count = 0;
  float total = 0.0f;
  for (int e = 0; e < p.experts && count < p.used; ++e) {
    if (OrderOf(logits[e], e) < least) continue;
    chosen[count] = e;
    shares[count] = powers[e] / sum;
    total += shares[count++];
  }
  if (!p.normed) return;
  for (int i = 0; i < p.used; ++i) shares[i] /= total;
}

absl::Status OnHost(Stream& stream, const ExpertChoiceParams& p,
                    ExpertPowersFn* powers_of) {
  constexpr int64_t kGrain = 16;  // rows of some microseconds each
  stream.pool().ParallelFor(
      p.rows, kGrain, [&](int64_t begin, int64_t end, int) {
        float powers[ExpertChoiceParams::kMostExperts];
        for (int64_t row = begin; row < end; ++row) {
          const float sum =
              powers_of(p.logits.raw() + row * p.experts, p.experts, powers);
          ChooseOf(p, row, powers, sum);
        }
      });
  return absl::OkStatus();
}

constexpr OpBodies<ExpertChoiceParams> kExpertChoice = {
    .reference =
        [](Stream& stream, const ExpertChoiceParams& p) {
          return OnHost(stream, p, ExpertPowersReference);
        },
    .cpu =
        [](Stream& stream, const ExpertChoiceParams& p) {
          return OnHost(stream, p, kPowers[stream.isa()]);
        },
    .gpu =
        [](Stream& stream, const ExpertChoiceParams& p) {
          return CudaStatus("ExpertChoice",
                            ExpertChoiceCuda(stream.queue().handle(), p));
        }};

}  // namespace

absl::Status ExpertChoice(Stream& stream, const ExpertChoiceParams& p) {
  RETURN_IF_ERROR(Validate(p));
  if (p.rows == 0) return absl::OkStatus();
  return Run(kExpertChoice, stream, p);
}

}  // namespace tiercel
