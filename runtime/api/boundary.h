#ifndef TIERCEL_RUNTIME_API_BOUNDARY_H_
#define TIERCEL_RUNTIME_API_BOUNDARY_H_

// What every function of tiercel.h does at the border: structs of any known
// size in, a status and an error text out, no exception past it, and a thread
// as the library knows it whatever the caller has set.

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
#include "kernels/base/error.h"
#include "lib/status/status_macros.h"
#include "nlohmann/json.hpp"
#include "runtime/api/callers_thread.h"
#include "runtime/api/turns.h"
#include "runtime/generate/breakers.h"
#include "runtime/generate/report.h"
#include "runtime/model/model.h"
#include "runtime/policy/policy.h"
#include "runtime/predict/rates_cache.h"
#include "runtime/sequence/session.h"

struct tiercel_model {
  std::shared_ptr<tiercel::Model> model;  // its sessions', too
};
struct tiercel_session {
  std::shared_ptr<const tiercel::Model> model;
  std::shared_ptr<const tiercel::Model> draft_model;  // null: none
  std::shared_ptr<tiercel::Turns> turns;              // its forks', too
  std::unique_ptr<tiercel::Session> session;
  tiercel::PolicyParams policy_params;
  std::unique_ptr<tiercel::Policy> policy;  // of the session
  std::optional<tiercel::KeptRates> rates;  // what times are predicted by
  tiercel::Report report;                // of its last prefill and generation
  size_t text_begin = 0;                 // tokens from here on were generated
  tiercel::KnownBreakers breakers = {};  // of the model's vocabulary
  // Its threads, and the host tier as only it knows it, are of this process.
  pid_t process = getpid();
  // Tokens held when the last turn ended.
  mutable std::atomic<size_t> length = 0;
  tiercel_session* freed_next = nullptr;  // of Turns
};

namespace tiercel {

// The status the C API knows for an internal one; fills `error` if given.
tiercel_status ReportStatus(const absl::Status& status, tiercel_error* error);
// Reports an error of which there is no absl::Status; takes no memory.
tiercel_status ReportError(tiercel_status status, std::string_view code,
                           std::string_view message, tiercel_error* error);

// Runs `body`, which returns an absl::Status, and reports what came of it. One
// with callbacks of the program takes the thread, which calls them.
template <typename Body>
tiercel_status AtBoundary(tiercel_error* error, Body body) {
  CallersThread thread;
  try {
    if constexpr (std::is_invocable_v<Body, CallersThread&>) {
      return ReportStatus(body(thread), error);
    } else {
      return ReportStatus(body(), error);
    }
  } catch (const abi::__forced_unwind&) {
    throw;  // by a callback that ends the thread, which nothing holds up
  } catch (const std::bad_alloc&) {
    return ReportError(TIERCEL_OUT_OF_MEMORY, "out_of_memory",
                       "the system gave no more memory", error);
  } catch (const std::exception& e) {
    return ReportError(TIERCEL_FAILED, "internal", e.what(), error);
  } catch (...) {
    return ReportError(TIERCEL_FAILED, "internal",
                       "a callback threw what is no std::exception", error);
  }
}

// A caller's struct as ours, whichever version of the header made it: fields it
// does not know are zero, which means their defaults. Fields we do not know
// must be zero, since we could not honour them.
template <typename T>
absl::Status ReadStruct(const char* name, const T* in, T* out) {
  *out = {};
  if (in == nullptr) {
    return UsageError("null_argument", absl::StrCat(name, ": got NULL"));
  }
  const size_t size = in->struct_size;
  // No header's struct ends within a field: each is made of words.
  if (size < sizeof(size_t) * 2 || size > 65536 || size % alignof(T) != 0) {
    return UsageError(
        "invalid_struct_size",
        absl::StrCat(name, ": got struct_size ", size, ", need ", sizeof(T)));
  }
  const auto* bytes = reinterpret_cast<const unsigned char*>(in);
  for (size_t i = sizeof(T); i < size; ++i) {
    if (bytes[i] != 0) {
      return UsageError("invalid_struct_size",
                        absl::StrCat(name, ": a field beyond the ", sizeof(T),
                                     " bytes this version knows is set"));
    }
  }
  std::memcpy(out, in, std::min(size, sizeof(T)));
  return absl::OkStatus();
}

// Element `index` of an array whose stride is the struct_size of its elements.
template <typename T>
absl::Status ReadElement(const char* name, const T* array, size_t index,
                         T* out) {
  const size_t stride = array->struct_size;
  const auto* const element = reinterpret_cast<const T*>(
      reinterpret_cast<const char*>(array) + index * stride);
  RETURN_IF_ERROR(ReadStruct(name, element, out));
  if (out->struct_size == stride) return absl::OkStatus();
  return UsageError("invalid_struct_size",
                    absl::StrCat(name, " ", index, ": got struct_size ",
                                 out->struct_size, ", the first has ", stride));
}

// Fills a caller's struct that ReadStruct has read, as far as the caller knows
// it.
template <typename T>
void WriteStruct(const T& from, T* out) {
  const size_t size = std::min(from.struct_size, sizeof(T));
  std::memcpy(out, &from, size);
}

inline absl::Status NeedArgument(const char* name, const void* argument) {
  if (argument != nullptr) return absl::OkStatus();
  return UsageError("null_argument", absl::StrCat(name, ": got NULL"));
}

// NULL is an array of none.
inline absl::Status NeedArray(const char* name, const void* array,
                              size_t count) {
  return count > 0 ? NeedArgument(name, array) : absl::OkStatus();
}

// Where a function that fills a buffer puts its result; the buffer may be NULL
// only to ask for the size.
inline absl::Status NeedPlace(const char* name, const void* buffer,
                              const size_t* size) {
  RETURN_IF_ERROR(NeedArgument("size", size));
  return NeedArray(name, buffer, *size);
}

// Marks the one failure that is no error: the buffer's capacity.
absl::Status BufferTooSmall(size_t got, size_t needed);

// The fill convention of tiercel.h, for a place that NeedPlace has seen.
template <typename T>
absl::Status Fill(const T* data, size_t count, T* buffer, size_t* size) {
  const size_t capacity = *size;
  *size = count;
  if (capacity < count) return BufferTooSmall(capacity, count);
  if (count > 0) std::memcpy(buffer, data, count * sizeof(T));
  return absl::OkStatus();
}

inline absl::Status FillJson(const nlohmann::json& document, char* buffer,
                             size_t* size) {
  const std::string text =
      document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return Fill(text.c_str(), text.size() + 1, buffer, size);
}

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_API_BOUNDARY_H_
