#ifndef TIERCEL_APPS_SERVE_GUARD_H_
#define TIERCEL_APPS_SERVE_GUARD_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace tiercel::serve {

// Returns true for an address of the loopback, or a name of it, with or without
// a port: "127.0.0.1:8080", "[::1]", "localhost".
bool IsLoopback(std::string_view host);

// Knows who may ask a server. Pages of other sites cannot, neither by a name
// that they let lead to this machine (the Host of a request), nor by a script
// (its Origin).
class Guard {
 public:
  // `host` is the address to listen at. Without keys any key is taken.
  Guard(std::string_view host, std::vector<std::string> keys)
      : loopback_(IsLoopback(host)), keys_(std::move(keys)) {}

  // Reads keys, one a line. Errors: those of the file; no_api_key.
  static absl::StatusOr<std::vector<std::string>> ReadKeys(
      const std::string& path);

  // Errors: forbidden_host, forbidden_origin (403).
  absl::Status CheckSource(std::string_view host,
                           std::string_view origin) const;
  // Takes the value of Authorization. The time does not depend on how much of a
  // key is right. Errors: invalid_api_key (401).
  absl::Status CheckKey(std::string_view authorization) const;

 private:
  const bool loopback_;
  const std::vector<std::string> keys_;
};

}  // namespace tiercel::serve

#endif  // TIERCEL_APPS_SERVE_GUARD_H_
