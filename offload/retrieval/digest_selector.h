#ifndef TIERCEL_OFFLOAD_RETRIEVAL_DIGEST_SELECTOR_H_
#define TIERCEL_OFFLOAD_RETRIEVAL_DIGEST_SELECTOR_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/device/device_memory.h"
#include "offload/retrieval/digests.h"
#include "offload/retrieval/selector.h"

namespace tiercel {

// Chooses by the digests of chunks and the last query row (TriForce, arXiv
// 2404.11912, section 4.1). It does not need the keys.
class DigestSelector final : public Selector {
 public:
  struct Shape {
    Digests::Shape digests;
    int64_t sinks = 0;   // the first chunks, which are always chosen
    int64_t chunks = 0;  // chunks that a head sees at most, with the sinks

    int64_t Bytes() const;
  };
  // Errors: out_of_memory.
  static absl::StatusOr<std::unique_ptr<Selector>> Create(DeviceMemory& memory,
                                                          const Shape& shape);

  absl::Status Update(Stream& stream, int layer, const KvPages& kv,
                      int64_t rows) override {
    return digests_.Update(stream, layer, kv, rows);
  }
  int64_t UpdatesFrom() const override { return digests_.UpdatesFrom(); }
  absl::Status Choose(Stream& stream, int layer, const QueryRows& by,
                      const KvPages* kv, int64_t chunks,
                      std::vector<std::vector<int32_t>>* chosen) override;
  void Truncate(int64_t end) override { digests_.Truncate(end); }
  absl::StatusOr<std::unique_ptr<Selector>> Copy(
      DeviceMemory& memory) const override;

 private:
  DigestSelector(const Shape& shape, Digests digests, DeviceArray<float> scores,
                 DeviceArray<int32_t> places)
      : shape_(shape),
        digests_(std::move(digests)),
        scores_(std::move(scores)),
        places_(std::move(places)) {}
  static absl::StatusOr<std::unique_ptr<Selector>> Over(DeviceMemory& memory,
                                                        const Shape& shape,
                                                        Digests digests);

  const Shape shape_;
  Digests digests_;
  DeviceArray<float> scores_;    // [kv_heads, chunks of the sequence]
  DeviceArray<int32_t> places_;  // [kv_heads, shape_.chunks]: chosen chunks
  std::vector<int32_t> read_;    // a copy of places_
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_RETRIEVAL_DIGEST_SELECTOR_H_
