#ifndef TIERCEL_APPS_COMMANDS_API_H_
#define TIERCEL_APPS_COMMANDS_API_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apps/terminal/output.h"
#include "apps/terminal/progress.h"
#include "include/tiercel_lab.h"
#include "include/tiercel_queue.h"

// A C++ form of the C API: handles that free themselves, absl::Status for
// errors, std containers for buffers. include/tiercel.h, tiercel_queue.h and
// tiercel_lab.h document the calls.
namespace tiercel::cli {

// A zeroed parameter struct of the C API with its size set.
template <typename Params>
Params Defaults() {
  return TIERCEL_INIT(Params);
}

// Callbacks of the library. Each also checks for a signal, so that none is
// missed between two calls. An error that it returns ends the call with that
// error.
using TokenFn = std::function<absl::Status(int32_t id, std::string_view text,
                                           std::string_view thought)>;
using RowFn = std::function<absl::Status(size_t index, const float* logits)>;

// A token's parts of the answer and of the thought before it.
inline std::string_view TextOf(const tiercel_token& token) {
  return {token.text, token.text_bytes};
}
inline std::string_view ThoughtOf(const tiercel_token& token) {
  return {token.thought, token.thought_bytes};
}

class Model {
 public:
  // Opens a model. `params.progress` and `params.user_data` are replaced.
  static absl::StatusOr<Model> Open(tiercel_model_params params,
                                    const ProgressFn& progress);

  // Loads the weights of a model that was opened by its header.
  absl::Status Load(const ProgressFn& progress);

  const tiercel_model_info& info() const { return info_; }
  tiercel_model* get() const { return model_.get(); }

  absl::StatusOr<Json> Describe() const;
  absl::StatusOr<tiercel_measurement> Measure(
      const tiercel_session_params& params, double again_s,
      const ProgressFn& progress) const;
  absl::StatusOr<Json> Plan(const tiercel_session_params& params) const;
  absl::StatusOr<int64_t> ChooseRanks(
      const tiercel_session_params& params) const;
  absl::Status CheckDraft(const Model& draft) const;

  // The draft model, opened by its header, for plans with it; null: none.
  void SetDraft(Model draft) {
    draft_ = std::make_unique<Model>(std::move(draft));
  }
  const Model* draft() const { return draft_.get(); }

  // Sets the way in which the template writes: tiercel_chat_settings.
  void SetTemplate(int32_t think, std::string kwargs) {
    think_ = think;
    template_kwargs_ = std::move(kwargs);
  }

  // Limits at which to give up on a text: tiercel_text_limits.
  struct TextLimits {
    size_t most_tokens = 0;
    ProgressFn progress;
  };
  absl::StatusOr<std::vector<int32_t>> Tokenize(std::string_view text,
                                                uint32_t flags,
                                                const TextLimits& limits) const;
  absl::StatusOr<std::string> Detokenize(const std::vector<int32_t>& ids,
                                         uint32_t flags) const;

  struct Message {
    std::string role;
    std::string content;
    std::string reasoning = {};
  };
  absl::StatusOr<std::vector<int32_t>> ChatTokens(
      const std::vector<Message>& messages, const TextLimits& limits) const {
    return ChatTokens(messages, limits, template_kwargs_);
  }
  // With these variables of the template instead; empty: none.
  absl::StatusOr<std::vector<int32_t>> ChatTokens(
      const std::vector<Message>& messages, const TextLimits& limits,
      const std::string& template_kwargs) const;

 private:
  struct Free {
    void operator()(tiercel_model* model) const { tiercel_model_free(model); }
  };
  explicit Model(tiercel_model* model) : model_(model) {}

  std::unique_ptr<tiercel_model, Free> model_;
  tiercel_model_info info_ = Defaults<tiercel_model_info>();
  std::unique_ptr<Model> draft_;
  int32_t think_ = TIERCEL_THINK_AUTO;
  std::string template_kwargs_;  // empty: none
};

// A session. It must not outlive its model.
class Session {
 public:
  static absl::StatusOr<Session> Create(const Model& model,
                                        const tiercel_session_params& params);

  absl::Status Prefill(const std::vector<int32_t>& ids,
                       const ProgressFn& progress);
  absl::Status Fill(const std::vector<int32_t>& ids, uint64_t seed,
                    const ProgressFn& progress);
  absl::Status Read(const std::vector<int32_t>& ids,
                    const ProgressFn& progress);
  size_t Length() const;
  absl::StatusOr<std::vector<int32_t>> Ids() const;  // the tokens held
  int32_t ResumedLayers() const;
  int32_t KeptLayers() const;
  // A copy with the same tokens, whose pages it shares.
  absl::StatusOr<Session> Fork() const;
  absl::Status Generate(const tiercel_sampling& sampling,
                        const TokenFn& on_token);
  // A generation of several that are made at once.
  struct Generation {
    const Session* session;
    const std::vector<int32_t>* prompt;  // to be read first; null: none
    tiercel_sampling sampling;
    TokenFn on_token;
    // The library sets it when this generation has ended.
    tiercel_status result = kRunning;
    absl::Status status = {};  // once all have ended

    // A status that no generation ends with.
    static constexpr tiercel_status kRunning = TIERCEL_BUFFER_TOO_SMALL;
    bool ended() const { return result != kRunning; }
  };
  // Makes them; each has a status of its own. Errors: those before any begins.
  static absl::Status GenerateAtOnce(std::vector<Generation>& generations);
  absl::Status Score(const std::vector<int32_t>& ids, size_t rows_per_step,
                     const RowFn& on_row);
  absl::Status Truncate(size_t length);
  // Ends the call that runs, or the next one; from any thread.
  void Cancel() const { tiercel_session_cancel(session_.get()); }
  // Forgets a Cancel for which no call has ended.
  void ClearCancel() const { tiercel_session_clear_cancel(session_.get()); }
  absl::StatusOr<std::vector<float>> Attended(size_t begin, size_t end,
                                              size_t asked, size_t answer,
                                              const ProgressFn& progress);
  absl::StatusOr<Json> Report() const;
  absl::StatusOr<std::vector<double>> TokenSeconds() const;

 private:
  friend class Queue;
  struct Free {
    void operator()(tiercel_session* session) const {
      tiercel_session_free(session);
    }
  };
  explicit Session(tiercel_session* session) : session_(session) {}

  std::unique_ptr<tiercel_session, Free> session_;
};

// Generations that are made at once, and come and go one by one, on a thread of
// the library's own (tiercel_queue.h). Sessions must outlive it.
class Queue {
 public:
  // Takes the results of a generation, on the queue's thread, and stays in its
  // place until the end. After a signal the generation ends.
  struct Results {
    std::function<void(const tiercel_token& token)> on_token;
    std::function<void(absl::Status status)> on_end;
    // Takes progress of a prompt, in tokens times layers; may be null.
    ProgressFn on_read = nullptr;
  };

  static absl::StatusOr<Queue> Create(const Model& model, size_t at_once);

  // Begins a generation behind `prompt`, which is read first, or behind the
  // tokens that `session` holds, if that is null. Until its end no other call
  // may use the session.
  absl::Status Add(const Session& session, const std::vector<int32_t>* prompt,
                   const tiercel_sampling& sampling, Results* results);
  // Calls `wait`, and cancels all generations if a signal comes meanwhile.
  void CancelOnSignalIn(absl::FunctionRef<void()> wait) const;

 private:
  struct Free {
    void operator()(tiercel_queue* queue) const { tiercel_queue_free(queue); }
  };
  explicit Queue(tiercel_queue* queue) : queue_(queue) {}

  std::unique_ptr<tiercel_queue, Free> queue_;
  std::set<tiercel_session*> sessions_;  // all that were added
};

// Measures the peak rates of this machine with `threads` threads
// (tiercel_machine).
absl::StatusOr<Json> MeasureMachine(int32_t threads,
                                    const ProgressFn& progress);

absl::StatusOr<Json> ListCache(const std::string& folder);
absl::StatusOr<size_t> ClearCache(const std::string& folder);

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_COMMANDS_API_H_
