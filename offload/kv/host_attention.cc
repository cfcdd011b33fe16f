#include "offload/kv/host_attention.h"

#include <algorithm>
#include <chrono>

#include "kernels/device/cuda/send_ring.h"
#include "kernels/device/queue.h"
#include "lib/status/status_macros.h"

namespace tiercel {
namespace {

constexpr int64_t kFloat = sizeof(float);

int64_t BufferBytes(const HostAttention::Options& o) {
  const int64_t state = int64_t{o.heads} * (o.head_dim + 2);
  return kMaxStepRows * (o.q_stride + state) * kFloat;
}

// Sends floats as lists that do not wait behind the pages on the link. A
// simulated device reads them later: until it is synchronized they stay as they
// are.
absl::Status SendUp(Stream& device, DevicePtr<float> to, const float* from,
                    int64_t floats) {
  constexpr auto kMost = static_cast<int64_t>(SendRing::kMostBytes) / kFloat;
  for (int64_t at = 0; at < floats; at += kMost) {
    const int64_t size = std::min(kMost, floats - at);
    RETURN_IF_ERROR(
        device.Send(to + at, from + at, static_cast<size_t>(size * kFloat)));
  }
  return absl::OkStatus();
}

absl::Status BringDown(Stream& device, float* to, DevicePtr<const float> from,
                       int64_t floats) {
  return device.Copy(to, from, static_cast<size_t>(floats * kFloat));
}

}  // namespace

absl::StatusOr<std::unique_ptr<HostAttention>> HostAttention::Create(
    DeviceMemory& memory, Options options) {
  const int64_t states = kMaxStepRows * options.heads;
  ASSIGN_OR_RETURN(
      DeviceArray<float> max,
      DeviceArray<float>::Create(memory, states, "the host's share"));
  ASSIGN_OR_RETURN(
      DeviceArray<float> sum,
      DeviceArray<float>::Create(memory, states, "the host's share"));
  ASSIGN_OR_RETURN(
      HostRegion buffers,
      HostRegion::Reserve(static_cast<size_t>(BufferBytes(options))));
  return std::unique_ptr<HostAttention>(new HostAttention(
      std::move(options), std::move(max), std::move(sum), std::move(buffers)));
}

HostAttention::HostAttention(Options options, DeviceArray<float> max,
                             DeviceArray<float> sum, HostRegion buffers)
    : options_(std::move(options)),
      buffers_(std::move(buffers)),
      max_(std::move(max)),
      sum_(std::move(sum)) {}

// After a failure copies to and from the buffers may still be queued. An error
// here is that of earlier work.
HostAttention::~HostAttention() {
  if (queue_ == nullptr) return;
  queue_->Synchronize().IgnoreError();
  if (pinned_) queue_->Unpin(buffers_.data());
}

// Lets the device copy from and to the buffers by itself. If that is refused,
// copies take longer.
void HostAttention::Pin(Stream& device) {
  if (queue_ != nullptr || device.on_host()) return;
  queue_ = &device.queue();
  pinned_ = queue_->Pin(buffers_.data(), buffers_.bytes()).ok();
}

int64_t HostAttention::DeviceBytes(int heads) {
  return 2 * AlignedBytes(kMaxStepRows * heads * kFloat);
}

int64_t HostAttention::HostBytes(const Options& options, int threads) {
  // Attention's scratch, as its contract says.
  constexpr int64_t kPartialResults = int64_t{8} << 20;
  return BufferBytes(options) + kPartialResults +
         threads * options.head_dim * int64_t{1024};
}

int64_t HostAttention::QueryFloats(int64_t rows) const {
  return (rows - 1) * options_.q_stride +
         int64_t{options_.heads} * options_.head_dim;
}

absl::Status HostAttention::Attend(Stream& device, AttentionParams p,
                                   const HostPages& host) {
  Pin(device);
  const int64_t states = p.rows * p.heads;
  auto* const q = reinterpret_cast<float*>(buffers_.data());
  float* const out = q + kMaxStepRows * options_.q_stride;
  float* const max = out + OutFloats(kMaxStepRows);
  float* const sum = max + kMaxStepRows * p.heads;

  // 1. the pages before the host's, which are on the device
  const int64_t end = host.first + host.count;
  p.part = {p.begin / kPageTokens, host.first, max_.data(), sum_.data()};
  const bool continues = p.part.first < host.first;
  if (continues) RETURN_IF_ERROR(Attention(device, p));

  // 2. the host's
  RETURN_IF_ERROR(BringDown(device, q, p.q, QueryFloats(p.rows)));
  if (continues) {
    RETURN_IF_ERROR(BringDown(device, out, p.out, OutFloats(p.rows)));
    RETURN_IF_ERROR(BringDown(device, max, max_.data(), states));
    RETURN_IF_ERROR(BringDown(device, sum, sum_.data(), states));
  }
  RETURN_IF_ERROR(device.Synchronize());
  const Clock::Time begin = options_.clock->Now();
  AttentionParams own = p;
  own.q = InPlace(q);
  own.out = InPlace(out);
  own.pages = host.pages;
  own.part = {host.first, end, InPlace(max), InPlace(sum)};
  RETURN_IF_ERROR(Attention(*options_.cpu, own));
  if (options_.bytes_per_s > 0) {
    const std::chrono::duration<double> pretended(
        static_cast<double>(host.count * p.layout.PageBytes()) /
        options_.bytes_per_s);
    options_.clock->SleepUntil(
        begin + std::chrono::duration_cast<Clock::Time::duration>(pretended));
  }
  RETURN_IF_ERROR(SendUp(device, p.out, out, OutFloats(p.rows)));
  RETURN_IF_ERROR(SendUp(device, max_.data(), max, states));
  RETURN_IF_ERROR(SendUp(device, sum_.data(), sum, states));

  // 3. the pages after them
  p.part.first = end;
  p.part.end = AttentionPart::kToTheEnd;
  return Attention(device, p);
}

absl::Status AttendToLayer(Stream& stream, const AttentionParams& p,
                           const KvPages& kv) {
  return kv.host.by == nullptr ? Attention(stream, p)
                               : kv.host.by->Attend(stream, p, kv.host);
}

}  // namespace tiercel
