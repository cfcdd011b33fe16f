#include "runtime/session/prompt_writer.h"

#include <thread>
#include <utility>

namespace tiercel {
namespace {

constexpr int kShareWaited = 10;  // waits for 1/10 of the prompt's time

}  // namespace

PromptWriter::PromptWriter(std::unique_ptr<PromptFile> file,
                           std::chrono::milliseconds waits)
    : file_(std::move(file)), waits_(waits) {}

absl::StatusOr<bool> PromptWriter::TakesLayer(
    int layer, absl::FunctionRef<bool()> cancelled) {
  if (ahead_) return false;
  const Clock::time_point before = Clock::now();
  while (writing_ != nullptr && !writing_->over()) {
    if (cancelled()) return false;
    const Clock::time_point now = Clock::now();
    ahead_ = waited_ + (now - before) > waits_ + (now - begin_) / kShareWaited;
    if (ahead_) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  waited_ += Clock::now() - before;
  if (writing_ != nullptr) {
    const absl::Status status = writing_->Join();
    writing_.reset();
    layers_.clear();
    if (!status.ok()) return status;
  }
  return layer >= file_->layers();
}

void PromptWriter::Write(std::vector<std::unique_ptr<HeldLayer>> layers) {
  layers_ = std::move(layers);
  writing_ = std::make_unique<BackgroundCall>([this] {
    std::vector<const HeldLayer*> all;
    for (const auto& layer : layers_) all.push_back(layer.get());
    return file_->Write(all);
  });
}

}  // namespace tiercel
