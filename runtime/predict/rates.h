#ifndef TIERCEL_RUNTIME_PREDICT_RATES_H_
#define TIERCEL_RUNTIME_PREDICT_RATES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "kernels/kv/kv_layout.h"
#include "kernels/layer/matmul.h"
#include "kernels/machine/probe.h"
#include "kernels/machine/stream.h"
#include "models/decoder/config.h"
#include "models/decoder/weights.h"

namespace tiercel {

// How long this machine takes for the parts of a prompt and of a decode step,
// for one model and one type of KV. Seconds; of one layer unless said.
struct Rates {
  // A prompt: per row, and per row and position that it attends to.
  double prompt_row_s = 0;
  double prompt_position_s = 0;
  // A decode step: with nothing to attend to, and per position.
  double step_s = 0;
  double step_position_s = 0;
  // After the last layer: logits, law and draw of one row.
  double logits_s = 0;
  // Where the CPU plays the link too: bytes a second that it can copy beside
  // decode steps, and how many times longer those take meanwhile.
  double copy_bytes_per_s = 0;
  double copy_slowdown = 1;
  // Bytes a second that pages on disk are read with, checked and copied; 0: not
  // known.
  double disk_bytes_per_s = 0;
  double disk_bytes_per_cpu_s = 0;  // of one that does nothing else

  // A decode step through so many layers that reads so many positions, none of
  // which has to come up, to the draw.
  double StepSeconds(int layers, int64_t positions) const {
    return layers *
               (step_s + static_cast<double>(positions) * step_position_s) +
           logits_s;
  }
};

// What is measured: a model, or as much of one as tells its rates.
struct RatesProbe {
  const ModelConfig& config;
  const Weights& weights;  // the first `layers` layers at least
  int layers;
  int64_t weight_bytes_per_token;  // of the whole model
  Compute compute;
  KvLayout layout;
};

struct Measurement {
  Rates rates;         // of each kind of pass the middle one
  double spread = 0;   // of passes of one kind: of the kind where it is most
  int attempts = 1;    // of which this was the steadiest
  double seconds = 0;  // that the last of them took

  bool steady() const { return spread <= kMostSpread; }
};

// `progress(done, total)` in parts that take equally long, about; false
// cancels. Called before every pass through a layer, and so every 100 ms or
// more often.
using RatesProgress = absl::FunctionRef<bool(uint64_t done, uint64_t total)>;

// Runs the model's own layers over KV that nobody computed, for a second or
// two: kernels, shapes and types are those that will run.
// Errors: out_of_memory; cancelled; those of the ops.
absl::StatusOr<Measurement> MeasureRates(const RatesProbe& probe,
                                         Stream& stream,
                                         RatesProgress progress);

// How often a machine is measured that other work keeps busy, and how long.
struct MeasuringAgain {
  // Attempts for one model, in all processes: how far other work disturbs it is
  // known then.
  static constexpr int kMostAttempts = 3;
  static constexpr double kUsualSeconds = 6;

  int attempts = kMostAttempts;    // at most
  double seconds = kUsualSeconds;  // of all but the first one
  // How long the first one is expected to take, of those seconds; 0: it is made
  // in any case.
  double first_s = 0;
};

// Calls `measure` until a measurement is steady, or no other like the last one
// is left by `again`: that one, or the one with the least spread; absent where
// none was made. Errors: `measure`'s.
absl::StatusOr<std::optional<Measurement>> SteadiestOf(
    const MeasuringAgain& again,
    absl::FunctionRef<absl::StatusOr<Measurement>(int attempt)> measure);

// How many layers MeasureRates wants: so many that caches hold no more of them
// than they will of the whole model.
int LayersToMeasure(const ModelConfig& config, const WeightSizes& sizes);

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_PREDICT_RATES_H_
