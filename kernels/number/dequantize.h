#ifndef TIERCEL_KERNELS_NUMBER_DEQUANTIZE_H_
#define TIERCEL_KERNELS_NUMBER_DEQUANTIZE_H_

#include <cstddef>
#include <cstdint>

#include "kernels/number/dtype.h"

namespace tiercel {

// Computes the values of `elements` weights stored as whole GGUF blocks
// (little-endian, any alignment), by the format's own formula in float32. The
// loops are plain: this is the reference for all code that repacks or
// multiplies quantised weights.
void Dequantize(DType type, const std::byte* source, int64_t elements,
                float* out);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_NUMBER_DEQUANTIZE_H_
