#ifndef TIERCEL_RUNTIME_API_BOUNDARY_H_
#define TIERCEL_RUNTIME_API_BOUNDARY_H_

// The border of every function of tiercel.h: it lets no exception through, and
// gives the library a thread in a known state whatever the caller has set.
// lib/c_api/border.h has what it shares with other headers.

#include <cxxabi.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "include/tiercel.h"
#include "lib/c_api/border.h"
#include "lib/c_api/callers_thread.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"
#include "nlohmann/json.hpp"
#include "runtime/api/log.h"
#include "runtime/api/turns.h"
#include "runtime/generate/dry_breakers.h"
#include "runtime/generate/report.h"
#include "runtime/model/model.h"
#include "runtime/plan/rates_cache.h"
#include "runtime/policies/policy.h"
#include "runtime/session/session.h"

struct tiercel_model {
  std::shared_ptr<tiercel::Model> model;   // its sessions share it
  std::shared_ptr<tiercel::Log> log = {};  // theirs, too; null: none
};
struct tiercel_session {
  std::shared_ptr<const tiercel::Model> model;
  std::shared_ptr<const tiercel::Model> draft_model;  // null: none
  std::shared_ptr<tiercel::Log> log;                  // null: none
  std::shared_ptr<tiercel::Turns> turns;              // its forks share it
  std::unique_ptr<tiercel::Session> session;
  tiercel::PolicyParams policy_params;
  std::unique_ptr<tiercel::Policy> policy;  // for `session`
  std::optional<tiercel::KeptRates> rates;  // predict its times
  tiercel::Report report;                // its last prefill's and generation's
  size_t text_begin = 0;                 // tokens from here on are generated
  tiercel::KnownBreakers breakers = {};  // over the model's vocabulary
  // The process that made it: its threads, and its view of the host tier, exist
  // only there.
  pid_t process = getpid();
  // The tokens that it held when the last turn ended.
  mutable std::atomic<size_t> length = 0;
  tiercel_session* freed_next = nullptr;   // link in the list of Turns
  std::atomic<bool> in_queue = false;      // an entry of a queue uses it
  mutable std::atomic<int64_t> waits = 0;  // calls that wait for a queue
};

namespace tiercel {

// Runs `body`: its exception, or that of a callback, becomes an error. It is
// for the library's own threads, where AtBoundary is not around the work.
template <typename Body>
__attribute__((no_sanitize("undefined"))) absl::Status Guarded(Body body) {
  try {
    body();
    return absl::OkStatus();
  } catch (const abi::__forced_unwind&) {
    throw;  // it ends the thread, and must not be caught
  } catch (const std::bad_alloc&) {
    return MemoryError("out_of_memory", "the system gave no more memory");
  } catch (const std::exception& e) {
    return InternalError("internal", e.what());
  } catch (...) {
    return InternalError("internal",
                         "a callback threw what is no std::exception");
  }
}

// Returns the reason why the model cannot tokenize, if there is one.
absl::Status NeedTokenizer(const tiercel_model* model);

inline absl::Status FillJson(const nlohmann::json& document, char* buffer,
                             size_t* size) {
  const std::string text =
      document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return Fill(text.c_str(), text.size() + 1, buffer, size);
}

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_API_BOUNDARY_H_
