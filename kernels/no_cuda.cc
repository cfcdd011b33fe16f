// CudaStream in a build without CUDA: Create always fails, so no kernel is ever
// launched. Tests that link kernels of their own do not use this file.

#include "kernels/attention/attention_body.h"
#include "kernels/attention/chunk_scores_body.h"
#include "kernels/attention/coverage_body.h"
#include "kernels/attention/importance_body.h"
#include "kernels/attention/key_scores_body.h"
#include "kernels/attention/mean_scores_body.h"
#include "kernels/attention/selector_body.h"
#include "kernels/attention/top_k_body.h"
#include "kernels/kv/chunk_means_body.h"
#include "kernels/kv/key_norms_body.h"
#include "kernels/kv/kv_convert_body.h"
#include "kernels/kv/kv_write_body.h"
#include "kernels/layer/embed_body.h"
#include "kernels/layer/matmul_body.h"
#include "kernels/layer/rms_norm_body.h"
#include "kernels/layer/rope_body.h"
#include "kernels/layer/swiglu_body.h"
#include "kernels/machine/copy_words_body.h"
#include "kernels/machine/cuda_stream.h"

namespace tiercel {
namespace {

constexpr int kNoDevice = kCudaNoDevice;

}  // namespace

bool CudaStream::IsSimulated() { return false; }
GpuFacts CudaStream::FindGpu(int /*gpu*/) { return {.runtime = 0}; }
int CudaStream::Open(int /*gpu*/, std::unique_ptr<CudaStream>* /*stream*/) {
  return kNoDevice;
}
std::string CudaErrorText(int /*error*/) { return "this build has no CUDA"; }

int QuantiseCuda(CUstream_st*, const float*, int64_t, int64_t, int64_t,
                 Q8Fragments*) {
  return kNoDevice;
}
int MultiplyQ8Cuda(CUstream_st*, const MatmulTargets&, const Q8Fragments*,
                   int64_t) {
  return kNoDevice;
}
int MultiplyF32Cuda(CUstream_st*, const MatmulTargets&, const float*, int64_t,
                    int64_t) {
  return kNoDevice;
}
int RoundRowsCuda(CUstream_st*, const float*, int64_t, int64_t, int64_t,
                  int64_t, DType, uint16_t*, float*) {
  return kNoDevice;
}
int StoreRowsCuda(CUstream_st*, const float*, const float*, int64_t,
                  const MatmulTarget&) {
  return kNoDevice;
}
int CopyWordsCuda(CUstream_st*, const uint32_t*, int64_t, uint32_t*) {
  return kNoDevice;
}
int CopyColumnsCuda(CUstream_st*, const ColumnsCopy&) { return kNoDevice; }
int UnpackCuda(CUstream_st*, const std::byte*, const PackedRun*, int64_t) {
  return kNoDevice;
}
int RmsNormCuda(CUstream_st*, const RmsNormParams&) { return kNoDevice; }
int RopeCuda(CUstream_st*, const RopeParams&) { return kNoDevice; }
int SwigluCuda(CUstream_st*, const float*, const float*, int64_t, float*) {
  return kNoDevice;
}
int EmbedCuda(CUstream_st*, DType, const EmbedRows&) { return kNoDevice; }
int KvWriteCuda(CUstream_st*, const KvPageRows&) { return kNoDevice; }
int KvConvertCuda(CUstream_st*, const KvConvertParams&) { return kNoDevice; }
int ChunkMeansCuda(CUstream_st*, const ChunkMeansParams&) { return kNoDevice; }
int KeyNormsCuda(CUstream_st*, const KeyNormsParams&) { return kNoDevice; }
int AttentionWaveCuda(CUstream_st*, const AttentionWave&) { return kNoDevice; }
int MeanScoresCuda(CUstream_st*, const MeanScoresParams&) { return kNoDevice; }
int ChunkWeightsCuda(CUstream_st*, const ChunkWeights&, int) {
  return kNoDevice;
}
int KeyScoresCuda(CUstream_st*, const KeyScoresParams&) { return kNoDevice; }
int AddImportanceCuda(CUstream_st*, const ImportanceParams&, RootWeights*) {
  return kNoDevice;
}
int TopKCuda(CUstream_st*, const TopKParams&) { return kNoDevice; }
int SelectCuda(CUstream_st*, const SelectParams&, int64_t, float*) {
  return kNoDevice;
}
int CoverageCuda(CUstream_st*, const CoverageParams&, const int32_t*) {
  return kNoDevice;
}

}  // namespace tiercel
