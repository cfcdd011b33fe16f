#ifndef TIERCEL_APPS_COMMANDS_FORECAST_H_
#define TIERCEL_APPS_COMMANDS_FORECAST_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "apps/cli/options.h"
#include "apps/commands/model.h"

namespace tiercel::cli {

// Predicts the time of prompts and answers on this machine, by plans.
class Forecast {
 public:
  Forecast(const Options& options, const Model& model)
      : options_(options), model_(model) {}

  // The seconds that prompts and their answers take.
  struct Times {
    double read_s = 0;   // to read the prompts
    double write_s = 0;  // to write the answers
    double gaps_s = 0;   // from token to token of each answer, summed
    double answer = 0;   // tokens of the answers

    double Seconds() const { return read_s + write_s; }
    void Add(const Times& other) {
      read_s += other.read_s;
      write_s += other.write_s;
      gaps_s += other.gaps_s;
      answer += other.answer;
    }
  };
  struct Prompt {
    size_t tokens = 0;
    size_t found = 0;  // the first ones, whose KV need not be computed
  };
  // The times of one prompt and its answer of so many tokens; absent if this
  // machine's rates are not known.
  std::optional<Times> Of(const Prompt& prompt, size_t answer);
  // The times of prompts that are read one after the other, and answered
  // `at_once` at a time.
  std::optional<Times> OfAll(const std::vector<Prompt>& prompts, size_t answer,
                             size_t at_once);

 private:
  struct Rates {
    double context;  // tokens
    double full_s;   // seconds to read a prompt that fills the context
    double step_s;   // seconds from token to token behind it
  };

  const std::optional<Rates>& At(size_t length);
  // The seconds in which the last token of a prompt of `length` is read.
  std::optional<double> LastTokenSeconds(size_t length);

  const Options& options_;
  const Model& model_;
  std::map<int64_t, std::optional<Rates>> rates_;  // by context
};

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_COMMANDS_FORECAST_H_
