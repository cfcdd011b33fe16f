#include "kernels/system/isa.h"

#include <cpuid.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "lib/status/error.h"

namespace tiercel {
namespace {

// Clang 14's __builtin_cpu_supports does not know this name.
bool HasF16c() {
  unsigned eax, ebx, ecx, edx;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}

// g++ 12's __builtin_cpu_supports does not know this name.
bool HasAvxVnni() {
  constexpr unsigned kAvxVnniBit = 1u << 4;
  unsigned eax, ebx, ecx, edx;
  return __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0 &&
         (eax & kAvxVnniBit) != 0;
}

// The compiler's CPU test also checks that the system saves the registers.
bool Supported(Isa isa) {
  switch (isa) {
    case Isa::kPortable:
      return true;
    case Isa::kAvx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
             HasF16c();
    case Isa::kAvxVnni:
      return Supported(Isa::kAvx2) && HasAvxVnni();
    case Isa::kAvx512:
      return Supported(Isa::kAvx2) && __builtin_cpu_supports("avx512f") &&
             __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") &&
             __builtin_cpu_supports("avx512vl");
    case Isa::kAvx512Vnni:
      return Supported(Isa::kAvx512) && __builtin_cpu_supports("avx512vnni") &&
             __builtin_cpu_supports("avx512bf16");
  }
  return false;
}

}  // namespace

std::string_view NameOf(Isa isa) {
  switch (isa) {
    case Isa::kPortable:
      return "portable";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvxVnni:
      return "avxvnni";
    case Isa::kAvx512:
      return "avx512";
    case Isa::kAvx512Vnni:
      return "avx512vnni";
  }
  return "";
}

std::vector<Isa> SupportedIsas() {
  std::vector<Isa> supported;
  for (Isa isa : kAllIsas) {
    if (Supported(isa)) supported.push_back(isa);
  }
  return supported;
}

absl::StatusOr<Isa> ChooseIsa() {
  const std::vector<Isa> supported = SupportedIsas();
  const char* forced = std::getenv("TIERCEL_ISA");
  if (forced == nullptr || *forced == '\0') return supported.back();
  std::string names;
  for (Isa isa : supported) {
    if (NameOf(isa) == forced) return isa;
    absl::StrAppend(&names, names.empty() ? "" : ", ",
                    std::string(NameOf(isa)));
  }
  return UsageError("invalid_environment",
                    absl::StrCat("TIERCEL_ISA: got \"", forced,
                                 "\", this machine runs ", names));
}

}  // namespace tiercel
