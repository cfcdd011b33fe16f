#ifndef TIERCEL_OFFLOAD_VIEW_CHUNK_CHOICE_H_
#define TIERCEL_OFFLOAD_VIEW_CHUNK_CHOICE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tiercel {

// Which of a KV head's chunks a retrieval view shows (TriForce, arXiv
// 2404.11912, section 4.1): the first `sinks`, to which models attend whatever
// they look for, and of the others those with the highest `scores`, `count` in
// all; all of them where there are not more. Of chunks with equal scores the
// earlier comes first. Sorted.
std::vector<int32_t> ChooseChunks(std::span<const float> scores, size_t sinks,
                                  size_t count);

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_VIEW_CHUNK_CHOICE_H_
