#include "models/tokenizer/byte_alphabet.h"

#include <array>
#include <cstdint>

#include "lib/text/utf8.h"

namespace tiercel {
namespace {

constexpr int kNoByte = -1;
constexpr char32_t kLetters = 0x100 + 68;

constexpr bool IsPrintable(int byte) {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte != 0xad);
}

constexpr std::array<int16_t, kLetters> MakeByteOfLetter() {
  std::array<int16_t, kLetters> byte_of{};
  for (int16_t& byte : byte_of) byte = kNoByte;
  int next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    byte_of[IsPrintable(byte) ? byte : next++] = static_cast<int16_t>(byte);
  }
  return byte_of;
}

constexpr std::array<int16_t, kLetters> kByteOfLetter = MakeByteOfLetter();

}  // namespace

std::optional<std::string> BytesOfSpelling(std::string_view spelled) {
  std::string bytes;
  bytes.reserve(spelled.size());
  for (size_t i = 0; i < spelled.size();) {
    const Utf8Char letter = Utf8At(spelled, i);
    if (letter.code_point >= kLetters) return std::nullopt;
    const int byte = kByteOfLetter[letter.code_point];
    if (byte == kNoByte) return std::nullopt;
    bytes.push_back(static_cast<char>(byte));
    i += letter.bytes;
  }
  return bytes;
}

}  // namespace tiercel
