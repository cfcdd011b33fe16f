#include "kernels/device/device_lang.h"
#include "kernels/machine/copy_words_body.h"

namespace tiercel {
namespace {

struct CopyWords {
  static constexpr int kMaxThreads = 256;
  struct Shared {};
  const uint32_t* from;
  int64_t words;
  uint32_t* to;

  TIERCEL_DEVICE void operator()(const Thread& t, Shared&) const {
    for (int64_t i = t.block * t.count + t.index; i < words;
         i += t.blocks * t.count) {
      to[i] = from[i];
    }
  }
};

}  // namespace

int CopyWordsCuda(CUstream_st* stream, const uint32_t* from, int64_t words,
                  uint32_t* to) {
  constexpr int kThreads = CopyWords::kMaxThreads;
  return Launch(stream, TurnsFor(words, kThreads, kThreads),
                CopyWords{from, words, to});
}

}  // namespace tiercel
