#include "runtime/model/draft_model.h"

#include <cstdint>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "lib/status/error.h"

namespace tiercel {
namespace {

absl::Status Differs(const std::string& how) {
  return InputError("draft_vocabulary",
                    absl::StrCat("the draft model has another vocabulary than "
                                 "the model: ",
                                 how, "; both need the same tokens"));
}

// A token's text in the form that error messages show.
std::string Shown(const Tokenizer& tokenizer, int32_t id) {
  const absl::StatusOr<std::string> text =
      tokenizer.Piece(id, Tokenizer::Special::kParse);
  return absl::StrCat("\"", absl::CEscape(text.ok() ? *text : ""), "\"",
                      tokenizer.IsControl(id) ? " (control)" : "");
}

bool SameToken(const Tokenizer& a, const Tokenizer& b, int32_t id) {
  if (a.IsControl(id) != b.IsControl(id)) return false;
  const auto text = [id](const Tokenizer& t) {
    return t.Piece(id, Tokenizer::Special::kParse).value_or("");
  };
  return text(a) == text(b);
}

}  // namespace

absl::Status CheckDraftModel(const Model& target, const Model& draft) {
  const auto sizes = [](int64_t ours, int64_t drafts) {
    return Differs(
        absl::StrCat("it has ", drafts, " tokens, the model ", ours));
  };
  if (target.config.vocab != draft.config.vocab) {
    return sizes(target.config.vocab, draft.config.vocab);
  }
  if (target.tokenizer == nullptr || draft.tokenizer == nullptr) {
    return absl::OkStatus();
  }
  const Tokenizer& ours = *target.tokenizer;
  const Tokenizer& drafts = *draft.tokenizer;
  if (ours.vocab() != drafts.vocab()) {
    return sizes(ours.vocab(), drafts.vocab());
  }
  for (int64_t i = 0; i < ours.vocab(); ++i) {
    const auto id = static_cast<int32_t>(i);
    if (SameToken(ours, drafts, id)) continue;
    return Differs(absl::StrCat("token ", id, " is ", Shown(drafts, id),
                                ", the model's is ", Shown(ours, id)));
  }
  return absl::OkStatus();
}

}  // namespace tiercel
