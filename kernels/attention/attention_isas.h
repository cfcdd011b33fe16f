#ifndef TIERCEL_KERNELS_ATTENTION_ATTENTION_ISAS_H_
#define TIERCEL_KERNELS_ATTENTION_ATTENTION_ISAS_H_

#include "kernels/attention/attention_body.h"
#include "kernels/machine/isa.h"

namespace tiercel {

// The bodies of Attention by ISA. VNNI has no instructions for floats.
inline constexpr PerIsa<ComputeBlockFn*> kComputeBlock = {
    portable::ComputeBlock, avx2::ComputeBlock, avx512::ComputeBlock,
    avx512::ComputeBlock};
inline constexpr PerIsa<FoldPagesFn*> kFoldPages = {
    portable::FoldPages, avx2::FoldPages, avx512::FoldPages, avx512::FoldPages};

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_ATTENTION_ATTENTION_ISAS_H_
