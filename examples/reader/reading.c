#include <json-glib/json-glib.h>
#include <tiercel_documents.h>

#include "reader.h"

enum { kTalk = 2048, kAnswer = 256, kWordsUs = 100000, kWaitUs = 20000 };

/* All windows have one model. It is locked while it is loaded, or asked for
 * tokens or a plan; sessions compute beside that. */
static tiercel_model* model;
static int64_t most_tokens;
static GMutex model_lock;

struct Reading {
  Window* window;
  Job* job; /* that runs */
  tiercel_document* book;
  char* text;                    /* of the chapter */
  GPtrArray* talk;               /* about it: question, answer, question, ... */
  tiercel_session_params params; /* of the session about it */
  tiercel_session* session;      /* NULL: none yet */
  const char* doing;             /* the work, since when and from where */
  gint64 began, told;
  double first;
};

Reading* NewReading(Window* window) {
  Reading* reading = g_new0(Reading, 1);
  reading->window = window;
  reading->params.cache_dir = /* rates of this machine */
      g_build_filename(g_get_user_cache_dir(), "tiercel-reader", NULL);
  reading->talk = g_ptr_array_new_with_free_func(g_free);
  reading->params.struct_size = sizeof(reading->params);
  return reading;
}

static char* Duration(double seconds) {
  if (seconds < 1.5) return g_strdup("1 second");
  if (seconds < 100) return g_strdup_printf("%.0f seconds", seconds);
  return g_strdup_printf("%.0f minutes", seconds / 60);
}

static void Begin(Reading* reading, Job* job, const char* doing) {
  reading->job = job;
  reading->doing = doing;
  reading->began = reading->told = 0;
  Tell(reading->window, 0, doing, strlen(doing));
}

static int OnProgress(void* user_data, uint64_t done, uint64_t total) {
  Reading* reading = user_data;
  const double share = total > 0 ? (double)done / (double)total : 0;
  const gint64 now = g_get_monotonic_time();
  if (reading->began == 0) {
    reading->began = now;
    reading->first = share; /* more than 0 if it was stopped before */
  }
  if (now - reading->told > kWordsUs) {
    const double seconds = (double)(now - reading->began) / G_USEC_PER_SEC;
    const double left = seconds * (1 - share) / (share - reading->first);
    g_autofree char* time = Duration(left);
    g_autofree char* words = g_strdup_printf(
        seconds > 1 && share > reading->first ? "%s: %.0f %%, about %s left"
                                              : "%s: %.0f %%",
        reading->doing, 100 * share, time);
    Tell(reading->window, share, words, strlen(words));
    reading->told = now;
  }
  return g_cancellable_is_cancelled(reading->job->stop);
}

static gboolean LockModel(const Job* job) {
  while (!g_mutex_trylock(&model_lock)) {
    if (g_cancellable_is_cancelled(job->stop)) return FALSE;
    g_usleep(kWaitUs);
  }
  return TRUE;
}

void FreeModel(void) { g_clear_pointer(&model, tiercel_model_free); }

tiercel_status OpenModel(Reading* reading, Job* job) {
  Begin(reading, job, "Measuring this machine, once for a model");
  FreeModel();
  tiercel_model_params params = TIERCEL_INIT(tiercel_model_params);
  params.path = job->text;
  params.load = TIERCEL_LOAD_HEADER;
  const char* mb = g_getenv("READER_MEMORY_MB");
  params.device_memory_bytes = mb ? g_ascii_strtoull(mb, NULL, 10) << 20 : 0;
  tiercel_status status = tiercel_model_open(&params, &model, &job->error);
  if (status) return status;
  tiercel_model_info info = TIERCEL_INIT(tiercel_model_info);
  tiercel_model_get_info(model, &info, &job->error);
  most_tokens = info.context;
  g_mkdir_with_parents(reading->params.cache_dir, 0700);
  status = tiercel_measure(model, &reading->params, OnProgress, reading, NULL,
                           &job->error);
  /* Without rates plans have no times, which is no reason to stop. */
  return status == TIERCEL_CANCELLED ? status : TIERCEL_OK;
}

tiercel_status OpenBook(Reading* reading, Job* job) {
  Begin(reading, job, "Opening the book");
  tiercel_document_params params = TIERCEL_INIT(tiercel_document_params);
  params.path = job->text;
  tiercel_document* book = NULL;
  tiercel_status status = tiercel_document_open(&params, &book, &job->error);
  if (status) return status;
  tiercel_document_free(reading->book);
  reading->book = book;
  tiercel_chapter chapter = TIERCEL_INIT(tiercel_chapter);
  tiercel_section section = TIERCEL_INIT(tiercel_section);
  g_string_append(job->result, "All of the text");
  size_t i = 0;
  while (!tiercel_document_get_chapter(book, i++, &chapter, NULL) &&
         !tiercel_document_get_section(book, chapter.section, &section, NULL)) {
    g_string_append_printf(job->result, "\n%s", section.name);
  }
  return TIERCEL_OK;
}

/* Makes the tokens of the talk with one more question. The text comes first, so
 * that one reading of it serves every question. */
static tiercel_status Tokens(Reading* reading, const char* question,
                             GArray* ids, tiercel_error* error) {
  const guint count = reading->talk->len + 1;
  g_autofree tiercel_message* messages = g_new0(tiercel_message, count);
  g_autofree char* first =
      g_strconcat("Read the following text.\n\n", reading->text,
                  "\n\nAnswer from the text above: ",
                  count > 1 ? reading->talk->pdata[0] : question, NULL);
  for (guint i = 0; i < count; ++i) {
    const char* said = i + 1 < count ? reading->talk->pdata[i] : question;
    const char* content = i == 0 ? first : said;
    messages[i] = (tiercel_message){.struct_size = sizeof(*messages),
                                    .role = i % 2 == 0 ? "user" : "assistant",
                                    .content = content,
                                    .content_bytes = strlen(content)};
  }
  tiercel_text_limits limits = TIERCEL_INIT(tiercel_text_limits);
  size_t size = limits.most_tokens = (size_t)most_tokens;
  limits.progress = OnProgress;
  limits.user_data = reading;
  g_array_set_size(ids, (guint)size);
  tiercel_status status =
      tiercel_chat_tokens(model, messages, count, &limits,
                          (int32_t*)(void*)ids->data, &size, error);
  g_array_set_size(ids, status ? 0 : (guint)size);
  return status;
}

static tiercel_status Plan(const tiercel_session_params* params, size_t tokens,
                           GString* words, tiercel_error* error) {
  size_t size = 1 << 16;
  g_autofree char* json = g_malloc(size);
  tiercel_status status = tiercel_plan(model, params, json, &size, error);
  if (status) return status;
  g_autoptr(JsonNode) root = json_from_string(json, NULL);
  JsonObject* plan = json_node_get_object(root);
  if (!json_object_get_boolean_member(plan, "fits")) {
    g_strlcpy(error->message, json_object_get_string_member(plan, "lacks"),
              sizeof(error->message));
    return TIERCEL_OUT_OF_MEMORY;
  }
  g_autoptr(JsonNode) tiers = json_path_query("$.tiers.*.*", root, NULL);
  g_autoptr(GList) parts = json_array_get_elements(json_node_get_array(tiers));
  double bytes = 0;
  for (GList* part = parts; part != NULL; part = part->next)
    bytes += json_node_get_double(part->data);
  g_autofree char* memory = g_format_size((guint64)bytes);
  g_string_printf(words, "%zu tokens, %s of memory", tokens, memory);
  if (!json_object_get_null_member(plan, "ttft_s")) {
    /* The times of a plan are those of a full context. */
    const double seconds = json_object_get_double_member(plan, "ttft_s") *
                           (double)tokens / (double)params->context;
    g_autofree char* read = Duration(seconds);
    g_autofree char* answer =
        Duration(json_object_get_double_member(plan, "tbt_ms") / 10);
    g_string_append_printf(
        words, "; about %s to read, then about %s for an answer of 100 tokens",
        read, answer);
  }
  return TIERCEL_OK;
}

tiercel_status Choose(Reading* reading, Job* job) {
  Begin(reading, job, "Planning");
  g_clear_pointer(&reading->session, tiercel_session_free);
  g_ptr_array_set_size(reading->talk, 0);
  tiercel_document_info info = TIERCEL_INIT(tiercel_document_info);
  tiercel_chapter chapter = TIERCEL_INIT(tiercel_chapter);
  const size_t place = g_ascii_strtoull(job->text, NULL, 10);
  tiercel_status status =
      tiercel_document_get_info(reading->book, &info, &job->error);
  chapter.end = info.text_bytes;
  if (!status && place > 0) {
    status = tiercel_document_get_chapter(reading->book, place - 1, &chapter,
                                          &job->error);
  }
  if (status) return status;
  g_free(reading->text);
  reading->text =
      g_strndup(info.text + chapter.begin, chapter.end - chapter.begin);
  if (!LockModel(job)) return TIERCEL_CANCELLED;
  g_autoptr(GArray) ids = g_array_new(FALSE, FALSE, sizeof(int32_t));
  status = Tokens(reading, "", ids, &job->error);
  if (!status) {
    reading->params.context = MIN(most_tokens, (int64_t)ids->len + kTalk);
    status = Plan(&reading->params, ids->len, job->result, &job->error);
  }
  g_mutex_unlock(&model_lock);
  return status;
}

static int OnToken(void* user_data, const tiercel_token* token) {
  Reading* reading = user_data;
  g_string_append_len(reading->job->result, token->text,
                      (gssize)token->text_bytes);
  Tell(reading->window, -1, token->text, token->text_bytes);
  return g_cancellable_is_cancelled(reading->job->stop);
}

tiercel_status Ask(Reading* reading, Job* job) {
  g_autoptr(GArray) ids = g_array_new(FALSE, FALSE, sizeof(int32_t));
  const gboolean is_first = reading->session == NULL;
  Begin(reading, job, "Waiting for the model");
  if (!LockModel(job)) return TIERCEL_CANCELLED;
  tiercel_status status = Tokens(reading, job->text, ids, &job->error);
  if (!status && is_first) {
    Begin(reading, job, "Loading the model");
    status = tiercel_model_load(model, OnProgress, reading, &job->error);
    if (!status) {
      status = tiercel_session_create(model, &reading->params,
                                      &reading->session, &job->error);
    }
  }
  g_mutex_unlock(&model_lock);
  if (status) return status;
  /* A Stop that came as the answer before ended by itself is not for this. */
  tiercel_session_clear_cancel(reading->session);
  const gulong id = g_signal_connect_swapped(job->stop, "cancelled",
                                             G_CALLBACK(tiercel_session_cancel),
                                             reading->session);
  Begin(reading, job, "Reading");
  status = tiercel_session_read(reading->session, (int32_t*)(void*)ids->data,
                                ids->len, OnProgress, reading, &job->error);
  if (!status) {
    Begin(reading, job, "Answering");
    tiercel_sampling sampling = TIERCEL_INIT(tiercel_sampling);
    sampling.max_tokens = kAnswer;
    sampling.split_thought = 1;
    sampling.dry_multiplier = 0.8F;
    status = tiercel_session_generate(reading->session, &sampling, OnToken,
                                      reading, &job->error);
  }
  g_cancellable_disconnect(job->stop, id);
  if (!status || job->result->len > 0) {
    g_ptr_array_add(reading->talk, g_strdup(job->text));
    g_ptr_array_add(reading->talk, g_strdup(job->result->str));
  }
  return status;
}

tiercel_status Close(Reading* reading, Job* job) {
  (void)job;
  tiercel_session_free(reading->session);
  tiercel_document_free(reading->book);
  g_ptr_array_unref(reading->talk);
  g_free(reading->text);
  g_free((char*)reading->params.cache_dir);
  g_free(reading);
  return TIERCEL_OK;
}
