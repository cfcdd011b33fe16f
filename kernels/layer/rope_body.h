#ifndef TIERCEL_KERNELS_LAYER_ROPE_BODY_H_
#define TIERCEL_KERNELS_LAYER_ROPE_BODY_H_

#include <cstdint>

#include "kernels/layer/rope.h"

namespace tiercel {

// Rows begin..end - 1. The plain loops are the CPU's body too: a rotation is
// under 1 % of the products around it.
void RopeAnglesReference(const RopeAnglesParams& p, int64_t begin, int64_t end);
void RopeReference(const RopeParams& p, int64_t begin, int64_t end);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_LAYER_ROPE_BODY_H_
