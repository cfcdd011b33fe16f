// tiercel_lab.h for C++17: for measurements and tests.
#ifndef TIERCEL_LAB_HPP_
#define TIERCEL_LAB_HPP_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tiercel.hpp"
#include "tiercel_lab.h"

namespace tiercel {
inline namespace v0 {

// Appends tokens without computing their keys and values.
inline void session_fill(Session& session, const std::vector<int32_t>& ids,
                         uint64_t seed, const Progress& progress = {}) {
  internal::make(progress, [&](auto callback, void* user, auto* error) {
    return tiercel_session_fill(session.get(), ids.data(), ids.size(), seed,
                                callback, user, error);
  });
}

// Measures this machine with `threads` threads (0: all CPUs that this process
// may use). Returns JSON.
inline std::string machine(int64_t threads = 0, const Progress& progress = {}) {
  auto params = defaults<tiercel_machine_params>();
  params.threads = threads;
  return internal::fill_json([&](char* json, size_t* size, auto* error) {
    return internal::make_whole(progress, [&](auto callback, void* user) {
      params.progress = callback;
      params.user_data = user;
      return tiercel_machine(&params, json, size, error);
    });
  });
}

}  // namespace v0
}  // namespace tiercel

#endif  // TIERCEL_LAB_HPP_
