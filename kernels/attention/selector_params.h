#ifndef TIERCEL_KERNELS_ATTENTION_SELECTOR_PARAMS_H_
#define TIERCEL_KERNELS_ATTENTION_SELECTOR_PARAMS_H_

#include <cstdint>

namespace tiercel {

// Which candidates each KV head g keeps, from what rows said about them and
// from a prior (the Selector of Slow-Fast Inference, arXiv 2603.12038). Of m
// candidates, in the order of positions, each sum over j = 0..m - 1:
//
//   f_j = evidence_j^2 / sum evidence^2
//   u_j = j / max(m - 1, 1)                     0 the oldest, 1 the newest
//   r_j ~ norm_j^-0.5 e^(0.7 (-beta u_j^1.8 + 0.4 ln max(1 - u_j, 1e-12))),
//         beta = -ln(0.6) / 0.9, sum r = 1
//   lambda = sum f (f - r) / max(sum (f - r)^2, 1e-12) within [0, most_prior]
//   l_j = ln((1 - lambda) f_j + lambda r_j)
//   g_j = max_|i - j| <= reach l_i
//   t_j = l_j - suppression (g_j - l_j)
//   v_j = t_j + exclusivity ln max(pi_j, 1e-12),
//         pi_j = e^(t_j / 2) / sum_heads e^(t_j / 2)
//
// so that lambda gives the mixture with the least sum of squares, keys of small
// norm and old ones gain, a candidate beside a greater one loses, and so does
// one that another head wants more. With a suppression below 0 it comes along
// with the greater one instead: near -1 all within reach count about as much,
// which is how SnapKV pools (arXiv 2404.14469). A head keeps the `budget`
// greatest v, of equals the earliest; all where there are no more candidates.
//
// In float; sums over j of each 256 candidates by 16 chains over j % 16, then a
// fixed tree, and of these in double. A mixture below 2^-126 counts as that.
// Evidence that is not finite or below zero counts as none, a norm as 2^-24 at
// least and as 65,504 at most, or if it is NaN: each v is finite.
//
// Scratch: a float per candidate for each KV head, for each thread and once
// more. Errors: invalid_shape, invalid_argument, out_of_memory.
struct SelectParams {
  // [kv_heads, evidence_stride], of each [candidates]: as AddEvidence leaves it
  const float* evidence;
  int64_t evidence_stride;  // elements from one KV head to the next
  const uint16_t* norms;    // f16 [kv_heads, norms_stride]: of what was scored
  int64_t norms_stride;     // elements from one KV head to the next
  int kv_heads;             // of one layer
  int64_t candidates;       // 0 is allowed; at most 2^24
  int64_t budget;           // candidates that a KV head keeps; 0 is allowed
  float most_prior;         // 0 to 1: 0.25, or 0.35 after one row of one head
  int64_t reach;            // half of the window: of positions 16, 0: no window
  float suppression;        // 0: off, 1: on; at least -1
  float exclusivity;        // 0: off, usually 0.85
  // [kv_heads, min(budget, candidates)], of each head ascending
  int32_t* out;
};

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_ATTENTION_SELECTOR_PARAMS_H_
