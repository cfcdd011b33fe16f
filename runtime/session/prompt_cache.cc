#include "runtime/session/prompt_cache.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "kernels/system/isa.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"
#include "models/format/json.h"
#include "nlohmann/json.hpp"

namespace tiercel {
namespace {

nlohmann::json RopeJson(const ModelConfig& config, int64_t length) {
  const RopeScaling& scaling = config.rope_scaling;
  return {{"theta", config.rope_theta},
          {"dims", config.rope_dims},
          {"scaling", static_cast<int>(scaling.type)},
          {"factor", scaling.factor},
          {"original_context", scaling.original_context},
          {"low_freq_factor", scaling.low_freq_factor},
          {"high_freq_factor", scaling.high_freq_factor},
          {"beta_fast", scaling.beta_fast},
          {"beta_slow", scaling.beta_slow},
          {"truncate", scaling.truncate},
          {"length", length},
          {"attention_factor", scaling.attention_factor.has_value()
                                   ? nlohmann::json(*scaling.attention_factor)
                                   : nlohmann::json(nullptr)}};
}

bool IsLike(const KvFileInfo& info, const KvLayout& layout, int layers) {
  return info.layout.type_k == layout.type_k &&
         info.layout.type_v == layout.type_v &&
         info.layout.kv_heads == layout.kv_heads &&
         info.layout.head_dim == layout.head_dim && info.layers == layers;
}

// The title of a file (KvFileInfo).
std::string TitleOf(const std::string& model, const std::string& name) {
  constexpr size_t kMostBytes = 1000;
  if (name.empty()) return model;
  return model + '\0' + name.substr(0, kMostBytes);
}

constexpr char kReadAgain[] = "the text is read again";
constexpr char kBegunAnew[] = "the prompt begins anew";
constexpr char kFull[] = "this one is not kept";
constexpr char kNotKept[] = "texts of this session are not kept";

}  // namespace

absl::StatusOr<nlohmann::json> ListPromptCache(const std::string& folder) {
  ASSIGN_OR_RETURN(const std::vector<KvFolder::Entry> entries,
                   KvFolder(folder, /*most_bytes=*/0).List());
  nlohmann::json list = nlohmann::json::array();
  for (const KvFolder::Entry& entry : entries) {
    list.push_back(
        {{"file", entry.name}, {"bytes", entry.bytes}, {"used", entry.used}});
    if (entry.unfinished) list.back()["unfinished"] = true;
    if (!entry.info.has_value()) continue;
    const std::string& title = entry.info->title;
    const size_t end = title.find('\0');
    list.back()["model"] = title.substr(0, end);
    if (end != std::string::npos) list.back()["name"] = title.substr(end + 1);
    list.back()["tokens"] = entry.info->positions();
  }
  return list;
}

absl::StatusOr<int64_t> CachedTokens(const Model& model,
                                     const SessionOptions& options,
                                     absl::Span<const int32_t> ids,
                                     absl::FunctionRef<bool()> cancelled) {
  // The last row is computed for its logits.
  if (!options.texts.has_value()) return 0;
  PromptCache cache(model, options.Layout(model.config),
                    model.config.RopeLength(options.first_position +
                                            options.Context(model.config)),
                    *options.texts);
  if (std::ssize(ids) <= cache.least_tokens()) return 0;
  ASSIGN_OR_RETURN(const std::optional<KvFolder::Found> found,
                   cache.Find(ids, cancelled));
  if (!found.has_value() || found->common < cache.least_tokens()) return 0;
  return std::min(found->common, std::ssize(ids) - 1);
}

absl::StatusOr<int64_t> ClearPromptCache(const std::string& folder) {
  return KvFolder(folder, /*most_bytes=*/0).Clear();
}

PromptCache::PromptCache(const Model& model, const KvLayout& layout,
                         int64_t rope_length, const PromptCacheFolder& folder)
    : model_(model),
      layout_(layout),
      rope_length_(rope_length),
      build_(folder.build),
      name_(folder.name),
      begins_anew_(folder.begins_anew),
      waits_(folder.waits),
      folder_(folder.Folder()) {
  if (build_.empty()) {
    GiveUp(IoError("no_build_id",
                   "nothing tells this build of the library from another: it "
                   "was linked without a build id, and its file cannot be "
                   "read, or is not the one that was loaded"));
  }
}

PromptCache::~PromptCache() {
  Join();
  if (used_) folder_.Trim();
}

// Everything but the tokens that determines the bytes of the KV.
absl::StatusOr<std::string> PromptCache::Fingerprint(Cancelled cancelled) {
  if (!fingerprint_.empty()) return fingerprint_;
  ASSIGN_OR_RETURN(const std::string checkpoint, model_.Hash(cancelled));
  ASSIGN_OR_RETURN(const Isa isa, ChooseIsa());
  const Machine& machine = *model_.machine;
  fingerprint_ = WriteJson(
      {{"build", build_},
       {"isa", std::string(NameOf(isa))},
       {"device", NameOf(machine.device().kind())},
       {"prompts", machine.PromptArithmetic()},
       {"compute", model_.options.compute == Compute::kQ8 ? "q8" : "f32"},
       {"checkpoint", checkpoint},
       {"rope", RopeJson(model_.config, rope_length_)},
       {"layers", model_.config.layers},
       {"kv_heads", layout_.kv_heads},
       {"head_dim", layout_.head_dim},
       {"type_k", std::string(InfoOf(layout_.type_k).name)},
       {"type_v", std::string(InfoOf(layout_.type_v).name)}});
  return fingerprint_;
}

absl::StatusOr<std::optional<KvFolder::Found>> PromptCache::Find(
    absl::Span<const int32_t> ids, Cancelled cancelled) {
  if (build_.empty()) return std::nullopt;
  const absl::StatusOr<std::string> fingerprint = Fingerprint(cancelled);
  if (ClassOf(fingerprint.status()) == ErrorClass::kCancelled) {
    return fingerprint.status();
  }
  absl::StatusOr<std::optional<KvFolder::Found>> found =
      fingerprint.ok() ? folder_.Find(*fingerprint, ids)
                       : absl::StatusOr<std::optional<KvFolder::Found>>(
                             fingerprint.status());
  if (!found.ok()) {
    Warn(found.status(), kReadAgain);
    return std::nullopt;
  }
  if (found->has_value() &&
      !IsLike((*found)->file->info(), layout_, model_.config.layers)) {
    return std::nullopt;  // no session writes such a file
  }
  return found;
}

void PromptCache::NoteLoaded(const KvFile& file) {
  file.Touch();
  used_ = true;
}

void PromptCache::Refuse(const KvFile& file, const absl::Status& why,
                         bool at_fault) {
  const std::string code = CodeOf(why);
  if (at_fault && (code == "text_damaged" || code == "page_damaged" ||
                   code == "io_error")) {
    folder_.Remove(file.name());
  }
  Warn(why, kReadAgain);
}

// ---- An unfinished prompt ----

PromptFile* PromptCache::BeginPrompt(absl::Span<const int32_t> ids,
                                     int64_t begin, int64_t row_bytes,
                                     Cancelled cancelled) {
  LeavePrompt();
  if (gave_up_ || model_.config.layers < 2) return nullptr;
  const absl::StatusOr<std::string> fingerprint = Fingerprint(cancelled);
  if (!fingerprint.ok()) return nullptr;  // Save says so
  absl::StatusOr<std::unique_ptr<PromptFile>> file =
      folder_.OpenPrompt({.fingerprint = *fingerprint,
                          .layout = layout_,
                          .layers = model_.config.layers,
                          .begin = begin,
                          .ids = {ids.begin(), ids.end()},
                          .row_bytes = row_bytes},
                         begins_anew_);
  if (!file.ok()) {
    GiveUp(file.status());
    return nullptr;
  }
  if (*file == nullptr) return nullptr;
  prompt_ = std::make_unique<PromptWriter>(*std::move(file), waits_);
  kept_layers_ = prompt_->file().layers();
  return &prompt_->file();
}

std::optional<PromptFile::Finished> PromptCache::FindPrompt(
    absl::Span<const int32_t> ids) {
  if (gave_up_ || begins_anew_) return std::nullopt;
  if (prompt_ != nullptr && prompt_->info().ids == ids) LeavePrompt();
  const absl::StatusOr<std::string> fingerprint =
      Fingerprint([] { return false; });
  if (!fingerprint.ok()) return std::nullopt;
  return folder_.FindPrompt(*fingerprint, ids);
}

void PromptCache::RefusePrompt(const absl::Status& why, bool at_fault) {
  Warn(why, kBegunAnew);
  const std::string code = CodeOf(why);
  if (!at_fault || (code != "text_damaged" && code != "io_error")) {
    return LeavePrompt();
  }
  if (const absl::Status cleared = prompt_->file().Clear(); !cleared.ok()) {
    LeavePrompt();
    GiveUp(cleared);
  }
}

bool PromptCache::TakesLayer(absl::Span<const int32_t> ids, int64_t begin,
                             int layer, Cancelled cancelled) {
  if (prompt_ == nullptr || prompt_->info().begin != begin ||
      prompt_->info().ids != ids) {
    return false;
  }
  const absl::StatusOr<bool> takes = prompt_->TakesLayer(layer, cancelled);
  if (takes.ok() && *takes) kept_layers_ = prompt_->file().layers();
  if (takes.ok()) return *takes;
  LeavePrompt();
  GiveUp(takes.status());
  return false;
}

void PromptCache::DropPrompt() {
  if (prompt_ == nullptr) return;
  prompt_->Settle();
  folder_.Remove(prompt_->file().name());
  LeavePrompt();
  kept_layers_ = 0;
}

// ---- A finished prompt ----

bool PromptCache::Save(absl::Span<const int32_t> ids,
                       std::unique_ptr<HeldPages> pages, Cancelled cancelled) {
  while (writing_ != nullptr && !writing_->call->over()) {
    if (cancelled()) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  Join();
  if (gave_up_) return false;
  const absl::StatusOr<std::string> fingerprint = Fingerprint(cancelled);
  if (!fingerprint.ok()) {
    if (ClassOf(fingerprint.status()) == ErrorClass::kCancelled) return false;
    GiveUp(fingerprint.status());
    return false;
  }
  used_ = true;
  writing_ = std::make_unique<Writing>();
  // If the rest runs out of memory, nothing is being written.
  absl::Cleanup forget = [this] { writing_.reset(); };
  Writing& writing = *writing_;
  writing.info = {.fingerprint = *fingerprint,
                  .title = TitleOf(model_.FileName(), name_),
                  .layout = pages->layout(),
                  .layers = pages->layers(),
                  .ids = {ids.begin(), ids.begin() + pages->positions()},
                  .sums = {}};
  writing.pages = std::move(pages);
  if (prompt_ != nullptr && prompt_->info().ids == ids) {
    writing.prompt = std::move(prompt_);
    writing.prompt_name = writing.prompt->file().name();
  }
  writing.call = std::make_unique<BackgroundCall>([&writing, folder = folder_] {
    if (writing.prompt != nullptr) writing.prompt->Settle();
    return folder.Save(
        writing.info, *writing.pages,
        [&writing] { return writing.stop.load(std::memory_order_relaxed); },
        writing.prompt_name);
  });
  std::move(forget).Cancel();
  well_ = true;
  return true;
}

void PromptCache::Stop() {
  if (writing_ != nullptr) writing_->stop.store(true);
  Join();
}

bool PromptCache::Settle() {
  if (writing_ != nullptr && writing_->call->over()) Join();
  return well_;
}

void PromptCache::Join() {
  if (writing_ == nullptr) return;
  const absl::Status status = writing_->call->Join();
  well_ = status.ok();
  if (well_) kept_layers_ = model_.config.layers;
  writing_.reset();
  if (well_ || ClassOf(status) == ErrorClass::kCancelled) return;
  // The next text may replace one that stays, or be of another name.
  if (CodeOf(status) == "prompt_cache_full") return Warn(status, kFull);
  GiveUp(status);
}

void PromptCache::GiveUp(const absl::Status& why) {
  gave_up_ = true;
  Warn(why, kNotKept);
}

void PromptCache::Warn(const absl::Status& why, const char* consequence) {
  const std::string warning =
      absl::StrCat("saved texts: ", why.message(), "; ", consequence);
  if (std::find(warnings_.begin(), warnings_.end(), warning) ==
      warnings_.end()) {
    warnings_.push_back(warning);
  }
}

}  // namespace tiercel
