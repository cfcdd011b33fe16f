/* A C program that embeds Tiercel: open, tokenize, prefill, generate, close. */

#include <stdio.h>
#include <string.h>

#include "include/tiercel.h"

static int Check(tiercel_status status, const tiercel_error* error) {
  if (status == TIERCEL_OK) return 1;
  fprintf(stderr, "%s: %s\n", error->code, error->message);
  return 0;
}

static int OnToken(void* user_data, const tiercel_token* token) {
  *(size_t*)user_data += token->text_bytes;
  return 0;
}

int main(int argc, char** argv) {
  tiercel_error error = {sizeof(error), "", ""};
  tiercel_model_params model_params;
  tiercel_session_params session_params;
  tiercel_policy policy;
  tiercel_sampling sampling;
  tiercel_model* model = NULL;
  tiercel_session* session = NULL;
  const char text[] = "A tiercel is the male falcon.";
  int32_t ids[64];
  size_t count = 64;
  size_t bytes = 0;
  char report[8192];
  size_t report_bytes = sizeof(report);

  if (argc != 2) return 2;
  memset(&model_params, 0, sizeof(model_params));
  model_params.struct_size = sizeof(model_params);
  model_params.path = argv[1];
  memset(&session_params, 0, sizeof(session_params));
  session_params.struct_size = sizeof(session_params);
  memset(&policy, 0, sizeof(policy));
  policy.struct_size = sizeof(policy);
  policy.name = "triforce";
  policy.draft = "ngram";
  policy.gamma2 = TIERCEL_ADAPTIVE;
  session_params.policy = &policy;
  memset(&sampling, 0, sizeof(sampling));
  sampling.struct_size = sizeof(sampling);
  sampling.max_tokens = 8;
  sampling.ignore_eos = 1;

  if (!Check(tiercel_model_open(&model_params, &model, &error), &error) ||
      !Check(tiercel_session_create(model, &session_params, &session, &error),
             &error) ||
      !Check(tiercel_tokenize(model, text, strlen(text), TIERCEL_ADD_BOS, NULL,
                              ids, &count, &error),
             &error) ||
      !Check(tiercel_session_prefill(session, ids, count, NULL, NULL, &error),
             &error) ||
      !Check(
          tiercel_session_generate(session, &sampling, OnToken, &bytes, &error),
          &error) ||
      !Check(tiercel_session_report(session, report, &report_bytes, &error),
             &error)) {
    return 1;
  }
  if (bytes == 0 || tiercel_session_length(session) != count + 8) return 1;
  tiercel_session_free(session);
  tiercel_model_free(model);
  return 0;
}
