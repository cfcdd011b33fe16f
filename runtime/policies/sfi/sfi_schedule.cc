#include "runtime/policies/sfi/sfi_schedule.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "kernels/number/philox.h"

namespace tiercel {
namespace {

// Tokens after the end of a sentence in which no other end is looked for.
constexpr int kCooldown = 2;

constexpr std::array<std::string_view, 6> kEnders = {
    ".", "?", "!", "\u3002", "\uff1f", "\uff01"};
constexpr std::array<std::string_view, 12> kClosers = {
    "\"", "'", ")",      "]",      "}",      "*",
    "_",  "`", "\u201d", "\u2019", "\u300d", "\u300f"};

bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() &&
         text.substr(text.size() - end.size()) == end;
}

std::string_view WithoutBlanks(std::string_view text) {
  const size_t last = text.find_last_not_of(" \t\r\n");
  return text.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

std::string_view WithoutClosers(std::string_view text) {
  for (;;) {
    const auto closer =
        std::find_if(kClosers.begin(), kClosers.end(),
                     [&](std::string_view one) { return EndsWith(text, one); });
    if (closer == kClosers.end()) return text;
    text.remove_suffix(closer->size());
  }
}

}  // namespace

TokenKind KindOf(const std::string& text) {
  const std::string_view written = WithoutBlanks(text);
  if (written.empty()) {
    return text.find('\n') != std::string::npos ? TokenKind::kBlank
                                                : TokenKind::kWord;
  }
  const std::string_view said = WithoutClosers(written);
  if (said.empty()) return TokenKind::kCloser;
  return std::find(kEnders.begin(), kEnders.end(), said) != kEnders.end()
             ? TokenKind::kEnder
             : TokenKind::kWord;
}

std::vector<TokenKind> KindsOf(const Tokenizer& tokenizer) {
  std::vector<TokenKind> kinds;
  kinds.reserve(static_cast<size_t>(tokenizer.vocab()));
  for (int32_t id = 0; id < tokenizer.vocab(); ++id) {
    const absl::StatusOr<std::string> text =
        tokenizer.Piece(id, Tokenizer::Special::kPlain);
    kinds.push_back(text.ok() ? KindOf(*text) : TokenKind::kWord);
  }
  return kinds;
}

void SfiSchedule::Advance(int32_t id) {
  if (slow()) since_slow_ = 0;
  ++since_slow_;
  ++length_;
  at_boundary_ = IsBoundary(id);
  reason_ = ReasonNow();
}

bool SfiSchedule::IsBoundary(int32_t id) {
  const std::vector<TokenKind>* const kinds = options_->kinds.get();
  const TokenKind kind =
      kinds != nullptr && static_cast<size_t>(id) < kinds->size()
          ? (*kinds)[static_cast<size_t>(id)]
          : TokenKind::kWord;
  const bool ends = cooldown_ == 0 && kind == TokenKind::kEnder;
  cooldown_ = ends ? kCooldown : std::max(cooldown_ - 1, 0);
  armed_ = armed_ || ends;
  if (!options_->at_start) return ends;
  if (!armed_ || kind != TokenKind::kWord) return false;
  armed_ = false;
  cooldown_ = std::max(cooldown_, kCooldown);
  return true;
}

SfiSchedule::Reason SfiSchedule::ReasonNow() const {
  const Options& o = *options_;
  if (length_ <= o.everything) return Reason::kFits;
  switch (o.trigger) {
    case SfiTrigger::kSentence:
      if (at_boundary_ && since_slow_ >= o.Gap()) return Reason::kSentence;
      break;
    case SfiTrigger::kFixed:
      break;
    case SfiTrigger::kRandom: {
      // One step in `interval` is slow; its position alone decides.
      const auto at = static_cast<uint64_t>(length_);
      const auto words = Philox(
          {static_cast<uint32_t>(at), static_cast<uint32_t>(at >> 32), 0, 0},
          /*key=*/0x5f1);
      return OpenUniform(words[0]) * static_cast<double>(o.interval) < 1
                 ? Reason::kRandom
                 : Reason::kNone;
    }
    case SfiTrigger::kNever:
      return Reason::kNone;
  }
  return since_slow_ >= o.interval ? Reason::kInterval : Reason::kNone;
}

const char* NameOf(SfiSchedule::Reason reason) {
  switch (reason) {
    case SfiSchedule::Reason::kNone:
      break;
    case SfiSchedule::Reason::kSentence:
      return "sentence";
    case SfiSchedule::Reason::kInterval:
      return "interval";
    case SfiSchedule::Reason::kRandom:
      return "random";
    case SfiSchedule::Reason::kFits:
      return "fits";
  }
  return "none";
}

}  // namespace tiercel
