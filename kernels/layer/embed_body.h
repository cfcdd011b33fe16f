#ifndef TIERCEL_KERNELS_LAYER_EMBED_BODY_H_
#define TIERCEL_KERNELS_LAYER_EMBED_BODY_H_

#include <cstdint>

#include "kernels/layer/embed.h"

namespace tiercel {

// Rows [begin, end); a row is independent of the others.
void EmbedReference(const EmbedParams& p, int64_t begin, int64_t end);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_LAYER_EMBED_BODY_H_
