#include "runtime/plan/rates_cache.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"
#include "models/format/json.h"

namespace tiercel {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct Field {
  const char* name;
  double Rates::*value;
  bool may_be_zero = false;
  bool may_lack = false;  // in a file
};
constexpr Field kFields[] = {
    {"prompt_row_s", &Rates::prompt_row_s},
    {"prompt_position_s", &Rates::prompt_position_s, /*may_be_zero=*/true},
    {"step_s", &Rates::step_s},
    {"step_position_s", &Rates::step_position_s, /*may_be_zero=*/true},
    {"logits_s", &Rates::logits_s},
    {"copy_bytes_per_s", &Rates::copy_bytes_per_s},
    {"copy_slowdown", &Rates::copy_slowdown},
    {"disk_bytes_per_s", &Rates::disk_bytes_per_s, /*may_be_zero=*/true,
     /*may_lack=*/true},
    {"disk_bytes_per_cpu_s", &Rates::disk_bytes_per_cpu_s,
     /*may_be_zero=*/true, /*may_lack=*/true},
};

bool Has(const json& document, const char* name, bool (json::*type)() const) {
  return document.is_object() && document.contains(name) &&
         (document[name].*type)();
}

json ToJson(const Rates& rates) {
  json document;
  for (const Field& field : kFields) {
    if (field.may_lack && rates.*field.value == 0) continue;
    document[field.name] = rates.*field.value;
  }
  return document;
}

std::optional<Rates> RatesIn(const json& document, const char* name) {
  if (!Has(document, name, &json::is_object)) return std::nullopt;
  Rates rates;
  for (const Field& field : kFields) {
    if (!Has(document[name], field.name, &json::is_number)) {
      if (field.may_lack && !document[name].contains(field.name)) continue;
      return std::nullopt;
    }
    const auto value = document[name][field.name].get<double>();
    if (!(value > 0) && !(value == 0 && field.may_be_zero)) return std::nullopt;
    rates.*field.value = value;
  }
  return rates;
}

json ToJson(const json& key, const std::string& who, const KeptRates& kept) {
  return {{"key", key},
          {"model", who},
          {"rates", ToJson(kept.best.rates)},
          {"costs", ToJson(kept.costs)},
          {"spread", kept.best.spread},
          {"attempts", kept.best.attempts},
          {"seconds", kept.best.seconds}};
}

std::optional<KeptRates> KeptIn(const json& document) {
  const std::optional<Rates> rates = RatesIn(document, "rates");
  const std::optional<Rates> costs = RatesIn(document, "costs");
  if (!rates.has_value() || !costs.has_value() ||
      !Has(document, "key", &json::is_object) ||
      !Has(document, "model", &json::is_string) ||
      !Has(document, "spread", &json::is_number) ||
      !Has(document, "attempts", &json::is_number_unsigned)) {
    return std::nullopt;
  }
  KeptRates kept = {.best = {.rates = *rates,
                             .spread = document["spread"].get<double>(),
                             .attempts = document["attempts"].get<int>()},
                    .costs = *costs};
  if (Has(document, "seconds", &json::is_number)) {
    kept.best.seconds = document["seconds"].get<double>();
  }
  return kept;
}

// The document in a file; null if it has none.
json DocumentIn(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  absl::StatusOr<json> document = ParseJson(path.string(), text.str());
  return document.ok() ? *std::move(document) : json();
}

double ToTwoDigits(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof(text), value,
                                 std::chars_format::scientific, 1);
  std::from_chars(text, end.ptr, value);
  return value;
}

Rates ToTwoDigits(Rates rates) {
  for (const Field& field : kFields) {
    rates.*field.value = ToTwoDigits(rates.*field.value);
  }
  return rates;
}

// A file's name is "rates-", 16 digits and ".json"; an unfinished file's goes
// on with a ".".
enum class Name { kWhole, kUnfinished, kNotOurs };
constexpr std::string_view kBegin = "rates-";
constexpr std::string_view kEnd = ".json";
constexpr std::string_view kUnfinishedEnd = ".json.";

Name NameOf(std::string_view name) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const std::string_view digits =
      name.substr(0, kBegin.size()) == kBegin
          ? name.substr(kBegin.size(),
                        std::min(name.size() - kBegin.size(), size_t{16}))
          : "";
  if (digits.size() != 16 ||
      digits.find_first_not_of(kDigits) != std::string_view::npos) {
    return Name::kNotOurs;
  }
  const std::string_view rest = name.substr(kBegin.size() + digits.size());
  if (rest == kEnd) return Name::kWhole;
  return rest.substr(0, kUnfinishedEnd.size()) == kUnfinishedEnd
             ? Name::kUnfinished
             : Name::kNotOurs;
}

// Our files in `folder`, sorted by name; none if the folder does not exist.
// Errors: cannot_read.
absl::StatusOr<std::vector<fs::path>> FilesIn(const std::string& folder,
                                              bool unfinished_too) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    const Name name = NameOf(it->path().filename().string());
    if (name == Name::kWhole || (name == Name::kUnfinished && unfinished_too)) {
      files.push_back(it->path());
    }
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    return IoError("cannot_read", absl::StrCat(folder, ": ", error.message()));
  }
  std::sort(files.begin(), files.end());
  return files;
}

absl::Status CannotWrite(const std::string& where, const std::string& why) {
  return IoError("cannot_write",
                 absl::StrCat(where, ": cannot be written: ", why));
}

int64_t UnixTime(fs::file_time_type time) {
  return std::chrono::duration_cast<std::chrono::seconds>(
             fs::file_time_type::clock::to_sys(time).time_since_epoch())
      .count();
}

}  // namespace

std::string KeptRates::Warning() const {
  if (best.steady()) return "";
  const double percent =
      std::min(100 * best.spread, 1e6);  // a file may have any number
  return absl::StrCat(
      "rates: other work kept the machine busy while they were measured (the "
      "middle pass took ",
      static_cast<int>(percent),
      " % longer than the quickest): predicted times may be off",
      wants_more() ? "; a run that takes longer than that measures again"
                   : "; after tiercel cache clear the next run measures again, "
                     "best on a quiet machine");
}

// The hash is FNV-1a; keys that collide only replace each other's file.
std::string RatesCache::PathOf(const json& key) const {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const unsigned char c : WriteJson(key)) {
    hash = (hash ^ c) * 0x100000001b3u;
  }
  return fs::path(folder_) / absl::StrCat(std::string(kBegin),
                                          absl::Hex(hash, absl::kZeroPad16),
                                          std::string(kEnd));
}

std::optional<KeptRates> RatesCache::Get(const json& key) const {
  const json document = DocumentIn(PathOf(key));
  const std::optional<KeptRates> kept = KeptIn(document);
  return kept.has_value() && document["key"] == key ? kept : std::nullopt;
}

absl::Status RatesCache::CheckWritable() const {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) return CannotWrite(folder_, error.message());
  if (access(folder_.c_str(), W_OK) != 0) {
    return CannotWrite(folder_, std::generic_category().message(errno));
  }
  return absl::OkStatus();
}

absl::StatusOr<KeptRates> RatesCache::Add(const json& key,
                                          const std::string& who,
                                          const Measurement& measured) const {
  KeptRates kept = {.best = measured, .costs = ToTwoDigits(measured.rates)};
  if (const std::optional<KeptRates> before = Get(key); before.has_value()) {
    kept.costs = before->costs;
    if (before->best.spread <= measured.spread) kept.best = before->best;
    kept.best.attempts = before->best.attempts + measured.attempts;
    kept.best.seconds = measured.seconds;
  }
  // The file appears whole or not at all, even if other processes write it too.
  static std::atomic<int> turn{0};
  const std::string path = PathOf(key);
  const fs::path unfinished = absl::StrCat(path, ".", getpid(), ".", turn++);
  std::ofstream file(unfinished);
  file << WriteJson(ToJson(key, who, kept)) << "\n";
  file.close();
  std::error_code error;
  if (file.good()) fs::rename(unfinished, path, error);
  if (file.good() && !error) return kept;
  std::error_code ignored;
  fs::remove(unfinished, ignored);
  return CannotWrite(path, error ? error.message() : "no room");
}

absl::StatusOr<json> RatesCache::List() const {
  ASSIGN_OR_RETURN(const std::vector<fs::path> files,
                   FilesIn(folder_, /*unfinished_too=*/false));
  json list = json::array();
  for (const fs::path& path : files) {
    std::error_code gone;
    const auto bytes = fs::file_size(path, gone);
    if (gone) continue;  // a folder has none, either
    const auto modified = fs::last_write_time(path, gone);
    if (gone) continue;
    json document = DocumentIn(path);
    const std::optional<KeptRates> kept = KeptIn(document);
    if (!kept.has_value()) document = json::object();
    if (kept.has_value()) document["steady"] = kept->best.steady();
    document["file"] = path.filename().string();
    document["bytes"] = bytes;
    document["modified"] = UnixTime(modified);
    list.push_back(std::move(document));
  }
  return list;
}

absl::StatusOr<int64_t> RatesCache::Clear() const {
  ASSIGN_OR_RETURN(const std::vector<fs::path> files,
                   FilesIn(folder_, /*unfinished_too=*/true));
  int64_t removed = 0;
  absl::Status left;  // the first error, behind which the rest is removed
  for (const fs::path& path : files) {
    std::error_code error;
    removed += fs::remove(path, error);
    if (!error) continue;
    std::error_code ignored;
    left.Update(fs::is_directory(path, ignored)
                    ? IoError("cannot_write",
                              absl::StrCat("'", path.string(),
                                           "': got a folder, need a file of "
                                           "rates; it stays"))
                    : CannotWrite(path.string(), error.message()));
  }
  if (!left.ok()) return left;
  return removed;
}

}  // namespace tiercel
