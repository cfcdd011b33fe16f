#ifndef TIERCEL_KERNELS_DEVICE_STAGES_H_
#define TIERCEL_KERNELS_DEVICE_STAGES_H_

#include "kernels/device/device_lang.h"

namespace tiercel {

// Calls use(i, i % kStages) for parts i = first..last - 1 that pass through a
// ring of stages in shared memory, when part i has arrived. Before each use it
// calls fetch(i + kStages - 1, its stage), which starts the copies of that
// part, if there is one. The caller has started the copies of the parts up to
// first + kStages - 2, each as a group. All threads have finished the use
// before when one begins the next.
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
