#include "runtime/rates_cache.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/format/json.h"

namespace tiercel {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kWeek = int64_t{7} * 24 * 3600;
constexpr size_t kEnough = 5;
constexpr int64_t kApart = 30;   // seconds between the first two
constexpr double kDepth = 4096;  // positions that a row attends to, about

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

bool Has(const nlohmann::json& json, const char* name,
         bool (nlohmann::json::*type)() const) {
  return json.is_object() && json.contains(name) && (json[name].*type)();
}

std::optional<Rates> RatesIn(const nlohmann::json& json) {
  Rates rates;
  for (const Field& field : kFields) {
    if (!Has(json, field.name, &nlohmann::json::is_number)) return std::nullopt;
    const auto value = json[field.name].get<double>();
    if (!(value > 0) && !(value == 0 && field.may_be_zero)) return std::nullopt;
    rates.*field.value = value;
  }
  return rates;
}

}  // namespace

RatesCache::RatesCache(std::string folder, std::string key, int64_t now)
    : folder_(std::move(folder)), key_(std::move(key)), now_(now) {
  Read();
}

std::optional<Rates> RatesCache::Get() const {
  if (measured_.empty()) return std::nullopt;
  // What was told apart by one fit stays together: noise that makes one number
  // less makes the other more.
  const Rates& prompt = MiddleBy([](const Rates& r) {
    return r.prompt_row_s + kDepth * r.prompt_position_s;
  });
  const Rates& step = MiddleBy(
      [](const Rates& r) { return r.step_s + kDepth * r.step_position_s; });
  const Rates& logits = MiddleBy([](const Rates& r) { return r.logits_s; });
  const Rates& copies =
      MiddleBy([](const Rates& r) { return r.copy_slowdown; });
  return Rates{.prompt_row_s = prompt.prompt_row_s,
               .prompt_position_s = prompt.prompt_position_s,
               .step_s = step.step_s,
               .step_position_s = step.step_position_s,
               .logits_s = logits.logits_s,
               .copy_bytes_per_s = copies.copy_bytes_per_s,
               .copy_slowdown = copies.copy_slowdown};
}

template <typename Number>
const Rates& RatesCache::MiddleBy(Number number) const {
  std::vector<const Rates*> order;
  for (const Measured& m : measured_) order.push_back(&m.rates);
  const auto middle =
      order.begin() + static_cast<std::ptrdiff_t>((order.size() - 1) / 2);
  std::nth_element(
      order.begin(), middle, order.end(),
      [&](const Rates* a, const Rates* b) { return number(*a) < number(*b); });
  return **middle;
}

bool RatesCache::WantsMore() const {
  if (measured_.empty()) return true;
  // Slow times are of any length: each gap is longer than all before it.
  const int64_t last = measured_.back().time;
  return measured_.size() < kEnough &&
         now_ - last >= kApart + last - measured_.front().time;
}

void RatesCache::Add(const Rates& rates, int64_t now) {
  measured_.push_back({now, rates});
  Write();
}

// FNV-1a; two keys of one hash only take each other's place.
std::string RatesCache::Path() const {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const unsigned char c : key_) hash = (hash ^ c) * 0x100000001b3u;
  return fs::path(folder_) /
         absl::StrCat("rates-", absl::Hex(hash, absl::kZeroPad16), ".json");
}

void RatesCache::Read() {
  const std::string path = Path();
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  const absl::StatusOr<nlohmann::json> json = ParseJson(path, text.str());
  if (!json.ok() || !Has(*json, "key", &nlohmann::json::is_string) ||
      (*json)["key"] != key_ ||
      !Has(*json, "measurements", &nlohmann::json::is_array)) {
    return;
  }
  for (const nlohmann::json& entry : (*json)["measurements"]) {
    const std::optional<Rates> rates = RatesIn(entry);
    if (!rates.has_value() ||
        !Has(entry, "time", &nlohmann::json::is_number_integer)) {
      measured_.clear();
      return;
    }
    const auto time = entry["time"].get<int64_t>();
    if (time <= now_ && time >= now_ - kWeek)
      measured_.push_back({time, *rates});
  }
}

void RatesCache::Write() const {
  nlohmann::json list = nlohmann::json::array();
  for (const Measured& m : measured_) {
    list.push_back({{"time", m.time}});
    for (const Field& field : kFields) {
      list.back()[field.name] = m.rates.*field.value;
    }
  }
  std::error_code error;
  fs::create_directories(folder_, error);
  // Whole or not at all, whoever writes beside us.
  static std::atomic<int> turn{0};
  const std::string path = Path();
  const fs::path unfinished = absl::StrCat(path, ".", getpid(), ".", turn++);
  std::ofstream file(unfinished);
  file << WriteJson({{"key", key_}, {"measurements", std::move(list)}}) << "\n";
  file.close();
  if (file.good()) {
    fs::rename(unfinished, path, error);
  } else {
    fs::remove(unfinished, error);
  }
}

}  // namespace tiercel
