/* Errors: the status that a call returns, its code and its sentence; and the
 * macros of all headers. Part of tiercel.h, which has the conventions. */
#ifndef TIERCEL_ERROR_H_
#define TIERCEL_ERROR_H_

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define TIERCEL_API __attribute__((visibility("default")))
#else
#define TIERCEL_API
#endif

/* A struct of this type with its size set and zeros behind it:
 *
 *   tiercel_model_params params = TIERCEL_INIT(tiercel_model_params); */
#ifdef __cplusplus
#define TIERCEL_INIT(type)             \
  ([]() noexcept {                     \
    type zeroed = {};                  \
    zeroed.struct_size = sizeof(type); \
    return zeroed;                     \
  }())
#else
#define TIERCEL_INIT(type) \
  { .struct_size = sizeof(type) }
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tiercel_status {
  TIERCEL_OK = 0,
  TIERCEL_FAILED = 1,        /* an internal failure */
  TIERCEL_USAGE = 2,         /* a parameter is wrong */
  TIERCEL_INVALID_INPUT = 3, /* a model or a text is invalid or unsupported */
  TIERCEL_OUT_OF_MEMORY = 4, /* memory does not suffice */
  TIERCEL_NO_DEVICE = 5,
  TIERCEL_IO = 6,
  TIERCEL_CANCELLED = 7, /* by a callback or tiercel_session_cancel */
  TIERCEL_BUFFER_TOO_SMALL = 8
} tiercel_status;

/* Returns "out of memory" for TIERCEL_OUT_OF_MEMORY, and so on; "unknown
 * status" for other numbers. Static, never NULL. May be called from any thread.
 */
TIERCEL_API const char* tiercel_status_name(tiercel_status status);

/* A tiercel_error may be used again for later calls. */
typedef struct tiercel_error {
  size_t struct_size;
  char code[48];      /* stable, snake_case: "context_length_exceeded" */
  char message[1024]; /* a sentence for people: subject, got, needed */
} tiercel_error;

#ifdef __cplusplus
}
#endif

#endif /* TIERCEL_ERROR_H_ */
