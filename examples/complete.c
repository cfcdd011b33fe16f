/* Completes a text: opens a model, reads the text, and prints the tokens behind
 * it as they come.
 *
 *   complete MODEL TEXT [TOKENS]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tiercel.h>

static int Print(void* user_data, const tiercel_token* token) {
  (void)user_data;
  fwrite(token->text, 1, token->text_bytes, stdout);
  return fflush(stdout); /* not 0, so that it stops, once nothing is read */
}

static tiercel_status Complete(const char* path, const char* text,
                               long long most, tiercel_error* error) {
  tiercel_model_params model_params = TIERCEL_INIT(tiercel_model_params);
  tiercel_session_params session_params = TIERCEL_INIT(tiercel_session_params);
  tiercel_sampling sampling = TIERCEL_INIT(tiercel_sampling);
  tiercel_model* model = NULL;
  tiercel_session* session = NULL;
  const size_t bytes = strlen(text);
  size_t count = bytes + 1; /* a text has no more tokens */
  int32_t* ids = malloc(count * sizeof(*ids));
  tiercel_status status = ids == NULL ? TIERCEL_OUT_OF_MEMORY : TIERCEL_OK;

  model_params.path = path;
  sampling.max_tokens = most;
  if (!status) status = tiercel_model_open(&model_params, &model, error);
  if (!status) {
    status = tiercel_tokenize(model, text, bytes, TIERCEL_ADD_BOS, NULL, ids,
                              &count, error);
  }
  if (!status) {
    status = tiercel_session_create(model, &session_params, &session, error);
  }
  if (!status)
    status = tiercel_session_prefill(session, ids, count, NULL, NULL, error);
  if (!status) {
    status = tiercel_session_generate(session, &sampling, Print, NULL, error);
  }
  tiercel_session_free(session);
  tiercel_model_free(model);
  free(ids);
  return status;
}

int main(int argc, char** argv) {
  tiercel_error error = TIERCEL_INIT(tiercel_error);
  if (argc < 3 || argc > 4) {
    fprintf(stderr, "usage: complete MODEL TEXT [TOKENS]\n");
    return 2;
  }
  if (Complete(argv[1], argv[2], argc == 4 ? atoll(argv[3]) : 64, &error)) {
    fprintf(stderr, "complete: %s (%s)\n", error.message, error.code);
    return 1;
  }
  printf("\n");
  return 0;
}
