// Tokens to text, one by one.

#include <memory>
#include <string>

#include "lib/status/status_macros.h"
#include "lib/text/utf8.h"
#include "models/tokenizer/tokenizer.h"
#include "runtime/api/boundary.h"

struct tiercel_detokenizer {
  explicit tiercel_detokenizer(std::shared_ptr<const tiercel::Model> of)
      : model(std::move(of)), decoder(model->tokenizer.get()) {}

  std::shared_ptr<const tiercel::Model> model;
  tiercel::StreamDecoder decoder;
  std::string text;  // the last call's
};

namespace tiercel {
namespace {

absl::Status NeedTexts(const tiercel_detokenizer* detokenizer,
                       const char** text, size_t* text_bytes) {
  RETURN_IF_ERROR(NeedArgument("detokenizer", detokenizer));
  RETURN_IF_ERROR(NeedArgument("text", text));
  return NeedArgument("text_bytes", text_bytes);
}

void Give(const tiercel_detokenizer& from, const char** text,
          size_t* text_bytes) {
  *text = from.text.c_str();
  *text_bytes = from.text.size();
}

}  // namespace
}  // namespace tiercel

extern "C" {

tiercel_status tiercel_detokenizer_create(const tiercel_model* model,
                                          const int32_t* before, size_t count,
                                          tiercel_detokenizer** detokenizer,
                                          tiercel_error* error) {
  return tiercel::AtBoundary(error, [&]() -> absl::Status {
    RETURN_IF_ERROR(tiercel::NeedArgument("detokenizer", detokenizer));
    *detokenizer = nullptr;
    RETURN_IF_ERROR(tiercel::NeedTokenizer(model));
    RETURN_IF_ERROR(tiercel::NeedArray("before", before, count));
    auto made = std::make_unique<tiercel_detokenizer>(model->model);
    RETURN_IF_ERROR(
        made->decoder.GoOnBehind({before, count}, /*within_text=*/count > 0));
    *detokenizer = made.release();
    return absl::OkStatus();
  });
}

tiercel_status tiercel_detokenizer_add(tiercel_detokenizer* detokenizer,
                                       int32_t id, const char** text,
                                       size_t* text_bytes,
                                       tiercel_error* error) {
  return tiercel::AtBoundary(error, [&]() -> absl::Status {
    RETURN_IF_ERROR(tiercel::NeedTexts(detokenizer, text, text_bytes));
    ASSIGN_OR_RETURN(std::string said, detokenizer->decoder.Push(id));
    detokenizer->text = std::move(said);
    tiercel::Give(*detokenizer, text, text_bytes);
    return absl::OkStatus();
  });
}

tiercel_status tiercel_detokenizer_end(tiercel_detokenizer* detokenizer,
                                       const char** text, size_t* text_bytes,
                                       tiercel_error* error) {
  return tiercel::AtBoundary(error, [&]() -> absl::Status {
    RETURN_IF_ERROR(tiercel::NeedTexts(detokenizer, text, text_bytes));
    detokenizer->text =
        tiercel::ReplaceInvalidUtf8(detokenizer->decoder.held());
    detokenizer->decoder =
        tiercel::StreamDecoder(detokenizer->model->tokenizer.get());
    tiercel::Give(*detokenizer, text, text_bytes);
    return absl::OkStatus();
  });
}

void tiercel_detokenizer_free(tiercel_detokenizer* detokenizer) {
  delete detokenizer;
}

}  // extern "C"
