#include "apps/commands/text_length.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "apps/cli/error.h"
#include "apps/cli/numbers.h"
#include "apps/cli/shared_flags.h"
#include "apps/commands/command.h"
#include "lib/status/status_macros.h"

namespace tiercel::cli {
namespace {

// The tokens that are counted beyond the context, which takes a moment. If a
// book is too long by less, the error has its exact length.
constexpr int64_t kCountedBeyond = int64_t{1} << 17;

// The known facts of a text that is too long.
struct LongText {
  std::string count;  // "the text has 40 tokens"
  double tokens;      // the text's, or a few more
  double bytes;       // 0: not known
  size_t around;      // tokens that are read with the text
  Answer answer = Answer::kNone;
  bool fills = false;  // it fills the context to the last token
};

absl::StatusOr<Json> PlanOf(const Options& options, const Model& model) {
  SessionParams params(options, model.draft());
  params.session.cache_dir = nullptr;  // no times are needed
  return model.Plan(params.session);
}

// The error if memory has no room for any text.
absl::Status NothingFits(Options options, const Model& model) {
  options.session.context = 1;
  ASSIGN_OR_RETURN(const Json plan, PlanOf(options, model));
  return Error(Exit::kMemory, "does_not_fit",
               plan.at("lacks").get<std::string>());
}

bool Fits(Options options, const Model& model, int64_t context) {
  options.session.context = context;
  const absl::StatusOr<Json> plan = PlanOf(options, model);
  return plan.ok() && plan->at("fits").get<bool>();
}

// Returns true if pages of such a context would be on disk, for which the user
// has to give -c.
bool IsOnDisk(Options options, const Model& model, int64_t context) {
  options.session.context = context;
  const absl::StatusOr<Json> plan = PlanOf(options, model);
  return plan.ok() && plan->at("tiers").contains("disk");
}

// Flags for a type of KV with which memory holds such a context; "" if none are
// needed, absent if no type does.
std::optional<std::string> KvFlags(const Options& options, const Model& model,
                                   int64_t context) {
  if (Fits(options, model, context)) return "";
  Options small = options;
  small.session.kv_type_k = small.session.kv_type_v = "q8_0";
  if (!Fits(small, model, context)) return std::nullopt;
  return " -ctk q8_0 -ctv q8_0";
}

// Flags with which a context has room for `tokens` tokens, if there are any.
std::optional<std::string> LargerContext(const Options& options,
                                         const Model& model, int64_t tokens) {
  const auto context = [&](const Model& of) {
    return options.session.context > 0 || IsOnDisk(options, of, tokens)
               ? absl::StrCat(" -c ", tokens)
               : std::string();
  };
  if (tokens <= model.info().context) {
    const std::optional<std::string> kv = KvFlags(options, model, tokens);
    return kv.has_value() ? std::optional(*kv + context(model)) : std::nullopt;
  }
  Options stretched = options;
  stretched.model.rope_scaling = "yarn";
  stretched.model.rope_scale = kMaxRopeScale;
  const absl::StatusOr<Model> most = OpenModel(stretched, TIERCEL_LOAD_HEADER);
  if (!most.ok() || tokens > most->info().context) return std::nullopt;
  const std::optional<std::string> kv = KvFlags(stretched, *most, tokens);
  if (!kv.has_value()) return std::nullopt;
  const double by_one =
      static_cast<double>(most->info().context) / kMaxRopeScale;
  return absl::StrCat(" --rope-scaling yarn --rope-scale ",
                      Fixed(std::ceil(static_cast<double>(tokens) / by_one), 0),
                      *kv, context(*most));
}

// Advice on the length of parts of the text, for a context of `most` tokens;
// empty if there is no room for any.
std::string Parts(const LongText& text, int64_t most, int64_t answer) {
  const int64_t room =
      most - static_cast<int64_t>(text.around) - std::min(answer, most / 4);
  if (room < 1) return "";
  std::string parts =
      absl::StrCat("cut the text into parts of ", room, " tokens at most");
  if (text.bytes > 0) {
    const double bytes = static_cast<double>(room) * text.bytes / text.tokens;
    absl::StrAppend(
        &parts, " (about ",
        Fixed(bytes < 1000 ? bytes : bytes - std::fmod(bytes, 100), 0),
        " bytes of text)");
  }
  return parts;
}

// Returns ", longer ones with -c 8192", if the user asked for a context that is
// smaller than the one that the model was made for; else empty.
std::string LongerParts(const Options& options, const Model& model,
                        int64_t made_for) {
  if (options.session.context == 0 || options.session.context >= made_for) {
    return "";
  }
  const std::optional<std::string> kv = KvFlags(options, model, made_for);
  return kv.has_value()
             ? absl::StrCat(", longer ones with", *kv, " -c ", made_for)
             : "";
}

// Returns ", without --policy triforce 6272", if a policy's view leaves less
// room than there is without it; else empty.
std::string WithoutPolicy(const Options& options, const Model& model,
                          int64_t most) {
  if (options.session.context > 0 || !options.sampling.HasPolicy()) return "";
  Options full = options;
  full.sampling = {};
  const absl::StatusOr<int64_t> without = MostTokens(full, model);
  if (!without.ok() || *without <= most) return "";
  return absl::StrCat(", without --policy ", options.sampling.policy, " ",
                      *without);
}

// Advice against a text that is too long, all of which works.
std::string Advice(const Options& options, const Model& model, int64_t most,
                   const LongText& text) {
  const int64_t answer = std::max<int64_t>(
      options.sampling.max_tokens, text.answer == Answer::kWanted ? 1 : 0);
  const int64_t prompt = static_cast<int64_t>(std::ceil(text.tokens)) +
                         static_cast<int64_t>(text.around);
  // Better cut the answer than stretch the model for it.
  const int64_t made_for = model.info().context;
  const int64_t needed =
      prompt < made_for ? std::min(prompt + answer, made_for) : prompt + answer;
  std::string parts = Parts(text, most, answer);
  if (!parts.empty() && needed > made_for) {
    parts += LongerParts(options, model, made_for);
  }
  const std::string larger = RoomAdvice(options, model, needed);
  if (larger.empty()) {
    return absl::StrCat(
        "; no larger context fits: ",
        parts.empty() ? absl::StrCat("what is asked of it takes ", text.around)
                      : parts);
  }
  return absl::StrCat("; ", parts, parts.empty() ? "" : ", or ", larger);
}

absl::Status TooLong(const Options& options, const Model& model, int64_t most,
                     const LongText& text) {
  return Error(
      Exit::kInput, "context_length_exceeded",
      absl::StrCat(text.count, ", the context holds ", most,
                   most == model.info().sliding_window
                       ? ", the model's sliding window"
                       : "",
                   WithoutPolicy(options, model, most),
                   text.fills ? " and leaves no room for an answer" : "",
                   Advice(options, model, most, text)));
}

// Returns the ids that `encode` gives, if the context holds them. Of these
// `around` are not the text's; `more` tokens are yet to come.
absl::StatusOr<std::vector<int32_t>> Count(const Options& options,
                                           const Model& model, Answer answer,
                                           size_t around, size_t more,
                                           EncodeFn encode) {
  ASSIGN_OR_RETURN(const int64_t planned, MostTokens(options, model));
  const int64_t most = planned;
  const int64_t counted = most + kCountedBeyond;
  double bytes = 0;
  double share = 0;  // part of `bytes` that was counted
  TextLimits limits;
  limits.most_tokens = static_cast<size_t>(counted);
  limits.progress = [&](uint64_t done, uint64_t total) {
    bytes = static_cast<double>(total);
    share = static_cast<double>(done) / bytes;
    return true;
  };
  const char* const who =
      around > 0 ? "the text, with what is asked of it, has " : "the text has ";
  absl::StatusOr<std::vector<int32_t>> ids = encode(limits);
  if (ids.ok()) {
    const int64_t beyond = static_cast<int64_t>(ids->size()) - most;
    if (beyond < 0 || (beyond == 0 && answer == Answer::kNone)) return ids;
    return TooLong(options, model, most,
                   {.count = absl::StrCat(who, ids->size(), " tokens"),
                    .tokens = static_cast<double>(
                        ids->size() - std::min(ids->size(), around)),
                    .bytes = bytes,
                    .around = around + more,
                    .answer = answer,
                    .fills = beyond == 0});
  }
  if (IsInterrupted(ids.status()) || CodeOf(ids.status()) != "too_long") {
    return ids;
  }
  const double estimate = static_cast<double>(counted) / share;
  constexpr double kMayBeMore = 1.1;
  return TooLong(options, model, most,
                 {.count = absl::StrCat(who, "more than ", counted,
                                        " tokens, about ", Fixed(estimate, 0)),
                  .tokens = kMayBeMore * estimate,
                  .bytes = bytes,
                  .around = around + more,
                  .answer = answer});
}

}  // namespace

absl::StatusOr<int64_t> MostTokens(const Options& options, const Model& model) {
  ASSIGN_OR_RETURN(const Json plan, PlanOf(options, model));
  if (options.session.context > 0 || plan.at("fits").get<bool>()) {
    return ContextOf(options, model);
  }
  const auto most = plan.at("max_context").get<int64_t>();
  if (most == 0) return NothingFits(options, model);
  return most;
}

std::string RoomAdvice(const Options& options, const Model& model,
                       int64_t tokens) {
  const std::optional<std::string> flags =
      LargerContext(options, model, tokens);
  if (!flags.has_value() || flags->empty()) return "";
  return absl::StrCat(tokens > model.info().context
                          ? "stretch the model beyond what it was made for:"
                          : "make room:",
                      *flags);
}

absl::Status CheckLength(const Options& options, const Model& model,
                         size_t tokens) {
  const int64_t most = ContextOf(options, model);
  if (static_cast<int64_t>(tokens) <= most) return absl::OkStatus();
  return TooLong(options, model, most,
                 {.count = absl::StrCat("the text has ", tokens, " tokens"),
                  .tokens = static_cast<double>(tokens),
                  .bytes = 0,
                  .around = 0});
}

absl::StatusOr<std::vector<int32_t>> WithinContext(const Options& options,
                                                   const Model& model,
                                                   Answer answer,
                                                   EncodeFn encode,
                                                   size_t around) {
  return Count(options, model, answer, around, /*more=*/0, encode);
}

absl::Status CheckTextAlone(const Options& options, const Model& model,
                            std::string_view text, size_t around) {
  return Count(options, model, Answer::kWanted, /*around=*/0, around,
               [&](const TextLimits& limits) {
                 return model.Tokenize(text, /*flags=*/0, limits);
               })
      .status();
}

}  // namespace tiercel::cli
