/* Policies: the ways in which a session generates. Part of tiercel.h, which has
 * the conventions. */
#ifndef TIERCEL_POLICY_H_
#define TIERCEL_POLICY_H_

#include "tiercel_error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tiercel_model; /* tiercel.h */

enum { TIERCEL_ADAPTIVE = -1 };

/* The way in which a session generates: a drafter proposes several tokens, and
 * the model checks them in one pass. The output has the model's distribution,
 * whatever is proposed. */
typedef struct tiercel_policy {
  size_t struct_size;
  /* "full" (default): the model checks the proposals over the whole text.
   * "triforce": the model checks them first over a view, which makes longer
   * blocks of them, and then checks the blocks over the whole text.
   * "sadas": while the text thinks, drafts come from the model over its newest
   * tokens; while it answers, as "triforce". "sfi": drafts come from the model
   * over selected single tokens, up to the end of each sentence. "speed": as
   * "triforce", over a view that shows the layers above a cut only the first
   * token and the answer. */
  const char* name;
  /* The drafter. "none" (default); "ngram": the text itself, where it repeats;
   * "self": the model over the first and the newest tokens; "small":
   * draft_model. */
  const char* draft;
  /* "residual" (default): accepts the most proposals. "coupled": the output is
   * that of draft "none" for the same seed, token for token. */
  const char* verify;

  /* For draft "small": a model with the same vocabulary, faster than the
   * session's and opened beside it. It reads the first 16 tokens and the
   * newest, 512 or more, as far as its context goes, at positions from 0 on.
   * All its memory stays on the device; plans and reports include it. */
  const struct tiercel_model* draft_model;
  /* For draft "self": the number of the model's first layers that propose, up
   * to all of them. Fewer are faster, and are accepted less often; 0: all. */
  int32_t draft_layers;

  /* The most tokens that are proposed at a time, up to 63: gamma1 by the
   * drafter, gamma2 in a block of a policy. 0: the library's choice;
   * TIERCEL_ADAPTIVE: adapted to the acceptance so far. */
  int32_t gamma1;
  int32_t gamma2;

  /* The view, which is kept on the device beside the text: the chunks that
   * matter most to the newest tokens, and the newest tokens. It exists if the
   * drafter or the policy uses it. In tokens; 0: the library's choice. Chunks
   * are selected by the mean of their keys. With a `chunk` of 1, which
   * "triforce" accepts and "sfi" has by default, single tokens are selected by
   * their own keys. "sfi" accepts 2 and 4, too. */
  int32_t chunk;  /* 8, 16, 32 (default), 64 or 128; see above */
  int64_t budget; /* tokens in chunks, per layer and head */
  int64_t sink;   /* first tokens of the text, within `budget` */
  int64_t window; /* the fewest newest tokens, beside `budget` */

  /* For adaptive lengths: the cost of a check, as a number of drafted tokens.
   * 0: the value that tiercel_measure kept in cache_dir, or 8 if there is none;
   * the report tells it. */
  double cost_ratio;

  /* For "sadas", "sfi" and "speed". "verified" (default): the policy drafts,
   * and the output is the model's. "plain": steps read only the policy's view,
   * as in its paper; this is faster and gives another text. "baseline": the
   * model over the whole text, with the tokens that the policy forces: the
   * reference for the other two. */
  const char* form;
  /* The policy's own settings, "key=value,key=value"; NULL: the defaults. Below
   * a key's default comes first, and "plain:" or "verified:" marks a key of one
   * form alone.
   *
   * "sadas" reads the `window` newest tokens (0: 4096) and the first `sink` (0:
   * none):
   *
   *   gate    state: the window is read while the text thinks; literal: until
   *           it has thought, in the prompt, too; always
   *   open    <think>: the tag that begins a thought
   *   close   </think>: the tag that ends it
   *   think   off; on: the text thinks from its first token on
   *   most    0: no limit; else the most tokens of a thought, behind which the
   *           closing tag is forced. If a scored text has another token there,
   *           the thought ends with that one
   *   latch   on: the text thinks once; off
   *   pin     none; prompt: the prompt stays in view
   *   answer  plain: all: an answer reads everything; kept: the tokens that a
   *           cache of the window alone would have kept
   *
   * "sfi" reads `budget` (0: 1024) selected tokens per layer and head, which
   * include the first `sink` (0: 4), and the `window` (0: 256) newest:
   *
   *   interval  plain: 64: the most steps between two full steps, which read
   *             everything and select
   *   gap       plain: 16, or the interval if that is less: the fewest steps
   *             before the end of a sentence triggers a full step
   *   trigger   plain: sentence; fixed: by the interval alone; random: one step
   *             in `interval`; never
   *   fire      end: at the end of a sentence; start: at the first token of the
   *             next
   *   spacing   plain: gap; half: a gap of at least half the interval
   *   evidence  16: the last tokens of a prompt whose attention selects, up to
   *             64
   *   queries   1: at a later step, the last tokens up to it whose attention
   *             selects, up to 64
   *   drafted   verified: 0: the first of the checked drafts, this many, select
   *             too, whether they are accepted or not; up to 63
   *   decay     0: the weight of the attention of earlier selections at each
   *             later one, 0 to 1
   *   prior     0.25: the highest weight of a key's position and size beside
   *             attention, 0 to 1
   *   nms       1: the share that a token loses beside a greater one, 0 to 1
   *   beside    0: the tokens on each side that are selected along with a
   *             greater one instead, up to 128, in whole chunks; nms is 0 then
   *   exclusive 0.85: the share that a token loses to another head, 0 to 1
   *
   * "speed": in the plain form the rows of a prompt go through the first layers
   * alone. The layers above see, and keep, only the tokens named here and the
   * answer. A checkpoint that was not trained for this gives a warning if a row
   * ends there.
   *
   *   cut       three quarters of the model's layers: the number of layers that
   *             all rows go through, up to all
   *   tail      auto: the ids with which the chat template ends a prompt, or
   *             the last token; else the number of last tokens, up to all
   *   anchor    1: the first tokens of the text; verified: up to `budget`
   *   past      plain: drop; keep: earlier answers of the conversation
   *
   * A key of the other form has no effect and gives a warning. In the verified
   * form a block of "sfi" ends with a sentence or after gamma2 tokens. Without
   * a tokenizer both forms need "trigger=fixed". */
  const char* settings;
  /* For "triforce": the most second choices for tokens of a block, 0 to 16,
   * each with up to 7 tokens behind it, which the same sweep checks. They pay
   * if a sweep costs far more than a few more rows in it and some tens of
   * passes over the view together: TIERCEL_ADAPTIVE takes 4 if it costs as much
   * as 64 passes or more, by cost_ratio as gamma2 has it, else none. With
   * verify "coupled" they change no token. */
  int64_t branches;
  /* For "triforce" with verify "coupled". Not 0: while a sweep waits for the
   * link, the next block is drafted as if the one that it checks held, and
   * dropped if not. It changes no token, and takes a second workspace on the
   * device. It has an effect where KV comes over a link, and the device has all
   * weights, for a text that is made alone. TIERCEL_USAGE: with draft "self",
   * with chunks of 1, or over several ranks. */
  int64_t draft_ahead;
} tiercel_policy;

/* Lists what tiercel_policy.name may be, and what only one policy knows:
 * [{"name", "help": what its steps read, "plain": whether it has a plain form,
 * "plain_sizes": the members of tiercel_policy that this form heeds, of
 * "budget", "chunk", "sink" and "window", "settings": [{"key", "default",
 * "help": a sentence}]}]. A default of "N" depends on the model. It may be
 * called from any thread. */
TIERCEL_API tiercel_status tiercel_policies(char* json, size_t* size,
                                            tiercel_error* error);

#ifdef __cplusplus
}
#endif

#endif /* TIERCEL_POLICY_H_ */
