// Measures each op on a GPU at the shapes of models, beside its bounds there:
//
//   kernel_bench [--quick] [--only PART] [--once] [--seconds N]
//
// Writes JSON lines: first the machine's own ceilings ("ceiling"), then a line
// for each op ("op"), as they come. us is the time of a call among many that
// follow each other, by the GPU's events, the median of some rounds; host_us is
// the time that the host takes to queue it. If these two are alike, the host
// bounds it. GB/s and TFLOP/s count the fewest bytes and operations. Inputs are
// read from several places in turn, so that none is in a cache.
//
// --quick takes toy shapes, for a device that the CPU simulates. --only
// measures cases that have PART in their name,
// "op/model/part/type/rows/positions", and --once calls each once, for a
// profiler. --seconds stops after that time, with a line that has the number of
// cases left out.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/kernels/ceilings.h"
#include "bench/kernels/gpu_clock.h"
#include "bench/kernels/inputs.h"
#include "bench/kernels/op_cases.h"
#include "kernels/device/cuda/cuda_driver.h"
#include "kernels/system/clock.h"
#include "lib/status/status_macros.h"

namespace tiercel {
namespace {

constexpr ModelShape kModels[] = {
    {"llama2-7b", 4096, 32, 32, 128, 11008, 32000},
    {"llama3.1-8b", 4096, 32, 8, 128, 14336, 128256},
    {"30b-a3b", 2048, 32, 4, 128, 0, 151936},
};
constexpr ModelShape kToy = {"toy", 256, 4, 2, 64, 256, 512};

struct Options {
  bool quick = false;
  bool once = false;
  std::string only;
  double seconds = 1e9;
};

struct Sizes {
  std::vector<ModelShape> models;
  CaseSizes cases;
  int64_t halves;
  int64_t floats;
  int64_t large_copy;
  double round_s;  // seconds of one round of calls
  int rounds;
};

Sizes SizesFor(const Options& options) {
  if (options.quick) {
    return {{kToy}, {{1, 17}, {256}}, 1 << 20, 1 << 18, 1 << 18, 0, 1};
  }
  return {{std::begin(kModels), std::end(kModels)},
          {{1, 17, 512}, {4096, 131072}},
          int64_t{5} << 30,
          int64_t{1} << 25,
          int64_t{2} << 30,
          0.012,
          3};
}

// Prints a line of JSON, and flushes it, as the next case may hang.
void PrintLine(const std::string& line) {
  std::printf("{%s}\n", line.c_str());
  std::fflush(stdout);
}

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c >= ' ' ? c : ' ';
  }
  return quoted + "\"";
}

std::string NameOf(const OpCase& one) {
  return absl::StrCat(one.op, "/", std::string(one.model), "/", one.part, "/",
                      one.type, "/", one.rows, "/", one.positions);
}

absl::Status Measure(Stream& stream, const OpCase& one, const Sizes& sizes) {
  int64_t turn = 0;
  const auto calls = [&](int64_t count) {
    return TimeOf(stream.queue(), [&] {
      absl::Status status;
      for (int64_t i = 0; status.ok() && i < count; ++i) {
        status = one.call(stream, turn++);
      }
      return status;
    });
  };
  // The first call allocates scratch memory and loads the kernel.
  absl::StatusOr<Took> took = calls(1);
  if (took.ok()) took = calls(2);
  if (!took.ok()) return took.status();
  const double once = std::max(took->device_s / 2, 1e-6);
  const int64_t count =
      std::clamp<int64_t>(static_cast<int64_t>(sizes.round_s / once), 1, 500);
  std::vector<Took> rounds;
  for (int i = 0; i < sizes.rounds; ++i) {
    took = calls(count);
    if (!took.ok()) return took.status();
    rounds.push_back(*took);
  }
  std::sort(rounds.begin(), rounds.end(), [](const Took& a, const Took& b) {
    return a.device_s < b.device_s;
  });
  const auto n = static_cast<double>(count);
  const Took& median = rounds[rounds.size() / 2];
  const double seconds = median.device_s / n;
  PrintLine(absl::StrCat(
      "\"kind\":\"op\",\"op\":", Quoted(one.op),
      ",\"model\":", Quoted(one.model), ",\"part\":", Quoted(one.part),
      ",\"type\":", Quoted(one.type), ",\"rows\":", one.rows,
      ",\"positions\":", one.positions, ",\"us\":", seconds * 1e6,
      ",\"least_us\":", rounds.front().device_s / n * 1e6,
      ",\"host_us\":", median.host_s / n * 1e6, ",\"bytes\":", one.bytes,
      ",\"gb_s\":", one.bytes / seconds * 1e-9,
      ",\"tflop_s\":", one.operations / seconds * 1e-12, ",\"calls\":", count));
  return absl::OkStatus();
}

absl::Status CallOnce(Stream& stream, const OpCase& one) {
  RETURN_IF_ERROR(one.call(stream, /*turn=*/0));
  return stream.Synchronize();
}

int Run(const Options& options) {
  const Clock::Time begin = SteadyClock().Now();
  const auto spent = [&] { return SecondsBetween(begin, SteadyClock().Now()); };
  const auto fail = [](const absl::Status& status) {
    PrintLine(absl::StrCat("\"kind\":\"failed\",\"why\":",
                           Quoted(std::string(status.message()))));
    return 1;
  };
  const auto stream = Stream::Create({.device = DeviceKind::kCuda});
  if (!stream.ok()) return fail(stream.status());
  const Sizes sizes = SizesFor(options);
  absl::StatusOr<Inputs> inputs =
      Inputs::Create(**stream, sizes.halves, sizes.floats);
  if (!inputs.ok()) return fail(inputs.status());
  int failed = 0;
  if (options.only.empty() || options.only == "ceilings") {
    const absl::Status status = MeasureCeilings(
        **stream, *inputs, sizes.large_copy,
        [](const Ceiling& ceiling) {
          PrintLine(absl::StrCat(
              "\"kind\":\"ceiling\",\"name\":", Quoted(ceiling.name),
              ",\"value\":", ceiling.value,
              ",\"unit\":", Quoted(ceiling.unit)));
        },
        [&](const std::string& name, const absl::Status& why) {
          ++failed;
          fail(absl::Status(
              why.code(),
              absl::StrCat(name, ": ", std::string(why.message()))));
        });
    if (!status.ok()) return fail(status);
  }
  // The shapes that matter most come first, in case time runs out.
  int left_out = 0;
  for (const ModelShape& model : sizes.models) {
    std::vector<OpCase> cases = LayerCases(*inputs, model, sizes.cases);
    for (OpCase& one : KvCases(*inputs, model, sizes.cases)) {
      cases.push_back(std::move(one));
    }
    for (const OpCase& one : cases) {
      if (NameOf(one).find(options.only) == std::string::npos) continue;
      if (spent() > options.seconds) {
        ++left_out;
        continue;
      }
      const absl::Status status = options.once ? CallOnce(**stream, one)
                                               : Measure(**stream, one, sizes);
      if (status.ok()) continue;
      ++failed;
      fail(absl::Status(
          status.code(),
          absl::StrCat(NameOf(one), ": ", std::string(status.message()))));
      if (absl::Status s = (*stream)->queue().Check(); !s.ok()) return fail(s);
    }
  }
  PrintLine(absl::StrCat("\"kind\":\"end\",\"seconds\":", spent(),
                         ",\"left_out\":", left_out, ",\"failed\":", failed));
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tiercel

int main(int argc, char** argv) {
  tiercel::Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    const char* const value = i + 1 < argc ? argv[i + 1] : "";
    if (flag == "--quick") {
      options.quick = true;
    } else if (flag == "--once") {
      options.once = true;
    } else if (flag == "--only" && *value != '\0') {
      options.only = value;
      ++i;
    } else if (flag == "--seconds" && std::atof(value) > 0) {
      options.seconds = std::atof(value);
      ++i;
    } else {
      std::fprintf(stderr,
                   "usage: kernel_bench [--quick] [--only PART] [--once] "
                   "[--seconds N]\n");
      return 2;
    }
  }
  return tiercel::Run(options);
}
