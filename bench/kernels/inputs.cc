#include "bench/kernels/inputs.h"

#include <algorithm>
#include <utility>

#include "bench/kernels/device_work.h"
#include "kernels/device/cuda/cuda_driver.h"
#include "lib/status/status_macros.h"

namespace tiercel {

absl::StatusOr<Inputs> Inputs::Create(Stream& stream, int64_t halves,
                                      int64_t floats) {
  Inputs inputs;
  ASSIGN_OR_RETURN(inputs.halves_,
                   DeviceArray<std::byte>::Create(
                       stream.memory(), halves, "bench: codes, scales and KV"));
  for (DeviceArray<float>* array : {&inputs.floats_, &inputs.out_}) {
    ASSIGN_OR_RETURN(*array, DeviceArray<float>::Create(stream.memory(), floats,
                                                        "bench: activations"));
  }
  CUstream_st* const handle = stream.queue().handle();
  int error = FillHalves(handle, inputs.halves_.data().As<uint32_t>(),
                         halves / 4, /*seed=*/1);
  for (DeviceArray<float>* array : {&inputs.floats_, &inputs.out_}) {
    if (error == 0) error = FillFloats(handle, array->data(), floats, 2);
  }
  RETURN_IF_ERROR(CudaStatus("bench inputs", error));
  RETURN_IF_ERROR(stream.Synchronize());
  return inputs;
}

int64_t Inputs::PlaceOf(int64_t all, int64_t bytes, int64_t turn) {
  const int64_t size = AlignedBytes(bytes);
  return turn % std::max<int64_t>(1, all / size) * size;
}

PackedMatrix Inputs::Matrix(DType type, int64_t rows, int64_t cols,
                            int64_t turn) const {
  const int64_t bytes = *PackedMatrix::BytesOf(type, rows, cols);
  return PackedMatrix::At(halves_.data() + PlaceOf(halves(), bytes, turn), type,
                          rows, cols, PanelOrder::kFragments);
}

std::vector<DevicePtr<std::byte>> Inputs::Pages(const KvLayout& layout,
                                                int64_t count, int64_t turn) {
  const int64_t page = AlignedBytes(layout.PageBytes());
  const int64_t place = PlaceOf(halves(), count * page, turn);
  std::vector<DevicePtr<std::byte>> pages(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    pages[static_cast<size_t>(i)] = halves_.data() + place + i * page;
  }
  return pages;
}

DevicePtr<const uint16_t> Inputs::Halves(int64_t count, int64_t turn) const {
  return (halves_.data() + PlaceOf(halves(), 2 * count, turn))
      .As<const uint16_t>();
}

DevicePtr<const float> Inputs::Floats(int64_t count, int64_t turn) const {
  return floats_.data() + PlaceOf(4 * floats(), 4 * count, turn) / 4;
}

}  // namespace tiercel
