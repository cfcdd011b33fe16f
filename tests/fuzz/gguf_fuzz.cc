// Opens any bytes as a GGUF file, and, if they name a set of files, as every
// part of it; then reads everything that a user of the checkpoint would.

#include <cstdint>
#include <string>
#include <vector>

#include "models/decoder/config.h"
#include "models/format/check_tensors.h"
#include "models/format/files_for_test.h"
#include "models/format/gguf.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tiercel;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const FileOpener open = [&](const std::string& path) {
    return absl::StatusOr<std::unique_ptr<File>>(MemoryFile(bytes, path));
  };
  constexpr char kName[] = "m-00001-of-00002.gguf";
  // One whose data is not all there may be described.
  const auto described = OpenGguf(kName, open, Checkpoint::Need::kHeaders);
  if (described.ok()) (void)ReadModelConfig(**described);
  const auto checkpoint = OpenGguf(kName, open);
  if (!checkpoint.ok()) return 0;
  for (const TensorInfo& tensor : (*checkpoint)->tensors()) {
    if ((*checkpoint)->Find(tensor.name) != &tensor) __builtin_trap();
  }
  // An accepted tensor lies in the file.
  const auto bad =
      CheckTensors(**checkpoint, [](uint64_t, uint64_t) { return true; });
  if (!bad.ok()) __builtin_trap();
  const auto config = ReadModelConfig(**checkpoint);
  if (config.ok()) MakeRopeFrequencies(*config, {});
  return 0;
}
