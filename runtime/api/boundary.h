#ifndef TIERCEL_RUNTIME_API_BOUNDARY_H_
#define TIERCEL_RUNTIME_API_BOUNDARY_H_

// What every function of tiercel.h does at the border: structs of any known
// size in, a status and an error text out, and no exception past it.

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "include/tiercel.h"
#include "kernels/base/error.h"
#include "nlohmann/json.hpp"
#include "runtime/model.h"
#include "runtime/session.h"

struct tiercel_model {
  std::unique_ptr<tiercel::Model> model;
};
struct tiercel_session {
  const tiercel_model* owner;
  std::unique_ptr<tiercel::Session> session;
};

namespace tiercel {

// The status the C API knows for an internal one; fills `error` if given.
tiercel_status ReportStatus(const absl::Status& status, tiercel_error* error);

// Runs `body`, which returns an absl::Status, and reports what came of it.
template <typename Body>
tiercel_status AtBoundary(tiercel_error* error, Body body) {
  absl::Status status;
  try {
    status = body();
  } catch (const std::bad_alloc&) {
    status = MemoryError("out_of_memory", "the system gave no more memory");
  } catch (const std::exception& e) {
    status = InternalError("internal", e.what());
  }
  return ReportStatus(status, error);
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
  if (size < sizeof(size_t) * 2 || size > 65536) {
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

inline absl::Status NeedArgument(const char* name, const void* argument) {
  if (argument != nullptr) return absl::OkStatus();
  return UsageError("null_argument", absl::StrCat(name, ": got NULL"));
}

// Marks the one failure that is no error: the buffer's capacity.
absl::Status BufferTooSmall(size_t got, size_t needed);

// The fill convention of tiercel.h.
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
