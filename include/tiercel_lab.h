/* For measurements and tests of Tiercel: a simulated device, sessions of depths
 * that would take long to read, and the speed of this machine. Programs that
 * serve people need none of it. The conventions are those of tiercel.h. */
#ifndef TIERCEL_LAB_H_
#define TIERCEL_LAB_H_

#include "tiercel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A device that is simulated on this machine. `simulation` of
 * tiercel_model_params points to it, and tiercel_model_open copies it. Results
 * are the same bytes as without it; reports say "simulated". A wrong value is
 * TIERCEL_USAGE, "invalid_simulation". */
typedef struct tiercel_simulation {
  size_t struct_size;
  /* The memory of a small device behind a link: weights and working memory must
   * fit, and everything else crosses the link. With tensor_parallel each rank
   * has such a device and link. 0: there is no small device and no link, and
   * the next three are 0. */
  uint64_t device_bytes;
  double link_bytes_per_s; /* 1e3 to 1e15 */
  double link_latency_us;  /* per transfer, 0 to 1e6 */
  /* The rate in bytes of K and V at which the host takes a share of a sweep: it
   * attends to some pages where they are, while the link brings others. 1e3 to
   * 1e15, or 0: it takes none. */
  double host_bytes_per_s;
  /* If not 0, the host cannot touch the memory of the device, which does its
   * work late, after delays that are drawn from this seed. Needs the device
   * "cpu", with or without device_bytes. */
  uint64_t strict_seed;
} tiercel_simulation;

/* Appends tokens without computing their keys and values, to measure depths
 * that would take long to prefill. Keys and values are drawn from `seed`,
 * except for those of the last 64 tokens, which are computed. Progress is in
 * tokens, with a last call at the end. If cancelled or failed, the session is
 * as before the call, and no work is kept. tiercel_session_report counts the
 * tokens as cached. Under "speed" it is, in this version, TIERCEL_USAGE. Other
 * errors, and NULL: as tiercel_session_prefill. */
TIERCEL_API tiercel_status tiercel_session_fill(
    tiercel_session* session, const int32_t* ids, size_t count, uint64_t seed,
    tiercel_progress progress, void* user_data, tiercel_error* error);

typedef struct tiercel_machine_params {
  size_t struct_size;
  tiercel_progress progress; /* in tries; may be NULL */
  void* user_data;
  int64_t threads; /* 0: all CPUs that this process may use */
} tiercel_machine_params;

/* Measures the machine for about a second; may be called from any thread. The
 * JSON has its memory read bandwidth, its float and int8 peaks, its CPU's name
 * and ISA. read_spread: the excess of the median reading time over the
 * shortest, as a share of that; steady: true if that share is small. `params`
 * may be NULL. */
TIERCEL_API tiercel_status tiercel_machine(const tiercel_machine_params* params,
                                           char* json, size_t* size,
                                           tiercel_error* error);

#ifdef __cplusplus
}
#endif

#endif /* TIERCEL_LAB_H_ */
