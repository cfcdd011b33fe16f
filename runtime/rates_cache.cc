#include "runtime/rates_cache.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "models/format/json.h"

namespace tiercel {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kWeek = int64_t{7} * 24 * 3600;

struct Field {
  const char* name;
  double Rates::*value;
  bool may_be_zero = false;
};
constexpr Field kFields[] = {
    {"prompt_row_s", &Rates::prompt_row_s},
    {"prompt_position_s", &Rates::prompt_position_s, /*may_be_zero=*/true},
    {"step_s", &Rates::step_s},
    {"step_position_s", &Rates::step_position_s, /*may_be_zero=*/true},
    {"logits_s", &Rates::logits_s},
    {"copy_bytes_per_s", &Rates::copy_bytes_per_s},
    {"copy_slowdown", &Rates::copy_slowdown},
};

int64_t UnixTime() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// FNV-1a; two keys of one hash only take each other's place.
fs::path PathOf(const std::string& folder, const std::string& key) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const unsigned char c : key) hash = (hash ^ c) * 0x100000001b3u;
  return fs::path(folder) /
         absl::StrCat("rates-", absl::Hex(hash, absl::kZeroPad16), ".json");
}

}  // namespace

std::optional<Rates> ReadRates(const std::string& folder,
                               const std::string& key) {
  const fs::path path = PathOf(folder, key);
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  const absl::StatusOr<nlohmann::json> json =
      ParseJson(path.string(), text.str());
  if (!json.ok() || !json->is_object()) return std::nullopt;
  const auto is = [&](const char* name, bool (nlohmann::json::*type)() const) {
    return json->contains(name) && ((*json)[name].*type)();
  };
  if (!is("key", &nlohmann::json::is_string) || (*json)["key"] != key ||
      !is("measured", &nlohmann::json::is_number_integer)) {
    return std::nullopt;
  }
  const auto measured = (*json)["measured"].get<int64_t>();
  const int64_t now = UnixTime();
  if (measured > now || measured < now - kWeek) return std::nullopt;
  Rates rates;
  for (const Field& field : kFields) {
    if (!is(field.name, &nlohmann::json::is_number)) return std::nullopt;
    const auto value = (*json)[field.name].get<double>();
    if (!(value > 0) && !(value == 0 && field.may_be_zero)) return std::nullopt;
    rates.*field.value = value;
  }
  return rates;
}

void KeepRates(const std::string& folder, const std::string& key,
               const Rates& rates) {
  nlohmann::json json = {{"key", key}, {"measured", UnixTime()}};
  for (const Field& field : kFields) json[field.name] = rates.*field.value;
  std::error_code error;
  fs::create_directories(folder, error);
  // Whole or not at all, whoever writes beside us.
  static std::atomic<int> turn{0};
  const fs::path path = PathOf(folder, key);
  const fs::path unfinished =
      absl::StrCat(path.string(), ".", getpid(), ".", turn++);
  std::ofstream file(unfinished);
  file << WriteJson(json) << "\n";
  file.close();
  if (file.good()) {
    fs::rename(unfinished, path, error);
  } else {
    fs::remove(unfinished, error);
  }
}

}  // namespace tiercel
