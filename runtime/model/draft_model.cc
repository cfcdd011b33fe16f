#include "runtime/model/draft_model.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

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

// A share of the tokens, one in so many, may differ.
constexpr int64_t kFewOf = 20;

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

SharedTokens::SharedTokens(int64_t vocab, std::vector<int32_t> never)
    : vocab_(vocab), never_(std::move(never)) {
  for (const int32_t id : never_) {
    if (id == instead_) ++instead_;
  }
}

int32_t SharedTokens::ReadFor(int32_t id) const {
  const bool shared =
      id < vocab_ && !std::binary_search(never_.begin(), never_.end(), id);
  return shared ? id : instead_;
}

absl::StatusOr<SharedTokens> CheckDraftModel(const Model& target,
                                             const Model& draft) {
  const int64_t rows = draft.config.vocab;
  if (target.tokenizer == nullptr || draft.tokenizer == nullptr) {
    if (target.config.vocab == rows) return SharedTokens(rows, {});
    return Differs(absl::StrCat("it has ", rows, " tokens, the model ",
                                target.config.vocab));
  }
  const Tokenizer& ours = *target.tokenizer;
  const Tokenizer& drafts = *draft.tokenizer;
  std::vector<int32_t> never;
  std::optional<int32_t> first;  // the first that differs
  int64_t used = 0;
  int64_t differing = 0;
  for (int64_t i = 0; i < std::max(rows, target.config.vocab); ++i) {
    const auto id = static_cast<int32_t>(i);
    const bool we_use = i < target.config.vocab && ours.IsUsed(id);
    const bool it_uses = i < rows && drafts.IsUsed(id);
    if (we_use && it_uses && SameToken(ours, drafts, id)) {
      ++used;
      continue;
    }
    if (i < rows) never.push_back(id);
    if (!we_use && !it_uses) continue;
    ++used;
    ++differing;
    if (!first.has_value()) first = id;
  }
  // More than a few: another vocabulary, with which hardly a draft would hold.
  if (differing * kFewOf > used) {
    const auto shown = [&](const Model& of) {
      return *first < of.config.vocab && of.tokenizer->IsUsed(*first)
                 ? Shown(*of.tokenizer, *first)
                 : "not used";
    };
    return Differs(absl::StrCat(
        "of ", used, " tokens that are used ", differing, " differ; token ",
        *first, " is ", shown(draft), ", the model's is ", shown(target)));
  }
  return SharedTokens(rows, std::move(never));
}

}  // namespace tiercel
