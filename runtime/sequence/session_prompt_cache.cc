// Session's use of the prompt cache: it loads KV that need not be computed, and
// saves KV that was.

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
#include "runtime/sequence/session.h"

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

void Session::KeepPrompts(const PromptCacheFolder& folder) {
  prompt_cache_folder_ = folder;
  prompt_cache_ = std::make_unique<PromptCache>(model_, WholeLayout(), folder);
}

KvLayout Session::WholeLayout() const {
  KvLayout layout = site().layout;
  layout.kv_heads = model_.config.kv_heads;
  return layout;
}

// Loads the pages that `give` puts into every rank from `rank` on, each of
// which takes its heads. All have room for the pages before the first is put.
absl::Status Session::LoadRanks(size_t rank, int64_t rows,
                                KvStore::GivePages give,
                                const std::shared_ptr<PageFile>& text) {
  SessionRank& own = *ranks_[rank];
  const auto stop = [this] { return StopsAlone(); };
  if (ranks_.size() == 1) return own.kv->Load(rows, give, stop, text);
  const KvLayout whole = WholeLayout();
  std::vector<std::byte> some(static_cast<size_t>(own.site.layout.PageBytes()));
  return own.kv->Load(
      rows,
      [&](KvStore::PutPage put, KvStore::PlacePage) {
        const auto both = [&](KvStore::PutPage others, KvStore::PlacePage) {
          return give(
              [&](int layer, int64_t page, const std::byte* bytes) {
                TakeHeads(whole, bytes, own.first_head(), own.site.layout,
                          some.data());
                RETURN_IF_ERROR(put(layer, page, some.data()));
                return others(layer, page, bytes);
              },
              KvStore::Nowhere);
        };
        if (rank + 1 < ranks_.size()) {
          return LoadRanks(rank + 1, rows, both, text);
        }
        return both(
            [](int, int64_t, const std::byte*) {  //
              return absl::OkStatus();
            },
            KvStore::Nowhere);
      },
      stop);
}

absl::Status Session::OpenText(Progress progress) {
  if (prompt_cache_ == nullptr) return absl::OkStatus();
  if (!prompt_cache_->Settle()) saved_ = 0;
  // No file can continue KV that was filled with random values.
  if (!sequence_.IsComputed()) return absl::OkStatus();
  // The last row must be computed for its logits, and the last few rows choose
  // a view.
  const int64_t computed =
      retrieval() != nullptr ? retrieval()->evidence_rows() : 1;
  const int64_t most = std::ssize(sequence_.tokens()) - computed;
  if (most - sequence_.kv_length() < KvFolder::kLeastTokens)
    return absl::OkStatus();
  const auto stop = [&] {
    return cancelled() || !progress(0, TokenLayers(sequence_.pending()));
  };
  ASSIGN_OR_RETURN(std::optional<KvFolder::Found> found,
                   prompt_cache_->Find(sequence_.tokens(), stop));
  if (!found.has_value()) return absl::OkStatus();
  const std::shared_ptr<const KvFile> opened_file = std::move(found->file);
  const KvFile& file = *opened_file;
  int64_t end = std::min(found->common, most);
  if (end - sequence_.kv_length() < KvFolder::kLeastTokens)
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
    if (ranks_.size() > 1) TruncateKv(before);
  };
  // A page of the file has all heads, so a single rank can read it in place.
  std::shared_ptr<PageFile> text;
  if (ranks_.size() == 1 && plan().shape.disk_pages > 0) {
    text = KvFile::PagesOf(opened_file);
  }
  const auto wanted = [&](int64_t page) {
    return text == nullptr || !kv().StaysOnDisk(page);
  };
  bool at_fault = false;  // the file is, not the memory for its pages
  const TimeOfLife opening(model_.machine->clock(), disk_.opening_seconds);
  const absl::Status opened = LoadRanks(
      /*rank=*/0, end - before,
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
      text);
  if (ClassOf(opened) == ErrorClass::kCancelled) return opened;
  if (!opened.ok()) {
    prompt_cache_->Refuse(file, opened, at_fault);
    return absl::OkStatus();
  }
  std::move(undo).Cancel();
  file.Touch();
  text_file_ = text != nullptr ? opened_file : nullptr;
  text_pages_ = std::move(text);
  sequence_.AddKv(end - before, /*as_prompt=*/true);
  saved_ = found->common;
  prompt_cache_->NoteKept(model_.config.layers);
  return absl::OkStatus();
}

// Cuts the KV before the first page that cannot be read, so that it is computed
// again. A cache file that is at fault is removed.
void Session::ForgetDamaged() {
  int64_t intact = sequence_.kv_length();
  for (const auto& rank : ranks_) {
    intact = std::min(intact, rank->kv->IntactLength());
  }
  if (intact == sequence_.kv_length()) return;
  if (text_pages_ != nullptr && text_pages_->AnyDamaged() &&
      prompt_cache_ != nullptr) {
    prompt_cache_->Refuse(
        *text_file_,
        IoError("page_damaged", text_file_->name() + ": a page cannot be read"),
        /*at_fault=*/true);
    text_pages_ = nullptr;
    text_file_ = nullptr;
  }
  TruncateKv(intact);
  knows_next_ = false;
}

std::optional<int64_t> Session::PromptSavesMoreThan(int64_t end) {
  const int64_t before = sequence_.kv_length();
  const int64_t all_layers = model_.config.layers;
  if (interrupted_.has_value() &&
      interrupted_->IsFor(sequence_.tokens(), sequence_.pending(),
                          prompt_view_)) {
    const int64_t saves =
        before * all_layers + sequence_.pending() * interrupted_->point.layer;
    return saves > end * all_layers ? std::optional(before) : std::nullopt;
  }
  if (ranks_.size() > 1) return std::nullopt;
  const std::optional<PromptFile::Finished> prompt =
      prompt_cache_->FindPrompt(sequence_.tokens());
  if (!prompt.has_value() || prompt->IsServedBy(end)) return std::nullopt;
  const int64_t begin = prompt->info.begin;
  return before <= begin && begin <= end ? std::optional(begin) : std::nullopt;
}

absl::StatusOr<std::unique_ptr<HeldPages>> Session::HoldRanks(
    int64_t length, KvStore::Cancelled cancelled) {
  if (ranks_.size() == 1) return kv().Hold(length, cancelled);
  std::vector<JoinedPages::Part> parts;
  for (const auto& rank : ranks_) {
    if (!model_.split->IsFirstOfHeads(rank->site.rank)) continue;
    ASSIGN_OR_RETURN(std::unique_ptr<HeldPages> held,
                     rank->kv->Hold(length, cancelled));
    parts.push_back({std::move(held), rank->first_head()});
  }
  return std::make_unique<JoinedPages>(WholeLayout(), std::move(parts));
}

// Returns true for a prompt whose layers depend on its tokens alone, so that
// they can be saved.
bool Session::KeepsPrompt(int64_t rows, Phase phase, const View& view) const {
  return prompt_cache_ != nullptr && ranks_.size() == 1 &&
         phase == Phase::kPrefill && view == prompt_view_ &&
         rows == sequence_.pending() && rows >= KvFolder::kLeastTokens &&
         sequence_.IsSettled() && sequence_.IsComputed();
}

absl::Status Session::GoOnFromDisk(int64_t rows,
                                   absl::FunctionRef<bool()> goes_on,
                                   PassPoint* point) {
  const auto stop = [&] { return cancelled() || !goes_on(); };
  const int64_t row_bytes =
      model_.config.hidden * static_cast<int64_t>(sizeof(float));
  PromptFile* const file = prompt_cache_->BeginPrompt(
      sequence_.tokens(), sequence_.kv_length(), row_bytes, stop);
  if (file == nullptr || file->layers() == 0) return absl::OkStatus();
  bool at_fault = false;  // the file is, not the memory for its layers
  const TimeOfLife opening(model_.machine->clock(), disk_.opening_seconds);
  const absl::StatusOr<int> layers = first().TakeLayers(
      rows,
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
  prompt_cache_->RefusePrompt(layers.status(), at_fault);
  return absl::OkStatus();
}

// Saves the layers up to `layer`, if that is due. The last layer is not saved:
// the prompt is finished then.
void Session::KeepLayer(int layer, int64_t rows,
                        absl::FunctionRef<bool()> goes_on) {
  auto asks_at = std::chrono::steady_clock::now() + kAsksEvery;
  const auto stop = [&] {
    if (cancelled()) return true;
    const auto now = std::chrono::steady_clock::now();
    if (now < asks_at) return false;
    asks_at = now + kAsksEvery;
    return !goes_on();
  };
  if (layer + 1 == model_.config.layers ||
      (layer + 1) % LayersTogether() != 0 ||
      !prompt_cache_->TakesLayer(sequence_.tokens(), sequence_.kv_length(),
                                 layer, stop)) {
    return;
  }
  const int begin = prompt_cache_->FirstLayer();
  if ((layer - begin) % 2 != 0) return;  // two places for states, in turn
  std::vector<std::unique_ptr<HeldLayer>> layers;
  for (int at = begin; at <= layer; ++at) {
    absl::StatusOr<std::unique_ptr<HeldLayer>> held =
        at == layer ? first().HoldLayer(rows, at, stop)
                    : first().HoldPages(at, stop);
    if (!held.ok()) {
      if (ClassOf(held.status()) == ErrorClass::kCancelled) return;
      prompt_cache_->LeavePrompt();
      prompt_cache_->Warn(held.status(),
                          "later layers of the prompt are not kept");
      return;
    }
    layers.push_back(*std::move(held));
  }
  prompt_cache_->WriteLayers(std::move(layers));
}

// Hidden states take as many bytes as K and V of several layers: if only
// unfinished prompts are saved, they are written just eight times.
int Session::LayersTogether() const {
  constexpr int kTimes = 8;
  return prompt_cache_folder_->unfinished_alone
             ? model_.config.layers / kTimes | 1
             : 1;
}

int Session::kept_layers() const {
  return prompt_cache_ != nullptr ? prompt_cache_->kept_layers() : 0;
}

void Session::DropKeptPrompt() {
  if (prompt_cache_ != nullptr && prompt_cache_folder_->unfinished_alone) {
    prompt_cache_->DropPrompt();
  }
}

void Session::SaveText() {
  if (prompt_cache_ == nullptr || prompt_cache_folder_->unfinished_alone)
    return;
  const int64_t length = sequence_.kv_length();
  const bool computed = sequence_.IsSettled() && sequence_.IsComputed();
  if (!computed || length - saved_ < KvFolder::kLeastTokens) return;
  const auto stop = [this] { return cancelled(); };
  absl::StatusOr<std::unique_ptr<HeldPages>> pages = HoldRanks(length, stop);
  if (!pages.ok()) {
    if (ClassOf(pages.status()) != ErrorClass::kCancelled) {
      prompt_cache_->Warn(pages.status(), "the text is not kept");
    }
    return;
  }
  const int64_t held = (*pages)->positions();
  if (held < KvFolder::kLeastTokens) return;
  if (prompt_cache_->Save(sequence_.tokens(), *std::move(pages), stop))
    saved_ = held;
}

void Session::StopSaving() {
  if (prompt_cache_ != nullptr) prompt_cache_->Stop();
}

}  // namespace tiercel
