#include "apps/serve/guard.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "apps/cli/error.h"
#include "apps/commands/input.h"
#include "apps/serve/refusal.h"
#include "lib/status/status_macros.h"

namespace tiercel::serve {
namespace {

// The host of "host:port", without the brackets of IPv6.
std::string_view WithoutPort(std::string_view host) {
  if (!host.empty() && host.front() == '[') {
    const size_t end = host.find(']');
    return end == host.npos ? host : host.substr(1, end - 1);
  }
  const size_t colon = host.find(':');
  // Two colons are an address of IPv6 alone.
  return colon == host.rfind(':') ? host.substr(0, colon) : host;
}

bool IsIPv4(std::string_view text) {
  return !text.empty() &&
         text.find_first_not_of("0123456789.") == std::string_view::npos;
}

// Compares all of both, whatever differs.
bool IsSame(std::string_view key, std::string_view given) {
  unsigned differs = key.size() != given.size();
  for (size_t i = 0; i < given.size(); ++i) {
    const char own = key.empty() ? '\0' : key[i % key.size()];
    differs |= static_cast<unsigned char>(own ^ given[i]);
  }
  return differs == 0;
}

}  // namespace

bool IsLoopback(std::string_view host) {
  const std::string name =
      absl::AsciiStrToLower(absl::string_view(host.data(), host.size()));
  const std::string_view bare = WithoutPort(name);
  return bare == "localhost" || bare == "localhost." || bare == "::1" ||
         (bare.substr(0, 4) == "127." && IsIPv4(bare));
}

absl::StatusOr<std::vector<std::string>> Guard::ReadKeys(
    const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, cli::ReadText(path));
  std::vector<std::string> keys;
  const size_t mark = absl::StartsWith(text, "\xef\xbb\xbf") ? 3 : 0;
  for (absl::string_view line : absl::StrSplit(text.substr(mark), '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (!line.empty()) keys.emplace_back(line);
  }
  if (!keys.empty()) return keys;
  return cli::Error(
      cli::Exit::kInput, "no_api_key",
      absl::StrCat("--api-key-file: '", path, "' has no key; need one a line"));
}

absl::Status Guard::CheckSource(std::string_view host,
                                std::string_view origin) const {
  if (loopback_ && !IsLoopback(host)) {
    return HttpError(403, "forbidden_host",
                     "the Host is no name of this machine's loopback, where "
                     "the server listens; other names need --host");
  }
  if (origin.empty()) return absl::OkStatus();
  const size_t scheme = origin.find("://");
  const std::string_view from =
      scheme == origin.npos ? "" : origin.substr(scheme + 3);
  if (absl::EqualsIgnoreCase(absl::string_view(from.data(), from.size()),
                             absl::string_view(host.data(), host.size()))) {
    return absl::OkStatus();
  }
  return HttpError(403, "forbidden_origin",
                   "pages of another origin may not use this server");
}

absl::Status Guard::CheckKey(std::string_view authorization) const {
  if (keys_.empty()) return absl::OkStatus();
  constexpr absl::string_view kBearer = "bearer ";
  absl::string_view given(authorization.data(), authorization.size());
  bool well = false;
  if (absl::StartsWithIgnoreCase(given, kBearer)) {
    given = absl::StripAsciiWhitespace(given.substr(kBearer.size()));
    for (const std::string& key : keys_) {
      well |= IsSame(key, {given.data(), given.size()});
    }
  }
  if (well) return absl::OkStatus();
  return HttpError(401, "invalid_api_key",
                   "need a key of the server: Authorization: Bearer KEY");
}

}  // namespace tiercel::serve
