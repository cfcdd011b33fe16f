#ifndef TIERCEL_RUNTIME_RATES_H_
#define TIERCEL_RUNTIME_RATES_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "kernels/base/stream.h"
#include "kernels/kv/kv_layout.h"
#include "kernels/layer/matmul.h"
#include "models/decoder/config.h"
#include "models/decoder/weights.h"

namespace tiercel {

// How long this machine takes for the parts that the time of a run is made of,
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
};

// What is measured: a model, or as much of one as tells its rates.
struct RatesProbe {
  const ModelConfig& config;
  const Weights& weights;  // the first `layers` layers at least
  int layers;
  int64_t rows_at_once;  // of a prompt
  Compute compute;
  KvLayout layout;
};

// Runs the model's own layers over KV that nobody computed, for two or three
// seconds: kernels, shapes and types are those that will run.
// Errors: out_of_memory; those of the ops.
absl::StatusOr<Rates> MeasureRates(const RatesProbe& probe,
                                   std::unique_ptr<Stream> stream);

// How many layers MeasureRates wants: so many that caches hold no more of them
// than they will of the whole model.
int LayersToMeasure(const ModelConfig& config, const WeightSizes& sizes);

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_RATES_H_
