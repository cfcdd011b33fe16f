#ifndef TIERCEL_RUNTIME_PLAN_RATES_H_
#define TIERCEL_RUNTIME_PLAN_RATES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "kernels/device/cpu/probe.h"
#include "kernels/device/stream.h"
#include "kernels/kv/kv_layout.h"
#include "kernels/layer/matmul.h"
#include "models/decoder/config.h"
#include "models/decoder/weights.h"

namespace tiercel {

// The times that this machine takes for the parts of a prompt and of a decode
// step, for one model and one type of KV: in seconds, for one layer unless
// said.
struct Rates {
  // A prompt: per row, and per row and position that it attends to.
  double prompt_row_s = 0;
  double prompt_position_s = 0;
  // A decode step: with nothing to attend to, and per position.
  double step_s = 0;
  double step_position_s = 0;
  // After the last layer: the logits of one row, their distribution and the
  // draw.
  double logits_s = 0;
  // If the CPU simulates the link too: bytes a second that it can copy beside
  // decode steps, and the factor by which those take longer meanwhile.
  double copy_bytes_per_s = 0;
  double copy_slowdown = 1;
  // Bytes a second at which pages on disk are read, checked and copied; 0: not
  // known.
  double disk_bytes_per_s = 0;
  double disk_bytes_per_cpu_s = 0;  // per CPU that does nothing else

  // Seconds for a decode step through `layers` layers that reads `positions`
  // positions, all on the device, up to the draw.
  double StepSeconds(int layers, int64_t positions) const {
    return layers *
               (step_s + static_cast<double>(positions) * step_position_s) +
           logits_s;
  }
};

// The model to measure, or as many of its layers as are needed for the rates.
struct RatesProbe {
  const ModelConfig& config;
  const Weights& weights;  // at least the first `layers` layers
  int layers;
  int64_t weight_bytes_per_token;  // in the whole model
  Compute compute;
  KvLayout layout;
};

struct Measurement {
  Rates rates;         // from the median of each kind of pass
  double spread = 0;   // largest spread of equal passes, of any kind
  int attempts = 1;    // this was the steadiest of so many
  double seconds = 0;  // taken by the last attempt

  bool steady() const { return spread <= kMostSpread; }
};

// `progress(done, total)` counts parts that take about equally long; false
// cancels. Called before every pass through a layer, and so at least every 100
// ms.
using RatesProgress = absl::FunctionRef<bool(uint64_t done, uint64_t total)>;

// Runs the model's own layers over KV with made-up contents for a second or
// two: kernels, shapes and types are those that a session will run. Errors:
// out_of_memory; cancelled; those of the ops.
absl::StatusOr<Measurement> MeasureRates(const RatesProbe& probe,
                                         Stream& stream,
                                         RatesProgress progress);

// Limits for repeated measurements of a machine that other work keeps busy.
struct MeasuringAgain {
  // Attempts for one model, in all processes together; after so many the
  // disturbance by other work is known.
  static constexpr int kMostAttempts = 3;
  static constexpr double kUsualSeconds = 6;

  int attempts = kMostAttempts;    // at most
  double seconds = kUsualSeconds;  // for all but the first one
  // The expected time of the first one, which then counts in `seconds`; 0: the
  // first is made in any case, and does not count.
  double first_s = 0;
};

// Calls `measure` until a measurement is steady, or `again` leaves no time for
// another like the last. Returns the steadiest; absent if none was made.
// Errors: `measure`'s.
absl::StatusOr<std::optional<Measurement>> SteadiestOf(
    const MeasuringAgain& again,
    absl::FunctionRef<absl::StatusOr<Measurement>(int attempt)> measure);

// The number of layers that MeasureRates needs: so many that caches hold no
// larger part of them than of the whole model.
int LayersToMeasure(const ModelConfig& config, const WeightSizes& sizes);

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_PLAN_RATES_H_
