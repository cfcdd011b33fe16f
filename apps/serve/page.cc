#include "apps/serve/page.h"

#include <random>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace tiercel::serve {

extern const std::string_view kPageHtml;  // CMake makes it of page.html

HttpReply PageReply() {
  std::random_device device;
  std::string nonce;
  for (int i = 0; i < 4; ++i) {
    absl::StrAppend(&nonce, absl::Hex(device(), absl::kZeroPad8));
  }
  HttpReply reply = {.content_type = "text/html; charset=utf-8"};
  reply.body =
      absl::StrReplaceAll(absl::string_view(kPageHtml.data(), kPageHtml.size()),
                          {{"NONCE", nonce}});
  reply.headers = {
      {"Content-Security-Policy",
       absl::StrCat("default-src 'none'; script-src 'nonce-", nonce,
                    "'; style-src 'nonce-", nonce,
                    "'; connect-src 'self'; img-src data:; base-uri 'none'; "
                    "form-action 'none'; frame-ancestors 'none'; "
                    "require-trusted-types-for 'script'; trusted-types "
                    "'none'")},
      {"X-Content-Type-Options", "nosniff"},
      {"Referrer-Policy", "no-referrer"},
      {"Cross-Origin-Opener-Policy", "same-origin"},
      {"Cross-Origin-Resource-Policy", "same-origin"}};
  return reply;
}

}  // namespace tiercel::serve
