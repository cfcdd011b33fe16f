/* Plans: what a session takes and how fast it is, before it is made, by rates
 * of this machine that are measured once; and the folders in which rates and
 * texts are kept. Part of tiercel.h, which has the conventions. */
#ifndef TIERCEL_PLAN_H_
#define TIERCEL_PLAN_H_

#include "tiercel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Plans a session without creating it, as the JSON of `tiercel plan`: the bytes
 * that it would take of each tier, and, if cache_dir holds rates of this
 * machine, its times with a full context and without drafts. The model may have
 * been opened with TIERCEL_LOAD_HEADER.
 *
 *   workspace  the memory that a call computes in, less the part that sessions
 *              of the model already have and share. In the host tier: hidden
 *              states of a prompt, and of the layer that is written to
 *              prompt_cache_dir, and the distributions of a block's tokens
 *   disk       pages that do not fit, which are read and written through
 *              `buffers`
 *   others     other models, and other sessions with all memory that they may
 *              still take
 *   fits       false is an answer, not an error; then `lacks` is a sentence
 *              that says what does not fit
 *   warnings   as in tiercel_session_report. A policy is named if its view
 *              leaves the context too little room, if it has no effect for this
 *              model, or if it is slower than "full" by the times, where nine
 *              of ten drafted tokens are assumed to be accepted
 *
 * Errors: those of tiercel_session_create, except for lack of memory. */
TIERCEL_API tiercel_status tiercel_plan(const tiercel_model* model,
                                        const tiercel_session_params* params,
                                        char* json, size_t* size,
                                        tiercel_error* error);

/* Chooses the number of ranks (tensor_parallel) over which to open the
 * checkpoint of `model` for such sessions: from 1 to the number of GPUs that
 * this process sees, by the plans of each. It is the number with which the
 * fewest bytes of KV cross one rank's link in a step with a full context; of
 * several such numbers, the lowest; and if the session fits with none, the
 * highest into which the model can be split. *ranks is 1 if the device of
 * `model` is not "cuda". `model` must have been opened with
 * TIERCEL_LOAD_HEADER, over any number of ranks; if it or its drafter has its
 * weights already, that is TIERCEL_USAGE. Other errors: those of tiercel_plan,
 * and TIERCEL_NO_DEVICE. */
TIERCEL_API tiercel_status tiercel_choose_ranks(
    const tiercel_model* model, const tiercel_session_params* params,
    int64_t* ranks, tiercel_error* error);

typedef struct tiercel_measurement {
  size_t struct_size;
  int32_t measured; /* 0: the rates that were kept before are used */
  int32_t steady;   /* 0: spread is over 0.25, since other work was going on */
  /* The excess of the median time over the shortest, as a share of that, for
   * the kind of pass in which it is largest. */
  double spread;
  /* Set by the caller: the seconds for which an unsteady measurement may be
   * repeated. 0: six; below 0: none. */
  double again_seconds;
} tiercel_measurement;

/* Measures how fast this machine runs `model` with sessions of these
 * parameters, and keeps the rates in params->cache_dir. No other call measures;
 * sessions and plans read the kept rates when they are made. If a steady
 * measurement is kept the call returns at once. A measurement takes about two
 * seconds, a few more on a busy machine. An unsteady one is repeated, up to
 * three times in all, in this call and later ones, as long as one more, if it
 * takes as long as the last, would end within again_seconds. A caller that
 * measures before some work passes the seconds that this work will take, and so
 * waits no longer for the rates than for the work. The steadiest measurement
 * counts. The model may have been opened with TIERCEL_LOAD_HEADER: then some of
 * its weights are read. Sessions of the model may work meanwhile, but then the
 * machine is busy.
 *
 * The cost ratio of adaptive lengths (tiercel_policy) comes from the first
 * call's measurement, rounded, and is kept beside it until tiercel_cache_clear:
 * whatever is measured later, the same calls give the same tokens.
 *
 * `progress`, in parts of a measurement, may be NULL; if it stops the call
 * nothing is kept. `measurement` may be NULL. TIERCEL_IO, "cannot_write":
 * nothing can be kept. */
TIERCEL_API tiercel_status tiercel_measure(const tiercel_model* model,
                                           const tiercel_session_params* params,
                                           tiercel_progress progress,
                                           void* user_data,
                                           tiercel_measurement* measurement,
                                           tiercel_error* error);

/* Sets *tokens to the number of the first ones of `ids` whose KV a session of
 * these parameters would open from its prompt_cache_dir instead of computing
 * it: 0, or 256 and more. Before it can be found the model's files are hashed
 * once, all of them; `progress`, which may be NULL, is called meanwhile, always
 * with nothing done, and may stop the call. The model may have been opened with
 * TIERCEL_LOAD_HEADER. Errors: those of tiercel_plan; TIERCEL_CANCELLED. */
TIERCEL_API tiercel_status tiercel_cached_tokens(
    const tiercel_model* model, const tiercel_session_params* params,
    const int32_t* ids, size_t count, tiercel_progress progress,
    void* user_data, int64_t* tokens, tiercel_error* error);

/* tiercel_cache_list lists the files that tiercel_measure and sessions keep in
 * a cache_dir or prompt_cache_dir: {"files": [{"file", "bytes", "modified":
 * seconds since 1970, and its contents: "model", "key", "rates", "costs",
 * "spread", "attempts", "seconds" of the last of these, "steady"}],
 * "prompt_cache": [{"file", "bytes", "used": seconds since 1970, "model",
 * "tokens", and "name" if there is a prompt_cache_name}]}. A file that is not
 * whole has the first three members alone, an unfinished prompt also
 * "unfinished": true. tiercel_cache_clear removes these files, and no other;
 * `removed`, their number, may be NULL. A session may use them meanwhile. Both
 * may be called from any thread. TIERCEL_IO: "cannot_read", "cannot_write",
 * "io_error". */
TIERCEL_API tiercel_status tiercel_cache_list(const char* cache_dir, char* json,
                                              size_t* size,
                                              tiercel_error* error);
TIERCEL_API tiercel_status tiercel_cache_clear(const char* cache_dir,
                                               size_t* removed,
                                               tiercel_error* error);

#ifdef __cplusplus
}
#endif

#endif /* TIERCEL_PLAN_H_ */
