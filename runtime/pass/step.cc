#include "runtime/pass/step.h"

#include <utility>
#include <vector>

#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {
namespace {

// The layers of a step, one after the other.
class StepLayers {
 public:
  StepLayers(const Step& step, Decoder& decoder, Stream& stream,
             LayeredKv::Cancelled cancelled)
      : step_(step),
        decoder_(decoder),
        stream_(stream),
        cancelled_(cancelled),
        pages_(step.sequences.size()) {
    int64_t row = 0;
    for (size_t i = 0; i < pages_.size(); ++i) {
      parts_.push_back({nullptr, step.sequences[i].rows, 0, row});
      row += step.sequences[i].rows;
    }
  }

  absl::Status Run(int layer) {
    EachOf([&](SequenceStep& sequence, size_t i) -> absl::Status {
      if (sequence.before_layer) {
        RETURN_IF_ERROR(sequence.before_layer(layer));
      }
      ASSIGN_OR_RETURN(pages_[i], sequence.kv.BeginLayer(layer, cancelled_));
      parts_[i].kv = &pages_[i];
      return absl::OkStatus();
    });
    if (layer == 0) {
      RETURN_IF_ERROR(Embed());
    }
    const auto compute = [&] {
      return decoder_.Layer(stream_, layer, parts_, step_.hidden);
    };
    RETURN_IF_ERROR(step_.weights.With(layer, cancelled_, compute));
    const int64_t width = decoder_.query_width();
    EachOf([&](SequenceStep& sequence, size_t i) -> absl::Status {
      if (sequence.seen_by != nullptr) {
        RETURN_IF_ERROR(sequence.seen_by->KeepQueries(
            stream_, layer, /*first_row=*/0, sequence.rows,
            decoder_.queries() + parts_[i].first_angle * width));
        RETURN_IF_ERROR(
            sequence.seen_by->AfterLayer(stream_, layer, pages_[i]));
      }
      sequence.kv.EndLayer(layer);
      return absl::OkStatus();
    });
    return absl::OkStatus();
  }

 private:
  // Calls `part` for each sequence without an error, and keeps its errors.
  template <typename Part>
  void EachOf(Part part) {
    for (size_t i = 0; i < pages_.size(); ++i) {
      SequenceStep& sequence = step_.sequences[i];
      if (!sequence.status.ok()) continue;
      sequence.status = part(sequence, i);
      if (!sequence.status.ok()) parts_[i].kv = nullptr;
    }
  }

  absl::Status Embed() {
    std::vector<int32_t> ids;
    for (const SequenceStep& sequence : step_.sequences) {
      ids.insert(ids.end(), sequence.ids, sequence.ids + sequence.rows);
    }
    return decoder_.Embed(stream_, ids.data(), std::ssize(ids), step_.hidden);
  }

  const Step& step_;
  Decoder& decoder_;
  Stream& stream_;
  const LayeredKv::Cancelled cancelled_;
  std::vector<KvPages> pages_;             // [sequence], of the layer
  std::vector<Decoder::LayerRows> parts_;  // [sequence]
};

}  // namespace

absl::Status RunStep(const Step& step, Decoder& decoder, Stream& stream,
                     LayeredKv::Cancelled cancelled) {
  StepLayers layers(step, decoder, stream, cancelled);
  for (int layer = 0; layer < step.layers; ++layer) {
    if (cancelled()) return CancelledError();
    RETURN_IF_ERROR(layers.Run(layer));
  }
  return absl::OkStatus();
}

}  // namespace tiercel
