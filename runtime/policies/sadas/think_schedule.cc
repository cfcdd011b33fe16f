#include "runtime/policies/sadas/think_schedule.h"

#include <iterator>
#include <utility>

namespace tiercel {

IdMatcher::IdMatcher(std::vector<int32_t> ids) {
  Pattern pattern = {.ids = std::move(ids), .border = {0, 0}};
  const std::vector<int32_t>& p = pattern.ids;
  for (size_t i = 1; i < p.size(); ++i) {
    size_t k = pattern.border[i];
    while (k > 0 && p[k] != p[i]) k = pattern.border[k];
    pattern.border.push_back(p[k] == p[i] ? k + 1 : 0);
  }
  pattern_ = std::make_shared<const Pattern>(std::move(pattern));
}

bool IdMatcher::Advance(int32_t id) {
  const std::vector<int32_t>& ids = pattern_->ids;
  if (ids.empty()) return false;
  while (matched_ > 0 && ids[matched_] != id) {
    matched_ = pattern_->border[matched_];
  }
  if (ids[matched_] == id) ++matched_;
  if (matched_ < ids.size()) return false;
  matched_ = pattern_->border[matched_];
  return true;
}

ThinkSchedule::ThinkSchedule(const Options& options, int64_t length,
                             const std::vector<int32_t>& header)
    : options_(std::make_shared<const Options>(options)),
      open_(options.open),
      close_(options.close),
      length_(length - std::ssize(header)) {
  for (const int32_t id : header) Advance(id);
  thinking_ = thinking_ || options.begins_open;
}

void ThinkSchedule::Advance(int32_t id) {
  ++length_;
  const std::optional<int32_t> must = forced();
  const bool opens = open_.Advance(id);
  const bool closes = close_.Advance(id);
  if (thinking()) ++thought_;
  if (must.has_value()) ++forced_at_;
  if (opens && !thinking_) {
    thinking_ = true;
    thought_ = 0;
    forced_at_ = 0;
  }
  // Without a closing tag nothing can be forced, and the state just ends.
  const bool ends_alone = options_->close.empty() && options_->most > 0 &&
                          thought_ >= options_->most;
  // The tokens of a scored text may differ from the forced tag: the thought
  // ends there, too.
  const bool differs = must.has_value() && id != *must;
  if (closes || (thinking() && (ends_alone || differs))) Close();
}

void ThinkSchedule::Close() {
  thinking_ = false;
  has_thought_ = true;
  forced_at_ = 0;
  closed_at_ = length_ - 1;
}

bool ThinkSchedule::windowed() const {
  switch (options_->gate) {
    case ThinkGate::kState:
      return thinking();
    case ThinkGate::kLiteral:
      return !has_thought_;
    case ThinkGate::kAlways:
      return true;
  }
  return false;
}

std::optional<int32_t> ThinkSchedule::forced() const {
  if (options_->most == 0 || !thinking() || thought_ < options_->most ||
      forced_at_ >= options_->close.size()) {
    return std::nullopt;
  }
  return options_->close[forced_at_];
}

}  // namespace tiercel
