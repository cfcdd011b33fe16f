#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "bench/kernels/op_cases.h"
#include "kernels/attention/attention.h"
#include "kernels/kv/chunk_means.h"
#include "kernels/kv/key_norms.h"
#include "kernels/kv/kv_convert.h"
#include "kernels/kv/kv_write.h"
#include "kernels/select/chunk_scores.h"
#include "kernels/select/coverage.h"
#include "kernels/select/importance.h"
#include "kernels/select/key_scores.h"
#include "kernels/select/mean_scores.h"
#include "kernels/select/selector.h"
#include "kernels/select/top_k.h"

namespace tiercel {
namespace {

constexpr double kFloat = sizeof(float);
constexpr double kHalf = sizeof(uint16_t);
constexpr int kChunk = 32;

// The cases of one model's KV in one type.
class KvBench {
 public:
  KvBench(Inputs& inputs, const ModelShape& model, DType type)
      : inputs_(inputs),
        m_(model),
        layout_{type, type, model.kv_heads, model.head_dim} {}

  // `fast`: by the matrix unit, where that fits.
  OpCase Attend(int64_t rows, int64_t positions, bool fast = false) const {
    OpCase one = Case(fast ? "attention_fast" : "attention", rows, positions);
    const auto p = static_cast<double>(positions);
    const auto r = static_cast<double>(rows);
    const auto width = static_cast<double>(m_.QueryWidth());
    one.bytes = p * 2 * RowOfHeads() + 2 * kFloat * r * width;
    // A row sees the positions before it and its own.
    one.operations = 4 * width * r * (p - (r - 1) / 2);
    one.call = [*this, rows, positions, fast](Stream& stream, int64_t turn) {
      const std::vector<DevicePtr<std::byte>> pages = PagesOf(positions, turn);
      return Attention(stream,
                       {.q = inputs_.Floats(rows * m_.QueryWidth(), turn),
                        .q_stride = m_.QueryWidth(),
                        .rows = rows,
                        .heads = m_.heads,
                        .scale = Scale(),
                        .layout = layout_,
                        .pages = pages.data(),
                        .first_page = 0,
                        .num_pages = std::ssize(pages),
                        .begin = 0,
                        .position = positions - rows,
                        .out = inputs_.Out(),
                        .fast = fast});
    };
    return one;
  }

  OpCase ScoreKeys(int64_t rows, int64_t positions) const {
    OpCase one = Case("key_scores", rows, positions);
    one.bytes = Positions(positions) * (RowOfHeads() + kFloat * Heads(rows));
    one.operations = 2 * Positions(positions) * Heads(rows) *
                     static_cast<double>(m_.head_dim);
    one.call = [*this, rows, positions](Stream& stream, int64_t turn) {
      const std::vector<DevicePtr<std::byte>> pages = PagesOf(positions, turn);
      return KeyScores(stream,
                       {.q = inputs_.Floats(rows * m_.QueryWidth(), turn),
                        .q_stride = m_.QueryWidth(),
                        .rows = rows,
                        .heads = m_.heads,
                        .scale = Scale(),
                        .layout = layout_,
                        .pages = pages.data(),
                        .first_page = 0,
                        .num_pages = std::ssize(pages),
                        .position = positions - rows,
                        .first = 0,
                        .last = positions,
                        .out = inputs_.Out(),
                        .out_stride = positions});
    };
    return one;
  }

  OpCase NormKeys(int64_t positions) const {
    OpCase one = Case("key_norms", 0, positions);
    one.bytes = Positions(positions) *
                (RowOfHeads() + kHalf * static_cast<double>(m_.kv_heads));
    one.call = [*this, positions](Stream& stream, int64_t turn) {
      const std::vector<DevicePtr<std::byte>> pages = PagesOf(positions, turn);
      return KeyNorms(stream, {.layout = layout_,
                               .pages = pages.data(),
                               .first_page = 0,
                               .num_pages = std::ssize(pages),
                               .first = 0,
                               .last = positions,
                               .out = inputs_.Out().As<uint16_t>(),
                               .out_stride = positions});
    };
    return one;
  }

  OpCase MeanChunks(int64_t positions) const {
    OpCase one = Case("chunk_means", 0, positions);
    const int64_t chunks = positions / kChunk;
    one.bytes = Positions(positions) * RowOfHeads() +
                kHalf * static_cast<double>(chunks * m_.KvWidth());
    one.call = [*this, positions, chunks](Stream& stream, int64_t turn) {
      const std::vector<DevicePtr<std::byte>> pages = PagesOf(positions, turn);
      return ChunkMeans(stream, {.layout = layout_,
                                 .pages = pages.data(),
                                 .first_page = 0,
                                 .num_pages = std::ssize(pages),
                                 .begin = 0,
                                 .chunk = kChunk,
                                 .first_chunk = 0,
                                 .num_chunks = chunks,
                                 .out = inputs_.Out().As<uint16_t>(),
                                 .out_stride = chunks * m_.head_dim,
                                 .norms = nullptr,
                                 .norms_stride = 0});
    };
    return one;
  }

  OpCase WriteRows(int64_t rows) const {
    OpCase one = Case("kv_write", rows, 0);
    one.bytes =
        static_cast<double>(rows) *
        (2 * RowOfHeads() + 2 * kFloat * static_cast<double>(m_.KvWidth()) +
         2 * kFloat * static_cast<double>(m_.QueryWidth()));
    one.call = [*this, rows](Stream& stream, int64_t turn) {
      const std::vector<DevicePtr<std::byte>> pages = PagesOf(rows, turn);
      const int half = m_.head_dim / 2;
      return KvWrite(stream,
                     {.k = inputs_.Floats(rows * m_.KvWidth(), 2 * turn),
                      .v = inputs_.Floats(rows * m_.KvWidth(), 2 * turn + 1),
                      .k_stride = m_.KvWidth(),
                      .v_stride = m_.KvWidth(),
                      .rows = rows,
                      .layout = layout_,
                      .pages = pages.data(),
                      .first_page = 0,
                      .num_pages = std::ssize(pages),
                      .position = 0,
                      .rotation = {.half = half,
                                   .cos = inputs_.Floats(rows * half, 0),
                                   .sin = inputs_.Floats(rows * half, 1),
                                   .q = inputs_.Out(),
                                   .q_stride = m_.QueryWidth(),
                                   .heads = m_.heads}});
    };
    return one;
  }

  // Converts rows of pages to q8_0, as views keep them.
  OpCase Convert(int64_t positions) const {
    OpCase one = Case("kv_convert", positions, 0);
    const int64_t rows = positions * m_.kv_heads;
    one.bytes = static_cast<double>(
        rows * (layout_.KRowBytes() + RowBytes(DType::kQ8_0, m_.head_dim)));
    one.call = [*this, rows](Stream& stream, int64_t turn) {
      const auto from =
          inputs_.Halves(rows * m_.head_dim, turn).As<const std::byte>();
      const KvConvertParams::Run run = {from, inputs_.Out().As<std::byte>(),
                                        rows};
      return KvConvert(stream,
                       {layout_.type_k, DType::kQ8_0, m_.head_dim, &run, 1});
    };
    return one;
  }

  OpCase ScoreChunks(int64_t positions, bool means) const {
    OpCase one = Case(means ? "mean_scores" : "chunk_scores", 1, positions);
    one.type = "f16";
    const int64_t chunks = positions / kChunk;
    const auto c = static_cast<double>(chunks);
    one.bytes = c * (kHalf * static_cast<double>(m_.KvWidth()) +
                     kFloat * (means ? Heads(1) : m_.kv_heads));
    one.operations = 2 * c * static_cast<double>(m_.QueryWidth());
    one.call = [*this, chunks, means](Stream& stream, int64_t turn) {
      const DevicePtr<const float> q = inputs_.Floats(m_.QueryWidth(), turn);
      const DevicePtr<const uint16_t> digests =
          inputs_.Halves(chunks * m_.KvWidth(), turn);
      const int64_t stride = chunks * m_.head_dim;
      if (means) {
        return MeanScores(
            stream, {q, m_.heads, m_.kv_heads, m_.head_dim, Scale(), digests,
                     stride, chunks, inputs_.Out(), (chunks + 15) / 16 * 16});
      }
      return ChunkScores(
          stream, {q, m_.heads, m_.kv_heads, m_.head_dim, Scale(), digests,
                   stride, chunks, inputs_.Out()});
    };
    return one;
  }

  OpCase AddUp(int64_t rows, int64_t positions) const {
    OpCase one = Case("importance", rows, positions);
    one.type = "f32";
    // At least scores are read once, and importance is read and written.
    one.bytes = kFloat * Positions(positions) *
                (Heads(rows) + 2 * static_cast<double>(m_.kv_heads));
    one.call = [*this, rows, positions](Stream& stream, int64_t turn) {
      const DevicePtr<float> importance = inputs_.Out();
      return AddImportance(
          stream, {inputs_.Floats(rows * m_.heads * positions, turn), positions,
                   rows, m_.heads, m_.kv_heads, positions, /*decay=*/0.5f,
                   importance, importance, positions});
    };
    return one;
  }

  OpCase Choose(int64_t positions) const {
    OpCase one = Case("selector", 0, positions);
    one.type = "f32";
    one.bytes = Positions(positions) * (kFloat + kHalf) *
                static_cast<double>(m_.kv_heads);
    one.call = [*this, positions](Stream& stream, int64_t turn) {
      return Select(
          stream, {.importance = inputs_.Floats(m_.kv_heads * positions, turn),
                   .importance_stride = positions,
                   .norms = inputs_.Halves(m_.kv_heads * positions, turn),
                   .norms_stride = positions,
                   .kv_heads = m_.kv_heads,
                   .candidates = positions,
                   .budget = 1024,
                   .most_prior = 0.25f,
                   .reach = 16,
                   .suppression = 1.0f,
                   .exclusivity = 0.85f,
                   .out = inputs_.Out().As<int32_t>()});
    };
    return one;
  }

  OpCase Greatest(int64_t positions) const {
    OpCase one = Case("top_k", m_.kv_heads, positions);
    one.type = "f32";
    const int64_t chunks = positions / kChunk;
    one.bytes = kFloat * static_cast<double>(chunks * m_.kv_heads);
    one.call = [*this, chunks](Stream& stream, int64_t turn) {
      return TopK(stream, {inputs_.Floats(m_.kv_heads * chunks, turn), chunks,
                           m_.kv_heads, chunks, /*always=*/1,
                           std::min<int64_t>(128, chunks),
                           inputs_.Out().As<int32_t>()});
    };
    return one;
  }

  OpCase Cover(int64_t positions) const {
    OpCase one = Case("coverage", 1, positions);
    one.type = "f32";
    one.bytes = kFloat * Positions(positions) * 2 * Heads(1);
    one.call = [*this, positions](Stream& stream, int64_t) {
      constexpr int64_t kKept = 1024;
      std::vector<int32_t> kept;
      for (int64_t i = 0; i < kKept; ++i) {
        kept.push_back(static_cast<int32_t>(i * (positions / 2) / kKept));
      }
      const std::vector<const int32_t*> of_heads(
          static_cast<size_t>(m_.kv_heads), kept.data());
      return Coverage(stream, {inputs_.Out(), positions, m_.heads, m_.kv_heads,
                               positions, of_heads.data(), kKept, positions / 2,
                               inputs_.Out() + m_.heads * positions});
    };
    return one;
  }

 private:
  OpCase Case(const char* op, int64_t rows, int64_t positions) const {
    return {.op = op,
            .model = m_.name,
            .type = std::string(InfoOf(layout_.type_k).name),
            .rows = rows,
            .positions = positions};
  }
  static double Positions(int64_t positions) {
    return static_cast<double>(positions);
  }
  double Heads(int64_t rows) const {
    return static_cast<double>(rows * m_.heads);
  }
  // The bytes of one position's keys, or values.
  double RowOfHeads() const {
    return static_cast<double>(m_.kv_heads * layout_.KRowBytes());
  }
  float Scale() const {
    return 1.0f / std::sqrt(static_cast<float>(m_.head_dim));
  }
  std::vector<DevicePtr<std::byte>> PagesOf(int64_t positions,
                                            int64_t turn) const {
    return inputs_.Pages(layout_, (positions - 1) / kPageTokens + 1, turn);
  }

  Inputs& inputs_;
  const ModelShape m_;
  const KvLayout layout_;
};

}  // namespace

std::vector<OpCase> KvCases(Inputs& inputs, const ModelShape& model,
                            const CaseSizes& sizes) {
  std::vector<OpCase> cases;
  for (const DType type : {DType::kF16, DType::kQ8_0}) {
    const KvBench kv(inputs, model, type);
    for (const int64_t positions : sizes.positions) {
      for (const int64_t rows : sizes.rows) {
        cases.push_back(kv.Attend(rows, positions));
        if (rows > 1) {
          cases.push_back(kv.Attend(rows, positions, /*fast=*/true));
        }
      }
      cases.push_back(kv.ScoreKeys(1, positions));
      cases.push_back(kv.NormKeys(positions));
      cases.push_back(kv.MeanChunks(positions));
    }
    for (const int64_t rows : sizes.rows) cases.push_back(kv.WriteRows(rows));
  }
  const KvBench kv(inputs, model, DType::kF16);
  for (const int64_t rows : sizes.rows) cases.push_back(kv.Convert(rows));
  for (const int64_t positions : sizes.positions) {
    cases.push_back(kv.ScoreChunks(positions, /*means=*/false));
    cases.push_back(kv.ScoreChunks(positions, /*means=*/true));
    cases.push_back(kv.AddUp(1, positions));
    cases.push_back(kv.Choose(positions));
    cases.push_back(kv.Greatest(positions));
    cases.push_back(kv.Cover(positions));
  }
  return cases;
}

}  // namespace tiercel
