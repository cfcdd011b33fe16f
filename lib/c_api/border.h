#ifndef TIERCEL_LIB_C_API_BORDER_H_
#define TIERCEL_LIB_C_API_BORDER_H_

// The border of every function of our C headers: it takes structs of any known
// size, fills buffers, and returns a status and an error text.

#include <cxxabi.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <new>
#include <string_view>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "include/tiercel.h"
#include "lib/c_api/callers_thread.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {

// Returns the C API's status for `status`; fills `error` if given.
tiercel_status ReportStatus(const absl::Status& status, tiercel_error* error);
// Reports an error without an absl::Status; allocates no memory.
tiercel_status ReportError(tiercel_status status, std::string_view code,
                           std::string_view message, tiercel_error* error);

// Runs `body`, which returns an absl::Status, and reports the result, or its
// exception. The end of a thread is an exception without an object, to which
// UBSan lets no reference be bound.
template <typename Body>
__attribute__((no_sanitize("undefined"))) tiercel_status Reported(
    tiercel_error* error, Body body) {
  try {
    return ReportStatus(body(), error);
  } catch (const abi::__forced_unwind&) {
    throw;  // by a callback that ends the thread; it must not be caught
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

// Reports `body` as Reported does, with the calling thread prepared. A body
// with callbacks of the program takes the thread, which calls them.
template <typename Body>
tiercel_status AtBoundary(tiercel_error* error, Body body) {
  CallersThread thread;
  return Reported(error, [&] {
    if constexpr (std::is_invocable_v<Body, CallersThread&>) {
      return body(thread);
    } else {
      return body();
    }
  });
}

// Reads a caller's struct, whichever version of the header made it. Fields that
// the caller does not know are zero, which means their defaults. Fields that we
// do not know must be zero, since we could not honour them.
template <typename T>
absl::Status ReadStruct(const char* name, const T* in, T* out) {
  *out = {};
  if (in == nullptr) {
    return UsageError("null_argument", absl::StrCat(name, ": got NULL"));
  }
  const size_t size = in->struct_size;
  // A header's struct never ends within a field: all fields consist of words.
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

// Reads element `index` of an array, whose stride is its elements' struct_size.
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

// NULL is allowed for an array without elements.
inline absl::Status NeedArray(const char* name, const void* array,
                              size_t count) {
  return count > 0 ? NeedArgument(name, array) : absl::OkStatus();
}

// Checks the buffer and the size in which a function puts its result; the
// buffer may be NULL only to ask for the size.
inline absl::Status NeedPlace(const char* name, const void* buffer,
                              const size_t* size) {
  RETURN_IF_ERROR(NeedArgument("size", size));
  return NeedArray(name, buffer, *size);
}

// The one failure that is no error: the buffer's capacity is too small.
absl::Status BufferTooSmall(size_t got, size_t needed);

// Fills as tiercel.h describes; NeedPlace has checked the buffer.
template <typename T>
absl::Status Fill(const T* data, size_t count, T* buffer, size_t* size) {
  const size_t capacity = *size;
  *size = count;
  if (capacity < count) return BufferTooSmall(capacity, count);
  if (count > 0) std::memcpy(buffer, data, count * sizeof(T));
  return absl::OkStatus();
}

// Structs grow at their end, where padding would be garbage to a newer library.
template <typename T, typename Field>
constexpr bool EndsWith(Field T::*, size_t offset) {
  return offset + sizeof(Field) == sizeof(T);  // NOLINT: it may be a pointer
}
#define TIERCEL_ENDS_WITH(type, field) \
  static_assert(::tiercel::EndsWith(&type::field, offsetof(type, field)))

}  // namespace tiercel

#endif  // TIERCEL_LIB_C_API_BORDER_H_
