#include "models/decoder/weights.h"

namespace tiercel {

int64_t Weights::bytes() const {
  const int64_t looked_up = &output() == &embedding ? 0 : embedding.bytes();
  int64_t unused = 0;  // experts that a token does not choose
  for (const LayerWeights& layer : layers) {
    unused += layer.experts.bytes() - layer.experts.bytes_per_token(experts);
  }
  return bytes_per_token() + unused + looked_up - tied_output.bytes();
}

int64_t Weights::bytes_per_token() const {
  int64_t bytes = output().bytes();
  for (const LayerWeights& layer : layers) {
    for (const PackedMatrix* matrix : {&layer.q, &layer.k, &layer.v, &layer.o,
                                       &layer.gate, &layer.up, &layer.down}) {
      bytes += matrix->bytes();
    }
    bytes += layer.experts.bytes_per_token(experts);
  }
  return bytes;
}

double WeightSizes::MoreOfRows(const ExpertsConfig& experts,
                               int64_t rows) const {
  if (expert_bytes == 0) return 1;
  const double more = DistinctExperts(experts, rows) / experts.used - 1;
  return 1 + more * static_cast<double>(expert_bytes) /
                 static_cast<double>(bytes_per_token);
}

}  // namespace tiercel
