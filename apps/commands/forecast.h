#ifndef TIERCEL_APPS_COMMANDS_FORECAST_H_
#define TIERCEL_APPS_COMMANDS_FORECAST_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "apps/cli/options.h"
#include "apps/commands/api.h"

namespace tiercel::cli {

// What prompts and answers are expected to take of the machine, as plans have
// it.
class Forecast {
 public:
  Forecast(const Options& options, const Model& model)
      : options_(options), model_(model) {}

  // What prompts and their answers take, in seconds.
  struct Times {
    double read_s = 0;   // of the prompts
    double write_s = 0;  // of the answers' tokens
    double answer = 0;   // how many those are

    double Seconds() const { return read_s + write_s; }
    void Add(const Times& other) {
      read_s += other.read_s;
      write_s += other.write_s;
      answer += other.answer;
    }
  };
  // What one prompt and its answer take, both in tokens; absent where this
  // machine's rates are not known.
  std::optional<Times> Of(size_t prompt, size_t answer);

 private:
  struct Rates {
    double full_s;  // to read a prompt of so many tokens
    double step_s;  // from a token to the next behind it
  };

  const std::optional<Rates>& At(size_t length);

  const Options& options_;
  const Model& model_;
  std::map<int64_t, std::optional<Rates>> rates_;  // by context
};

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_COMMANDS_FORECAST_H_
