/* A queue of generations, for programs that serve several people: entries of
 * tiercel_generate_batch that come and go, one by one, while others are made.
 */
#ifndef TIERCEL_QUEUE_H_
#define TIERCEL_QUEUE_H_

#include "tiercel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Makes entries on a thread of its own, several at once, as
 * tiercel_generate_batch does, with the same bits and the same bounds. May be
 * used from any thread. */
typedef struct tiercel_queue tiercel_queue;

typedef struct tiercel_queue_params {
  size_t struct_size;
  int64_t at_once; /* most entries made at once, 1 to 64; 0: 16 */
} tiercel_queue_params;

/* After an error *queue is NULL. TIERCEL_OUT_OF_MEMORY: "no_thread". */
TIERCEL_API tiercel_status tiercel_queue_create(
    const tiercel_model* model, const tiercel_queue_params* params,
    tiercel_queue** queue, tiercel_error* error);

/* Told once of each entry's end, on the queue's thread, with what the entry's
 * status and error got. */
typedef void (*tiercel_on_end)(void* user_data, tiercel_status status,
                               const tiercel_error* error);

/* Adds an entry, and returns at once. Entries begin in the order in which they
 * are added: each as soon as fewer than at_once are made and there is memory
 * for all that it and those may still take, up to their max_tokens; a first one
 * begins in any case. The arguments are copied, but for the session and the
 * places of status and error, which the program keeps until the end.
 *
 * From here to its end the session is in use. Other sessions that share pages
 * with it may be used and forked meanwhile: such a call waits for a pass of the
 * queue to end (while a prompt is read that no other entry waits for, for 256
 * of its tokens), and the queue for the call. A session that is freed is
 * cancelled, its entry ends, and it is deleted after that.
 *
 * Callbacks run on the queue's thread, one at a time; all entries wait for
 * them. They may use the queue, but for tiercel_queue_wait, which is
 * TIERCEL_USAGE there, and tiercel_queue_free, which does nothing; and cancel
 * or free sessions; calls that need one that shares pages with an entry are
 * "session_in_use" there. An exception of one ends its entry alone, with
 * TIERCEL_FAILED or TIERCEL_OUT_OF_MEMORY. They must not end the thread.
 *
 * `on_end` may be NULL. Errors, with on_end not called: those of
 * tiercel_session_generate for the arguments; TIERCEL_USAGE: "invalid_argument"
 * for a session of another model; "session_in_use", also if another queue makes
 * an entry of a session that shares pages with it. */
TIERCEL_API tiercel_status tiercel_queue_add(tiercel_queue* queue,
                                             const tiercel_batch_entry* entry,
                                             tiercel_on_end on_end,
                                             tiercel_error* error);

/* The entries that are made, and those that wait to begin. */
TIERCEL_API size_t tiercel_queue_running(const tiercel_queue* queue);
TIERCEL_API size_t tiercel_queue_waiting(const tiercel_queue* queue);

/* Waits until every entry that was added has ended. */
TIERCEL_API tiercel_status tiercel_queue_wait(tiercel_queue* queue,
                                              tiercel_error* error);
/* Cancels entries that have not ended, waits for their ends, and frees the
 * queue. */
TIERCEL_API void tiercel_queue_free(tiercel_queue* queue);

#ifdef __cplusplus
}
#endif

#endif /* TIERCEL_QUEUE_H_ */
