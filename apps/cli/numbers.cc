#include "apps/cli/numbers.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"

namespace tiercel::cli {
namespace {

template <typename T>
std::optional<T> ParseWhole(std::string_view text) {
  T value{};
  const char* end = text.data() + text.size();
  const std::from_chars_result result =
      std::from_chars(text.data(), end, value);
  if (text.empty() || result.ec != std::errc() || result.ptr != end) {
    return std::nullopt;
  }
  return value;
}

}  // namespace

std::optional<int64_t> ParseInt(std::string_view text) {
  return ParseWhole<int64_t>(text);
}

std::optional<uint64_t> ParseUnsigned(std::string_view text) {
  return ParseWhole<uint64_t>(text);
}

std::optional<double> ParseReal(std::string_view text) {
  const std::optional<double> value = ParseWhole<double>(text);
  return value.has_value() && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<int64_t> ParseTokenCount(std::string_view text) {
  if (text.empty() || (text.back() != 'k' && text.back() != 'K')) {
    return ParseInt(text);
  }
  constexpr int64_t kThousand = 1024;
  const std::optional<int64_t> count =
      ParseInt(text.substr(0, text.size() - 1));
  if (!count.has_value() || *count < 0 ||
      *count > std::numeric_limits<int64_t>::max() / kThousand) {
    return std::nullopt;
  }
  return *count * kThousand;
}

std::optional<std::vector<int64_t>> ParseIntList(std::string_view text) {
  std::vector<int64_t> list;
  for (;;) {
    const size_t comma = text.find(',');
    const std::optional<int64_t> item = ParseInt(text.substr(0, comma));
    if (!item.has_value()) return std::nullopt;
    list.push_back(*item);
    if (comma == std::string_view::npos) return list;
    text.remove_prefix(comma + 1);
  }
}

std::optional<SeedRange> ParseSeedRange(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const std::optional<uint64_t> first = ParseUnsigned(text.substr(0, colon));
  const std::optional<uint64_t> last = ParseUnsigned(text.substr(colon + 1));
  if (!first.has_value() || !last.has_value() || *first > *last) {
    return std::nullopt;
  }
  return SeedRange{*first, *last};
}

std::optional<double> ParseSize(std::string_view text) {
  struct Unit {
    std::string_view name;
    double bytes;
  };
  constexpr Unit kUnits[] = {
      {"KiB", 1024}, {"MiB", 1048576}, {"GiB", 1073741824},
      {"kB", 1e3},   {"MB", 1e6},      {"GB", 1e9},
      {"B", 1}};
  double scale = 1;
  for (const Unit& unit : kUnits) {
    if (text.size() > unit.name.size() &&
        text.substr(text.size() - unit.name.size()) == unit.name) {
      text.remove_suffix(unit.name.size());
      scale = unit.bytes;
      break;
    }
  }
  const std::optional<double> number = ParseReal(text);
  if (!number.has_value()) return std::nullopt;
  const double bytes = *number * scale;
  return bytes >= 1 && bytes < 0x1p62 ? std::optional<double>(bytes)
                                      : std::nullopt;
}

std::optional<Simulation> ParseSimulation(std::string_view text) {
  std::optional<double> device, link, latency, host;
  std::optional<uint64_t> strict;
  for (;;) {
    const size_t comma = text.find(',');
    const std::string_view item = text.substr(0, comma);
    const size_t equals = item.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    const std::string_view key = item.substr(0, equals);
    std::string_view value = item.substr(equals + 1);
    std::optional<double>* target = nullptr;
    if (key == "strict") {
      const std::optional<int64_t> seed = ParseInt(value);
      if (strict.has_value() || !seed.has_value() || *seed < 0) {
        return std::nullopt;
      }
      strict = static_cast<uint64_t>(*seed);
      if (comma == std::string_view::npos) break;
      text.remove_prefix(comma + 1);
      continue;
    }
    if (key == "device") {
      target = &device;
    } else if (key == "link" || key == "host") {
      target = key == "link" ? &link : &host;
      if (value.size() < 2 || value.substr(value.size() - 2) != "/s") {
        return std::nullopt;
      }
      value.remove_suffix(2);
    } else if (key == "latency") {
      target = &latency;
    }
    if (target == nullptr || target->has_value()) return std::nullopt;
    *target = key == "latency" ? ParseReal(value) : ParseSize(value);
    if (!target->has_value()) return std::nullopt;
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  if (!device.has_value() && !link.has_value() && !latency.has_value() &&
      !host.has_value() && strict.has_value()) {
    return Simulation{.strict_seed = strict};
  }
  if (!device.has_value() || !link.has_value() || latency.value_or(0) < 0) {
    return std::nullopt;
  }
  return Simulation{static_cast<uint64_t>(*device), *link, latency.value_or(0),
                    host.value_or(0), strict};
}

std::string Grouped(int64_t number) {
  std::string digits = std::to_string(number);
  const size_t sign = number < 0 ? 1 : 0;
  for (size_t at = digits.size(); at > sign + 3;) {
    at -= 3;
    digits.insert(at, 1, ',');
  }
  return digits;
}

std::string Bytes(double bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB",
                                                 "TiB"};
  size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  return Fixed(bytes, unit == 0 ? 0 : 2) + " " + kUnits[unit];
}

std::string Duration(double seconds) {
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole < 60) return absl::StrCat(whole, " s");
  if (whole < 3600) return absl::StrCat(whole / 60, " min ", whole % 60, " s");
  return absl::StrCat(whole / 3600, " h ", whole / 60 % 60, " min");
}

std::string Fixed(double number, int digits) {
  // Doubles up to 1e308 have 309 digits before the point.
  std::array<char, 400> buffer;
  const std::to_chars_result result =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), number,
                    std::chars_format::fixed, digits);
  return {buffer.data(), result.ptr};
}

}  // namespace tiercel::cli
