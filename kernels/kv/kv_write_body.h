#ifndef TIERCEL_KERNELS_KV_KV_WRITE_BODY_H_
#define TIERCEL_KERNELS_KV_KV_WRITE_BODY_H_

#include <cstddef>

#include "kernels/number/dtype.h"

namespace tiercel {

struct KvWriteParams;
void KvWriteReference(const KvWriteParams& p);

// One head's row of K or V, rounded to the page's type: KvRowFromF32 of
// kernels/kv/kv_row.h, which is the reference, bit for bit.
using KvRowWriteFn = void(DType type, const float* x, int head_dim,
                          std::byte* row);

namespace portable {
KvRowWriteFn KvRowWrite;
}
namespace avx2 {
KvRowWriteFn KvRowWrite;
}
namespace avx512 {
KvRowWriteFn KvRowWrite;
}
namespace avx512vnni {
KvRowWriteFn KvRowWrite;
}

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_KV_KV_WRITE_BODY_H_
