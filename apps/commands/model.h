#ifndef TIERCEL_APPS_COMMANDS_MODEL_H_
#define TIERCEL_APPS_COMMANDS_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apps/cli/tried.h"
#include "apps/commands/watched.h"
#include "apps/terminal/output.h"
#include "apps/terminal/progress.h"
#include "include/tiercel.hpp"

namespace tiercel::cli {

// A model, with the settings of its template and the model that drafts for it.
class Model {
 public:
  static absl::StatusOr<Model> Open(const tiercel_model_params& params,
                                    const ProgressFn& progress) {
    return Tried([&] {
      return Model(tiercel::Model(params.path, params, Watched(progress)));
    });
  }

  // Loads the weights of a model that was opened by its header.
  absl::Status Load(const ProgressFn& progress) {
    return Tried([&] {
      model_.load(Watched(progress));
      info_ = model_.info();
    });
  }

  const tiercel_model_info& info() const { return info_; }
  const tiercel::Model& handle() const { return model_; }

  absl::StatusOr<Json> Describe() const {
    return TriedJson([&] { return model_.describe(); });
  }
  absl::StatusOr<tiercel_measurement> Measure(
      const tiercel_session_params& params, double again_s,
      const ProgressFn& progress) const {
    return Tried(
        [&] { return model_.measure(params, again_s, Watched(progress)); });
  }
  absl::StatusOr<Json> Plan(const tiercel_session_params& params) const {
    return TriedJson([&] { return model_.plan(params); });
  }
  absl::StatusOr<int64_t> CachedTokens(const tiercel_session_params& params,
                                       const std::vector<int32_t>& ids) const {
    return Tried([&] {
      return model_.cached_tokens(params, ids, Watched(ProgressFn()));
    });
  }
  absl::StatusOr<int64_t> ChooseRanks(
      const tiercel_session_params& params) const {
    return Tried([&] { return model_.choose_ranks(params); });
  }
  absl::Status CheckDraft(const Model& draft) const {
    return Tried([&] { model_.check_draft(draft.model_); });
  }

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

  absl::StatusOr<std::vector<int32_t>> Tokenize(
      std::string_view text, uint32_t flags, const TextLimits& limits) const {
    return Tried([&] { return model_.tokenize(text, flags, Watched(limits)); });
  }
  absl::StatusOr<std::string> Detokenize(const std::vector<int32_t>& ids,
                                         uint32_t flags) const {
    return Tried([&] { return model_.detokenize(ids, flags); });
  }
  absl::StatusOr<std::vector<int32_t>> ChatTokens(
      const std::vector<Message>& messages, const TextLimits& limits) const {
    return ChatTokens(messages, limits, template_kwargs_);
  }
  // With these variables of the template instead; empty: none.
  absl::StatusOr<std::vector<int32_t>> ChatTokens(
      const std::vector<Message>& messages, const TextLimits& limits,
      const std::string& template_kwargs) const {
    auto settings = defaults<tiercel_chat_settings>();
    settings.think = think_;
    if (!template_kwargs.empty()) {
      settings.template_kwargs = template_kwargs.c_str();
    }
    return Tried([&] {
      return model_.chat_tokens(messages, settings, Watched(limits));
    });
  }

 private:
  explicit Model(tiercel::Model model)
      : model_(std::move(model)), info_(model_.info()) {}

  tiercel::Model model_;
  tiercel_model_info info_;
  std::unique_ptr<Model> draft_;
  int32_t think_ = TIERCEL_THINK_AUTO;
  std::string template_kwargs_;  // empty: none
};

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_COMMANDS_MODEL_H_
