#ifndef TIERCEL_KERNELS_DEVICE_OP_H_
#define TIERCEL_KERNELS_DEVICE_OP_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "kernels/device/stream.h"

namespace tiercel {

// Copies of the lists that an op's parameters point to, for an op that is done
// after its call has returned.
class HostLists {
 public:
  // Returns a copy of `count` elements, which lives as long as this.
  template <typename T>
  T* Keep(const T* from, int64_t count) {
    auto list = std::make_shared<std::vector<T>>(from, from + count);
    T* const copy = list->data();
    lists_.push_back(std::move(list));
    return copy;
  }

 private:
  std::vector<std::shared_ptr<void>> lists_;
};

// An op as data: its bodies, of which a device runs one (Bodies). The op's
// entry checks the parameters and calls Run, so a body may rely on them.
template <typename Params>
struct OpBodies {
  using Body = absl::Status(Stream& stream, const Params& p);

  Body* reference;  // plain loops, the oracle of the others
  Body* cpu;
  Body* gpu;
  // Replaces the lists that `p` points to by copies; null: there are none.
  void (*keep)(Params& p, HostLists& lists) = nullptr;
};

// Runs the body of the stream's device. A simulated device runs the CPU's in
// its turn, on copies of the parameters.
template <typename Params>
absl::Status Run(const OpBodies<Params>& op, Stream& stream, const Params& p) {
  switch (BodiesOf(stream.device())) {
    case Bodies::kReference:
      return op.reference(stream, p);
    case Bodies::kCpu:
      return op.cpu(stream, p);
    case Bodies::kGpu:
      return op.gpu(stream, p);
    case Bodies::kCpuLater:
      break;
  }
  HostLists lists;
  Params own = p;
  if (op.keep != nullptr) op.keep(own, lists);
  return stream.RunLater(
      [body = op.cpu, own, lists](Stream& cpu) { return body(cpu, own); });
}

// Makes a body of a reference that needs no stream.
template <auto* kReference, typename Params>
absl::Status PlainBody(Stream& /*stream*/, const Params& p) {
  kReference(p);
  return absl::OkStatus();
}

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_DEVICE_OP_H_
