// Renders the input up to its first NUL byte as a template, with the rest as a
// message. It checks two promises beside the sanitizers': pieces alternate, and
// none is empty.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "models/chat/chat_template.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = input.find('\0');
  const std::string_view content =
      end == std::string_view::npos ? "hello" : input.substr(end + 1);
  const auto chat = tiercel::ChatTemplate::Parse(input.substr(0, end));
  if (!chat.ok()) return 0;
  tiercel::ChatTemplate::Inputs inputs;
  inputs.messages = {{"system", "brief"}, {"user", std::string(content)}};
  inputs.bos_token = "<s>";
  inputs.eos_token = "</s>";
  const auto pieces = (*chat)->Render(inputs);
  if (!pieces.ok()) return 0;
  for (size_t i = 0; i < pieces->size(); ++i) {
    if ((*pieces)[i].text.empty()) std::abort();
    if (i > 0 && (*pieces)[i].from_message == (*pieces)[i - 1].from_message) {
      std::abort();
    }
  }
  return 0;
}
