#include "runtime/session/session_prompt_cache.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {
namespace {

// The interval at which progress is called while a prompt waits for the disk.
constexpr auto kAsksEvery = std::chrono::milliseconds(100);

// Adds the time of its life to `seconds`.
class TimeOfLife {
 public:
  TimeOfLife(Clock& clock, double& seconds)
      : clock_(clock), seconds_(seconds), begin_(clock.Now()) {}
  ~TimeOfLife() { seconds_ += SecondsBetween(begin_, clock_.Now()); }
  TimeOfLife(const TimeOfLife&) = delete;
  TimeOfLife& operator=(const TimeOfLife&) = delete;

 private:
  Clock& clock_;
  double& seconds_;
  const Clock::Time begin_;
};

}  // namespace

SessionPromptCache::SessionPromptCache(const PromptCacheFolder& folder,
                                       const Parts& parts)
    : prompt_view_(parts.prompt_view),
      cancellation_(parts.cancellation),
      sequence_(parts.sequence),
      runner_(parts.runner),
      kv_(parts.kv),
      folder_(folder),
      cache_(parts.runner.model(), parts.kv.WholeLayout(),
             parts.kv.first().RopeLength(), folder) {}

std::unique_ptr<SessionPromptCache> SessionPromptCache::Fork(
    const Parts& parts) const {
  auto copy = std::make_unique<SessionPromptCache>(folder_, parts);
  copy->saved_ = saved_;
  copy->opened_file_ = opened_file_;
  copy->opened_pages_ = opened_pages_;
  return copy;
}

void SessionPromptCache::Truncate(int64_t length) {
  saved_ = std::min(saved_, length);
}

void SessionPromptCache::TruncateKv(int64_t length) {
  sequence_.TruncateKv(length);
  kv_.Truncate(length);
  Truncate(length);
}

absl::Status SessionPromptCache::Open(PassProgress progress) {
  if (!cache_.Settle()) saved_ = 0;
  // No file can continue KV that was filled with random values.
  if (!sequence_.IsComputed()) return absl::OkStatus();
  // The last row must be computed for its logits, and the last few rows choose
  // a view.
  const Retrieval* const retrieval = kv_.first().retrieval.get();
  const int64_t computed =
      retrieval != nullptr ? retrieval->evidence_rows() : 1;
  const int64_t most = std::ssize(sequence_.tokens()) - computed;
  if (most - sequence_.kv_length() < cache_.least_tokens())
    return absl::OkStatus();
  const auto stop = [&] {
    return cancelled() ||
           !progress(
               0, static_cast<uint64_t>(sequence_.pending() * config().layers));
  };
  ASSIGN_OR_RETURN(std::optional<KvFolder::Found> found,
                   cache_.Find(sequence_.tokens(), stop));
  if (!found.has_value()) return absl::OkStatus();
  const std::shared_ptr<const KvFile> opened_file = std::move(found->file);
  const KvFile& file = *opened_file;
  int64_t end = std::min(found->common, most);
  if (end - sequence_.kv_length() < cache_.least_tokens())
    return absl::OkStatus();
  if (const std::optional<int64_t> begin = PromptSavesMoreThan(end)) {
    if (*begin == sequence_.kv_length()) return absl::OkStatus();
    end = *begin;
  }
  const int64_t first = sequence_.kv_length() / kPageTokens;
  TruncateKv(first * kPageTokens);
  const int64_t pages = (end + kPageTokens - 1) / kPageTokens;
  const int64_t before = sequence_.kv_length();
  // However this ends, after an exception too, all ranks have equal lengths.
  absl::Cleanup undo = [&] {
    if (!kv_.IsAlone()) TruncateKv(before);
  };
  // A page of the file has all heads, so a single rank can read it in place.
  std::shared_ptr<PageFile> text;
  if (kv_.IsAlone() && kv_.plan().shape.disk_pages > 0) {
    text = KvFile::PagesOf(opened_file);
  }
  const auto wanted = [&](int64_t page) {
    return text == nullptr || !kv_.store().StaysOnDisk(page);
  };
  bool at_fault = false;  // the file is, not the memory for its pages
  const TimeOfLife opening(clock(), disk_.opening_seconds);
  const absl::Status opened = kv_.Load(
      end - before,
      [&](KvStore::PutPage put, KvStore::PlacePage place) {
        bool taken = true;
        const auto noted = [&](int layer, int64_t page, const std::byte* of) {
          absl::Status status = put(layer, page, of);
          taken = status.ok();
          return status;
        };
        absl::Status read =
            file.Read(first, pages, wanted, noted, place, stop, &disk_);
        at_fault = taken && !read.ok();
        return read;
      },
      [this] { return cancelled(); }, text);
  if (ClassOf(opened) == ErrorClass::kCancelled) return opened;
  if (!opened.ok()) {
    cache_.Refuse(file, opened, at_fault);
    return absl::OkStatus();
  }
  std::move(undo).Cancel();
  cache_.NoteLoaded(file);
  opened_file_ = text != nullptr ? opened_file : nullptr;
  opened_pages_ = std::move(text);
  sequence_.AddKv(end - before, /*as_prompt=*/true);
  saved_ = found->common;
  cache_.NoteKept(config().layers);
  return absl::OkStatus();
}

void SessionPromptCache::RefuseDamaged() {
  if (opened_pages_ == nullptr || !opened_pages_->AnyDamaged()) return;
  cache_.Refuse(
      *opened_file_,
      IoError("page_damaged", opened_file_->name() + ": a page cannot be read"),
      /*at_fault=*/true);
  opened_pages_ = nullptr;
  opened_file_ = nullptr;
}

std::optional<int64_t> SessionPromptCache::PromptSavesMoreThan(int64_t end) {
  const int64_t before = sequence_.kv_length();
  const int64_t all_layers = config().layers;
  const std::optional<PassPoint> stopped = kv_.interrupted().PointOf(
      sequence_.tokens(), sequence_.pending(), prompt_view_);
  if (stopped.has_value()) {
    const int64_t saves =
        before * all_layers + sequence_.pending() * stopped->layer;
    return saves > end * all_layers ? std::optional(before) : std::nullopt;
  }
  if (!kv_.IsAlone()) return std::nullopt;
  const std::optional<PromptFile::Finished> prompt =
      cache_.FindPrompt(sequence_.tokens());
  if (!prompt.has_value() || prompt->IsServedBy(end)) return std::nullopt;
  const int64_t begin = prompt->info.begin;
  return before <= begin && begin <= end ? std::optional(begin) : std::nullopt;
}

bool SessionPromptCache::KeepsLayers(int64_t rows, Phase phase,
                                     const View& view) const {
  return kv_.IsAlone() && phase == Phase::kPrefill && view == prompt_view_ &&
         rows == sequence_.pending() && rows >= cache_.least_tokens() &&
         sequence_.IsSettled() && sequence_.IsComputed();
}

absl::Status SessionPromptCache::TakeLayers(int64_t rows,
                                            absl::FunctionRef<bool()> goes_on,
                                            PassPoint* point) {
  const auto stop = [&] { return cancelled() || !goes_on(); };
  const int64_t row_bytes =
      config().hidden * static_cast<int64_t>(sizeof(float));
  PromptFile* const file = cache_.BeginPrompt(
      sequence_.tokens(), sequence_.kv_length(), row_bytes, stop);
  if (file == nullptr || file->layers() == 0) return absl::OkStatus();
  bool at_fault = false;  // the file is, not the memory for its layers
  const TimeOfLife opening(clock(), disk_.opening_seconds);
  const absl::StatusOr<int> layers = runner_.first().TakeLayers(
      kv_.first(), rows,
      [&](KvStore::PutPage put, KvStore::PutState put_state) {
        bool taken = true;
        const auto noted = [&taken](absl::Status status) {
          taken = status.ok();
          return status;
        };
        absl::StatusOr<int> read = file->Read(
            [&](int layer, int64_t page, const std::byte* of) {
              return noted(put(layer, page, of));
            },
            [&](int64_t offset, const std::byte* from, size_t bytes) {
              return noted(put_state(offset, from, bytes));
            },
            stop, &disk_);
        at_fault = taken && !read.ok();
        return read;
      },
      stop);
  if (layers.ok()) {
    point->layer = *layers;
    return absl::OkStatus();
  }
  const ErrorClass kind = ClassOf(layers.status());
  if (kind == ErrorClass::kCancelled || kind == ErrorClass::kDevice) {
    return layers.status();
  }
  cache_.RefusePrompt(layers.status(), at_fault);
  return absl::OkStatus();
}

// The last layer is not saved: the prompt is finished then.
void SessionPromptCache::KeepLayer(int layer, int64_t rows,
                                   absl::FunctionRef<bool()> goes_on) {
  auto asks_at = std::chrono::steady_clock::now() + kAsksEvery;
  const auto stop = [&] {
    if (cancelled()) return true;
    const auto now = std::chrono::steady_clock::now();
    if (now < asks_at) return false;
    asks_at = now + kAsksEvery;
    return !goes_on();
  };
  if (layer + 1 == config().layers || (layer + 1) % LayersTogether() != 0 ||
      !cache_.TakesLayer(sequence_.tokens(), sequence_.kv_length(), layer,
                         stop)) {
    return;
  }
  const int begin = cache_.FirstLayer();
  if ((layer - begin) % 2 != 0) return;  // two places for states, in turn
  std::vector<std::unique_ptr<HeldLayer>> layers;
  for (int at = begin; at <= layer; ++at) {
    absl::StatusOr<std::unique_ptr<HeldLayer>> held =
        at == layer ? runner_.first().HoldLayer(kv_.first(), rows, at, stop)
                    : runner_.first().HoldPages(kv_.first(), at, stop);
    if (!held.ok()) {
      if (ClassOf(held.status()) == ErrorClass::kCancelled) return;
      cache_.LeavePrompt();
      cache_.Warn(held.status(), "later layers of the prompt are not kept");
      return;
    }
    layers.push_back(*std::move(held));
  }
  cache_.WriteLayers(std::move(layers));
}

// Hidden states take as many bytes as K and V of several layers: if only
// unfinished prompts are saved, they are written just eight times.
int SessionPromptCache::LayersTogether() const {
  constexpr int kTimes = 8;
  return folder_.unfinished_alone ? config().layers / kTimes | 1 : 1;
}

void SessionPromptCache::DropPrompt() {
  if (folder_.unfinished_alone) cache_.DropPrompt();
}

bool SessionPromptCache::GiveBack() {
  if (!cache_.HoldsPages()) return false;
  cache_.GiveBack();
  return true;
}

std::vector<std::string> SessionPromptCache::warnings() {
  cache_.Settle();
  return cache_.warnings();
}

void SessionPromptCache::Save() {
  if (folder_.unfinished_alone) return;
  const int64_t length = sequence_.kv_length();
  const bool computed = sequence_.IsSettled() && sequence_.IsComputed();
  if (!computed || length - saved_ < cache_.least_tokens()) return;
  const auto stop = [this] { return cancelled(); };
  absl::StatusOr<std::unique_ptr<HeldPages>> pages = kv_.Hold(length, stop);
  if (!pages.ok()) {
    if (ClassOf(pages.status()) != ErrorClass::kCancelled) {
      cache_.Warn(pages.status(), "the text is not kept");
    }
    return;
  }
  const int64_t held = (*pages)->positions();
  if (held < cache_.least_tokens()) return;
  if (cache_.Save(sequence_.tokens(), *std::move(pages), stop)) saved_ = held;
}

}  // namespace tiercel
