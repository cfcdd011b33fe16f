/* A queue of generations, for programs that serve several people: entries of
 * tiercel_generate_batch that come and go, one by one, while others are made.
 */
#ifndef TIERCEL_QUEUE_H_
#define TIERCEL_QUEUE_H_

#include "tiercel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Generates the output of its entries on a thread of its own, several at once,
 * as tiercel_generate_batch does, with the same bits and the same bounds. May
 * be used from any thread. */
typedef struct tiercel_queue tiercel_queue;

typedef struct tiercel_queue_params {
  size_t struct_size;
  int64_t at_once; /* the most entries that generate at once, 1 to 64; 0: 16 */
} tiercel_queue_params;

/* After an error *queue is NULL. TIERCEL_OUT_OF_MEMORY: "no_thread". */
TIERCEL_API tiercel_status tiercel_queue_create(
    const tiercel_model* model, const tiercel_queue_params* params,
    tiercel_queue** queue, tiercel_error* error);

/* Called once for each entry, when it ends, on the queue's thread, with the
 * same as the entry's status and error receive. */
typedef void (*tiercel_on_end)(void* user_data, tiercel_status status,
                               const tiercel_error* error);

/* Adds an entry, and returns at once. Entries begin in the order in which they
 * are added: each as soon as fewer than at_once generate and there is memory
 * for all that it and those may still take, up to their max_tokens. If none
 * generates the next one begins in any case. The arguments are copied, but for
 * the session and the places of status and error, which the program keeps until
 * the end.
 *
 * From here to its end the session is in use. Other sessions that share pages
 * with it may be used and forked meanwhile: such a call waits until a pass of
 * the queue ends (while the queue reads a prompt and nothing else, until it has
 * read 256 more tokens), and then the queue waits for the call. A callback of
 * such a call may use other such sessions, which is "session_in_use" if another
 * thread's callback waits at the same time. If a session is freed its entry is
 * cancelled, and the session is deleted when the entry has ended.
 *
 * Callbacks run on the queue's thread, one at a time; all entries wait for
 * them. They, and those of calls for which the queue waits, may use the queue,
 * except for tiercel_queue_wait, which is TIERCEL_USAGE there, and
 * tiercel_queue_free, which does nothing. They may
 * cancel and free sessions; other calls of a session that shares pages with an
 * entry are TIERCEL_USAGE, "session_in_use". An exception that a callback
 * throws ends its entry alone, with TIERCEL_FAILED or TIERCEL_OUT_OF_MEMORY. A
 * callback must not end the thread.
 *
 * `on_end` may be NULL. Errors, with on_end not called: those of
 * tiercel_session_generate for the arguments; TIERCEL_USAGE: "invalid_argument"
 * for a session of another model; "session_in_use", also if another queue makes
 * an entry of a session that shares pages with it. */
TIERCEL_API tiercel_status tiercel_queue_add(tiercel_queue* queue,
                                             const tiercel_batch_entry* entry,
                                             tiercel_on_end on_end,
                                             tiercel_error* error);

/* Return the number of entries that have begun and not ended, and of those that
 * wait to begin. */
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
