// Session's texts on disk: what a prompt need not compute, and what it leaves.

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "kernels/base/error.h"
#include "runtime/sequence/session.h"

namespace tiercel {

void Session::KeepTexts(const TextsFolder& folder) {
  texts_folder_ = folder;
  texts_ = std::make_unique<SavedTexts>(model_, site_.layout, folder);
}

absl::Status Session::OpenText(Progress progress) {
  if (texts_ == nullptr) return absl::OkStatus();
  if (!texts_->Settle()) saved_ = 0;
  // Behind KV that nobody computed no file is right.
  if (filled_from_ < kv_->length()) return absl::OkStatus();
  // The logits of the last row are wanted, and a view is chosen by the last
  // few.
  const int64_t computed = retrieval_ != nullptr ? retrieval_->evidence() : 1;
  const int64_t most = std::ssize(tokens_) - computed;
  if (most - kv_->length() < KvFolder::kLeastTokens) return absl::OkStatus();
  const auto stop = [&] {
    return cancelled() ||
           !progress(0, static_cast<uint64_t>(pending()) *
                            static_cast<uint64_t>(model_.config.layers));
  };
  const absl::StatusOr<std::optional<KvFolder::Found>> found =
      texts_->Find(tokens_, stop);
  if (!found.ok()) return found.status();
  if (!found->has_value()) return absl::OkStatus();
  const KvFile& file = *(*found)->file;
  const int64_t end = std::min((*found)->common, most);
  if (end - kv_->length() < KvFolder::kLeastTokens) return absl::OkStatus();
  const int64_t first = kv_->length() / kPageTokens;
  TruncateKv(first * kPageTokens);
  const int64_t pages = (end + kPageTokens - 1) / kPageTokens;
  const absl::Status opened = kv_->Load(
      end - kv_->length(),
      [&](KvStore::PutPage put) {
        return file.Read(first, pages, put, stop, &disk_);
      },
      [this] { return cancelled(); });
  if (ClassOf(opened) == ErrorClass::kCancelled) return opened;
  if (!opened.ok()) {
    texts_->Refuse(file, opened);
    return absl::OkStatus();
  }
  file.Touch();
  settled_ = kv_->length();
  saved_ = (*found)->common;
  return absl::OkStatus();
}

void Session::SaveText() {
  if (texts_ == nullptr) return;
  const int64_t length = kv_->length();
  const bool computed = settled_ == length && filled_from_ >= length;
  if (!computed || length - saved_ < KvFolder::kLeastTokens) return;
  const auto stop = [this] { return cancelled(); };
  absl::StatusOr<std::unique_ptr<HeldPages>> pages = kv_->Hold(length, stop);
  if (!pages.ok()) {
    if (ClassOf(pages.status()) != ErrorClass::kCancelled) {
      texts_->Warn(pages.status(), "the text is not kept");
    }
    return;
  }
  const int64_t held = (*pages)->positions();
  if (held < KvFolder::kLeastTokens) return;
  if (texts_->Save(tokens_, *std::move(pages), stop)) saved_ = held;
}

void Session::StopSaving() {
  if (texts_ != nullptr) texts_->Stop();
}

}  // namespace tiercel
