/* The declarations of version 0.1, against which programs have been built: they
 * never change. headers_test.py compares the headers of today with them. */
#ifndef TIERCEL_1_H_
#define TIERCEL_1_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TIERCEL_API __attribute__((visibility("default")))
#else
#define TIERCEL_API
#endif

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

typedef enum tiercel_status {
  TIERCEL_OK = 0,
  TIERCEL_FAILED = 1,
  TIERCEL_USAGE = 2,
  TIERCEL_INVALID_INPUT = 3,
  TIERCEL_OUT_OF_MEMORY = 4,
  TIERCEL_NO_DEVICE = 5,
  TIERCEL_IO = 6,
  TIERCEL_CANCELLED = 7,
  TIERCEL_BUFFER_TOO_SMALL = 8
} tiercel_status;

TIERCEL_API const char* tiercel_status_name(tiercel_status status);

typedef struct tiercel_error {
  size_t struct_size;
  char code[48];
  char message[1024];
} tiercel_error;

struct tiercel_model;

enum { TIERCEL_ADAPTIVE = -1 };

typedef struct tiercel_policy {
  size_t struct_size;

  const char* name;

  const char* draft;

  const char* verify;

  const struct tiercel_model* draft_model;

  int32_t draft_layers;

  int32_t gamma1;
  int32_t gamma2;

  int32_t chunk;
  int64_t budget;
  int64_t sink;
  int64_t window;

  double cost_ratio;

  const char* form;

  const char* settings;

  int64_t branches;
} tiercel_policy;

TIERCEL_API tiercel_status tiercel_policies(char* json, size_t* size,
                                            tiercel_error* error);

#define TIERCEL_VERSION_MAJOR 0
#define TIERCEL_VERSION_MINOR 1
#define TIERCEL_VERSION_PATCH 0

TIERCEL_API const char* tiercel_version(void);

TIERCEL_API const char* tiercel_build_id(void);

TIERCEL_API tiercel_status tiercel_check_environment(tiercel_error* error);

TIERCEL_API tiercel_status tiercel_devices(char* json, size_t* size,
                                           tiercel_error* error);

typedef struct tiercel_model tiercel_model;

typedef int (*tiercel_progress)(void* user_data, uint64_t done, uint64_t total);

typedef enum tiercel_log_level {
  TIERCEL_LOG_ERROR = 1,
  TIERCEL_LOG_WARNING = 2,
  TIERCEL_LOG_INFO = 3
} tiercel_log_level;

typedef void (*tiercel_log)(void* user_data, int32_t level,
                            const char* sentence);

typedef enum tiercel_load {
  TIERCEL_LOAD_ALL = 0,
  TIERCEL_LOAD_HEADER = 1,

  TIERCEL_LOAD_DESCRIPTION = 2
} tiercel_load;

typedef struct tiercel_model_params {
  size_t struct_size;

  const char* path;
  tiercel_load load;

  const char* device;
  const char* compute;
  int32_t threads;
  int32_t check_tensors;

  const char* rope_scaling;
  double rope_scale;
  double rope_freq_base;
  int64_t yarn_orig_ctx;

  tiercel_progress progress;
  void* user_data;

  uint64_t device_memory_bytes;

  uint64_t host_memory_bytes;

  const tiercel_model* beside;

  int64_t tensor_parallel;

  int64_t deterministic;

  int64_t host_layers;

  const struct tiercel_simulation* simulation;

  tiercel_log log;
  void* log_user_data;
} tiercel_model_params;

TIERCEL_API tiercel_status
tiercel_model_open(const tiercel_model_params* params, tiercel_model** model,
                   tiercel_error* error);

TIERCEL_API tiercel_status tiercel_model_load(tiercel_model* model,
                                              tiercel_progress progress,
                                              void* user_data,
                                              tiercel_error* error);

TIERCEL_API tiercel_status tiercel_model_set_threads(tiercel_model* model,
                                                     int32_t threads,
                                                     tiercel_error* error);

TIERCEL_API tiercel_status tiercel_trim(tiercel_model* model,
                                        tiercel_error* error);

TIERCEL_API void tiercel_model_free(tiercel_model* model);

TIERCEL_API tiercel_status tiercel_model_describe(const tiercel_model* model,
                                                  char* json, size_t* size,
                                                  tiercel_error* error);

typedef struct tiercel_model_info {
  size_t struct_size;
  int64_t vocab;
  int64_t context;
  int32_t has_tokenizer;
  int32_t has_template;
  int32_t adds_bos;
  int64_t bytes_per_token;
  int64_t weight_bytes;
  int32_t threads;
  int32_t layers;

  int64_t ranks;

  int64_t sliding_window;

  int64_t bos_id;
  int64_t eos_id;

  const char* chat_template;

  const int32_t* end_ids;
  size_t num_end_ids;
} tiercel_model_info;

TIERCEL_API tiercel_status tiercel_model_get_info(const tiercel_model* model,
                                                  tiercel_model_info* info,
                                                  tiercel_error* error);

enum {
  TIERCEL_ADD_BOS = 1,
  TIERCEL_PARSE_SPECIAL = 2,
  TIERCEL_WITHIN_TEXT = 4
};

typedef struct tiercel_text_limits {
  size_t struct_size;

  size_t most_tokens;
  tiercel_progress progress;
  void* user_data;
} tiercel_text_limits;

TIERCEL_API tiercel_status tiercel_tokenize(const tiercel_model* model,
                                            const char* text, size_t text_bytes,
                                            uint32_t flags,
                                            const tiercel_text_limits* limits,
                                            int32_t* ids, size_t* size,
                                            tiercel_error* error);

TIERCEL_API tiercel_status tiercel_detokenize(const tiercel_model* model,
                                              const int32_t* ids, size_t count,
                                              uint32_t flags, char* text,
                                              size_t* size,
                                              tiercel_error* error);

typedef struct tiercel_detokenizer tiercel_detokenizer;

TIERCEL_API tiercel_status tiercel_detokenizer_create(
    const tiercel_model* model, const int32_t* before, size_t count,
    tiercel_detokenizer** detokenizer, tiercel_error* error);

TIERCEL_API tiercel_status tiercel_detokenizer_add(
    tiercel_detokenizer* detokenizer, int32_t id, const char** text,
    size_t* text_bytes, tiercel_error* error);

TIERCEL_API tiercel_status
tiercel_detokenizer_end(tiercel_detokenizer* detokenizer, const char** text,
                        size_t* text_bytes, tiercel_error* error);
TIERCEL_API void tiercel_detokenizer_free(tiercel_detokenizer* detokenizer);

typedef struct tiercel_message {
  size_t struct_size;
  const char* role;
  const char* content;
  size_t content_bytes;

  const char* reasoning;
  size_t reasoning_bytes;
} tiercel_message;

enum { TIERCEL_THINK_AUTO = 0, TIERCEL_THINK_ON = 1, TIERCEL_THINK_OFF = 2 };

typedef struct tiercel_chat_settings {
  size_t struct_size;

  int32_t think;

  const char* template_kwargs;

  int64_t continue_last;
} tiercel_chat_settings;

TIERCEL_API tiercel_status
tiercel_chat_tokens(const tiercel_model* model, const tiercel_message* messages,
                    size_t count, const tiercel_text_limits* limits,
                    int32_t* ids, size_t* size, tiercel_error* error);

TIERCEL_API tiercel_status tiercel_chat_tokens_with(
    const tiercel_model* model, const tiercel_message* messages, size_t count,
    const tiercel_chat_settings* settings, const tiercel_text_limits* limits,
    int32_t* ids, size_t* size, tiercel_error* error);

typedef struct tiercel_session tiercel_session;

enum {

  TIERCEL_PROMPT_CACHE_BEGIN_ANEW = 1,

  TIERCEL_PROMPT_CACHE_UNFINISHED_ALONE = 2
};

typedef struct tiercel_session_params {
  size_t struct_size;
  int64_t context;
  const char* kv_type_k;
  const char* kv_type_v;

  const char* cache_dir;
  const tiercel_policy* policy;

  const char* prompt_cache_dir;

  uint64_t prompt_cache_bytes;
  uint64_t prompt_cache_flags;
  const char* prompt_cache_name;

  int64_t forks;
  int64_t fork_tokens;
} tiercel_session_params;

TIERCEL_API tiercel_status tiercel_session_create(
    tiercel_model* model, const tiercel_session_params* params,
    tiercel_session** session, tiercel_error* error);

TIERCEL_API void tiercel_session_free(tiercel_session* session);

TIERCEL_API tiercel_status tiercel_session_prefill(
    tiercel_session* session, const int32_t* ids, size_t count,
    tiercel_progress progress, void* user_data, tiercel_error* error);

TIERCEL_API tiercel_status tiercel_session_read(
    tiercel_session* session, const int32_t* ids, size_t count,
    tiercel_progress progress, void* user_data, tiercel_error* error);

TIERCEL_API tiercel_status tiercel_session_ids(const tiercel_session* session,
                                               int32_t* ids, size_t* size,
                                               tiercel_error* error);

TIERCEL_API size_t tiercel_session_length(const tiercel_session* session);

TIERCEL_API int32_t tiercel_session_resumed(const tiercel_session* session);

TIERCEL_API int32_t tiercel_session_kept(const tiercel_session* session);

TIERCEL_API tiercel_status tiercel_session_truncate(tiercel_session* session,
                                                    size_t length,
                                                    tiercel_error* error);

TIERCEL_API tiercel_status tiercel_session_trim(tiercel_session* session,
                                                tiercel_error* error);

TIERCEL_API tiercel_status tiercel_session_fork(const tiercel_session* session,
                                                tiercel_session** copy,
                                                tiercel_error* error);

typedef struct tiercel_token {
  int32_t id;
  const char* text;
  size_t text_bytes;

  const char* thought;
  size_t thought_bytes;

  float log_prob;
  int32_t num_top;
  const int32_t* top_ids;
  const float* top_log_probs;
} tiercel_token;

typedef int (*tiercel_on_token)(void* user_data, const tiercel_token* token);

typedef int (*tiercel_mask)(void* user_data, const int32_t* output,
                            size_t count, uint32_t* allowed, size_t words);

typedef struct tiercel_sampling {
  size_t struct_size;
  int64_t max_tokens;
  uint64_t seed;
  float temperature;
  int32_t top_k;
  float top_p;
  float min_p;
  float repeat_penalty;
  int32_t ignore_eos;
  const char* const* stops;
  size_t num_stops;
  float dry_multiplier;
  float dry_base;
  int32_t dry_allowed_length;
  int32_t dry_no_breakers;
  const char* const* dry_breakers;
  size_t num_dry_breakers;
  const int32_t* stop_ids;
  size_t num_stop_ids;

  int64_t split_thought;

  tiercel_mask mask;
  void* mask_user_data;

  int64_t log_probs;
  int64_t top_log_probs;
} tiercel_sampling;

TIERCEL_API tiercel_status tiercel_check_draft(const tiercel_model* model,
                                               const tiercel_model* draft,
                                               tiercel_error* error);

TIERCEL_API tiercel_status tiercel_session_generate(
    tiercel_session* session, const tiercel_sampling* sampling,
    tiercel_on_token on_token, void* user_data, tiercel_error* error);

typedef struct tiercel_batch_entry {
  size_t struct_size;
  tiercel_session* session;
  const tiercel_sampling* sampling;
  tiercel_on_token on_token;
  void* user_data;
  tiercel_status* status;
  tiercel_error* error;

  const int32_t* ids;
  size_t count;
  tiercel_progress progress;
} tiercel_batch_entry;

TIERCEL_API tiercel_status
tiercel_generate_batch(const tiercel_batch_entry* const* entries, size_t count,
                       tiercel_error* error);

typedef int (*tiercel_on_row)(void* user_data, size_t index,
                              const float* logits);

TIERCEL_API tiercel_status
tiercel_session_score(tiercel_session* session, const int32_t* ids,
                      size_t count, size_t rows_per_step, tiercel_on_row on_row,
                      void* user_data, tiercel_error* error);

TIERCEL_API void tiercel_session_cancel(tiercel_session* session);

TIERCEL_API void tiercel_session_clear_cancel(tiercel_session* session);

TIERCEL_API tiercel_status tiercel_plan(const tiercel_model* model,
                                        const tiercel_session_params* params,
                                        char* json, size_t* size,
                                        tiercel_error* error);

TIERCEL_API tiercel_status tiercel_choose_ranks(
    const tiercel_model* model, const tiercel_session_params* params,
    int64_t* ranks, tiercel_error* error);

typedef struct tiercel_measurement {
  size_t struct_size;
  int32_t measured;
  int32_t steady;

  double spread;

  double again_seconds;
} tiercel_measurement;

TIERCEL_API tiercel_status tiercel_measure(const tiercel_model* model,
                                           const tiercel_session_params* params,
                                           tiercel_progress progress,
                                           void* user_data,
                                           tiercel_measurement* measurement,
                                           tiercel_error* error);

TIERCEL_API tiercel_status tiercel_cache_list(const char* cache_dir, char* json,
                                              size_t* size,
                                              tiercel_error* error);
TIERCEL_API tiercel_status tiercel_cache_clear(const char* cache_dir,
                                               size_t* removed,
                                               tiercel_error* error);

typedef enum tiercel_finish {
  TIERCEL_FINISH_NONE = 0,
  TIERCEL_FINISH_STOP = 1,
  TIERCEL_FINISH_LENGTH = 2,
  TIERCEL_FINISH_CANCELLED = 3
} tiercel_finish;

typedef struct tiercel_generation {
  size_t struct_size;
  int64_t prompt_tokens;
  int64_t cached_tokens;
  int64_t output_tokens;
  double prefill_seconds;
  double ttft_seconds;
  double decode_seconds;
  tiercel_finish finish;
  int32_t simulated;
} tiercel_generation;

TIERCEL_API tiercel_status tiercel_session_get_generation(
    const tiercel_session* session, tiercel_generation* generation,
    tiercel_error* error);

TIERCEL_API tiercel_status
tiercel_session_report(const tiercel_session* session, char* json, size_t* size,
                       tiercel_error* error);

TIERCEL_API tiercel_status
tiercel_session_token_seconds(const tiercel_session* session, double* seconds,
                              size_t* size, tiercel_error* error);

enum { TIERCEL_RUN_TOKENS = 32 };

TIERCEL_API tiercel_status tiercel_session_attended(
    tiercel_session* session, size_t begin, size_t end, size_t asked,
    size_t answer, tiercel_progress progress, void* user_data, float* shares,
    size_t* size, tiercel_error* error);

typedef struct tiercel_queue tiercel_queue;

typedef struct tiercel_queue_params {
  size_t struct_size;
  int64_t at_once;
} tiercel_queue_params;

TIERCEL_API tiercel_status tiercel_queue_create(
    const tiercel_model* model, const tiercel_queue_params* params,
    tiercel_queue** queue, tiercel_error* error);

typedef void (*tiercel_on_end)(void* user_data, tiercel_status status,
                               const tiercel_error* error);

TIERCEL_API tiercel_status tiercel_queue_add(tiercel_queue* queue,
                                             const tiercel_batch_entry* entry,
                                             tiercel_on_end on_end,
                                             tiercel_error* error);

TIERCEL_API size_t tiercel_queue_running(const tiercel_queue* queue);
TIERCEL_API size_t tiercel_queue_waiting(const tiercel_queue* queue);

TIERCEL_API tiercel_status tiercel_queue_wait(tiercel_queue* queue,
                                              tiercel_error* error);

TIERCEL_API void tiercel_queue_free(tiercel_queue* queue);

typedef struct tiercel_simulation {
  size_t struct_size;

  uint64_t device_bytes;
  double link_bytes_per_s;
  double link_latency_us;

  double host_bytes_per_s;

  uint64_t strict_seed;
} tiercel_simulation;

TIERCEL_API tiercel_status tiercel_session_fill(
    tiercel_session* session, const int32_t* ids, size_t count, uint64_t seed,
    tiercel_progress progress, void* user_data, tiercel_error* error);

typedef struct tiercel_machine_params {
  size_t struct_size;
  tiercel_progress progress;
  void* user_data;
  int64_t threads;
} tiercel_machine_params;

TIERCEL_API tiercel_status tiercel_machine(const tiercel_machine_params* params,
                                           char* json, size_t* size,
                                           tiercel_error* error);

typedef struct tiercel_document tiercel_document;

typedef struct tiercel_document_params {
  size_t struct_size;

  const char* path;
  const void* bytes;
  size_t num_bytes;

  const char* name;
} tiercel_document_params;

TIERCEL_API tiercel_status
tiercel_document_open(const tiercel_document_params* params,
                      tiercel_document** document, tiercel_error* error);
TIERCEL_API void tiercel_document_free(tiercel_document* document);

typedef struct tiercel_document_info {
  size_t struct_size;
  const char* text;
  size_t text_bytes;
  const char* title;
  const char* author;
  const char* language;
  size_t num_sections;
  size_t num_chapters;
  size_t num_pages;

  size_t num_warnings;
} tiercel_document_info;

TIERCEL_API tiercel_status
tiercel_document_get_info(const tiercel_document* document,
                          tiercel_document_info* info, tiercel_error* error);

typedef struct tiercel_section {
  size_t struct_size;
  int64_t level;
  size_t begin;
  size_t end;
  const char* label;
  const char* title;
  const char* name;
  const char* anchor;
} tiercel_section;

TIERCEL_API tiercel_status
tiercel_document_get_section(const tiercel_document* document, size_t index,
                             tiercel_section* section, tiercel_error* error);

typedef struct tiercel_chapter {
  size_t struct_size;
  size_t section;
  size_t begin;
  size_t end;

  int64_t number;
  int64_t has_number;
} tiercel_chapter;
TIERCEL_API tiercel_status
tiercel_document_get_chapter(const tiercel_document* document, size_t index,
                             tiercel_chapter* chapter, tiercel_error* error);

typedef struct tiercel_page {
  size_t struct_size;
  size_t begin;
  size_t end;
  const char* number;
} tiercel_page;
TIERCEL_API tiercel_status
tiercel_document_get_page(const tiercel_document* document, size_t index,
                          tiercel_page* page, tiercel_error* error);

TIERCEL_API const char* tiercel_document_warning(
    const tiercel_document* document, size_t index);

typedef struct tiercel_excerpt {
  size_t struct_size;

  const char* chapters;

  const char* pages;
} tiercel_excerpt;

TIERCEL_API tiercel_status tiercel_document_excerpt(
    const tiercel_document* document, const tiercel_excerpt* choice,
    tiercel_document** excerpt, tiercel_error* error);

typedef int (*tiercel_fits)(void* user_data, const char* run, size_t run_bytes);

typedef int (*tiercel_on_part)(void* user_data, size_t begin, size_t end);

TIERCEL_API tiercel_status tiercel_document_parts(
    const tiercel_document* document, size_t usual_bytes, tiercel_fits fits,
    tiercel_on_part on_part, void* user_data, tiercel_error* error);

TIERCEL_API tiercel_status tiercel_document_place(
    const tiercel_document* document, size_t begin, size_t end, char* text,
    size_t* size, tiercel_error* error);

#ifdef __cplusplus
}
#endif

#endif /* TIERCEL_1_H_ */
