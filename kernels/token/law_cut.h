#ifndef TIERCEL_KERNELS_TOKEN_LAW_CUT_H_
#define TIERCEL_KERNELS_TOKEN_LAW_CUT_H_

#include <vector>

#include "kernels/token/law.h"

namespace tiercel {

// The law of the tokens that top-k, top-p and min-p leave of a vocabulary.
// `weights` are the probabilities times `total`, their sum, so that the
// greatest is 1; `logits` have their order.
Law CutLaw(const LawParams& params, const float* logits,
           const std::vector<float>& weights, double total);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_TOKEN_LAW_CUT_H_
