#ifndef TIERCEL_KERNELS_DEVICE_STAGES_H_
#define TIERCEL_KERNELS_DEVICE_STAGES_H_

#include "kernels/device/device_lang.h"

namespace tiercel {

// Calls use(i, i % kStages) for parts first..last - 1 of what passes through a
// ring of stages in shared memory, when part i is there; before that
// fetch(i + kStages - 1, its stage), which asks for the copies of that part, if
// there is one. Those up to first + kStages - 2 were asked for before, each as
// a group. All threads have done what came before the use when one begins it.
template <int kStages, typename FetchPart, typename UsePart>
TIERCEL_DEVICE void ThroughStages(int first, int last, const FetchPart& fetch,
                                  const UsePart& use) {
  for (int i = first; i < last; ++i) {
    CopyWait<kStages - 2>();
    Barrier();
    fetch(i + kStages - 1, (i + kStages - 1) % kStages);
    CopyCommit();
    use(i, i % kStages);
  }
}

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_DEVICE_STAGES_H_
