#ifndef TIERCEL_APPS_CLI_NUMBERS_H_
#define TIERCEL_APPS_CLI_NUMBERS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tiercel::cli {

// These parse a number strictly: the whole text is one decimal number, with no
// blank, sign '+' or unit. They return nothing if it is not, or if the type
// cannot hold it, and do not depend on the locale.
std::optional<int64_t> ParseInt(std::string_view text);
std::optional<uint64_t> ParseUnsigned(std::string_view text);
std::optional<double> ParseReal(std::string_view text);  // finite

// "4096" and "4k": a k is 1,024 tokens.
std::optional<int64_t> ParseTokenCount(std::string_view text);

// "512,1024,2048": at least one, no empty item.
std::optional<std::vector<int64_t>> ParseIntList(std::string_view text);

// "3:7", both included, first <= last.
struct SeedRange {
  uint64_t first = 0;
  uint64_t last = 0;
};
std::optional<SeedRange> ParseSeedRange(std::string_view text);

// "24GiB", "500MB", "1.5GB", "4096": KiB, MiB, GiB are powers of 1024, kB, MB,
// GB of 1000. At least 1 and below 2^62.
std::optional<double> ParseSize(std::string_view text);

// "device=24GiB,link=25GB/s,latency=10,host=30GB/s,strict=7", in any order; the
// latency, in microseconds, the rate of the host and the seed of a strict
// device are optional. The seed may also stand alone.
struct Simulation {
  uint64_t device_bytes = 0;  // 0: not bounded
  double link_bytes_per_s = 0;
  double latency_us = 0;
  double host_bytes_per_s = 0;  // 0: the host takes no share of sweeps
  std::optional<uint64_t> strict_seed = {};
};
std::optional<Simulation> ParseSimulation(std::string_view text);

// 7012 -> "7,012".
std::string Grouped(int64_t number);

// 101738272 -> "97.03 MiB".
std::string Bytes(double bytes);

// 61 -> "1 min 1 s".
std::string Duration(double seconds);

// Fixed digits after the point, '.' in every locale.
std::string Fixed(double number, int digits);

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_CLI_NUMBERS_H_
