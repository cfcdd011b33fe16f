/* Tiercel: language models over long texts on small machines.
 *
 * This header has models, tokens, sessions and generation, and brings along
 *
 *   tiercel_error.h    statuses, what each error code means, and the log
 *   tiercel_policy.h   policies: the ways in which a session generates
 *   tiercel_plan.h     plans and times of a session before it is made; caches
 *   tiercel_report.h   what a session did; what a question attends to
 *
 * Programs that serve several people include tiercel_queue.h, too; those that
 * measure and test include tiercel_lab.h; those that read books
 * tiercel_documents.h, of another library. For C++17 there is tiercel.hpp.
 *
 * A model is opened once and shared by sessions; a session is one sequence of
 * tokens with its KV cache. Text is tokenized, the tokens are prefilled, and
 * new tokens are generated:
 *
 *   tiercel_model_open -> tiercel_tokenize or tiercel_chat_tokens
 *     -> (tiercel_model_load) -> (tiercel_measure, tiercel_plan)
 *     -> tiercel_session_create
 *     -> tiercel_session_prefill -> tiercel_session_generate
 *     -> tiercel_session_report
 *
 * Conventions
 *   - Every struct begins with struct_size = sizeof(the struct), except for
 *     structs that only callbacks receive. A zeroed struct with its size set,
 *     as TIERCEL_INIT makes it, gives the defaults. Structs grow: a new field
 *     goes to the end, its 0 means the behaviour before it was added, and no
 *     struct has padding at its end. So a program built with an older header
 *     works with a newer library, whatever bytes follow its structs. A program
 *     built with a newer header works with an older library as long as it
 *     leaves the fields that this library does not know at 0. If it sets one
 *     the call is TIERCEL_USAGE, "invalid_struct_size".
 *   - Every function that can fail returns a tiercel_status and fills `error`,
 *     which may be NULL. No function throws, aborts, prints, or installs signal
 *     handlers; threads of the library, and of libraries that it loads, receive
 *     no signals of the process.
 *     Every function may return TIERCEL_USAGE for a wrong argument,
 *     TIERCEL_OUT_OF_MEMORY and TIERCEL_FAILED; one with a callback also
 *     TIERCEL_CANCELLED; one that computes also TIERCEL_NO_DEVICE,
 *     "copy_failed", if the link to the device fails. The comments below name
 *     the other errors.
 *   - A function that fills a caller's buffer takes its capacity in *size and
 *     sets *size to the size of the result. If the result is larger than the
 *     capacity, it returns TIERCEL_BUFFER_TOO_SMALL and writes nothing to the
 *     buffer, which may be NULL if the capacity is 0.
 *   - Text is UTF-8 with a byte count; it may contain NULs. JSON texts are
 *     NUL-terminated and their size counts the NUL.
 *   - A model may be used from any thread. A session and its forks share pages,
 *     so at most one call at a time may use any of them. A second call, from
 *     any thread or from a callback of the first call, is TIERCEL_USAGE,
 *     "session_in_use", and does nothing. Only tiercel_session_cancel,
 *     tiercel_session_clear_cancel and tiercel_session_length may be called
 *     during a call, and tiercel_session_resumed and tiercel_session_kept from
 *     its callbacks.
 *   - A callback runs during the call that it was passed to, on the thread of
 *     that call. It may make and use other models and sessions. An exception
 *     that it throws ends the call with TIERCEL_OUT_OF_MEMORY, if it is a
 *     std::bad_alloc, or TIERCEL_FAILED. If it ends the thread (pthread_exit)
 *     sessions and models are as after an exception. It must not leave by
 *     longjmp.
 *   - Exceeding the process's limit on file sizes (RLIMIT_FSIZE) is an error or
 *     a warning, as a full disk is: the library's files raise no SIGXFSZ.
 *   - A thread that is cancelled (pthread_cancel) during a call ends in a
 *     callback or after the call, not while the library works.
 *   - NULL for a handle, a struct or an output is TIERCEL_USAGE,
 *     "null_argument", unless a comment says otherwise; callbacks may be NULL.
 *     Functions that free accept NULL.
 *   - A handle must not be used once it is freed. The object behind it lives
 *     until nothing needs it: a model until its last session, and the last
 *     session for which it drafts, are freed; a session until the end of a call
 *     that uses it or a fork of it. If a call is using the very session that is
 *     freed, the call is cancelled (TIERCEL_CANCELLED). So models and sessions
 *     may be freed in any order, and in callbacks, too.
 *   - Results do not depend on the caller's locale, rounding mode, floating-
 *     point traps or flushing to zero: every call and its callbacks run with
 *     the defaults, and the caller's settings are restored after it.
 *   - After fork(), if no other thread was in a call, the child process may use
 *     the models of its parent, and create sessions of its own. It may not use
 *     the sessions of its parent: calls on these are TIERCEL_USAGE, "forked",
 *     and freeing them does nothing. Files of the prompt cache that the parent
 *     has open are closed in the child, and their locks stay with the parent. A
 *     child that is forked in a callback must not return from that callback.
 *   - The library may be unloaded (dlclose) once everything is freed. If it is
 *     unloaded before, it stays in memory while any of its threads lives.
 */
#ifndef TIERCEL_H_
#define TIERCEL_H_

#include <stddef.h>
#include <stdint.h>

#include "tiercel_error.h"
#include "tiercel_policy.h"

/* The version of these headers; tiercel_version is that of the library. */
#define TIERCEL_VERSION_MAJOR 0
#define TIERCEL_VERSION_MINOR 1
#define TIERCEL_VERSION_PATCH 0

#ifdef __cplusplus
extern "C" {
#endif

/* ---- The library --------------------------------------------------------- */

/* Returns "0.1.0 (commit 1a2b3c4, Release, avx512vnni)"; static, never NULL.
 * May be called from any thread. */
TIERCEL_API const char* tiercel_version(void);

/* Returns an id that distinguishes this build of the library from any other,
 * even of the same commit: the linker's build id of the program or shared
 * object that contains it, or a hash of that file. "" if there is neither; then
 * there is no prompt cache (prompt_cache_dir). Static, never NULL. May be
 * called from any thread. */
TIERCEL_API const char* tiercel_build_id(void);

/* Checks the environment; may be called from any thread. TIERCEL_USAGE,
 * "invalid_environment": TIERCEL_ISA names no ISA of this machine, and every
 * call that computes fails until that is mended. */
TIERCEL_API tiercel_status tiercel_check_environment(tiercel_error* error);

/* Lists the devices of this machine: [{"device": "cpu", "name", "isa",
 * "threads"}, and for each GPU that the process sees {"device": "cuda",
 * "index", "capability": "8.9", "usable", and if it is not usable "why": a
 * sentence}]. If no GPU is seen, one element of "cuda" without an index says
 * why. May be called from any thread. */
TIERCEL_API tiercel_status tiercel_devices(char* json, size_t* size,
                                           tiercel_error* error);

/* ---- Models -------------------------------------------------------------- */

typedef struct tiercel_model tiercel_model;

/* Called often during long work, with `done` and `total` in the unit of that
 * work (bytes, tokens). A non-zero return stops it: TIERCEL_CANCELLED. */
typedef int (*tiercel_progress)(void* user_data, uint64_t done, uint64_t total);

typedef enum tiercel_load {
  TIERCEL_LOAD_ALL = 0,
  TIERCEL_LOAD_HEADER = 1, /* no weights: describe, tokenize, detokenize */
  /* As the header, but a checkpoint that cannot be run is opened, too, and its
   * description says why ("cannot_run"). */
  TIERCEL_LOAD_DESCRIPTION = 2
} tiercel_load;

typedef struct tiercel_model_params {
  size_t struct_size;
  /* A GGUF file, the first file of a split GGUF, or a directory with
   * safetensors. */
  const char* path;
  tiercel_load load;
  /* "auto" (default, in this version the same as "cpu"), "cpu", "cuda", "ref"
   * (each operation by its plain reference, slowly) */
  const char* device;
  const char* compute;   /* "q8" (default), "f32": activations */
  int32_t threads;       /* 0: all CPUs that this process may use */
  int32_t check_tensors; /* non-zero: reject NaN and infinity in weights */

  /* These four replace the checkpoint's settings; NULL or 0 keeps them. */
  const char* rope_scaling; /* "none", "linear", "yarn" */
  double rope_scale;        /* the context grows by this factor */
  double rope_freq_base;
  int64_t yarn_orig_ctx;

  tiercel_progress progress; /* in bytes read; may be NULL */
  void* user_data;

  /* The most memory for weights, KV and work: with "cuda" of the GPU's, else of
   * this machine's, in which a simulated device has its part. 0: the memory
   * that is free. */
  uint64_t device_memory_bytes;
  /* If the device has a link (a GPU, a simulated device): the most memory for
   * KV in the host tier, behind that link. If not, there is one memory, which
   * the lower of host_memory_bytes and device_memory_bytes limits. Pages that
   * do not fit are on disk, if there is a prompt cache (prompt_cache_dir) and a
   * context is requested. 0: the memory that is free. A plan for a simulated
   * device (TIERCEL_LOAD_HEADER) takes it for the host memory of the simulated
   * machine. */
  uint64_t host_memory_bytes;

  /* Opens the model on the same machine as the model `beside`: the two share
   * its device, its threads and one memory budget. device, threads,
   * device_memory_bytes, host_memory_bytes, tensor_parallel, deterministic,
   * host_layers and simulation must be NULL or 0 then. `beside` may be freed
   * first. If it has several ranks, the new model is on the first. NULL: the
   * model has a machine of its own. */
  const tiercel_model* beside;

  /* The number of ranks that compute the model together, 1 to 64; 0: 1. Each
   * rank has a part of every matrix and of the KV heads, and a device and a
   * link of its own: with "cuda" a GPU. The ranks divide threads and
   * device_memory_bytes. Results are the same bytes for any number of ranks.
   * TIERCEL_USAGE, "cannot_split": the model has too few heads or columns for
   * so many, or the process sees too few GPUs. tiercel_choose_ranks finds the
   * best number. */
  int64_t tensor_parallel;

  /* A GPU computes prompts by its matrix unit, in f16, where it can: attention
   * if K and V are both f16, q8_0 or q4_0, in heads of 64, 96 or 128; products
   * with weights whose rows are multiples of 64, unless the weights are F32, or
   * compressed while `compute` is "f32". The bits of a prompt then depend on
   * the kind of GPU, but not on how the prompt is divided, cached or resumed;
   * tokens that follow the prompt, drafted or not, are computed as on the CPU.
   * If `deterministic` is not 0 prompts, too, have the bits of the CPU, and
   * take many times as long. */
  int64_t deterministic;

  /* The number of layers whose weights lie in the host tier, at even distances,
   * because they do not fit the device. Each pass brings them to the device,
   * one while the layers before it compute: every token costs the link their
   * bytes. Results are the same bytes. 0, or 3 to the model's layers on one
   * rank and a device with a link; else it is TIERCEL_USAGE,
   * "invalid_host_layers". */
  int64_t host_layers;

  /* A device to simulate, for measurements and tests (tiercel_lab.h); NULL:
   * none. */
  const struct tiercel_simulation* simulation;
  /* The log of the model and its sessions; may be NULL. */
  tiercel_log log;
  void* log_user_data;
} tiercel_model_params;

/* Opens a checkpoint, and reads its weights if params->load says so. After an
 * error *model is NULL. TIERCEL_IO: a file cannot be read;
 * TIERCEL_INVALID_INPUT: its contents are invalid or unsupported;
 * TIERCEL_NO_DEVICE. */
TIERCEL_API tiercel_status
tiercel_model_open(const tiercel_model_params* params, tiercel_model** model,
                   tiercel_error* error);
/* Reads the weights of a model that was opened with TIERCEL_LOAD_HEADER, which
 * lets a program plan for a text first. No other call may use the model
 * meanwhile. Does nothing if the model has its weights; after an error it is as
 * before. TIERCEL_IO and TIERCEL_INVALID_INPUT: as tiercel_model_open. */
TIERCEL_API tiercel_status tiercel_model_load(tiercel_model* model,
                                              tiercel_progress progress,
                                              void* user_data,
                                              tiercel_error* error);
/* Has only `threads` threads compute the model, and the other models on its
 * machine (`beside`), from their next operation on, so that a program has CPUs
 * for itself: 1 to those that the model was opened with, which several ranks
 * divide. Results are the same bytes. May be called at any time. Rates for
 * predicted times (cache_dir) are kept for each number. TIERCEL_USAGE,
 * "invalid_threads". */
TIERCEL_API tiercel_status tiercel_model_set_threads(tiercel_model* model,
                                                     int32_t threads,
                                                     tiercel_error* error);
/* Gives back the workspace of the model's sessions, if no call computes, and
 * what the allocator of this process holds free, as for a program that rests.
 * May be called at any time. See tiercel_session_trim. */
TIERCEL_API tiercel_status tiercel_trim(tiercel_model* model,
                                        tiercel_error* error);
/* Frees the handle. Sessions of the model stay, with all that they need of it.
 * In a forked child whose parent has sessions of the model, the model's memory
 * stays until the child ends. */
TIERCEL_API void tiercel_model_free(tiercel_model* model);

/* Describes the checkpoint, as the JSON of `tiercel inspect`. */
TIERCEL_API tiercel_status tiercel_model_describe(const tiercel_model* model,
                                                  char* json, size_t* size,
                                                  tiercel_error* error);

typedef struct tiercel_model_info {
  size_t struct_size;
  int64_t vocab;
  int64_t context;       /* positions the checkpoint was made for */
  int32_t has_tokenizer; /* 0: only token ids can be used */
  int32_t has_template;
  int32_t adds_bos;        /* texts of this checkpoint begin with a BOS token */
  int64_t bytes_per_token; /* bytes of weights read for one decoded token */
  int64_t weight_bytes;    /* held in memory; 0 with TIERCEL_LOAD_HEADER */
  int32_t threads;         /* that compute: tiercel_model_set_threads */
  int32_t layers;
  /* Ranks that compute the model, each with `threads` threads. */
  int64_t ranks;
  /* The most positions to which some layer attends. If there is such a limit
   * `context` is no larger, though the checkpoint was made for more. 0: all
   * layers attend to all positions. */
  int64_t sliding_window;
  /* The tokens that begin and end a text; -1: there is none. */
  int64_t bos_id;
  int64_t eos_id;
  /* The source of the chat template (Jinja), NUL-terminated; NULL: none. It
   * stays until the model and its sessions are freed. */
  const char* chat_template;
  /* The num_end_ids tokens that end an output, as eos_id and the end of a turn
   * do; none for a checkpoint that names none. They stay as long. */
  const int32_t* end_ids;
  size_t num_end_ids;
} tiercel_model_info;
/* Fills `info`, whose struct_size the caller has set. */
TIERCEL_API tiercel_status tiercel_model_get_info(const tiercel_model* model,
                                                  tiercel_model_info* info,
                                                  tiercel_error* error);

/* ---- Tokens -------------------------------------------------------------- */

enum {
  TIERCEL_ADD_BOS = 1,       /* if the checkpoint adds one */
  TIERCEL_PARSE_SPECIAL = 2, /* "<|im_start|>" is that token, not text */
  TIERCEL_WITHIN_TEXT = 4    /* a text begins before these tokens */
};

/* Limits for a text, so that one that exceeds every context costs little. */
typedef struct tiercel_text_limits {
  size_t struct_size;
  /* A call with a longer text ends soon after it has made this many tokens,
   * with TIERCEL_INVALID_INPUT, "too_long"; the last call of `progress` has
   * told how many bytes of the text those tokens cover. 0: no limit. */
  size_t most_tokens;
  tiercel_progress progress; /* in bytes of text; may be NULL */
  void* user_data;
} tiercel_text_limits;

/* Encodes a text: without BOS, and with special tokens as plain text, unless
 * `flags` say otherwise. `text` may be NULL if text_bytes is 0; `limits` may be
 * NULL. *size counts ids: often fewer than bytes, but BOS, a space that the
 * model adds and normal forms add some. TIERCEL_INVALID_INPUT: "no_tokenizer",
 * "too_long", "invalid_text" (bytes that the vocabulary cannot spell). */
TIERCEL_API tiercel_status tiercel_tokenize(const tiercel_model* model,
                                            const char* text, size_t text_bytes,
                                            uint32_t flags,
                                            const tiercel_text_limits* limits,
                                            int32_t* ids, size_t* size,
                                            tiercel_error* error);
/* Decodes ids. Ids that are a part of a text may give incomplete UTF-8. *size
 * counts bytes, and no NUL follows. Control tokens are left out, or spelled
 * with TIERCEL_PARSE_SPECIAL. Some checkpoints add a space in front of a text,
 * which is taken off again, but with TIERCEL_WITHIN_TEXT: then a token's bytes
 * are those that it adds to any text, as a mask needs them. TIERCEL_ADD_BOS has
 * no effect. `ids` may be NULL if count is 0. TIERCEL_INVALID_INPUT:
 * "no_tokenizer", "invalid_token" (an id that is not in the vocabulary). */
TIERCEL_API tiercel_status tiercel_detokenize(const tiercel_model* model,
                                              const int32_t* ids, size_t count,
                                              uint32_t flags, char* text,
                                              size_t* size,
                                              tiercel_error* error);

/* Decodes tokens that come one by one, as of a server. */
typedef struct tiercel_detokenizer tiercel_detokenizer;

/* Makes a detokenizer behind the tokens `before`, which give no text; `before`
 * may be NULL if count is 0: then a text begins. After an error *detokenizer is
 * NULL. TIERCEL_INVALID_INPUT: "no_tokenizer", "invalid_token". The model may
 * be freed first. */
TIERCEL_API tiercel_status tiercel_detokenizer_create(
    const tiercel_model* model, const int32_t* before, size_t count,
    tiercel_detokenizer** detokenizer, tiercel_error* error);
/* Adds a token. *text, of *text_bytes bytes, is what it completes, possibly
 * nothing: always whole UTF-8, in which bytes that nothing can complete are
 * U+FFFD. It stays until the next call. Control tokens give no text. One thread
 * at a time may use a detokenizer. TIERCEL_INVALID_INPUT: "invalid_token",
 * after which it is as before. */
TIERCEL_API tiercel_status tiercel_detokenizer_add(
    tiercel_detokenizer* detokenizer, int32_t id, const char** text,
    size_t* text_bytes, tiercel_error* error);
/* Ends the text: *text is what was held back, as U+FFFD, or nothing. Tokens
 * that are added afterwards begin another text. */
TIERCEL_API tiercel_status
tiercel_detokenizer_end(tiercel_detokenizer* detokenizer, const char** text,
                        size_t* text_bytes, tiercel_error* error);
TIERCEL_API void tiercel_detokenizer_free(tiercel_detokenizer* detokenizer);

typedef struct tiercel_message {
  size_t struct_size; /* the same for all of an array: its stride */
  const char* role;   /* NUL-terminated: "system", "user", "assistant" */
  const char* content;
  size_t content_bytes;
  /* The thought of an assistant's message (split_thought), without its tags:
   * `reasoning_content` of the template, which decides whether the model sees
   * it again. May be NULL if there is none. */
  const char* reasoning;
  size_t reasoning_bytes;
} tiercel_message;

enum {
  TIERCEL_THINK_AUTO = 0, /* as the template does by itself */
  TIERCEL_THINK_ON = 1,
  TIERCEL_THINK_OFF = 2
};

/* The way in which a template writes a conversation. */
typedef struct tiercel_chat_settings {
  size_t struct_size;
  /* TIERCEL_THINK_: whether the model thinks before it answers. It sets the
   * template's variables `enable_thinking` and `thinking`. If a template begins
   * a thought although this is off, the thought is closed at once. */
  int32_t think;
  /* NUL-terminated: a JSON object, whose members are variables of the template;
   * NULL: none. */
  const char* template_kwargs;
  /* If not 0, the last message, which must be of "assistant", is not ended: the
   * tokens stop behind its content (behind its reasoning, if it has no
   * content), and what is generated continues it. TIERCEL_INVALID_INPUT,
   * "cannot_continue": the template does not end the text as it is. */
  int64_t continue_last;
} tiercel_chat_settings;

/* Encodes a conversation by the checkpoint's own chat template, up to the start
 * of the assistant's next message. No wording of a message makes a special
 * token. `messages` may be NULL if count is 0; `limits` may be NULL; *size is
 * as for tiercel_tokenize. TIERCEL_INVALID_INPUT: also "no_chat_template",
 * "template_error". */
TIERCEL_API tiercel_status
tiercel_chat_tokens(const tiercel_model* model, const tiercel_message* messages,
                    size_t count, const tiercel_text_limits* limits,
                    int32_t* ids, size_t* size, tiercel_error* error);
/* The same with settings, which may be NULL. TIERCEL_USAGE: also
 * "invalid_argument" for them. */
TIERCEL_API tiercel_status tiercel_chat_tokens_with(
    const tiercel_model* model, const tiercel_message* messages, size_t count,
    const tiercel_chat_settings* settings, const tiercel_text_limits* limits,
    int32_t* ids, size_t* size, tiercel_error* error);

/* ---- Sessions ------------------------------------------------------------ */

typedef struct tiercel_session tiercel_session;

enum {
  /* Prompts that another session left unfinished are read from the start. */
  TIERCEL_PROMPT_CACHE_BEGIN_ANEW = 1,
  /* For texts that are read only once: finished layers of a prompt are kept, a
   * few at a time, until a generation behind it has ended. No finished text is
   * kept, nor are pages that do not fit in memory. */
  TIERCEL_PROMPT_CACHE_UNFINISHED_ALONE = 2
};

typedef struct tiercel_session_params {
  size_t struct_size;
  int64_t context; /* most tokens; 0: the checkpoint's, or as many as fit */
  const char* kv_type_k; /* "f16" (default), "bf16", "f32", "q8_0", "q4_0" */
  const char* kv_type_v;
  /* The folder in which tiercel_measure keeps the rates of this machine. Times
   * are predicted if it holds some for the model. NULL: no times. */
  const char* cache_dir;
  const tiercel_policy* policy; /* NULL: "full" without a drafter */

  /* The folder of the prompt cache, which belongs to this user and is created
   * if missing. Sessions keep the KV of the texts that they read in it, and
   * look there for the KV of others: a text that was read before, or that
   * begins like one, opens in the time that reading and checking its bytes
   * takes. NULL: no prompt cache. There is none, with a warning, if this build
   * cannot be told from others (tiercel_build_id).
   *
   * tiercel_session_prefill and tiercel_session_read look there for KV that
   * saves computing 1,024 tokens or more, or 256 with a prompt_cache_name, and
   * was computed by the same build for the same model with the same settings.
   * It has the bytes that would be computed: logits and texts stay the same.
   * After computing as many they keep the text: a thread writes it while the
   * caller goes on, and tiercel_session_free waits for the thread. A cancelled
   * call ends the writing; the next prompt writes what is missing. Failures are
   * warnings in tiercel_session_report, not errors: a text that cannot be
   * written is not kept, and one whose file is damaged is computed again.
   *
   * Until its text is kept, the finished layers of such a prompt are kept there
   * one by one. If the call is cancelled, the session freed or the process
   * killed, another session that is given the same tokens, behind as many that
   * it holds already, continues behind the last layer that was written. A disk
   * that keeps up has written a layer before the next one is finished. Logits
   * and texts stay the same. One session at a time owns such a prompt. In this
   * version models with several ranks keep no layers.
   *
   * Any number of processes may share a folder; it may be a symbolic link. A
   * longer text replaces those that it begins with. The files contain the
   * texts, so only this user can read them. In this version nothing is kept or
   * opened if the rows of a prompt do not read everything or end before the
   * last layer ("sadas" with the gate literal, and "speed", both plain), on a
   * GPU that has room for all of the KV, or if cuBLASLt computes.
   *
   * With a prompt cache and a `context` that memory cannot hold, pages of KV
   * are on disk: in the text's file if it was opened from there, else in a file
   * without a name. Steps read them while the layer before computes, and verify
   * the checksum of each; results are the same bytes. A page that cannot be
   * read is TIERCEL_IO, "page_damaged" or "io_error": the session drops KV from
   * there on, and the next call computes it again. Such pages may take
   * prompt_cache_bytes on top of the texts. */
  const char* prompt_cache_dir;
  /* prompt_cache_bytes: the most bytes of the prompt cache's files; once a text
   * is kept, or a session ends that used one, those unused for longest go. 0:
   * 16 GiB. prompt_cache_flags: TIERCEL_PROMPT_CACHE_*, or 0.
   * prompt_cache_name: a name for people, or NULL, of which tiercel_cache_list
   * shows 1,000 bytes. Texts of it that the session used stay for the next. */
  uint64_t prompt_cache_bytes;
  uint64_t prompt_cache_flags;
  const char* prompt_cache_name;
  /* forks: the number of copies of the session (tiercel_session_fork) that will
   * generate at once with it (tiercel_generate_batch), 0 to 63. fork_tokens:
   * the most tokens that each of them adds to those that it was copied with.
   * Memory is planned for these, too, so that a sweep serves all. More copies
   * may be made, but then some wait for the sweep of the others. */
  int64_t forks;
  int64_t fork_tokens;
} tiercel_session_params;

/* Creates a session that holds no tokens, with the memory that it needs on the
 * device. `model` must have its weights. After an error *session is NULL. A
 * session that does not fit is TIERCEL_OUT_OF_MEMORY, "does_not_fit"; the
 * message gives a context and an amount of memory that would suffice. Memory
 * that other sessions of this process may still take counts as taken. Errors of
 * the draft_model: as tiercel_check_draft.
 *
 * The sessions of a model share one workspace, as long as one computes at a
 * time. While several compute, in several threads or in a callback of another's
 * call, each but the first takes a workspace more; if there is no memory for it
 * the call is TIERCEL_OUT_OF_MEMORY. */
TIERCEL_API tiercel_status tiercel_session_create(
    tiercel_model* model, const tiercel_session_params* params,
    tiercel_session** session, tiercel_error* error);
/* Frees the session; its forks stay. Waits for a text that is being written to
 * prompt_cache_dir. If a call uses the session or a fork of it, it does not
 * wait: that call waits for the text instead. */
TIERCEL_API void tiercel_session_free(tiercel_session* session);

/* Appends tokens. It works layer by layer: all tokens pass through a layer
 * before the next one. Progress is in tokens times layers. If cancelled or
 * failed, the session holds the tokens that it held before the call. The work
 * on more than 64 tokens is not lost, if there is memory for it beside the
 * workspaces of the model's other sessions: it is kept until another call
 * computes or drops tokens. A call with the same tokens then continues with
 * that work, and its progress begins there; but if their start came from
 * prompt_cache_dir, it is taken from there again. `ids` may be NULL if count is
 * 0. TIERCEL_INVALID_INPUT: "context_length_exceeded", with both counts,
 * "invalid_token". */
TIERCEL_API tiercel_status tiercel_session_prefill(
    tiercel_session* session, const int32_t* ids, size_t count,
    tiercel_progress progress, void* user_data, tiercel_error* error);

/* Makes the session hold exactly these tokens, as for the next turn of a
 * conversation. The prefix that they share with the tokens held is not computed
 * again; the rest is appended as by tiercel_session_prefill. If cancelled or
 * failed, the session holds that prefix; if it held more,
 * tiercel_session_report covers the prefix alone. Errors, and NULL: as
 * tiercel_session_prefill. */
TIERCEL_API tiercel_status tiercel_session_read(
    tiercel_session* session, const int32_t* ids, size_t count,
    tiercel_progress progress, void* user_data, tiercel_error* error);

/* Returns the tokens held; *size counts them. */
TIERCEL_API tiercel_status tiercel_session_ids(const tiercel_session* session,
                                               int32_t* ids, size_t* size,
                                               tiercel_error* error);

/* Returns the number of tokens held; 0 for NULL. While a call uses the session
 * it is the number that were held before that call. */
TIERCEL_API size_t tiercel_session_length(const tiercel_session* session);
/* Returns the number of layers of the current or last prompt that an earlier
 * call had finished, so that the prompt went on behind them. May be called from
 * a callback of that prompt: it is 0 until it is known. 0 for NULL. */
TIERCEL_API int32_t tiercel_session_resumed(const tiercel_session* session);
/* Returns the number of layers of the current or last prompt that are on disk,
 * behind which another session would continue: all layers if its text is kept
 * or was opened from there. May be called from a callback of that prompt. 0
 * without prompt_cache_dir, and for NULL. */
TIERCEL_API int32_t tiercel_session_kept(const tiercel_session* session);
/* Drops all tokens from `length` on, which is at most those held. */
TIERCEL_API tiercel_status tiercel_session_truncate(tiercel_session* session,
                                                    size_t length,
                                                    tiercel_error* error);

/* Gives back the memory of tokens which the session and its forks dropped, if
 * it is not locked for a link or a GPU's, and of a prompt that was stopped. */
TIERCEL_API tiercel_status tiercel_session_trim(tiercel_session* session,
                                                tiercel_error* error);

/* Creates a second session with the same tokens and policy; pages are shared
 * until they are written. At most one call at a time may use either of the two.
 * After an error *copy is NULL.
 *
 * No memory is planned for the copy. On a device behind a link the two share
 * the memory that was planned for one: the session that computes has all of it,
 * and the pages of the other that it displaces are fetched again when the other
 * computes. Pages that either overwrites, or adds beyond a whole context of
 * both, are allocated in the host tier, or on a GPU that holds all KV, as they
 * are written. If there is no room for them that call is TIERCEL_OUT_OF_MEMORY,
 * "out_of_memory", and loses nothing; room returns when one of the two drops
 * tokens or is freed. A copy with a view (tiercel_policy) takes the view's
 * memory on the device when it is made. */
TIERCEL_API tiercel_status tiercel_session_fork(const tiercel_session* session,
                                                tiercel_session** copy,
                                                tiercel_error* error);

/* A generated token. It is delivered once its text is final: a token that ends
 * within a UTF-8 sequence, or that may begin a stop text, waits for the tokens
 * that follow. If a call ends within a UTF-8 sequence, the tokens that began it
 * come without its bytes, and the next call that generates behind them (in this
 * session or a fork) gives the whole character, with the token that completes
 * it. So many short calls in a row give the text of one long call, and an
 * incomplete sequence at the end of a prompt is completed, too. Bytes that
 * nothing can complete become U+FFFD. */
typedef struct tiercel_token {
  int32_t id;
  const char* text; /* UTF-8, or NULL; those of all tokens are the output */
  size_t text_bytes;
  /* With split_thought: the token's part of what the model thinks before it
   * answers, which is no part of the output's text. */
  const char* thought;
  size_t thought_bytes;
  /* With log_probs: the token's log-probability, and the num_top most likely
   * tokens of its place, the most likely first, with theirs; 0 and NULL without
   * log_probs. They are the model's own: the logarithm of the softmax of its
   * logits, before penalties, mask, temperature and cuts, so that they may name
   * tokens that cannot be drawn. A policy's verified form has those of the
   * whole text, its plain form those of the part that the step reads. */
  float log_prob;
  int32_t num_top;
  const int32_t* top_ids;
  const float* top_log_probs;
} tiercel_token;
/* A non-zero return ends the call with TIERCEL_CANCELLED. The session keeps
 * this token. */
typedef int (*tiercel_on_token)(void* user_data, const tiercel_token* token);

/* Forbids tokens, as a grammar does: `output` is the beginning of an output, of
 * `count` tokens or none, and `allowed` says which tokens may follow it. Token
 * i is bit i % 32 of allowed[i / 32], of `words` words for the whole
 * vocabulary, where bit 0 is the lowest. All tokens are allowed before; other
 * bits have no meaning. A non-zero return ends the call with TIERCEL_CANCELLED.
 *
 * The output is that of one call, without the tokens held before it. With
 * split_thought it is the answer alone, whose tokens are those behind the one
 * in which a thought ends: within a thought the mask is not asked, and where an
 * output may begin with one, the control token that opens it is allowed, too.
 *
 * Policies ask about any output that may come, drafted tokens included, in any
 * order, and several times: the same output must always get the same bits. They
 * ask about none that a token has ended, but may behind a stop text. If an
 * output may end, the end-of-text token must be allowed; if nothing is allowed
 * where a token is due, the call is TIERCEL_FAILED, "nothing_allowed". */
typedef int (*tiercel_mask)(void* user_data, const int32_t* output,
                            size_t count, uint32_t* allowed, size_t words);

/* The settings of the sampler. It applies, in this order: repeat penalty, DRY,
 * the mask, temperature, top-k, top-p, min-p. Without a drafter, and with
 * verify "coupled", a draw depends on (seed, position, token) alone; with
 * "residual" it also depends on where blocks begin.
 *
 * DRY ("don't repeat yourself", llama.cpp's formula) covers the answer alone:
 * the tokens generated, by this call or earlier ones, since the session was
 * last given other tokens. If the last n of them stand earlier in the answer,
 * and n is at least dry_allowed_length (0: 2), the logit of the token that
 * followed there is reduced by dry_multiplier (0 to 100; 0: off) times dry_base
 * (1 to 100; 0: 1.75) to the power of n - dry_allowed_length. So an answer may
 * name its subject as often as needed, but longer runs of words do not recur.
 * dry_breakers are num_dry_breakers NUL-terminated texts of 1 to 40 bytes, at
 * most 64, across which no repetition counts. If num_dry_breakers is 0, they
 * are a line feed, a colon, a quotation mark and an asterisk; if
 * dry_no_breakers is not 0, or the checkpoint has no tokenizer, there are none.
 *
 * stop_ids are num_stop_ids tokens that end the output, even if ignore_eos is
 * set. */
typedef struct tiercel_sampling {
  size_t struct_size;
  int64_t max_tokens; /* most to generate; 0: to the end of the context */
  uint64_t seed;
  float temperature;        /* 0: greedy; of equal logits the lowest id */
  int32_t top_k;            /* 0: off */
  float top_p;              /* 0 or 1: off; keeps the token that crosses it */
  float min_p;              /* 0: off */
  float repeat_penalty;     /* 0 or 1: off; over the last 256 tokens */
  int32_t ignore_eos;       /* not 0: the end-of-text token ends nothing */
  const char* const* stops; /* NUL-terminated texts that end the output, as does
                               a control token with one of these texts */
  size_t num_stops;
  float dry_multiplier;
  float dry_base;
  int32_t dry_allowed_length;
  int32_t dry_no_breakers;
  const char* const* dry_breakers;
  size_t num_dry_breakers;
  const int32_t* stop_ids;
  size_t num_stop_ids;
  /* 1: what the model thinks before it answers, between the tags that its
   * template or vocabulary names (<think>, </think> if neither does), is kept
   * apart from the answer: the report has it as "reasoning", and its "text" is
   * the answer alone, empty if the output ends within a thought. Stops have no
   * effect within a thought. The output's tokens, and max_tokens, count both. 0
   * (default): all is text. */
  int64_t split_thought;
  /* Forbids tokens; NULL: none are forbidden. No drafter proposes a token that
   * it forbids, and drafts are checked by the distribution that it leaves. The
   * tokens of a closing tag that the policy forces ("most" of "sadas") come
   * whether it allows them or not. */
  tiercel_mask mask;
  void* mask_user_data;
  /* Not 0: tokens come with their log-probabilities, and those of the
   * top_log_probs (0 to 20) most likely ones beside each (tiercel_token). They
   * do not change the text, and take 4 bytes a token of the vocabulary for each
   * row of a block, which the plan does not count. */
  int64_t log_probs;
  int64_t top_log_probs;
} tiercel_sampling;

/* Returns TIERCEL_OK if `draft` may be the draft_model of a session on `model`,
 * so that a program knows before it reads a prompt. Both may have been opened
 * with TIERCEL_LOAD_HEADER. TIERCEL_INVALID_INPUT: "draft_vocabulary", which
 * names the first token that differs, "draft_context"; TIERCEL_USAGE:
 * "draft_machine", if it was not opened beside `model`. */
TIERCEL_API tiercel_status tiercel_check_draft(const tiercel_model* model,
                                               const tiercel_model* draft,
                                               tiercel_error* error);

/* Generates behind the tokens held, of which there must be at least one. Texts
 * in `stops` and the end-of-text token are not part of the output. However the
 * call ends, the session then holds the tokens that it held before and those
 * that on_token was given. TIERCEL_USAGE: "empty_prompt", "invalid_sampling",
 * "invalid_stop"; TIERCEL_FAILED: "non_finite" for NaN or infinite logits,
 * "nothing_allowed" (tiercel_mask). */
TIERCEL_API tiercel_status tiercel_session_generate(
    tiercel_session* session, const tiercel_sampling* sampling,
    tiercel_on_token on_token, void* user_data, tiercel_error* error);

/* A generation of a batch: the arguments of a tiercel_session_generate, and
 * where its results go. */
typedef struct tiercel_batch_entry {
  size_t struct_size;
  tiercel_session* session;
  const tiercel_sampling* sampling;
  tiercel_on_token on_token; /* may be NULL */
  void* user_data;
  tiercel_status* status; /* receives the status; may be NULL */
  tiercel_error* error;   /* receives the error; may be NULL */
  /* A prompt that is read first, as by tiercel_session_read; NULL: none, the
   * session goes on behind the tokens that it holds. */
  const int32_t* ids;
  size_t count;
  tiercel_progress progress; /* of reading `ids`; gets user_data; may be NULL */
} tiercel_batch_entry;

/* Generates with `count` sessions of one model at once, 1 to 64: steps of
 * several sessions pass through the model together, so that each weight is read
 * once for all. The sessions may be forks of each other, and may differ in
 * policy, sampling and length. Each gives the tokens that
 * tiercel_session_generate gives, whatever the others do. Its status and error
 * are set when it ends; tiercel_session_cancel ends one entry alone. Callbacks
 * are called one at a time, on the caller's thread. Behind a link, what forks
 * share crosses once for all; a sweep for which the device has no room beside
 * the others (`forks` of tiercel_session_params) is made after them. A draft
 * model's steps are not shared, in this version.
 *
 * Prompts are read beside the steps of others, and short ones together. While
 * there are others a prompt goes in slices of 64 tokens, and a pass that
 * decodes reads one slice at most: between two steps of its own an entry waits
 * for the drafts of the others and one pass, of at most 256 tokens. A prompt
 * that shares no passes (on a GPU without `deterministic`) goes in slices of
 * 1024, each in a pass of its own. If a prompt is stopped its session holds
 * what tiercel_session_read would leave, and no work is kept.
 *
 * Memory that was planned for one session may not suffice for its forks, too:
 * an entry that finds none ends with TIERCEL_OUT_OF_MEMORY, and holds the
 * tokens that it gave. An exception of a callback ends all entries; those that
 * had not begun get no status.
 *
 * Returns TIERCEL_OK if all ended well, else the first other status. Errors
 * before anything begins, with no status given: those of
 * tiercel_session_generate for the arguments; TIERCEL_USAGE: "invalid_argument"
 * for a session that is there twice, or of another model than the first;
 * "session_in_use". */
TIERCEL_API tiercel_status
tiercel_generate_batch(const tiercel_batch_entry* const* entries, size_t count,
                       tiercel_error* error);

/* Receives logits[vocab] of the token after ids[index]; they are valid during
 * the callback. A non-zero return stops the call: TIERCEL_CANCELLED. */
typedef int (*tiercel_on_row)(void* user_data, size_t index,
                              const float* logits);

/* Appends tokens, `rows_per_step` (0: the library's choice) at a time, and
 * passes the logits of every row to on_row. They do not depend on
 * rows_per_step. With a policy in its plain form each row is a step of its own,
 * and a rows_per_step other than 0 and 1 is TIERCEL_USAGE. If cancelled or
 * failed, the session holds the tokens that it held before. Errors, and NULL:
 * as tiercel_session_prefill. */
TIERCEL_API tiercel_status
tiercel_session_score(tiercel_session* session, const int32_t* ids,
                      size_t count, size_t rows_per_step, tiercel_on_row on_row,
                      void* user_data, tiercel_error* error);

/* Cancels a call on `session`; may be called from any thread or a signal
 * handler. One call of tiercel_session_prefill, tiercel_session_read,
 * tiercel_session_generate (or an entry of tiercel_generate_batch),
 * tiercel_session_score, tiercel_session_attended or tiercel_session_fill
 * returns TIERCEL_CANCELLED for it: the one that is running, or, if none is or
 * it is just ending, the next. No other call is affected, and a fork starts
 * without it. Does nothing for NULL. */
TIERCEL_API void tiercel_session_cancel(tiercel_session* session);
/* Clears a tiercel_session_cancel for which no call has returned yet: a Stop
 * that was pressed as an answer ended is not meant for the next question. Does
 * nothing for NULL. */
TIERCEL_API void tiercel_session_clear_cancel(tiercel_session* session);

#ifdef __cplusplus
}
#endif

/* These are about what is declared above, and include it. */
#include "tiercel_plan.h"
#include "tiercel_report.h"

#endif /* TIERCEL_H_ */
