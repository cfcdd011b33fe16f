/* Reports: what a session did, how long it took, and what a question attends
 * to. Part of tiercel.h, which has the conventions. */
#ifndef TIERCEL_REPORT_H_
#define TIERCEL_REPORT_H_

#include "tiercel.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tiercel_finish {
  TIERCEL_FINISH_NONE = 0,   /* nothing was generated, or it failed */
  TIERCEL_FINISH_STOP = 1,   /* the end of the text, or a stop text */
  TIERCEL_FINISH_LENGTH = 2, /* max_tokens, or it ended within its thought */
  TIERCEL_FINISH_CANCELLED = 3
} tiercel_finish;

/* The most used figures of tiercel_session_report. Seconds are 0 if there was
 * nothing to measure. */
typedef struct tiercel_generation {
  size_t struct_size;
  int64_t prompt_tokens;
  int64_t cached_tokens;
  int64_t output_tokens;
  double prefill_seconds;
  double ttft_seconds;   /* prefill_seconds, and on to the first token */
  double decode_seconds; /* all tokens after the first */
  tiercel_finish finish;
  int32_t simulated; /* not 0: the device is a simulated one */
} tiercel_generation;
/* Fills `generation`, whose struct_size the caller has set, with the figures of
 * the session's last prefill and generation. */
TIERCEL_API tiercel_status tiercel_session_get_generation(
    const tiercel_session* session, tiercel_generation* generation,
    tiercel_error* error);

/* Reports the last prefill and generation of this session, as the JSON document
 * of `tiercel generate --json` without the fields that only the program knows.
 * A figure is null if there was nothing to measure:
 *
 *   prompt_tokens   tokens held when the generation began
 *   cached_tokens   the number of prompt_tokens whose KV the last prefill found
 *                   in the session or on disk
 *   resumed         layers of that prefill that had been finished before, in
 *                   this session or, with prompt_cache_dir, in another
 *   ttft_s          seconds of that prefill, and on to the first token
 *   prefill_tok_s   tokens that the prefill computed over its seconds; null if
 *                   it read others from disk in that time
 *   tbt_ms          milliseconds from a token to the next. p50, p90, p99: the
 *                   least sample that this share of all samples does not
 *                   exceed; samples: the number of tokens less one
 *   decode_tok_s    the number of those samples over their sum in seconds, so
 *                   without the first token
 *   speculation     sweeps: passes of the model over all of the KV, except one
 *                   that made only the first token; tokens_per_sweep: tokens
 *                   after the first over sweeps, some of which may have made
 *                   only a stop text; for each level the tokens drafted,
 *                   checked (up to and including the first that was rejected)
 *                   and accepted. Acceptance is accepted over checked
 *   ledger          bytes that crossed the link, up and down (if pages are on
 *                   disk and there is no link, to and from working memory), and
 *                   bytes that were read from disk and written there for lack
 *                   of memory; for each phase its seconds, the bytes that it
 *                   requested, the time for which the link was occupied and
 *                   its share of the seconds; formula: the terms of the bytes
 *   schedule        only for policies with a schedule, over the output alone,
 *                   without the tokens of a stop text or the end of the text.
 *                   Fast and slow steps; slow_at: for "sfi", the output tokens
 *                   before each slow step; segments: runs of tokens, for
 *                   "sadas" thought or answer, by the tags, for plain "sfi"
 *                   fast or slow steps; selected: positions that a head
 *                   selected; coverage_at: for each slow step, if single tokens
 *                   are selected, the share of its row's attention on positions
 *                   that were in view before; coverage: the mean of these
 *   memory          bytes held at the time of the call: host_bytes, KV of this
 *                   session in the host tier; device_bytes, all models and
 *                   sessions on its device
 *   predicted       predictions of the same figures; tbt_ms is null with
 *                   drafts, whose saving depends on their acceptance */
TIERCEL_API tiercel_status
tiercel_session_report(const tiercel_session* session, char* json, size_t* size,
                       tiercel_error* error);

/* Returns, for each output token of the last generation, the seconds since the
 * token before, or since the generation began. Tokens of one sweep come at
 * once, and share its time. *size counts tokens. */
TIERCEL_API tiercel_status
tiercel_session_token_seconds(const tiercel_session* session, double* seconds,
                              size_t* size, tiercel_error* error);

/* The number of positions in a run: run i begins at i * TIERCEL_RUN_TOKENS. A
 * session's first token is at position 0. */
enum { TIERCEL_RUN_TOKENS = 32 };

/* A question about a text, both among the tokens that a session holds. */
typedef struct tiercel_reading {
  size_t struct_size;
  size_t begin; /* the text: the tokens [begin, end) */
  size_t end;
  size_t asked;  /* above `end`: where the question begins */
  size_t answer; /* where it and all that precedes its answer ends; below the
                  * number of tokens held */
  /* Other questions about the text: the tokens of each, as they would stand
   * from `asked` on. The first should be one that could be asked of any text.
   * NULL if there are none. */
  const int32_t* const* others;
  const size_t* other_sizes;
  size_t num_others;
  /* If not NULL, is set to the excess of the question's attention over that of
   * the first other one: 0 if it attends as that does, 1 if every head attends
   * to one run alone, where that attends to all alike. The shares of a small
   * excess, of less than 0.05, say little. */
  double* excess;
} tiercel_reading;

/* Estimates, from the means of keys, which parts of a text a question attends
 * to. shares[i] is the excess of its attention to the i-th run over that of the
 * tokens between text and question, and over the mean of the other questions:
 * some passages draw every question. The runs are those that lie wholly in the
 * text; the shares sum to 1, or to 0. Only tokens that were read or generated
 * count. The tokens behind the text are computed once more, and those of the
 * other questions, which takes as long as reading them. The session holds the
 * same tokens afterwards; after an error the next call may have to compute the
 * KV of some again. Not available under a policy's plain form, nor over tokens
 * of tiercel_session_fill. Attention to a passage does not prove that an answer
 * follows from it.
 *
 * `shares` may be NULL if *size is 0; *size counts shares. Progress is in
 * tokens. TIERCEL_INVALID_INPUT: "context_length_exceeded", "invalid_token",
 * for another question. */
TIERCEL_API tiercel_status tiercel_session_attended_beside(
    tiercel_session* session, const tiercel_reading* reading,
    tiercel_progress progress, void* user_data, float* shares, size_t* size,
    tiercel_error* error);

/* tiercel_session_attended_beside, without other questions. */
TIERCEL_API tiercel_status tiercel_session_attended(
    tiercel_session* session, size_t begin, size_t end, size_t asked,
    size_t answer, tiercel_progress progress, void* user_data, float* shares,
    size_t* size, tiercel_error* error);

#ifdef __cplusplus
}
#endif

#endif /* TIERCEL_REPORT_H_ */
