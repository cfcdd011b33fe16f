#ifndef TIERCEL_MODELS_FORMAT_GGUF_WRITER_FOR_TEST_H_
#define TIERCEL_MODELS_FORMAT_GGUF_WRITER_FOR_TEST_H_

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/number/dtype.h"

namespace tiercel {

// Writes little-endian numbers and GGUF strings one after the other.
class ByteWriter {
 public:
  template <typename T>
  ByteWriter& Put(T number) {
    static_assert(std::is_arithmetic_v<T>);
    char bytes[sizeof(T)];
    std::memcpy(bytes, &number, sizeof(T));
    bytes_.append(bytes, sizeof(T));
    return *this;
  }
  ByteWriter& Text(std::string_view text) {
    Put<uint64_t>(text.size());
    bytes_.append(text);
    return *this;
  }
  ByteWriter& Raw(std::string_view bytes) {
    bytes_.append(bytes);
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Writes GGUF files, which are correct by default: every derived number can be
// overridden.
class GgufWriter {
 public:
  uint32_t version = 3;
  std::optional<uint64_t> tensor_count;
  std::optional<uint64_t> key_value_count;
  uint64_t alignment = 32;  // data alignment; the key is the caller's to write

  // Returns the number of a value type: 4 for uint32_t and so on.
  template <typename T>
  static constexpr uint32_t TypeNumber() {
    if constexpr (std::is_same_v<T, uint8_t>) return 0;
    if constexpr (std::is_same_v<T, int8_t>) return 1;
    if constexpr (std::is_same_v<T, uint16_t>) return 2;
    if constexpr (std::is_same_v<T, int16_t>) return 3;
    if constexpr (std::is_same_v<T, uint32_t>) return 4;
    if constexpr (std::is_same_v<T, int32_t>) return 5;
    if constexpr (std::is_same_v<T, float>) return 6;
    if constexpr (std::is_same_v<T, bool>) return 7;
    if constexpr (std::is_same_v<T, std::string>) return 8;
    if constexpr (std::is_same_v<T, uint64_t>) return 10;
    if constexpr (std::is_same_v<T, int64_t>) return 11;
    if constexpr (std::is_same_v<T, double>) return 12;
  }

  // Adds a key with a value of exactly the type T.
  template <typename T>
  GgufWriter& Key(std::string_view key, T value) {
    ByteWriter out;
    out.Text(key).template Put<uint32_t>(TypeNumber<T>());
    Element(out, value);
    return RawKey(out.bytes());
  }
  GgufWriter& Key(std::string_view key, const char* value) {
    return Key<std::string>(key, value);
  }
  template <typename T>
  GgufWriter& Array(std::string_view key, const std::vector<T>& values) {
    ByteWriter out;
    out.Text(key).template Put<uint32_t>(9);
    out.template Put<uint32_t>(TypeNumber<T>());
    out.template Put<uint64_t>(values.size());
    for (size_t i = 0; i < values.size(); ++i) Element<T>(out, values[i]);
    return RawKey(out.bytes());
  }
  // Adds a key-value as bytes.
  GgufWriter& RawKey(std::string_view bytes) {
    key_values_.Raw(bytes);
    ++key_values_written_;
    return *this;
  }

  // Adds a tensor with data; dims[0] is the contiguous dimension. Missing data
  // is zeros.
  GgufWriter& Tensor(std::string_view name, const std::vector<uint64_t>& dims,
                     DType type, std::string data = "") {
    int64_t elements = 1;
    for (const uint64_t dim : dims) elements *= static_cast<int64_t>(dim);
    data.resize(static_cast<size_t>(RowBytes(type, elements)), '\0');
    RawTensor(name, dims, NumberOf(type), Padded(data_.size()));
    data_.resize(Padded(data_.size()), '\0');
    data_ += data;
    return *this;
  }
  // Adds a tensor's description without data.
  GgufWriter& RawTensor(std::string_view name,
                        const std::vector<uint64_t>& dims, uint32_t type,
                        uint64_t offset) {
    tensors_.Text(name).Put(static_cast<uint32_t>(dims.size()));
    for (const uint64_t dim : dims) tensors_.Put(dim);
    tensors_.Put(type).Put(offset);
    ++tensors_written_;
    return *this;
  }
  GgufWriter& RawData(std::string_view bytes) {
    data_.append(bytes);
    return *this;
  }

  std::string Header() const {
    ByteWriter out;
    out.Raw("GGUF").Put(version);
    out.Put(tensor_count.value_or(tensors_written_));
    out.Put(key_value_count.value_or(key_values_written_));
    out.Raw(key_values_.bytes()).Raw(tensors_.bytes());
    return out.bytes();
  }
  std::string Bytes() const {
    std::string bytes = Header();
    if (data_.empty()) return bytes;
    bytes.resize(Padded(bytes.size()), '\0');
    return bytes + data_;
  }

 private:
  template <typename T>
  static void Element(ByteWriter& out, const T& value) {
    if constexpr (std::is_same_v<T, std::string>) {
      out.Text(value);
    } else {
      out.Put(value);
    }
  }

  static uint32_t NumberOf(DType type) {
    static constexpr uint32_t kNumbers[] = {0,  1,  30, 8,  2,  3,  6,  7,
                                            12, 13, 14, 20, 23, 39, 11, 10};
    return kNumbers[static_cast<size_t>(type)];
  }

  uint64_t Padded(uint64_t n) const {
    return (n + alignment - 1) / alignment * alignment;
  }

  ByteWriter key_values_;
  ByteWriter tensors_;
  uint64_t key_values_written_ = 0;
  uint64_t tensors_written_ = 0;
  std::string data_;
};

}  // namespace tiercel

#endif  // TIERCEL_MODELS_FORMAT_GGUF_WRITER_FOR_TEST_H_
