#include "runtime/api/batch_entry.h"

#include <algorithm>
#include <span>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"
#include "runtime/api/session_calls.h"
#include "runtime/policies/policy_times.h"

namespace tiercel {

absl::Status GenerateIn(tiercel_session* session, SamplingRequest sampling,
                        tiercel_on_token on_token, void* user_data,
                        CallersThread& thread, CallOut call_out) {
  GenerateParams& params = sampling.params;
  if (sampling.mask != nullptr) {
    params.mask = [&](std::span<const int32_t> output,
                      std::span<uint32_t> allowed) {
      const auto ask = [&] {
        return thread.GoesOn(sampling.mask, sampling.mask_user_data,
                             output.data(), output.size(), allowed.data(),
                             allowed.size());
      };
      return call_out(ask) ? absl::OkStatus() : CancelledError();
    };
  }
  size_t num_told = 0;
  size_t num_untold = 0;  // the batch ended before
  const auto give = [&](const OutputToken& given) {
    tiercel_token token = {.id = given.id,
                           .text = given.text.data(),
                           .text_bytes = given.text.size(),
                           .thought = given.thought.data(),
                           .thought_bytes = given.thought.size(),
                           .log_prob = 0,
                           .num_top = 0,
                           .top_ids = nullptr,
                           .top_log_probs = nullptr};
    if (const TokenLogProbs* const log_probs = given.log_probs) {
      token.log_prob = log_probs->log_prob;
      token.num_top = static_cast<int32_t>(log_probs->top_ids.size());
      token.top_ids = log_probs->top_ids.data();
      token.top_log_probs = log_probs->top_log_probs.data();
    }
    bool told = false;
    const auto tell = [&] {
      told = true;
      return thread.GoesOn(on_token, user_data, &token);
    };
    const bool more = call_out(tell);
    (told ? num_told : num_untold) += 1;
    return more;
  };
  // The session keeps the tokens that the program knows.
  const size_t before = session->session->sequence().tokens().size();
  const absl::Cleanup drop_untold = [&] {
    if (num_untold > 0) session->session->Truncate(before + num_told);
  };
  return Stoppable(session, [&] {
    params.within_text =
        session->text_begin < session->session->sequence().tokens().size();
    Report report = Generate(*session->session, *session->policy,
                             session->report.prefill, params, give);
    const absl::Status status = report.status;
    SessionPromptCache* const cache = session->session->prompt_cache();
    if (status.ok() && cache != nullptr) cache->DropPrompt();
    // A call with wrong arguments did not begin.
    if (ClassOf(status) != ErrorClass::kUsage) {
      if (session->rates.has_value()) {
        AddPrediction(*session->session, session->rates->best.rates, &report);
      }
      Keep(std::move(report), session);
      NoteGenerated(*session);
    }
    return status;
  });
}

absl::StatusOr<BatchEntry> BatchEntry::Read(
    const std::string& name, const tiercel_batch_entry* entry,
    absl::FunctionRef<absl::StatusOr<KnownBreakers*>(tiercel_session*)> take) {
  BatchEntry read;
  tiercel_batch_entry& in = read.in_;
  RETURN_IF_ERROR(ReadStruct(name.c_str(), entry, &in));
  RETURN_IF_ERROR(Annotate(NeedArgument("session", in.session), name));
  RETURN_IF_ERROR(Annotate(NeedArray("ids", in.ids, in.count), name));
  ASSIGN_OR_RETURN(KnownBreakers* const breakers, take(in.session));
  if (in.ids != nullptr) read.prompt_.emplace(in.ids, in.ids + in.count);
  const absl::StatusOr<SamplingRequest> sampling =
      ReadSampling(in.sampling, in.session->model->tokenizer.get(), breakers);
  if (!sampling.ok()) return Annotate(sampling.status(), name);
  read.sampling_ = *sampling;
  return read;
}

absl::Status BatchEntry::Make(CallersThread& thread, CallOut call_out) const {
  absl::Status made;
  absl::Status thrown =
      Guarded([&] { made = ReadAndGenerate(thread, call_out); });
  return thrown.ok() ? made : thrown;
}

void BatchEntry::Report(const absl::Status& status) const {
  const tiercel_status result = ReportStatus(status, in_.error);
  if (in_.status != nullptr) *in_.status = result;
}

int64_t BatchEntry::KeptTokens() const {
  const std::vector<int32_t>& held = in_.session->session->sequence().tokens();
  if (!prompt_.has_value()) return std::ssize(held);
  const auto same =
      std::mismatch(held.begin(), held.end(), prompt_->begin(), prompt_->end());
  return same.first - held.begin();
}

int64_t BatchEntry::MostTokens() const {
  const Sequence& sequence = in_.session->session->sequence();
  const int64_t held = std::ssize(sequence.tokens());
  const int64_t context = held + sequence.room();
  const int64_t begin = prompt_.has_value() ? std::ssize(*prompt_) : held;
  const int64_t most = sampling_.params.max_tokens;
  return most == 0 ? context : std::min(context, begin + most);
}

absl::Status BatchEntry::ReadAndGenerate(CallersThread& thread,
                                         CallOut call_out) const {
  if (prompt_.has_value()) {
    const auto progress = [&](uint64_t done, uint64_t total) {
      const auto tell = [&] {
        return thread.GoesOn(in_.progress, in_.user_data, done, total);
      };
      return in_.progress == nullptr || call_out(tell);
    };
    const absl::Status read = Stoppable(in_.session, [&] {
      return ReadInto(in_.session, prompt_->data(), prompt_->size(), progress);
    });
    if (ClassOf(read) == ErrorClass::kCancelled) {
      // The report is that of a generation that was stopped before its text.
      const Session& session = *in_.session->session;
      const int64_t held = std::ssize(session.sequence().tokens());
      tiercel::Report report =
          NewReport(session, {.prompt_tokens = held, .cached_tokens = held});
      report.finish_reason = "cancelled";
      Keep(std::move(report), in_.session);
    }
    RETURN_IF_ERROR(read);
  }
  return GenerateIn(in_.session, sampling_, in_.on_token, in_.user_data, thread,
                    call_out);
}

}  // namespace tiercel
