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

  // Seconds to read a prompt and write an answer; absent where this machine's
  // rates are not known.
  std::optional<double> Seconds(size_t prompt, size_t answer);

 private:
  struct Times {
    double full_s;  // to read a prompt of so many tokens
    double step_s;  // from a token to the next behind it
  };

  const std::optional<Times>& At(size_t length);

  const Options& options_;
  const Model& model_;
  std::map<int64_t, std::optional<Times>> times_;  // by context
};

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_COMMANDS_FORECAST_H_
