#ifndef TIERCEL_KERNELS_SELECT_SELECTOR_H_
#define TIERCEL_KERNELS_SELECT_SELECTOR_H_

#include <cstdint>

#include "kernels/device/device_ptr.h"
#include "lib/status/status_forward.h"

namespace tiercel {

class Stream;

// Selects the candidates that each KV head g keeps, by their importance to rows
// and a prior (the Selector of Slow-Fast Inference, arXiv 2603.12038). There
// are m candidates in the order of positions, and each sum is over
// j = 0..m - 1:
//
//   f_j = importance_j^2 / sum importance^2
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
// So lambda gives the mixture with the least sum of squares, keys of small norm
// and old keys gain, and a candidate loses if its neighbour is greater or
// another head wants it more. With a suppression below 0 a candidate gains with
// its greater neighbour instead: near -1 all within reach count about as much,
// which is how SnapKV pools (arXiv 2404.14469). A head keeps the `budget`
// greatest v (all if there are no more candidates), of equals the earliest.
//
// All is in float; each 256 candidates are summed by 16 chains over j % 16,
// then a fixed tree, and these sums in double. A mixture below 2^-126 counts as
// 2^-126. Importance that is negative or not finite counts as 0. Norms are
// clamped to 2^-24..65,504, and NaN counts as 65,504. So each v is finite.
//
// Scratch: a float per candidate for each KV head, for each thread and once
// more. Errors: invalid_sizes, invalid_argument, out_of_memory.
struct SelectParams {
  // [kv_heads, importance_stride], for each KV head [candidates], as
  // AddImportance leaves it
  DevicePtr<const float> importance;
  int64_t importance_stride;        // elements from one KV head to the next
  DevicePtr<const uint16_t> norms;  // f16 [kv_heads, norms_stride]: norms of
                                    // the keys or digests that were scored
  int64_t norms_stride;             // elements from one KV head to the next
  int kv_heads;                     // KV heads of one layer
  int64_t candidates;               // 0 is allowed; at most 2^24
  int64_t budget;     // candidates that a KV head keeps; 0 is allowed
  float most_prior;   // 0 to 1: 0.25, or 0.35 after one row of one head
  int64_t reach;      // half of the window: 16 for positions; 0: no window
  float suppression;  // 0: off, 1: on; at least -1
  float exclusivity;  // 0: off, usually 0.85
  // [kv_heads, min(budget, candidates)], ascending within each head
  DevicePtr<int32_t> out;
};
absl::Status Select(Stream& stream, const SelectParams& p);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_SELECT_SELECTOR_H_
