/* Tiercel: long texts through a language model on small machines.
 *
 * A model is opened once and shared; a session is one sequence of tokens and
 * its KV cache. Text becomes tokens, tokens are prefilled, tokens are
 * generated:
 *
 *   tiercel_model_open -> tiercel_tokenize or tiercel_chat_tokens
 *     -> (tiercel_model_load) -> (tiercel_measure, tiercel_plan)
 *     -> tiercel_session_create
 *     -> tiercel_prefill -> tiercel_generate -> tiercel_report
 *
 * Conventions
 *   - Every struct begins with struct_size = sizeof(the struct), but for those
 *     that only callbacks get. A zeroed struct with its size set means the
 *     defaults. Structs grow: a new field goes to the end, 0 there means what
 *     was before it, and no struct has padding at its end. So a program made
 *     with an older header works with a newer library, whatever lies behind its
 *     structs; the other way round a field that the library does not know and
 *     that is not 0 is TIERCEL_USAGE, "invalid_struct_size".
 *   - Every function that can fail returns a tiercel_status and fills `error`,
 *     which may be NULL. Nothing throws, aborts, prints, or installs handlers;
 *     threads of the library, and of libraries that it loads, take no signals
 *     of the process.
 *     Any may give TIERCEL_USAGE, for a wrong argument, TIERCEL_OUT_OF_MEMORY
 *     and TIERCEL_FAILED; one with a callback TIERCEL_CANCELLED; one that
 *     computes TIERCEL_NO_DEVICE, "copy_failed", where the link to the device
 *     fails. Comments name the other errors.
 *   - Functions that fill a caller's buffer take its capacity in *size and set
 *     *size to what is needed; too small is TIERCEL_BUFFER_TOO_SMALL and
 *     nothing is written. The buffer may be NULL when *size is 0.
 *   - Text is UTF-8 with a byte count; it may hold NULs. JSON texts are
 *     NUL-terminated and their size counts the NUL.
 *   - A model may be used from any thread. A session and its forks are used by
 *     one call at a time (they share pages): another, on any thread and in a
 *     callback of that one, is TIERCEL_USAGE, "session_in_use", and does
 *     nothing. Only tiercel_cancel, tiercel_clear_cancel and
 *     tiercel_session_length may be called beside a call, and from its
 *     callbacks tiercel_session_resumed and tiercel_session_kept.
 *   - Callbacks are called by the call that was given them, on its thread. They
 *     may make and use other models and sessions. What one throws comes back as
 *     TIERCEL_FAILED or OUT_OF_MEMORY. One that ends its thread (pthread_exit)
 *     ends the call, too: sessions and models are left as by one that throws.
 *     None may leave by longjmp.
 *   - A file that the process may not make so large (RLIMIT_FSIZE) is an error,
 *     or a warning, as a full disk is: no SIGXFSZ comes of the library's files.
 *   - pthread_cancel ends a thread in a callback, or behind the call, as
 *     elsewhere in the program; while the library works it waits.
 *   - NULL for a handle, a struct or a place for results is TIERCEL_USAGE,
 *     "null_argument", where nothing else is said; callbacks may be NULL.
 *     Functions that free take NULL.
 *   - No handle may be used once it is freed. What it stands for lives until
 *     nothing needs it: a model until its last session is freed, and the last
 *     for which it drafts; a session until the call ends that uses it, or a
 *     fork of it, and its own call is cancelled (TIERCEL_CANCELLED). So both
 *     may be freed in callbacks, too, and in any order.
 *   - Results do not depend on the caller's locale, nor on its rounding mode,
 *     traps and flushing to zero: those are the default ones in every call, its
 *     callbacks too, and the caller's again after it.
 *   - After fork() a process has its parent's models, if no other thread was in
 *     a call, but not its sessions: their calls are TIERCEL_USAGE, "forked",
 *     and freeing them does nothing. It may make sessions of its own. Files of
 *     texts that its parent has open are closed in it, and their locks the
 *     parent's alone. A process that a callback makes must not return from it.
 *   - The library may be unloaded (dlclose) once all is freed. Unloaded before,
 *     it stays in memory for as long as threads of it live.
 */
#ifndef TIERCEL_H_
#define TIERCEL_H_

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define TIERCEL_API __attribute__((visibility("default")))
#else
#define TIERCEL_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Errors -------------------------------------------------------------- */

typedef enum tiercel_status {
  TIERCEL_OK = 0,
  TIERCEL_FAILED = 1,        /* an internal failure */
  TIERCEL_USAGE = 2,         /* a parameter is wrong */
  TIERCEL_INVALID_INPUT = 3, /* a model or a text is invalid or unsupported */
  TIERCEL_OUT_OF_MEMORY = 4, /* it does not fit */
  TIERCEL_NO_DEVICE = 5,
  TIERCEL_IO = 6,
  TIERCEL_CANCELLED = 7, /* by a callback or tiercel_cancel */
  TIERCEL_BUFFER_TOO_SMALL = 8
} tiercel_status;

/* May be made anew for each call, or used again. */
typedef struct tiercel_error {
  size_t struct_size;
  char code[48];      /* stable, snake_case: "context_length_exceeded" */
  char message[1024]; /* a sentence for people: who, got, needed */
} tiercel_error;

/* "0.1.0 (commit 1a2b3c4, Release, avx512vnni)"; static, never NULL. From any
 * thread. */
TIERCEL_API const char* tiercel_version(void);

/* What tells this build of the library from any other, of the same commit too:
 * the linker's build id of the program or shared object that has it, or a hash
 * of that file. "" where there is neither; then no texts are kept (texts_dir).
 * Static, never NULL. From any thread. */
TIERCEL_API const char* tiercel_build_id(void);

/* ---- Models -------------------------------------------------------------- */

typedef struct tiercel_model tiercel_model;

/* Called often during long work with a fraction done of total, both in the
 * unit of that work (bytes, tokens). Non-zero stops: TIERCEL_CANCELLED. */
typedef int (*tiercel_progress)(void* user_data, uint64_t done, uint64_t total);

typedef enum tiercel_load {
  TIERCEL_LOAD_ALL = 0,
  TIERCEL_LOAD_HEADER = 1 /* describe, tokenize, detokenize: no weights */
} tiercel_load;

typedef struct tiercel_model_params {
  size_t struct_size;
  const char* path; /* a GGUF file, the first of a split, or a directory */
  tiercel_load load;
  /* "auto" (default; as yet "cpu"), "cpu", "cuda", "ref"; "far": a GPU that the
     CPU plays, very slowly, for tests */
  const char* device;
  const char* compute;   /* "q8" (default), "f32": activations */
  int32_t threads;       /* 0: all the CPUs this process may use */
  int32_t check_tensors; /* non-zero: reject NaN and infinity in weights */

  /* Replace what the checkpoint says; NULL or 0 keeps it. */
  const char* rope_scaling; /* "none", "linear", "yarn" */
  double rope_scale;        /* context is longer by this factor */
  double rope_freq_base;
  int64_t yarn_orig_ctx;

  tiercel_progress progress; /* in bytes read; may be NULL */
  void* user_data;

  /* Play a small device behind a slow link on this machine: weights and what
   * is computed on fit simulate_device_bytes (0: no simulation), everything
   * else crosses the link, at its rate. Results are the same bytes; reports
   * say "simulated". */
  uint64_t simulate_device_bytes;
  double simulate_link_bytes_per_s; /* over 0 */
  double simulate_link_latency_us;  /* per transfer */

  /* Most memory to take for weights, KV and work, of a played device and of
   * what is behind its link together; 0: what is free. */
  uint64_t device_memory_bytes;

  /* Opens the model on the machine of this one: its device, threads and
   * memory, of which one budget holds both. device, threads,
   * device_memory_bytes, simulate_* and tensor_parallel are NULL or 0 then. It
   * may be freed before. NULL: a machine of its own. Where that one has several
   * ranks, this is on the first. */
  const tiercel_model* beside;

  /* Ranks that compute the model together, each a part of every matrix and of
   * the KV's heads, on a device and a link of its own, with "cuda" a GPU
   * (simulate_* are each rank's; threads and device_memory_bytes are divided
   * among them). Results are the same bytes for any number. 0: 1; at most 64.
   * TIERCEL_OUT_OF_MEMORY, "cannot_split": the model has too few heads, or
   * columns, for so many, or the process sees too few GPUs.
   * tiercel_choose_ranks says how many are best.
   *
   * host_memory_bytes: most memory that KV behind a link may take, in the host
   * tier; without a link, that all may take, as device_memory_bytes. Pages for
   * which that has no room are on disk, where texts are kept (texts_dir) and a
   * context is asked for. 0: what is free. With `beside` 0. Where no weights
   * are read, for a simulated device: that of the machine which is played. */
  int64_t tensor_parallel;
  uint64_t host_memory_bytes;
} tiercel_model_params;

/* Opens a checkpoint, and reads its weights unless params->load says otherwise.
 * After an error *model is NULL. TIERCEL_IO: a file cannot be read;
 * TIERCEL_INVALID_INPUT: its contents are invalid or unsupported;
 * TIERCEL_NO_DEVICE. */
TIERCEL_API tiercel_status
tiercel_model_open(const tiercel_model_params* params, tiercel_model** model,
                   tiercel_error* error);
/* Reads the weights of a model that was opened with TIERCEL_LOAD_HEADER, so
 * that what a text needs is known before. No other call may use the model
 * meanwhile. Nothing is done where it has them; after an error it is as it was.
 * TIERCEL_IO and TIERCEL_INVALID_INPUT as tiercel_model_open. */
TIERCEL_API tiercel_status tiercel_model_load(tiercel_model* model,
                                              tiercel_progress progress,
                                              void* user_data,
                                              tiercel_error* error);
/* Sessions of the model stay, and what they need of it. In a process that was
 * forked from one that has sessions of it, its memory stays to the end. */
TIERCEL_API void tiercel_model_free(tiercel_model* model);

/* What the checkpoint is, as the JSON of `tiercel inspect`. */
TIERCEL_API tiercel_status tiercel_model_describe(const tiercel_model* model,
                                                  char* json, size_t* size,
                                                  tiercel_error* error);

typedef struct tiercel_model_info {
  size_t struct_size;
  int64_t vocab;
  int64_t context;       /* positions the checkpoint was made for */
  int32_t has_tokenizer; /* 0: only ids go in and out */
  int32_t has_template;
  int32_t adds_bos; /* a text of this checkpoint begins with a BOS token */
  int64_t bytes_per_token; /* weights read for one decoded token */
  int64_t weight_bytes;    /* held in memory; 0 with TIERCEL_LOAD_HEADER */
  int32_t threads;
  int32_t layers;
  /* Ranks that compute it, each with so many threads. */
  int64_t ranks;
} tiercel_model_info;
/* Fills `info`, whose struct_size is set before. */
TIERCEL_API tiercel_status tiercel_model_get_info(const tiercel_model* model,
                                                  tiercel_model_info* info,
                                                  tiercel_error* error);

/* ---- Tokens -------------------------------------------------------------- */

enum {
  TIERCEL_ADD_BOS = 1,      /* where the checkpoint adds one */
  TIERCEL_PARSE_SPECIAL = 2 /* "<|im_start|>" is that token, not its letters */
};

/* When to give up on a text, so that one that no context can hold costs little.
 */
typedef struct tiercel_text_limits {
  size_t struct_size;
  /* More are TIERCEL_INVALID_INPUT, "too_long", soon after so many are counted;
   * progress then told how much of the text they are. 0: no limit. */
  size_t most_tokens;
  tiercel_progress progress; /* in bytes of text; may be NULL */
  void* user_data;
} tiercel_text_limits;

/* The ids of a text: without BOS, and with special tokens as their letters,
 * unless `flags` say otherwise. `text` may be NULL if text_bytes is 0, and
 * `limits` too. *size counts ids; the bytes of the text plus one are always
 * enough. TIERCEL_INVALID_INPUT: "no_tokenizer", "too_long", "invalid_text"
 * (bytes that the vocabulary cannot spell). */
TIERCEL_API tiercel_status tiercel_tokenize(const tiercel_model* model,
                                            const char* text, size_t text_bytes,
                                            uint32_t flags,
                                            const tiercel_text_limits* limits,
                                            int32_t* ids, size_t* size,
                                            tiercel_error* error);
/* The text of ids, which need not be whole UTF-8 if they are not a whole text;
 * *size counts its bytes, and no NUL follows. Control tokens are left out; with
 * TIERCEL_PARSE_SPECIAL they are their letters. TIERCEL_ADD_BOS says nothing
 * here. `ids` may be NULL if count is 0. TIERCEL_INVALID_INPUT: "no_tokenizer",
 * "invalid_token" (an id that is none of the vocabulary's). */
TIERCEL_API tiercel_status tiercel_detokenize(const tiercel_model* model,
                                              const int32_t* ids, size_t count,
                                              uint32_t flags, char* text,
                                              size_t* size,
                                              tiercel_error* error);

typedef struct tiercel_message {
  size_t struct_size; /* the same in all of an array: its stride */
  const char* role;   /* NUL-terminated: "system", "user", "assistant" */
  const char* content;
  size_t content_bytes;
} tiercel_message;

/* The conversation through the checkpoint's own chat template, ending where
 * the assistant is to speak. No wording of a message makes a special token.
 * `messages` may be NULL if count is 0, and `limits` too; *size as of
 * tiercel_tokenize. TIERCEL_INVALID_INPUT: also "no_chat_template",
 * "template_error". */
TIERCEL_API tiercel_status
tiercel_chat_tokens(const tiercel_model* model, const tiercel_message* messages,
                    size_t count, const tiercel_text_limits* limits,
                    int32_t* ids, size_t* size, tiercel_error* error);

/* ---- Sessions ------------------------------------------------------------ */

typedef struct tiercel_session tiercel_session;

enum { TIERCEL_ADAPTIVE = -1 };

/* How a session makes its tokens: who proposes them, who checks them, several
 * in one pass. The distribution of the output is the model's whatever is
 * proposed. */
typedef struct tiercel_policy {
  size_t struct_size;
  /* "full" (default): what is proposed is checked by the model as it is.
   * "triforce": first by the model over a view, which makes longer blocks of
   * it, and those by the model as it is. "sadas": while the text thinks, the
   * model over its newest tokens; while it answers, as "triforce". "sfi": the
   * model over single tokens that it chose, to the end of each sentence.
   * "speed": as "triforce", over a view of which the layers above a cut see
   * the first token and the answer alone. */
  const char* name;
  /* Who proposes. "none" (default); "ngram": the text itself, where it repeats;
   * "self": the model over the first and the newest tokens; "small":
   * draft_model. */
  const char* draft;
  /* "residual" (default): most proposals hold. "coupled": the output is that
   * of draft "none" for the same seed, token for token. */
  const char* verify;

  /* Of draft "small": a model with the same vocabulary, faster than the
   * session's and opened beside it. It reads the first 16 tokens and the
   * newest, 512 or more, as far as its context goes, at positions from 0 on.
   * It stays on the device with all it takes, which plans and reports count. */
  const tiercel_model* draft_model;
  /* Of draft "self": the model's first so many layers propose, to its number of
   * layers. Fewer are faster, and hold less often; 0: all. */
  int32_t draft_layers;

  /* Most tokens at a time, to 63: gamma1 of who proposes, gamma2 of blocks
   * that a policy checks. 0: our choice; TIERCEL_ADAPTIVE: by how many held so
   * far. */
  int32_t gamma1;
  int32_t gamma2;

  /* The view, kept on the device beside the text: the chunks that matter to the
   * newest tokens, and the newest tokens. Kept where somebody proposes or
   * checks over it. In tokens; 0: our choice. Chunks are chosen by the mean of
   * their keys; a `chunk` of 1, for "triforce" and by default for "sfi", has
   * single tokens chosen by their keys themselves. "sfi" takes 2 and 4 too. */
  int32_t chunk;  /* 8, 16, 32 (default), 64 or 128; see above */
  int64_t budget; /* of chunks, per layer and head */
  int64_t sink;   /* of those, the first of the text; to `budget` */
  int64_t window; /* at least so many of the newest, besides */

  /* Of adaptive lengths: what a check costs, in drafted tokens. 0: what
   * tiercel_measure kept in cache_dir says, or 8 without it; reported. */
  double cost_ratio;

  /* Of "sadas", "sfi" and "speed". "verified" (default): it drafts, and the
   * output is the model's. "plain": its view is all that is read, as its
   * authors have it; faster, and another text. "baseline": the model as it is,
   * with what the policy forces of the text: what the other two are compared
   * with. */
  const char* form;
  /* What only this policy knows, "key=value,key=value"; NULL: its defaults,
   * here the first of each. "sadas", which reads the `window` newest tokens
   * (0: 4096) and the first `sink` (0: none):
   *
   *   gate    state: the window is read while the text thinks; literal: until
   *           it has thought, in the prompt too; always
   *   open    the tag that begins it, <think>; close: that ends it, </think>
   *   think   off; on: the text thinks from its first token on
   *   most    tokens that it may think, then the closing tag follows; 0: as
   *           many as it likes. Where a text that is scored has another token
   *           there, the thought ends with that
   *   latch   on: it thinks once; off
   *   pin     none; prompt: the prompt stays in view
   *   answer  plain: all: an answer reads everything; kept: what a cache of
   *           the window alone would have kept
   *
   * "sfi", with `budget` (0: 1024) chosen tokens per layer and head, of them
   * the first `sink` (0: 4), and the `window` (0: 256) newest:
   *
   *   interval  plain: 64: most steps from one that reads everything, and
   *             chooses, to the next
   *   gap       plain: 16, or the interval if that is less: the fewest, for the
   *             end of a sentence to count
   *   trigger   plain: sentence; fixed: by the interval alone; random: one step
   *             in so many; never
   *   fire      end: at the end of a sentence; start: at the first token of the
   *             next
   *   spacing   plain: gap; half: a gap of half the interval at least
   *   evidence  16: the last tokens of a prompt that choose, to 64
   *   queries   1: and of what follows it, the last up to that step, to 64
   *   drafted   verified: 0: so many of the drafts that are checked, the first,
   *             choose too, whether they hold or not, to 63
   *   decay     0: of the attention that chose before, what counts at each
   *             later choice, 0 to 1
   *   prior     0.25: the most that place and size of a key weigh beside
   *             attention, 0 to 1
   *   nms       1: how much a token loses beside a greater one, 0 to 1
   *   beside    0: so many tokens on each side come along with a greater one
   *             instead, to 128, in whole chunks; nms is 0 then
   *   exclusive 0.85: how much it loses to another head, 0 to 1
   *
   * "speed", plain: rows of a prompt go through the first layers alone; those
   * above see, and keep, what is named here and the answer. A checkpoint that
   * was not trained so gives a warning where a row ends there.
   *
   *   cut       how many layers: three quarters of the model's, to all
   *   tail      the last tokens of a prompt, to all; auto: the ids with which
   *             the chat template ends it, or the last
   *   anchor    1: the first tokens of the text; verified, to `budget`
   *   past      plain: drop; keep: earlier answers of the conversation
   *
   * What is plain's has no effect in the verified form, nor what is
   * verified's in the plain one, and gives a warning there: a block of "sfi" is
   * drafted to the end of a sentence or for gamma2 tokens. "trigger=fixed" is
   * needed without a tokenizer in both forms. */
  const char* settings;
} tiercel_policy;

enum {
  /* Prompts that another session has not finished begin anew. */
  TIERCEL_TEXTS_BEGIN_ANEW = 1,
  /* Each text is read once: layers that are finished of a prompt are kept until
   * a generation behind it has ended, a few at a time, and no text is; nor are
   * pages for which memory has no room. */
  TIERCEL_TEXTS_UNFINISHED_ALONE = 2
};

typedef struct tiercel_session_params {
  size_t struct_size;
  int64_t context;       /* most tokens; 0: the checkpoint's, or what fits */
  const char* kv_type_k; /* "f16" (default), "bf16", "f32", "q8_0" */
  const char* kv_type_v;
  int64_t first_position; /* for tests: of the first token; else 0 */
  /* A folder where tiercel_measure keeps how fast this machine runs the model.
   * With it, and something there, times are predicted. NULL: no times. */
  const char* cache_dir;
  const tiercel_policy* policy; /* NULL: "full", and nobody drafts */

  /* A folder of this user's, made where it is missing, where sessions keep what
   * was computed of the texts they read, and look for what others have: a text
   * that was read once, or that begins as one, opens in the time its bytes take
   * to be read and checked. NULL: nothing is kept or looked for. Where nothing
   * tells this build from others (tiercel_build_id) neither, and a warning says
   * so.
   *
   * tiercel_prefill and tiercel_read look there for what saves computing 1,024
   * tokens or more, of the same model with the same settings, computed by the
   * same build. What is found has the bytes that would be computed: logits and
   * texts stay the same. When they have computed so many they keep the text:
   * a thread writes it beside what the caller does next, and
   * tiercel_session_free waits for it. A call that is cancelled ends that; the
   * next prompt makes up for it. What goes wrong is a warning in tiercel_report
   * and no error: a text that cannot be kept is not, one whose file is damaged
   * is read again.
   *
   * What is finished of such a prompt is kept there too, layer by layer, until
   * its text is: where the call is cancelled, the session freed or the process
   * killed, another session that is asked for the same tokens, behind as many
   * that it holds already, goes on with the layer behind the last that was
   * written, which a disk that keeps up has done before the next one is over.
   * Logits and texts stay the same. One session at a time has such a prompt; in
   * this version none of a model with several ranks has.
   *
   * Any number of processes may share a folder; a link may lead to it. A longer
   * text takes the place of those that it begins with. Its files hold the
   * texts: only this user can read them. Nothing is kept or opened, in this
   * version, where rows of prompts do not read all, or end before the last
   * layer ("sadas" with the gate literal, and "speed", both plain), with a
   * first_position, and on a GPU that has room for all of the KV, or where
   * cuBLASLt computes.
   *
   * With it, and a `context` that memory cannot hold, pages of KV are on disk:
   * of a text that is opened in its file, else in one without a name. Steps
   * read them from there while the layer before computes, each with its
   * checksum, and results are the same bytes. A page that cannot be read is
   * TIERCEL_IO, "page_damaged" or "io_error": the session forgets KV from there
   * on, and the next call computes it again. Such pages may take texts_bytes,
   * too. */
  const char* texts_dir;
  /* Most bytes of its files: once a new text is whole, those not used for
   * longest make room. 0: 16 GiB. texts_flags: TIERCEL_TEXTS_*, or 0.
   * texts_name: what people call the text, or NULL; tiercel_cache_list has its
   * first 1,000 bytes, and nothing depends on it. */
  uint64_t texts_bytes;
  uint64_t texts_flags;
  const char* texts_name;
} tiercel_session_params;

typedef struct tiercel_measurement {
  size_t struct_size;
  int32_t measured; /* 0: what was kept already is as good as it gets */
  int32_t steady; /* 0: spread is over 0.25, other work kept the machine busy */
  /* How much longer the middle pass took than the quickest of its kind, as a
   * share of that: of the kind of pass where it is most. */
  double spread;
  /* Set by the caller: for how many seconds what is not steady may be measured
   * again. 0: six; below 0: not at all. */
  double again_seconds;
} tiercel_measurement;

/* Measures how fast this machine runs `model` with such sessions, and keeps
 * that in params->cache_dir: no other call measures, sessions and plans read
 * what is there when they are made. Where something is kept it returns at once,
 * but for what is not steady. A measurement takes about two seconds, on a busy
 * machine a few more. Until one is steady it is made again, three times in all,
 * in this call and later ones, while another like the last would end within
 * again_seconds: who measures before some work gives the seconds that this will
 * take, and waits for numbers no longer than for it. The steadiest counts. The
 * model may have been opened with TIERCEL_LOAD_HEADER: some of its weights are
 * read then. Sessions of the model may work meanwhile, but then it measures a
 * busy machine.
 *
 * The ratio of costs that adaptive lengths count with (tiercel_policy) comes
 * from the first call's measurement, rounded and kept beside it until
 * tiercel_cache_clear: whatever is measured later, the same calls give the same
 * tokens.
 *
 * `progress`, in parts of it, may be NULL; stopped, nothing is kept.
 * `measurement` may be NULL. TIERCEL_IO with "cannot_write": nothing can be
 * kept. */
TIERCEL_API tiercel_status tiercel_measure(const tiercel_model* model,
                                           const tiercel_session_params* params,
                                           tiercel_progress progress,
                                           void* user_data,
                                           tiercel_measurement* measurement,
                                           tiercel_error* error);

/* What tiercel_measure and sessions keep in a folder that was their cache_dir
 * or texts_dir: {"files": [{"file", "bytes", "modified": seconds since 1970,
 * and what it says: "model", "key", "rates", "costs", "spread", "attempts",
 * "seconds" of the last of these, "steady"}], "texts": [{"file", "bytes",
 * "used": seconds since 1970, "model", "tokens", and where somebody said it
 * "name" (texts_name)}]}; of a file that is not whole the first three, of a
 * prompt that was not finished also "unfinished": true. tiercel_cache_clear
 * removes these files, and no other; `removed` may be NULL. A session may use
 * them meanwhile. Both from any thread. TIERCEL_IO: "cannot_read",
 * "cannot_write", "io_error". */
TIERCEL_API tiercel_status tiercel_cache_list(const char* cache_dir, char* json,
                                              size_t* size,
                                              tiercel_error* error);
TIERCEL_API tiercel_status tiercel_cache_clear(const char* cache_dir,
                                               size_t* removed,
                                               tiercel_error* error);

/* What a session would take of each tier ("workspace": what a call computes in,
 * but for what sessions of the model have already, which it shares; that of the
 * host tier: hidden states of a prompt, and of its layer that goes to
 * texts_dir, and what the tokens of a block are drawn from; "disk": pages for
 * which there is no room, which come and go through "buffers"), beside what is
 * there already ("others": other models, and sessions, in place with all that
 * they may take yet), and, where cache_dir holds how fast this machine is, its
 * times with its context full and without drafts, as the JSON of `tiercel
 * plan`. The model may have been opened with TIERCEL_LOAD_HEADER. "fits": false
 * is an answer, not an error; then "lacks" says in a sentence what does not
 * fit. "warnings", as those of tiercel_report do, say of a policy where its
 * view takes the room of the context, where it does nothing for this model,
 * and, by the times, where it is slower than "full": of what it drafts nine of
 * ten tokens are taken to hold. Errors: those of tiercel_session_create that
 * are not for want of memory. */
TIERCEL_API tiercel_status tiercel_plan(const tiercel_model* model,
                                        const tiercel_session_params* params,
                                        char* json, size_t* size,
                                        tiercel_error* error);

/* Over how many ranks to open the checkpoint of `model` (tensor_parallel) for
 * such sessions: 1 to as many as this process sees GPUs, by their plans. It is
 * the count for which the fewest bytes of KV come up over one rank's link in a
 * step with the context full; of equals the fewest, and where none fits the
 * most into which the model can be split. Where `model` is on another device
 * than GPUs *ranks is 1. It was opened with TIERCEL_LOAD_HEADER, over any
 * number of ranks, and has no weights yet, nor has a model that drafts: with
 * them TIERCEL_USAGE. Other errors: those of tiercel_plan, and
 * TIERCEL_NO_DEVICE. */
TIERCEL_API tiercel_status tiercel_choose_ranks(
    const tiercel_model* model, const tiercel_session_params* params,
    int64_t* ranks, tiercel_error* error);

/* A session that holds no tokens, with the memory that it needs on the device.
 * `model` has its weights. After an error *session is NULL. What does not fit
 * is TIERCEL_OUT_OF_MEMORY, "does_not_fit", with the context and the memory
 * that would do: what sessions of this process may take yet counts, as if they
 * had taken it. Errors of the draft_model: as tiercel_check_draft.
 *
 * Sessions of a model compute by turns in the same workspace. Those that
 * compute at the same time, in several threads or one in a callback of
 * another's call, take one more each, for as long; where there is no memory for
 * that the call is TIERCEL_OUT_OF_MEMORY. */
TIERCEL_API tiercel_status tiercel_session_create(
    tiercel_model* model, const tiercel_session_params* params,
    tiercel_session** session, tiercel_error* error);
/* Its forks stay. Waits for a text that is being kept (texts_dir), but not for
 * a call that uses the session or a fork of it: that waits then. */
TIERCEL_API void tiercel_session_free(tiercel_session* session);

/* Appends tokens. Layer by layer: the whole run of tokens passes through a
 * layer before the next. Progress is in token-layers. Cancelled or failed, the
 * session is as it was before the call; but what was done of more than 64
 * tokens is kept beside it, where there is room for it besides what the model's
 * other sessions compute in, until another call computes or drops tokens: given
 * the same tokens again, the call goes on there, and progress with it (not
 * where their beginning came from texts_dir: it comes from there again). `ids`
 * may be NULL if count is 0. TIERCEL_INVALID_INPUT: "context_length_exceeded",
 * with both counts; TIERCEL_USAGE: "invalid_token". */
TIERCEL_API tiercel_status tiercel_prefill(tiercel_session* session,
                                           const int32_t* ids, size_t count,
                                           tiercel_progress progress,
                                           void* user_data,
                                           tiercel_error* error);

/* For measurements of depths that would take long to read: appends tokens whose
 * keys and values nobody computes, but for the last 64 of them; those of the
 * others are drawn from `seed`. Progress is in tokens, and comes at the end
 * too. Cancelled or failed, the session is as it was before the call, and
 * nothing is kept to go on with. tiercel_report counts them as cached. Not
 * under "speed", in this version: TIERCEL_USAGE. Other errors, and NULL: as
 * tiercel_prefill. */
TIERCEL_API tiercel_status tiercel_fill(tiercel_session* session,
                                        const int32_t* ids, size_t count,
                                        uint64_t seed,
                                        tiercel_progress progress,
                                        void* user_data, tiercel_error* error);

/* Makes the session hold these tokens and no others, as for the next turn of a
 * conversation. What they begin with as the tokens held do is not computed
 * again; the rest is appended as by tiercel_prefill. Cancelled or failed, the
 * session holds that common beginning; where more was held, tiercel_report
 * tells of the beginning alone. Errors, and NULL: as tiercel_prefill. */
TIERCEL_API tiercel_status tiercel_read(tiercel_session* session,
                                        const int32_t* ids, size_t count,
                                        tiercel_progress progress,
                                        void* user_data, tiercel_error* error);

/* The tokens held; *size counts them. */
TIERCEL_API tiercel_status tiercel_session_ids(const tiercel_session* session,
                                               int32_t* ids, size_t* size,
                                               tiercel_error* error);

/* How many tokens are held; of NULL none. While a call uses the session: how
 * many were held before it. */
TIERCEL_API size_t tiercel_session_length(const tiercel_session* session);
/* Layers of the prompt that is being read, or was last, which were finished
 * before it was asked for: it goes on behind them. From a callback of that
 * prompt too: 0 until it is known. 0 without a session. */
TIERCEL_API int32_t tiercel_session_resumed(const tiercel_session* session);
/* Returns how many layers of the prompt that is being read, or was last, are on
 * disk, so that another session goes on behind them: all of the model's where
 * its text is there, or was opened. From a callback of that prompt too. 0
 * without texts_dir, and without a session. */
TIERCEL_API int32_t tiercel_session_kept(const tiercel_session* session);
/* Drops all tokens from `length` on, which is at most those held. */
TIERCEL_API tiercel_status tiercel_session_truncate(tiercel_session* session,
                                                    size_t length,
                                                    tiercel_error* error);

/* A second session with the same tokens and policy; pages are shared until
 * written. Its calls and those of `session` take turns. After an error *copy is
 * NULL.
 *
 * No memory is planned for it. On a device behind a link the two share what was
 * planned for one: whoever computes has all of it, and what it took the place
 * of comes up again at the other's turn. The pages that either writes over, or
 * adds beyond a whole context of both, are taken of the host tier, or of a GPU
 * that has all KV, as they are written. Where there is no room for them that
 * call is TIERCEL_OUT_OF_MEMORY, "out_of_memory", and loses nothing; there is
 * some again when one of the two drops tokens, or is freed. A copy that keeps a
 * view (tiercel_policy) takes that on the device when it is made. */
TIERCEL_API tiercel_status tiercel_session_fork(const tiercel_session* session,
                                                tiercel_session** copy,
                                                tiercel_error* error);

/* Tokens come when their text is settled: a token in the middle of a UTF-8
 * sequence, or one that may begin a stop text, waits for those that follow.
 * Where a call ends inside a sequence its tokens come without those bytes: the
 * next call that generates behind them (in this session or a fork) gives the
 * character whole, with the token that completes it. So many short calls, one
 * behind the other, give the text of one long call, and what stands at the end
 * of a prompt is completed, too. Bytes that nothing can complete are U+FFFD. */
typedef struct tiercel_token {
  int32_t id;
  const char* text; /* UTF-8; all of them, joined, are the output's text */
  size_t text_bytes;
} tiercel_token;
/* Non-zero stops after this token: TIERCEL_CANCELLED, the token is kept. */
typedef int (*tiercel_on_token)(void* user_data, const tiercel_token* token);

/* Order: repeat penalty, DRY, temperature, top-k, top-p, min-p. A draw depends
 * on (seed, position, token) alone where nobody drafts, and with verify
 * "coupled"; with "residual" it depends on where blocks begin as well.
 *
 * DRY ("don't repeat yourself", llama.cpp's formula) looks at the answer alone:
 * the tokens that were generated since the session was last given others, by
 * this call or one before it. Where the last n of them stand earlier in the
 * answer, the token that followed there loses, of its logit, dry_multiplier (0
 * to 100; 0: off) times dry_base (1 to 100; 0: 1.75) to the power of n less
 * dry_allowed_length (0: 2), if n is that or more. So what an answer is about
 * may be named as often as it likes, and no longer run of words comes again.
 * dry_breakers are num_dry_breakers NUL-terminated texts of 1 to 40 bytes, 64
 * at most, over which no repetition goes. Where there are none they are a new
 * line, a colon, a quotation mark and an asterisk; or none, where
 * dry_no_breakers is not 0, and where the checkpoint has no tokenizer. */
typedef struct tiercel_sampling {
  size_t struct_size;
  int64_t max_tokens; /* most to generate; 0: to the end of the context */
  uint64_t seed;
  float temperature;    /* 0: greedy, the lowest id of equals */
  int32_t top_k;        /* 0: off */
  float top_p;          /* 0 or 1: off; keeps the token that crosses */
  float min_p;          /* 0: off */
  float repeat_penalty; /* 0 or 1: off; over the last 256 tokens */
  int32_t ignore_eos;
  const char* const* stops; /* NUL-terminated texts that end the output */
  size_t num_stops;
  float dry_multiplier;
  float dry_base;
  int32_t dry_allowed_length;
  int32_t dry_no_breakers;
  const char* const* dry_breakers;
  size_t num_dry_breakers;
} tiercel_sampling;

/* Whether `draft` may be the draft_model of a session on `model`, so that it is
 * known before a prompt is read. Both may have been opened with
 * TIERCEL_LOAD_HEADER. Otherwise TIERCEL_INVALID_INPUT with "draft_vocabulary",
 * which names the first token that differs, or "draft_context"; TIERCEL_USAGE
 * with "draft_machine", where it was not opened beside `model`. */
TIERCEL_API tiercel_status tiercel_check_draft(const tiercel_model* model,
                                               const tiercel_model* draft,
                                               tiercel_error* error);

/* Generates from where the session is; at least one token must be there.
 * Texts in `stops` and the end-of-text token are not part of the output.
 * However it ends, the session then holds the tokens that on_token was given,
 * after what it held before. TIERCEL_USAGE: "empty_prompt", "invalid_sampling",
 * "invalid_stop"; TIERCEL_FAILED: "non_finite", of logits that are no numbers.
 */
TIERCEL_API tiercel_status tiercel_generate(tiercel_session* session,
                                            const tiercel_sampling* sampling,
                                            tiercel_on_token on_token,
                                            void* user_data,
                                            tiercel_error* error);

/* logits[vocab] of the token after `index`, the row's place in `ids`; valid
 * during the call. Non-zero stops: TIERCEL_CANCELLED. */
typedef int (*tiercel_on_row)(void* user_data, size_t index,
                              const float* logits);

/* Appends tokens, `rows_per_step` (0: the library's choice) at a time, and
 * gives the logits of every row. They do not depend on rows_per_step. With a
 * policy in its plain form rows are steps of it, one at a time: TIERCEL_USAGE
 * for other rows_per_step than 0 and 1. Cancelled or failed, the session holds
 * what it held before. Errors, and NULL: as tiercel_prefill. */
TIERCEL_API tiercel_status tiercel_score(tiercel_session* session,
                                         const int32_t* ids, size_t count,
                                         size_t rows_per_step,
                                         tiercel_on_row on_row, void* user_data,
                                         tiercel_error* error);

typedef enum tiercel_finish {
  TIERCEL_FINISH_NONE = 0, /* nothing was generated, or it failed */
  TIERCEL_FINISH_STOP = 1, /* the end of the text, or a stop text */
  TIERCEL_FINISH_LENGTH = 2,
  TIERCEL_FINISH_CANCELLED = 3
} tiercel_finish;

/* What of tiercel_report a program shows most. Seconds are 0 where there is
 * nothing that they could be of. */
typedef struct tiercel_generation {
  size_t struct_size;
  int64_t prompt_tokens;
  int64_t cached_tokens;
  int64_t output_tokens;
  double prefill_seconds;
  double ttft_seconds;   /* of that prefill, and on to the first token */
  double decode_seconds; /* of all tokens after the first */
  tiercel_finish finish;
  int32_t simulated; /* not 0: the device is played */
} tiercel_generation;
/* Fills `generation`, whose struct_size is set before, of the session's last
 * prefill and generation. */
TIERCEL_API tiercel_status tiercel_session_get_generation(
    const tiercel_session* session, tiercel_generation* generation,
    tiercel_error* error);

/* The last prefill and generation of this session as the JSON document of
 * `tiercel generate --json`, without the fields only the caller knows. Its
 * figures, null where there is nothing that they could be of:
 *
 *   prompt_tokens   held when the generation began
 *   cached_tokens   of those, whose KV the last prefill found there, or on
 *                   disk
 *   resumed         layers: of that prefill, those that had been finished
 *                   before, in this session or, with texts_dir, in another
 *   ttft_s          seconds of that prefill, and on to the first token
 *   prefill_tok_s   tokens that the prefill computed over its seconds; null
 *                   where it read others from disk in that time
 *   tbt_ms          from a token to the next. p50, p90, p99: the least sample
 *                   that so many per cent of all do not exceed; samples: one
 *                   less than there are tokens
 *   decode_tok_s    those samples over their sum: not the first token
 *   speculation     sweeps: passes of the model over all of the KV, but for one
 *                   that made the first token alone; tokens_per_sweep: tokens
 *                   after the first over sweeps, of which some may have made
 *                   a stop text alone; of each level what it drafted, what of
 *                   it was checked (up to and with the first that did not hold)
 *                   and what was accepted. Acceptance is accepted over checked
 *   ledger          bytes that crossed the link, up and down (where pages
 *                   are on disk and there is no link, to and from what is
 *                   computed in), and that came from disk, and went there for
 *                   want of memory; of each station
 *                   its seconds, the bytes that it asked for, and how long, and
 *                   for what share of its seconds, the link was occupied;
 *                   formula: what the bytes are the sum of
 *   schedule        of a policy that has one, and of the output alone: what
 *                   made a stop text, or the end of the text, is not counted.
 *                   Fast and slow steps; slow_at: of "sfi", output tokens
 *                   before each slow one; segments: runs of tokens, of
 *                   "sadas" thought or answered, by the tags, of plain "sfi"
 *                   of fast or slow steps; selected: positions that a head
 *                   chose; coverage_at: of each slow step the share of its
 *                   row's attention that fell on what was in view before,
 *                   where single tokens are chosen, and coverage: their mean
 *   memory          what is held when this is asked: host_bytes of KV in the
 *                   host tier by this session; device_bytes by all models and
 *                   sessions on its device
 *   predicted       the same figures as they were foreseen; tbt_ms is null
 *                   with drafts, which save as much as hold of them */
TIERCEL_API tiercel_status tiercel_report(const tiercel_session* session,
                                          char* json, size_t* size,
                                          tiercel_error* error);

/* Of each output token of the last generation the seconds since the one before;
 * of the first, since the generation began. Tokens of one sweep come at once,
 * and share its time. *size counts tokens. */
TIERCEL_API tiercel_status tiercel_token_seconds(const tiercel_session* session,
                                                 double* seconds, size_t* size,
                                                 tiercel_error* error);

/* Runs of so many positions: run i has those from i * TIERCEL_RUN_TOKENS on.
 * The session's first token is at first_position, 0 as a rule. */
enum { TIERCEL_RUN_TOKENS = 32 };

/* Where in a text an answer looked that the session holds, as far as the means
 * of keys tell. The text is the tokens [begin, end), the question [asked,
 * answer), the answer those from `answer` on; between text and question there
 * is something else, one token at least. shares[i] says how much more the
 * answer looked at the i-th run than what stands between text and question,
 * which cannot know what is asked; the runs are those that lie whole in the
 * text, and all shares are 1 together, or 0. Only what was read or generated
 * counts. What follows the text is computed once more, which takes as long as
 * reading it, and what the session holds is the same as before; after an error
 * some of it may have to be computed by who needs it next. Not under a policy's
 * plain form, and not over what tiercel_fill left. Where a model looks is no
 * proof of what it made of that.
 *
 * `shares` may be NULL if *size is 0; *size counts shares. Progress is in
 * tokens. */
TIERCEL_API tiercel_status tiercel_attended(tiercel_session* session,
                                            size_t begin, size_t end,
                                            size_t asked, size_t answer,
                                            tiercel_progress progress,
                                            void* user_data, float* shares,
                                            size_t* size, tiercel_error* error);

/* Stops what `session` does, from any thread or a signal handler. One call of
 * tiercel_prefill, tiercel_fill, tiercel_read, tiercel_generate, tiercel_score
 * or tiercel_attended returns TIERCEL_CANCELLED for it: the one that is
 * running, or where none is, or it just ends, the next. No other call sees it,
 * and a fork begins without. NULL: nothing is done. */
TIERCEL_API void tiercel_cancel(tiercel_session* session);
/* Forgets a tiercel_cancel that no call has returned for: a Stop that was
 * pressed as an answer ended is not meant for the next question. NULL: nothing
 * is done. */
TIERCEL_API void tiercel_clear_cancel(tiercel_session* session);

/* ---- The machine --------------------------------------------------------- */

/* From any thread. TIERCEL_USAGE, "invalid_environment": TIERCEL_ISA names no
 * ISA of this machine, and nothing is computed here until that is mended. */
TIERCEL_API tiercel_status tiercel_check_environment(tiercel_error* error);

/* Measures for about a second, from any thread: memory read bandwidth, float
 * and int8 peaks with `threads` threads (0: all), CPU name, ISA. `progress` is
 * in tries. read_spread: how much longer the middle reading took than the
 * quickest, as a share of that; steady: whether that is little. */
TIERCEL_API tiercel_status tiercel_machine(int32_t threads,
                                           tiercel_progress progress,
                                           void* user_data, char* json,
                                           size_t* size, tiercel_error* error);

#ifdef __cplusplus
}
#endif

#endif /* TIERCEL_H_ */
