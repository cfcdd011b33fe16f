#include "runtime/pass/step.h"

#include <algorithm>
#include <utility>

#include "kernels/device/copies.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {
namespace {

// Rows of one sequence that go through the same layers.
struct StepPart {
  size_t sequence;
  PositionRange rows;  // counted from the sequence's first
  int layers;          // the first layers, that they go through
};

// The parts of all sequences in the order of the step's rows: the deepest
// first, so that those that a layer passes are the first rows.
std::vector<StepPart> PartsOf(absl::Span<const SequenceStep> sequences) {
  std::vector<StepPart> parts;
  for (size_t i = 0; i < sequences.size(); ++i) {
    const SequenceStep& own = sequences[i];
    if (own.shallow_layers >= own.layers) {
      parts.push_back({i, {0, own.rows}, own.layers});
      continue;
    }
    int64_t row = 0;
    for (const PositionRange& deep : own.deep) {
      parts.push_back({i, {row, deep.begin}, own.shallow_layers});
      parts.push_back({i, deep, own.layers});
      row = deep.end;
    }
    parts.push_back({i, {row, own.rows}, own.shallow_layers});
  }
  std::erase_if(parts, [](const StepPart& part) {
    return part.rows.begin == part.rows.end;
  });
  std::stable_sort(
      parts.begin(), parts.end(),
      [](const auto& a, const auto& b) { return a.layers > b.layers; });
  return parts;
}

// The KV of one sequence in a layer, and the one that gets its rows too.
class LayerKv {
 public:
  absl::Status Begin(SequenceStep& sequence, int layer,
                     LayeredKv::Cancelled cancelled) {
    if (sequence.copied_to != nullptr) {
      ASSIGN_OR_RETURN(copies_,
                       sequence.copied_to->BeginLayer(layer, cancelled));
    }
    if (sequence.before_layer) RETURN_IF_ERROR(sequence.before_layer(layer));
    ASSIGN_OR_RETURN(pages_, sequence.kv.BeginLayer(layer, cancelled));
    return absl::OkStatus();
  }
  const KvPages& pages() const { return pages_; }

  absl::Status End(SequenceStep& sequence, int layer, Stream& stream) {
    if (sequence.copied_to != nullptr) {
      for (int64_t row = 0; row < sequence.rows; ++row) {
        RETURN_IF_ERROR(CopyRow(row, stream));
      }
    }
    sequence.kv.EndLayer(layer);
    if (sequence.copied_to != nullptr) sequence.copied_to->EndLayer(layer);
    return absl::OkStatus();
  }

 private:
  // The page of a row, and its slot there.
  static std::pair<DevicePtr<std::byte>, int> PlaceOf(const KvPages& kv,
                                                      int64_t row) {
    const int64_t position = kv.end + row;
    return {kv.pages[position / kPageTokens - kv.first_page],
            static_cast<int>(position % kPageTokens)};
  }

  absl::Status CopyRow(int64_t row, Stream& stream) {
    const auto [from, read] = PlaceOf(pages_, row);
    const auto [to, written] = PlaceOf(copies_, row);
    const KvLayout& layout = copies_.layout;
    const auto copy_heads = [&](int64_t first, int64_t next, int64_t target,
                                int64_t row_bytes) {
      return stream.CopyColumns({.from = from + first,
                                 .from_stride = next - first,
                                 .to = to + target,
                                 .to_stride = next - first,
                                 .rows = layout.kv_heads,
                                 .bytes = row_bytes});
    };
    RETURN_IF_ERROR(copy_heads(layout.KOffset(0, read), layout.KOffset(1, read),
                               layout.KOffset(0, written), layout.KRowBytes()));
    return copy_heads(layout.VOffset(0, read), layout.VOffset(1, read),
                      layout.VOffset(0, written), layout.VRowBytes());
  }

  KvPages pages_ = {};   // the pages of the layer that has begun
  KvPages copies_ = {};  // ... and of the other KV
};

// The layers of a step, one after the other.
class StepLayers {
 public:
  StepLayers(const Step& step, Decoder& decoder, Stream& stream,
             LayeredKv::Cancelled cancelled)
      : step_(step),
        decoder_(decoder),
        stream_(stream),
        cancelled_(cancelled),
        parts_(PartsOf(step.sequences)),
        kv_(step.sequences.size()) {}

  absl::Status Run() {
    RETURN_IF_ERROR(Begin());
    int layers = 0;
    for (const SequenceStep& own : step_.sequences) {
      layers = std::max(layers, own.layers);
    }
    for (int layer = 0; layer < layers; ++layer) {
      RETURN_IF_ERROR(RunLayer(layer));
    }
    return absl::OkStatus();
  }

 private:
  // Gives every row its place.
  absl::Status Begin() {
    std::vector<Decoder::StepRows> ranges;
    int64_t row = 0;
    for (const StepPart& part : parts_) {
      SequenceStep& own = step_.sequences[part.sequence];
      const int64_t count = part.rows.end - part.rows.begin;
      ranges.push_back(
          {{own.position + part.rows.begin, own.position + part.rows.end},
           own.rope_length});
      if (part.rows.end == own.rows) own.last_row = row + count - 1;
      rows_.push_back({nullptr, count, part.rows.begin, row});
      row += count;
    }
    return decoder_.BeginStep(stream_, ranges, /*of_prompt=*/false);
  }

  absl::Status RunLayer(int layer) {
    EachOf(layer, [&](SequenceStep& own, size_t i) {
      return kv_[i].Begin(own, layer, cancelled_);
    });
    RETURN_IF_ERROR(Agree());
    size_t count = 0;  // parts that the layer passes
    for (; count < parts_.size() && parts_[count].layers > layer; ++count) {
      const size_t i = parts_[count].sequence;
      const bool attends = step_.sequences[i].status.ok();
      rows_[count].kv = attends ? &kv_[i].pages() : nullptr;
    }
    if (layer == 0) RETURN_IF_ERROR(Embed());
    const auto compute = [&]() -> absl::Status {
      if (count == 0) return absl::OkStatus();
      return decoder_.Layer(stream_, layer, absl::MakeSpan(rows_).first(count),
                            step_.hidden);
    };
    RETURN_IF_ERROR(step_.weights.With(layer, cancelled_, compute));
    return EndLayer(layer);
  }

  absl::Status EndLayer(int layer) {
    absl::Status first;  // the first error
    EachOf(layer, [&](SequenceStep& own, size_t i) {
      const absl::Status ended = EndLayerOf(own, i, layer);
      first.Update(ended);
      return ended;
    });
    // Another rank may wait for this one in a gather of the observer's.
    return step_.rank != nullptr ? first : absl::OkStatus();
  }

  absl::Status EndLayerOf(SequenceStep& own, size_t i, int layer) {
    if (own.seen_by != nullptr) {
      const int64_t first = own.last_row + 1 - own.rows;
      RETURN_IF_ERROR(own.seen_by->KeepQueries(
          stream_, layer, /*first_row=*/0, own.rows,
          decoder_.queries() + first * decoder_.query_width()));
      RETURN_IF_ERROR(own.seen_by->AfterLayer(stream_, layer, kv_[i].pages()));
    }
    return kv_[i].End(own, layer, stream_);
  }

  // Calls `part` for each sequence without an error that goes through the
  // layer, and keeps its errors.
  template <typename Part>
  void EachOf(int layer, Part part) {
    for (size_t i = 0; i < kv_.size(); ++i) {
      SequenceStep& own = step_.sequences[i];
      if (own.status.ok() && layer < own.layers) own.status = part(own, i);
    }
  }

  // Gives every rank the same errors of the sequences, and its answer.
  absl::Status Agree() {
    const PassRank* const rank = step_.rank;
    const bool asks = rank == nullptr || rank->rank == 0;
    const absl::Status mine =
        asks && cancelled_() ? CancelledError() : absl::OkStatus();
    if (rank == nullptr) return mine;
    std::vector<absl::Status> errors;
    for (const SequenceStep& own : step_.sequences) {
      errors.push_back(own.status);
    }
    RETURN_IF_ERROR(
        rank->group.MeetOver(rank->rank, absl::MakeSpan(errors), mine));
    for (size_t i = 0; i < errors.size(); ++i) {
      step_.sequences[i].status = std::move(errors[i]);
    }
    return absl::OkStatus();
  }

  absl::Status Embed() {
    std::vector<int32_t> ids;
    for (const StepPart& part : parts_) {
      const int32_t* const own = step_.sequences[part.sequence].ids;
      ids.insert(ids.end(), own + part.rows.begin, own + part.rows.end);
    }
    return decoder_.Embed(stream_, ids.data(), std::ssize(ids), step_.hidden);
  }

  const Step& step_;
  Decoder& decoder_;
  Stream& stream_;
  const LayeredKv::Cancelled cancelled_;
  const std::vector<StepPart> parts_;
  std::vector<LayerKv> kv_;               // [sequence]
  std::vector<Decoder::LayerRows> rows_;  // [part]
};

}  // namespace

absl::Status RunStep(const Step& step, Decoder& decoder, Stream& stream,
                     LayeredKv::Cancelled cancelled) {
  return StepLayers(step, decoder, stream, cancelled).Run();
}

}  // namespace tiercel
