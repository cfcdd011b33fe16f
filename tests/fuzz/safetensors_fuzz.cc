// Opens any bytes as a safetensors file; bytes that begin with '{' are read as
// the JSON files beside one.

#include <cstdint>
#include <string>

#include "models/decoder/config.h"
#include "models/format/check_tensors.h"
#include "models/format/files_for_test.h"
#include "models/format/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tiercel;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const std::string empty("\2\0\0\0\0\0\0\0{}", 10);
  std::map<std::string, std::string> files;
  if (size > 0 && bytes[0] == '{') {
    files = {{"d/config.json", bytes},
             {"d/generation_config.json", bytes},
             {"d/model.safetensors.index.json", bytes},
             {"d/one.safetensors", empty}};
    if (bytes.find("weight_map") == bytes.npos) {
      files["d/model.safetensors"] = empty;
    }
  } else {
    files = {{"d/config.json", "{}"}, {"d/model.safetensors", bytes}};
  }
  // One whose data is not all there may be described.
  const auto described =
      OpenSafetensors("d", MemoryOpener(files), Checkpoint::Need::kHeaders);
  if (described.ok()) (void)ReadModelConfig(**described);
  const auto checkpoint = OpenSafetensors("d", MemoryOpener(files));
  if (!checkpoint.ok()) return 0;
  // An accepted tensor lies in the file.
  const auto bad =
      CheckTensors(**checkpoint, [](uint64_t, uint64_t) { return true; });
  if (!bad.ok()) __builtin_trap();
  const auto config = ReadModelConfig(**checkpoint);
  if (config.ok()) MakeRopeFrequencies(*config, {});
  return 0;
}
