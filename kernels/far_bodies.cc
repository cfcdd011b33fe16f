#include "kernels/device/far_bodies.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "kernels/attention/chunk_scores_body.h"
#include "kernels/attention/coverage.h"
#include "kernels/attention/coverage_body.h"
#include "kernels/attention/importance.h"
#include "kernels/attention/importance_body.h"
#include "kernels/attention/key_scores.h"
#include "kernels/attention/key_scores_body.h"
#include "kernels/attention/mean_scores_body.h"
#include "kernels/attention/selector.h"
#include "kernels/attention/selector_body.h"
#include "kernels/attention/top_k.h"
#include "kernels/attention/top_k_body.h"
#include "kernels/device/hosted_stream.h"
#include "kernels/kv/chunk_means.h"
#include "kernels/kv/chunk_means_body.h"
#include "kernels/kv/key_norms.h"
#include "kernels/kv/key_norms_body.h"
#include "kernels/kv/kv_convert.h"
#include "kernels/kv/kv_convert_body.h"
#include "kernels/kv/kv_row.h"
#include "kernels/kv/kv_write_body.h"
#include "kernels/layer/embed.h"
#include "kernels/layer/embed_body.h"
#include "kernels/layer/matmul.h"
#include "kernels/layer/matmul_body.h"
#include "kernels/layer/rms_norm.h"
#include "kernels/layer/rms_norm_body.h"
#include "kernels/layer/rope.h"
#include "kernels/layer/rope_body.h"
#include "kernels/layer/swiglu_body.h"
#include "kernels/machine/copy_words_body.h"

// The bodies of the CPU that replace each kernel but attention's on the far
// device. They work in the device's memory, and nearly all are the op's
// reference.

namespace tiercel {
namespace {

// Touches all that a product reads and writes, but for the weights, so that
// TSan sees it. The product itself is compiled without TSan, as it would take
// hours; the weights are unpacked with TSan.
void ShowTSan([[maybe_unused]] const MatmulParams& p,
              [[maybe_unused]] const MatmulOutput& output) {
#if defined(__SANITIZE_THREAD__)
  volatile float seen = 0;
  for (int64_t row = 0; row < p.rows; ++row) {
    const float* const x = p.x + row * p.x_stride;
    for (int64_t i = 0; i < output.weights->cols(); ++i) seen = x[i];
    volatile float* const out = output.out + row * output.out_stride;
    for (int64_t n = 0; n < output.weights->rows(); ++n) {
      if (output.bias != nullptr) seen = output.bias[n];
      seen = out[n];
      out[n] = seen;
    }
  }
#endif
}

// Computes all outputs of one product by weights in the order kFragments.
void Multiply(const MatmulTargets& targets, Compute compute, const float* x,
              int64_t x_stride, int64_t rows) {
  for (int i = 0; i < targets.count; ++i) {
    const MatmulTarget& target = targets.of[i];
    const PackedMatrix weights = PackedMatrix::At(
        reinterpret_cast<const std::byte*>(target.panels), target.type,
        target.n, target.k, PanelOrder::kFragments);
    const MatmulOutput output = {
        &weights, target.bias, target.out, target.out_stride,
        target.add ? StoreMode::kAdd : StoreMode::kAssign};
    const MatmulParams p = {.x = x,
                            .x_stride = x_stride,
                            .rows = rows,
                            .compute = compute,
                            .num_outputs = 1,
                            .outputs = {output}};
    ShowTSan(p, output);
    MatmulReference(p, output, 0, target.n);
  }
}

// Writes rows of K or of V to their cells.
void WriteHalf(const KvHalf& half, const KvPageRows& p) {
  for (int64_t r = 0; r < p.rows; ++r) {
    for (int64_t head = 0; head < p.kv_heads; ++head) {
      KvRowFromF32(half.type, half.x + r * half.stride + head * p.head_dim,
                   p.head_dim,
                   half.cells + head * half.head_bytes + r * half.row_bytes);
    }
  }
}

// The address of activations. It is stored instead of the int8 activations, as
// the product rounds them itself.
struct Activations {
  const float* x;
  int64_t x_stride;
};
static_assert(sizeof(Activations) <= sizeof(Q8Fragments));

// The seed of delays, which test programs take from the environment, as they
// have no flags of their own.
[[maybe_unused]] const bool kDelays = [] {
  const char* const seed = std::getenv("TIERCEL_FAR_DELAYS");
  if (seed != nullptr) SetHostedDelays(std::strtoull(seed, nullptr, 10));
  return seed != nullptr;
}();

}  // namespace

// ---- A layer ----

int QuantiseCuda(CUstream_st* stream, const float* x, int64_t x_stride,
                 int64_t /*rows*/, int64_t /*k*/, Q8Fragments* out) {
  return Queue(stream, [=] {
    const Activations all = {x, x_stride};
    std::memcpy(out, &all, sizeof(all));
  });
}

int MultiplyQ8Cuda(CUstream_st* stream, const MatmulTargets& targets,
                   const Q8Fragments* x, int64_t rows) {
  return Queue(stream, [=] {
    Activations all;
    std::memcpy(&all, x, sizeof(all));
    Multiply(targets, Compute::kQ8, all.x, all.x_stride, rows);
  });
}

int MultiplyF32Cuda(CUstream_st* stream, const MatmulTargets& targets,
                    const float* x, int64_t x_stride, int64_t rows) {
  return Queue(stream,
               [=] { Multiply(targets, Compute::kF32, x, x_stride, rows); });
}

int EmbedCuda(CUstream_st* stream, DType type, const EmbedRows& p) {
  return Queue(stream, [=] {
    int64_t most = 0;
    for (int64_t r = 0; r < p.rows; ++r)
      most = std::max<int64_t>(most, p.ids[r]);
    const PackedMatrix table =
        PackedMatrix::At(reinterpret_cast<const std::byte*>(p.panels), type,
                         most + 1, p.cols, PanelOrder::kFragments);
    EmbedReference({&table, p.ids, p.rows, p.out}, 0, p.rows);
  });
}

int RmsNormCuda(CUstream_st* stream, const RmsNormParams& p) {
  return Queue(stream, [=] {
    for (int64_t i = 0; i < p.rows * p.groups; ++i) {
      const int64_t row = i / p.groups;
      const int64_t column = i % p.groups * p.dim;
      RmsNormGroupReference(p.x + row * p.x_stride + column, p.weight, p.eps,
                            p.dim, p.out + row * p.out_stride + column);
    }
  });
}

int RopeCuda(CUstream_st* stream, const RopeParams& p) {
  return Queue(stream, [=] { RopeReference(p, 0, p.rows); });
}

int SwigluCuda(CUstream_st* stream, const float* gate, const float* up,
               int64_t n, float* out) {
  return Queue(stream, [=] { SwigluRangeReference(gate, up, n, out); });
}

// ---- KV ----

int KvWriteCuda(CUstream_st* stream, const KvPageRows& p) {
  return Queue(stream, [=] {
    WriteHalf(p.k, p);
    WriteHalf(p.v, p);
  });
}

int KvConvertCuda(CUstream_st* stream, const KvConvertParams& p) {
  return Queue(stream, [=] {
    for (int64_t i = 0; i < p.num_runs; ++i) {
      ConvertRun(p, i, KvRowConvertReference);
    }
  });
}

int ChunkMeansCuda(CUstream_st* stream, const ChunkMeansParams& p) {
  return Queue(stream, [=] {
    ChunkMeansReference(p, 0, p.layout.kv_heads * p.num_chunks);
  });
}

int KeyNormsCuda(CUstream_st* stream, const KeyNormsParams& p) {
  return Queue(stream, [=] { KeyNormsReference(p); });
}

// ---- Scores and selection ----

int MeanScoresCuda(CUstream_st* stream, const MeanScoresParams& p) {
  return Queue(stream, [=] { MeanScoresReference(p); });
}

int ChunkWeightsCuda(CUstream_st* stream, const ChunkWeights& w, int kv_heads) {
  return Queue(stream, [=] {
    for (int g = 0; g < kv_heads; ++g) {
      ChunkWeights own = w;
      own.score += g * w.group * w.stride;
      own.out += g * w.chunks;
      // A body of the CPU needs the last score repeated up to a multiple of the
      // lanes.
      for (int h = 0; h < w.group; ++h) {
        float* const score = own.score + h * w.stride;
        std::fill(score + w.chunks, score + w.stride, score[w.chunks - 1]);
      }
      portable::ComputeChunkWeights(own);
    }
  });
}

int KeyScoresCuda(CUstream_st* stream, const KeyScoresParams& p) {
  return Queue(stream, [=] { KeyScoresReference(p); });
}

int AddImportanceCuda(CUstream_st* stream, const ImportanceParams& p,
                      RootWeights* /*weights*/) {
  return Queue(stream, [=] { AddImportanceReference(p); });
}

int TopKCuda(CUstream_st* stream, const TopKParams& p) {
  return Queue(stream, [=] { TopKReference(p); });
}

int SelectCuda(CUstream_st* stream, const SelectParams& p, int64_t /*stride*/,
               float* /*scratch*/) {
  return Queue(stream, [=] { SelectReference(p); });
}

int CoverageCuda(CUstream_st* stream, const CoverageParams& p,
                 const int32_t* kept) {
  return Queue(stream, [=] {
    std::vector<const int32_t*> of_heads;
    for (int g = 0; g < p.kv_heads; ++g) {
      of_heads.push_back(kept + g * p.num_kept);
    }
    CoverageParams own = p;
    own.kept = of_heads.data();
    CoverageReference(own);
  });
}

// ---- Copies ----

int CopyWordsCuda(CUstream_st* stream, const uint32_t* from, int64_t words,
                  uint32_t* to) {
  return Queue(stream, [=] {
    if (words == 0) return;  // there may be no memory to copy from
    std::memcpy(to, from, static_cast<size_t>(words) * sizeof(*to));
  });
}

int UnpackCuda(CUstream_st* stream, const std::byte* packed,
               const PackedRun* runs, int64_t count) {
  return Queue(stream, [=] {
    for (int64_t i = 0; i < count; ++i) {
      std::memcpy(runs[i].to, packed + runs[i].at, runs[i].bytes);
    }
  });
}

int CopyColumnsCuda(CUstream_st* stream, const ColumnsCopy& p) {
  return Queue(stream, [=] {
    for (int64_t r = 0; r < p.rows; ++r) {
      std::memcpy(p.to + r * p.to_stride, p.from + r * p.from_stride,
                  static_cast<size_t>(p.bytes));
    }
  });
}

}  // namespace tiercel
