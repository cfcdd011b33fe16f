#ifndef TIERCEL_KERNELS_SYSTEM_ISA_H_
#define TIERCEL_KERNELS_SYSTEM_ISA_H_

#include <array>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace tiercel {

// Instruction sets (ISAs). Each op_cpu.cc is compiled once per ISA, into the
// namespace of the ISA's name. An ISA includes those before it, but AVX-512
// does not include AVX-VNNI, which has products of bytes for processors without
// AVX-512.
enum class Isa { kPortable, kAvx2, kAvxVnni, kAvx512, kAvx512Vnni };
inline constexpr std::array<Isa, 5> kAllIsas = {
    Isa::kPortable, Isa::kAvx2, Isa::kAvxVnni, Isa::kAvx512, Isa::kAvx512Vnni};

std::string_view NameOf(Isa isa);

// The ISAs this machine can run, lowest first.
std::vector<Isa> SupportedIsas();

// The ISA to use: the one that TIERCEL_ISA names, or the highest supported one.
// Errors: TIERCEL_ISA names no ISA, or one that this machine cannot run.
absl::StatusOr<Isa> ChooseIsa();

// One body per ISA, picked at run time:
//   constexpr PerIsa<decltype(&portable::RmsNormRows)> kRows = {
//       portable::RmsNormRows, avx2::RmsNormRows, ...};
template <typename Function>
struct PerIsa {
  Function portable;
  Function avx2;
  Function avx512;
  Function avx512vnni;
  Function avxvnni = nullptr;  // null: the body has no products of bytes

  Function operator[](Isa isa) const {
    switch (isa) {
      case Isa::kPortable:
        return portable;
      case Isa::kAvx2:
        return avx2;
      case Isa::kAvxVnni:
        return avxvnni != nullptr ? avxvnni : avx2;
      case Isa::kAvx512:
        return avx512;
      case Isa::kAvx512Vnni:
        return avx512vnni;
    }
    return portable;
  }
};

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_SYSTEM_ISA_H_
