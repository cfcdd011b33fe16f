// Reads any bytes as a file of the prompt cache, as they are and with a
// corrected checksum of their front: a forger of such a file can correct it
// too.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "offload/disk/page_sum.h"
#include "offload/prompt_cache/kv_format.h"

namespace tiercel {
namespace {

void Read(std::span<const std::byte> file) {
  if (file.size() < kFixedFrontBytes) return;
  const auto front_bytes =
      FrontBytesIn(file.first<kFixedFrontBytes>(), file.size());
  if (!front_bytes.ok()) return;
  if (*front_bytes > file.size()) __builtin_trap();
  std::vector<std::byte> front(
      file.begin(), file.begin() + static_cast<std::ptrdiff_t>(*front_bytes));
  for (const bool repaired : {false, true}) {
    if (repaired) {
      const size_t before = front.size() - sizeof(uint64_t);
      const uint64_t sum = PageSum(front.data(), before);
      std::memcpy(front.data() + before, &sum, sizeof(sum));
    }
    const auto info = DecodeFront(front, file.size());
    if (!info.ok()) continue;
    // An accepted text lies in the file, and has the bytes that would be
    // written.
    if (info->FileBytes() != file.size() ||
        info->PageOffset(info->layers - 1, info->Pages() - 1) +
                static_cast<uint64_t>(info->layout.PageBytes()) !=
            info->CommitOffset() ||
        EncodeFront(*info) != front) {
      __builtin_trap();
    }
    CheckCommit(file.last<kCommitBytes>(), front).IgnoreError();
  }
}

}  // namespace
}  // namespace tiercel

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tiercel::Read({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}
