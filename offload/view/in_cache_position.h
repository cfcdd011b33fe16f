#ifndef TIERCEL_OFFLOAD_VIEW_IN_CACHE_POSITION_H_
#define TIERCEL_OFFLOAD_VIEW_IN_CACHE_POSITION_H_

#include <cstdint>
#include <optional>

namespace tiercel {

// Where StreamingLLM's cache (Xiao et al., arXiv 2309.17453) of the first
// `sinks` and the last `recent` of `end` positions holds `position`: the cache
// is filled without gaps, so that a model made for a short context never meets
// an angle beyond sinks + recent. Absent: it is not in the cache.
//
// Only a model with a cache of its own may use it: an entry moves down by one
// as the window slides, so its keys must be stored before RoPE and rotated
// when they are read. The target's keys are stored rotated, and every view over
// them keeps absolute positions.
constexpr std::optional<int64_t> InCachePosition(int64_t position,
                                                 int64_t sinks, int64_t recent,
                                                 int64_t end) {
  if (position < 0 || position >= end) return std::nullopt;
  if (position < sinks) return position;
  const int64_t dropped = end - recent > sinks ? end - recent - sinks : 0;
  if (position < sinks + dropped) return std::nullopt;
  return position - dropped;
}

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_VIEW_IN_CACHE_POSITION_H_
