#ifndef TIERCEL_OFFLOAD_KV_KV_EXTENT_H_
#define TIERCEL_OFFLOAD_KV_KV_EXTENT_H_

#include <algorithm>
#include <cstdint>
#include <string>

namespace tiercel {

// The extent of a sequence's KV by layer. Every position exists in the first
// `full_layers` layers. In the layers above exist the first `sinks` positions
// and the answer, which begins with the tail of its prompt: the other rows of a
// prompt end below these layers, and nothing reads them there.
struct KvExtent {
  int full_layers = 1;
  int64_t sinks = 0;
  // The number of a prompt's last rows that belong to its answer; 0: those that
  // the chat template ends it with, else the last alone.
  int64_t tail = 0;
  bool keeps_answers = false;  // earlier answers stay in all layers, too
  // A warning for texts of which a part is missing in some layer; "": none.
  std::string warning = {};

  // The rows of a tail, as far as they are known before the prompt.
  int64_t TailRows() const { return std::max<int64_t>(1, tail); }
  // The positions in the layers above, before the answer has more than its
  // tail.
  int64_t PositionsAbove() const { return sinks + TailRows(); }
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_KV_KV_EXTENT_H_
