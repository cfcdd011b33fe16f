#include "models/format/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <set>

#include "absl/strings/str_cat.h"
#include "lib/status/error.h"
#include "models/decoder/config.h"
#include "models/format/files_for_test.h"
#include "models/format/gguf_writer_for_test.h"

// The names A01 ... A33 are the lines of the project's table of bad inputs.

namespace tiercel {
namespace {

using namespace std::string_literals;

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint64_t kMax64 = std::numeric_limits<uint64_t>::max();

absl::StatusOr<GgufHeader> Parse(const std::string& bytes) {
  return ReadGgufHeader(*MemoryFile(bytes));
}
absl::StatusOr<GgufHeader> Parse(const GgufWriter& writer) {
  return Parse(writer.Bytes());
}

// Returns the stable code of the error of parsing `input`; "" for success.
// Every failure must be of the class for bad input and name a place.
template <typename Input>
std::string CodeFor(const Input& input) {
  const absl::StatusOr<GgufHeader> header = Parse(input);
  if (header.ok()) return "";
  EXPECT_EQ(ClassOf(header.status()), ErrorClass::kInput);
  const std::string code = CodeOf(header.status());
  if (code != "not_gguf") {
    EXPECT_THAT(std::string(header.status().message()), HasSubstr("byte "));
  }
  return code;
}

std::string MessageFor(const GgufWriter& writer) {
  return std::string(Parse(writer).status().message());
}

// Returns a raw key-value: a key, its value type and the bytes behind it.
std::string Raw(std::string_view key, uint32_t type, const ByteWriter& rest) {
  return ByteWriter().Text(key).Put(type).Raw(rest.bytes()).bytes();
}

constexpr uint32_t kStringType = 8;
constexpr uint32_t kArrayType = 9;

TEST(Gguf, KeepsEveryValueType) {
  GgufWriter w;
  w.Key<uint8_t>("u8", 200).Key<int8_t>("i8", -100);
  w.Key<uint16_t>("u16", 60000).Key<int16_t>("i16", -30000);
  w.Key<uint32_t>("u32", 4000000000).Key<int32_t>("i32", -2000000000);
  w.Key<uint64_t>("u64", kMax64).Key<int64_t>("i64", INT64_MIN);
  w.Key<float>("f32", 0.5f).Key<double>("f64", 0.1);
  w.Key<bool>("yes", true).Key<bool>("no", false).Key("text", "a\xc3\xa9");
  w.Array<uint8_t>("a.u8", {1, 255}).Array<int16_t>("a.i16", {-1});
  w.Array<float>("a.f32", {1.5f}).Array<double>("a.f64", {2.5});
  w.Array<bool>("a.bool", {true, false}).Array<std::string>("a.s", {"x", ""});
  w.Array<int64_t>("a.none", {});
  const absl::StatusOr<GgufHeader> header = Parse(w);
  ASSERT_TRUE(header.ok()) << header.status();
  const std::map<std::string, MetadataValue, std::less<>> want = {
      {"u8", uint64_t{200}},
      {"i8", int64_t{-100}},
      {"u16", uint64_t{60000}},
      {"i16", int64_t{-30000}},
      {"u32", uint64_t{4000000000}},
      {"i32", int64_t{-2000000000}},
      {"u64", kMax64},
      {"i64", int64_t{INT64_MIN}},
      {"f32", 0.5},
      {"f64", 0.1},
      {"yes", true},
      {"no", false},
      {"text", std::string("a\xc3\xa9")},
      {"a.u8", std::vector<uint64_t>{1, 255}},
      {"a.i16", std::vector<int64_t>{-1}},
      {"a.f32", std::vector<double>{1.5}},
      {"a.f64", std::vector<double>{2.5}},
      {"a.bool", std::vector<bool>{true, false}},
      {"a.s", std::vector<std::string>{"x", ""}},
      {"a.none", std::vector<int64_t>{}},
  };
  EXPECT_EQ(header->metadata.all(), want);
  EXPECT_THAT(header->warnings, IsEmpty());
}

TEST(Gguf, PlacesEveryLoadableType) {
  GgufWriter w;
  std::vector<DType> types;
  for (size_t i = 0; i < std::size(kDTypeInfos); ++i) {
    types.push_back(static_cast<DType>(i));
    w.Tensor(absl::StrCat("t", i), {256, 3}, types.back());
  }
  const std::string bytes = w.Bytes();
  const absl::StatusOr<GgufHeader> header = Parse(bytes);
  ASSERT_TRUE(header.ok()) << header.status();
  ASSERT_THAT(header->tensors, SizeIs(types.size()));
  uint64_t offset = (w.Header().size() + 31) / 32 * 32;
  for (size_t i = 0; i < types.size(); ++i) {
    const TensorInfo& tensor = header->tensors[i];
    EXPECT_EQ(tensor.name, absl::StrCat("t", i));
    EXPECT_EQ(tensor.type, types[i]);
    EXPECT_THAT(tensor.shape, ElementsAre(3, 256));  // outermost first
    EXPECT_EQ(tensor.bytes, 3 * RowBytes(types[i], 256));
    EXPECT_EQ(tensor.offset, offset);
    offset += (tensor.bytes + 31) / 32 * 32;
  }
  EXPECT_THAT(header->warnings, IsEmpty());
}

TEST(Gguf, Version2IsReadLike3) {
  GgufWriter w;
  w.version = 2;
  w.Key("general.architecture", "llama").Tensor("t", {32}, DType::kF32);
  EXPECT_EQ(CodeFor(w), "");
}

TEST(Gguf, VocabularyAloneNeedsNoPaddingOrData) {
  GgufWriter w;
  w.Key("general.architecture", "llama");
  const absl::StatusOr<GgufHeader> header = Parse(w);
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_THAT(header->tensors, IsEmpty());
  EXPECT_THAT(header->warnings, IsEmpty());
}

TEST(Gguf, A01EveryShorterFileIsTruncated) {
  GgufWriter w;
  w.Key("general.architecture", "llama").Array<uint16_t>("a", {1, 2, 3});
  w.Tensor("first", {2, 2}, DType::kF16).Tensor("last", {8}, DType::kF32);
  const std::string bytes = w.Bytes();
  ASSERT_EQ(CodeFor(bytes), "");
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(CodeFor(bytes.substr(0, size)), "model_truncated") << size;
  }
}

TEST(Gguf, A02OtherFilesAreNamed) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"version https://git-lfs.github.com/spec/v1\noid sha256:0", "Git LFS"},
      {"<!DOCTYPE html><html><body>Not found</body></html>", "HTML"},
      {"PK\x03\x04\x14\0\0\0 some archive member"s, "ZIP"},
      {"%PDF-1.7 and the rest of a document", "PDF"},
      {"lmgg\1\0\0\0 and more bytes"s, "GGML"},
      {"fmgg\1\0\0\0 and more bytes"s, "GGMF"},
      {"tjgg\3\0\0\0 and more bytes"s, "GGJT"},
      {"GGML\1\0\0\0 and more bytes"s, "GGML"},
      {"GGJT\3\0\0\0 and more bytes"s, "GGJT"},
      {"FUGG", "not a GGUF file"},
      {std::string(64, '\0'), "not a GGUF file"},
  };
  for (const auto& [bytes, named] : cases) {
    const absl::StatusOr<GgufHeader> header = Parse(bytes);
    EXPECT_EQ(CodeOf(header.status()), "not_gguf");
    EXPECT_THAT(std::string(header.status().message()), HasSubstr(named));
  }
}

TEST(Gguf, A03OtherVersionsAreUnsupported) {
  for (const uint32_t version : {0u, 1u, 4u, 0x80000000u, 0xffffffffu}) {
    GgufWriter w;
    w.version = version;
    EXPECT_EQ(CodeFor(w), "unsupported_version") << version;
  }
}

TEST(Gguf, A04BigEndianIsNamed) {
  for (const uint32_t version : {1u, 2u, 3u}) {
    GgufWriter w;
    w.version = __builtin_bswap32(version);
    EXPECT_EQ(CodeFor(w), "wrong_endianness") << version;
  }
}

TEST(Gguf, A05HugeCountsInASmallFile) {
  for (const uint64_t count :
       {uint64_t{1} << 63, kMax64, uint64_t{1'000'000'000}, uint64_t{65537}}) {
    GgufWriter w;
    w.Key("pad", std::string(1000, 'x').c_str());
    w.tensor_count = count;
    EXPECT_EQ(CodeFor(w), "limit_exceeded") << count;
    w.tensor_count.reset();
    w.key_value_count = count;
    EXPECT_EQ(CodeFor(w), "limit_exceeded") << count;
  }
  GgufWriter w;
  w.tensor_count = 65536;  // allowed, but not in so few bytes
  EXPECT_EQ(CodeFor(w), "model_truncated");
  w.tensor_count.reset();
  w.key_value_count = 65536;
  EXPECT_EQ(CodeFor(w), "model_truncated");
}

TEST(Gguf, A06KeyLengths) {
  const auto with_length = [](uint64_t length, std::string_view rest) {
    GgufWriter w;
    w.RawKey(ByteWriter().Put(length).Raw(rest).bytes());
    return CodeFor(w);
  };
  const std::string rest(100, 'k');
  EXPECT_EQ(with_length(0, rest), "invalid_key");
  EXPECT_EQ(with_length(kMax64, rest), "model_truncated");
  EXPECT_EQ(with_length(rest.size() + 1, rest), "model_truncated");
  EXPECT_EQ(with_length(rest.size(), rest), "model_truncated");  // no type
  EXPECT_EQ(with_length(65535, std::string(70000, '\0')), "invalid_key");
  EXPECT_EQ(with_length(65536, std::string(70000, 'k')), "limit_exceeded");
  GgufWriter w;
  w.Key<bool>(std::string(65535, 'k'), true);
  EXPECT_EQ(CodeFor(w), "");
}

TEST(Gguf, KeyWithNulIsRejected) {
  GgufWriter w;
  w.Key<bool>(std::string_view("a\0b", 3), true);
  EXPECT_EQ(CodeFor(w), "invalid_key");
}

TEST(Gguf, OddKeyIsAcceptedWithOneWarning) {
  GgufWriter w;
  w.Key<bool>("Odd Key", true).Key<bool>("another!", true);
  const absl::StatusOr<GgufHeader> header = Parse(w);
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_THAT(header->warnings, ElementsAre(HasSubstr("Odd Key")));
}

TEST(Gguf, A07StringLengths) {
  for (const uint64_t length : {kMax64, uint64_t{1} << 63, uint64_t{5} << 30}) {
    GgufWriter w;
    w.RawKey(Raw("k", kStringType, ByteWriter().Put(length).Raw("text")));
    EXPECT_EQ(CodeFor(w), "model_truncated") << length;
  }
  for (const int more : {0, 1}) {
    GgufWriter w;
    w.Key("k", std::string((16 << 20) + more, 'x').c_str());
    EXPECT_EQ(CodeFor(w), more == 0 ? "" : "limit_exceeded");
  }
}

TEST(Gguf, A08ArrayLengths) {
  const auto with = [](uint32_t element, uint64_t count, size_t bytes) {
    GgufWriter w;
    w.RawKey(Raw(
        "k", kArrayType,
        ByteWriter().Put(element).Put(count).Raw(std::string(bytes, '\0'))));
    return CodeFor(w);
  };
  constexpr uint32_t kU64 = GgufWriter::TypeNumber<uint64_t>();
  EXPECT_EQ(with(kU64, uint64_t{1} << 61, 64), "limit_exceeded");
  EXPECT_EQ(with(kStringType, 1'000'000'000, 64), "limit_exceeded");
  EXPECT_EQ(with(kU64, 9, 64), "model_truncated");
  EXPECT_EQ(with(kU64, 8, 64), "");
  EXPECT_EQ(with(kStringType, 9, 64), "model_truncated");
  EXPECT_EQ(with(kStringType, 8, 64), "");
  EXPECT_EQ(with(/*u8*/ 0, (1 << 20) + 1, (1 << 20) + 1), "limit_exceeded");
  EXPECT_EQ(with(/*u8*/ 0, 1 << 20, 1 << 20), "");
}

TEST(Gguf, A09ArraysOfArrays) {
  ByteWriter nested;
  for (int i = 0; i < 10000; ++i) nested.Put(kArrayType).Put<uint64_t>(1);
  GgufWriter w;
  w.RawKey(Raw("k", kArrayType, nested));
  EXPECT_EQ(CodeFor(w), "unsupported_type");
}

TEST(Gguf, A10UnknownTypes) {
  for (const uint32_t type : {13u, 255u, 0xffffffffu}) {
    GgufWriter w;
    w.RawKey(Raw("the.key", type, ByteWriter().Put<uint64_t>(0)));
    EXPECT_EQ(CodeFor(w), "unsupported_type");
    EXPECT_THAT(MessageFor(w), HasSubstr(absl::StrCat("type ", type)));
    EXPECT_THAT(MessageFor(w), HasSubstr("the.key"));
    GgufWriter array;
    array.RawKey(Raw("k", kArrayType, ByteWriter().Put(type).Put(0ul)));
    EXPECT_EQ(CodeFor(array), "unsupported_type");
  }
  for (const uint32_t type : {4u, 31u, 43u, 0xffffffffu, 1u << 31}) {
    GgufWriter w;
    w.RawTensor("the_tensor", {32}, type, 0).RawData(std::string(256, '\0'));
    EXPECT_EQ(CodeFor(w), "unsupported_type");
    EXPECT_THAT(MessageFor(w), HasSubstr(absl::StrCat("number ", type)));
    EXPECT_THAT(MessageFor(w), HasSubstr("the_tensor"));
  }
}

TEST(Gguf, TensorsOfOtherKnownTypesAreLeftOut) {
  const std::vector<std::pair<uint32_t, std::string>> types = {
      {9, "Q8_1"}, {15, "Q8_K"},  {16, "IQ2_XXS"}, {24, "I8"},    {26, "I32"},
      {28, "F64"}, {29, "IQ1_M"}, {34, "TQ1_0"},   {40, "NVFP4"}, {42, "Q2_0"}};
  for (const auto& [number, name] : types) {
    GgufWriter w;
    w.RawTensor("other", {256}, number, 0).RawData(std::string(4096, '\0'));
    w.RawTensor("ours", {32}, /*F32*/ 0, 4096 - 128);
    const absl::StatusOr<std::unique_ptr<Checkpoint>> model =
        OpenGguf("m.gguf", MemoryOpener({{"m.gguf", w.Bytes()}}));
    ASSERT_TRUE(model.ok()) << model.status();
    ASSERT_EQ((*model)->tensors().size(), 1u);
    EXPECT_EQ((*model)->tensors()[0].name, "ours");
    EXPECT_EQ((*model)->Find("other"), nullptr);
    EXPECT_THAT((*model)->unread(), ElementsAre(std::pair("other", name)));
    EXPECT_THAT((*model)->warnings(),
                ElementsAre(HasSubstr(absl::StrCat("other\" (", name, ")"))));
  }
}

// The size of such a tensor is unknown: the next may begin at any aligned
// offset behind its start.
TEST(Gguf, WhatFollowsATensorThatIsLeftOut) {
  const auto code = [](uint64_t first, uint64_t second) {
    GgufWriter w;
    w.RawTensor("a", {32}, /*IQ2_XXS*/ 16, first);
    w.RawTensor("b", {8}, /*F32*/ 0, second);
    w.RawData(std::string(256, '\0'));
    return CodeFor(w);
  };
  EXPECT_EQ(code(0, 0), "");
  EXPECT_EQ(code(0, 64), "");
  EXPECT_EQ(code(0, 224), "");
  EXPECT_EQ(code(0, 256), "model_truncated");
  EXPECT_EQ(code(0, 65), "invalid_offset");
  EXPECT_EQ(code(32, 64), "invalid_offset");
  GgufWriter before;
  before.RawTensor("b", {8}, /*F32*/ 0, 0).RawTensor("a", {32}, 16, 32);
  before.RawTensor("c", {8}, /*F32*/ 0, 0).RawData(std::string(256, '\0'));
  EXPECT_EQ(CodeFor(before), "invalid_offset");
  GgufWriter twice;
  twice.RawTensor("a", {32}, 16, 0).RawTensor("a", {32}, 16, 0);
  EXPECT_EQ(CodeFor(twice), "duplicate_tensor");
}

TEST(Gguf, A11BoolBytes) {
  for (const int byte : {2, 255}) {
    GgufWriter w;
    w.RawKey(Raw("k", 7, ByteWriter().Put(static_cast<uint8_t>(byte))));
    EXPECT_EQ(CodeFor(w), "invalid_value") << byte;
    GgufWriter array;
    array.RawKey(
        Raw("k", kArrayType,
            ByteWriter().Put(7u).Put(1ul).Put(static_cast<uint8_t>(byte))));
    EXPECT_EQ(CodeFor(array), "invalid_value") << byte;
  }
}

TEST(Gguf, A12DuplicateKey) {
  GgufWriter w;
  w.Key<bool>("a.key", true).Key<bool>("b", true).Key<bool>("a.key", true);
  EXPECT_EQ(CodeFor(w), "duplicate_key");
  EXPECT_THAT(MessageFor(w), HasSubstr("a.key"));
}

TEST(Gguf, A12ManyKeysAndTensors) {
  GgufWriter w;
  for (int i = 0; i < 65536; ++i) {
    w.Key<uint32_t>(absl::StrCat("key.", i), i);
    w.RawTensor(absl::StrCat("tensor.", i), {1}, 0, uint64_t{32} * i);
  }
  w.RawData(std::string(65536 * 32, '\0'));
  const absl::StatusOr<GgufHeader> header = Parse(w);
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_THAT(header->metadata.all(), SizeIs(65536));
  EXPECT_THAT(header->tensors, SizeIs(65536));
}

TEST(Gguf, A13Alignment) {
  for (const uint32_t alignment :
       {0u, 3u, 13u, 131072u, 1u << 31, 0xffffffffu}) {
    GgufWriter w;
    w.Key<uint32_t>("general.alignment", alignment);
    w.Tensor("t", {32}, DType::kF32);
    EXPECT_EQ(CodeFor(w), "invalid_alignment") << alignment;
  }
  for (const uint32_t alignment : {8u, 16u, 64u, 65536u}) {
    GgufWriter w;
    w.alignment = alignment;
    w.Key<uint32_t>("general.alignment", alignment);
    w.Tensor("t", {3}, DType::kF32).Tensor("u", {3}, DType::kF32);
    const absl::StatusOr<GgufHeader> header = Parse(w);
    ASSERT_TRUE(header.ok()) << header.status();
    EXPECT_EQ(header->tensors[1].offset % alignment, 0u);
    EXPECT_THAT(header->warnings, IsEmpty());
  }
  GgufWriter i32;
  i32.Key<int32_t>("general.alignment", 32);
  EXPECT_EQ(CodeFor(i32), "invalid_alignment");
  GgufWriter u64;
  u64.Key<uint64_t>("general.alignment", 32);
  EXPECT_EQ(CodeFor(u64), "invalid_alignment");
  GgufWriter text;
  text.Key("general.alignment", "32");
  EXPECT_EQ(CodeFor(text), "invalid_alignment");
  GgufWriter array;
  array.Array<uint32_t>("general.alignment", {32});
  EXPECT_EQ(CodeFor(array), "invalid_alignment");
}

TEST(Gguf, A13AlignmentOf1IsAcceptedWithAWarning) {
  GgufWriter w;
  w.alignment = 1;
  w.Key<uint32_t>("general.alignment", 1);
  w.Tensor("t", {3}, DType::kF16).Tensor("u", {3}, DType::kF16);
  const absl::StatusOr<GgufHeader> header = Parse(w);
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(header->tensors[1].offset, w.Header().size() + 6);
  EXPECT_THAT(header->warnings, ElementsAre(HasSubstr("general.alignment")));
}

TEST(Gguf, A17DimensionCounts) {
  const auto with_dims = [](uint32_t dims, uint32_t type) {
    ByteWriter tensor;
    tensor.Text("t").Put(dims);
    for (uint32_t i = 0; i < std::min(dims, 8u); ++i) tensor.Put<uint64_t>(1);
    tensor.Put(type).Put<uint64_t>(0);
    GgufWriter w;
    w.tensor_count = 1;
    std::string bytes = w.Header() + tensor.bytes();
    bytes.resize((bytes.size() + 31) / 32 * 32 + 64, '\0');
    return CodeFor(bytes);
  };
  EXPECT_EQ(with_dims(0, /*F32*/ 0), "");
  EXPECT_EQ(with_dims(0, /*F16*/ 1), "invalid_shape");
  EXPECT_EQ(with_dims(1, 0), "");
  EXPECT_EQ(with_dims(4, 0), "");
  EXPECT_EQ(with_dims(5, 0), "invalid_shape");
  EXPECT_EQ(with_dims(0xffffffffu, 0), "invalid_shape");
}

TEST(Gguf, A18Dimensions) {
  const auto with = [](const std::vector<uint64_t>& dims, uint32_t type) {
    GgufWriter w;
    w.RawTensor("t", dims, type, 0).RawData(std::string(64, '\0'));
    return CodeFor(w);
  };
  constexpr uint32_t kF32 = 0;
  constexpr uint32_t kF16 = 1;
  constexpr uint64_t k2To32 = uint64_t{1} << 32;
  EXPECT_EQ(with({0}, kF32), "invalid_shape");
  EXPECT_EQ(with({4, 0, 4}, kF32), "invalid_shape");
  EXPECT_EQ(with({kMax64}, kF32), "overflow");              // -1
  EXPECT_EQ(with({uint64_t{1} << 62}, kF32), "overflow");   // x 4 bytes
  EXPECT_EQ(with({k2To32, k2To32}, kF32), "overflow");      // 2^64
  EXPECT_EQ(with({k2To32, k2To32 / 2}, kF32), "overflow");  // 2^63
  EXPECT_EQ(with({k2To32, k2To32, k2To32, k2To32}, kF32), "overflow");
  // 2^64 - 2 bytes fit a number, but padded to 32 they do not.
  EXPECT_EQ(with({uint64_t{INT64_MAX}}, kF16), "overflow");
  EXPECT_EQ(with({uint64_t{1} << 60}, kF16), "model_truncated");
}

TEST(Gguf, A19RowsAreWholeBlocks) {
  constexpr uint32_t kQ4K = 12;
  constexpr uint32_t kQ80 = 8;
  for (const auto& [row, type] : {std::pair(255u, kQ4K), std::pair(257u, kQ4K),
                                  std::pair(31u, kQ80), std::pair(1u, kQ80)}) {
    GgufWriter w;
    w.RawTensor("t", {row, 256}, type, 0).RawData(std::string(65536, '\0'));
    EXPECT_EQ(CodeFor(w), "invalid_shape") << row;
  }
}

TEST(Gguf, A20TensorNames) {
  const auto named = [](std::string_view name) {
    GgufWriter w;
    w.Tensor(name, {32}, DType::kF32);
    return CodeFor(w);
  };
  EXPECT_EQ(named(""), "invalid_name");
  EXPECT_EQ(named(std::string(63, 'n')), "");
  EXPECT_EQ(named(std::string(64, 'n')), "invalid_name");
  EXPECT_EQ(named(std::string(1 << 20, 'n')), "invalid_name");
  EXPECT_EQ(named(std::string_view("a\0b", 3)), "invalid_name");
  EXPECT_EQ(named("bad\xff"), "invalid_name");
  EXPECT_EQ(named("\xc3\xa9t\xc3\xa9"), "");
  GgufWriter w;
  w.Tensor("same", {8}, DType::kF32).Tensor("same", {8}, DType::kF32);
  EXPECT_EQ(CodeFor(w), "duplicate_tensor");
}

TEST(Gguf, A21Offsets) {
  const auto second_at = [](uint64_t offset) {
    GgufWriter w;
    w.RawTensor("first", {32}, 0, 0);  // 128 bytes
    w.RawTensor("second", {32}, 0, offset);
    w.RawData(std::string(512, '\0'));
    return CodeFor(w);
  };
  EXPECT_EQ(second_at(128), "");
  EXPECT_EQ(second_at(127), "invalid_offset");          // unaligned
  EXPECT_EQ(second_at(0), "invalid_offset");            // overlap
  EXPECT_EQ(second_at(96), "invalid_offset");           // overlap
  EXPECT_EQ(second_at(160), "invalid_offset");          // gap
  EXPECT_EQ(second_at(1 << 20), "invalid_offset");      // beyond the end
  EXPECT_EQ(second_at(kMax64 - 31), "invalid_offset");  // wraps
  GgufWriter w;
  w.RawTensor("first", {32}, 0, 32).RawData(std::string(512, '\0'));
  EXPECT_EQ(CodeFor(w), "invalid_offset");  // a gap at the start
}

TEST(Gguf, A22OneByteShort) {
  GgufWriter w;
  w.Tensor("first", {32}, DType::kF32).Tensor("last", {33}, DType::kF32);
  std::string bytes = w.Bytes();
  EXPECT_EQ(CodeFor(bytes), "");
  bytes.pop_back();
  EXPECT_EQ(CodeFor(bytes), "model_truncated");
  EXPECT_THAT(std::string(Parse(bytes).status().message()), HasSubstr("last"));
}

TEST(Gguf, A22TrailingBytes) {
  GgufWriter w;
  w.Tensor("t", {33}, DType::kF32);  // 132 bytes, padded to 160
  std::string bytes = w.Bytes();
  bytes.append(28, '\0');  // padding alone gives no warning
  EXPECT_THAT(Parse(bytes)->warnings, IsEmpty());
  bytes.append(5, 'x');
  EXPECT_THAT(Parse(bytes)->warnings,
              ElementsAre(HasSubstr("5 bytes follow the last tensor")));
}

TEST(Gguf, A33EveryBitFlipOfAHeader) {
  GgufWriter w;
  w.Key("general.architecture", "llama");
  w.Key<uint32_t>("llama.block_count", 2)
      .Key<uint32_t>("general.alignment", 32);
  w.Key<uint32_t>("llama.context_length", 64);
  w.Key<uint32_t>("llama.embedding_length", 32);
  w.Key<uint32_t>("llama.feed_forward_length", 32);
  w.Key<uint32_t>("llama.attention.head_count", 2);
  w.Key<float>("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  std::vector<std::string> tokens;
  for (int i = 0; i < 64; ++i) tokens.push_back(absl::StrCat("token", i));
  w.Array<std::string>("tokenizer.ggml.tokens", tokens);
  w.Array<int32_t>("tokenizer.ggml.token_type", std::vector<int32_t>(64, 1));
  w.Array<bool>("flags", std::vector<bool>(64, true));
  w.Tensor("token_embd.weight", {32, 64}, DType::kQ8_0);
  for (int i = 0; i < 32; ++i) {
    w.Tensor(absl::StrCat("blk.", i, ".weight"), {32, 2}, DType::kF16);
  }
  const std::string header = w.Header();
  ASSERT_GT(header.size(), 3000u);
  std::string bytes = w.Bytes();
  int accepted = 0;
  for (size_t bit = 0; bit < header.size() * 8; ++bit) {
    const auto mask = static_cast<char>(1 << (bit % 8));
    bytes[bit / 8] ^= mask;
    const absl::StatusOr<std::unique_ptr<Checkpoint>> checkpoint =
        OpenGguf("m", MemoryOpener({{"m", bytes}}));
    bytes[bit / 8] ^= mask;
    if (!checkpoint.ok()) {
      EXPECT_EQ(ClassOf(checkpoint.status()), ErrorClass::kInput);
      EXPECT_NE(CodeOf(checkpoint.status()), "internal");
      continue;
    }
    ++accepted;
    // Every accepted file can be read: no extent leaves the file.
    for (const TensorInfo& tensor : (*checkpoint)->tensors()) {
      std::vector<std::byte> data(tensor.bytes);
      const absl::Status read =
          (*checkpoint)->Read(tensor, 0, {data.data(), data.size()});
      EXPECT_TRUE(read.ok()) << read;
    }
    const absl::StatusOr<ModelConfig> config = ReadModelConfig(**checkpoint);
    if (!config.ok()) {
      EXPECT_EQ(ClassOf(config.status()), ErrorClass::kInput);
    }
  }
  // Flips in texts and values are no errors; those in the structure are.
  EXPECT_GT(accepted, 1000);
  EXPECT_LT(accepted, static_cast<int>(header.size() * 8));
}

// Published faults of other readers of this format, by their numbers.

TEST(GgufCve, Cve2024_21802_DimensionProduct) {
  GgufWriter w;
  w.RawTensor("t", {uint64_t{1} << 31, uint64_t{1} << 31, 4, 1}, 0, 0);
  EXPECT_EQ(CodeFor(w), "overflow");
}

TEST(GgufCve, Cve2024_21825_ArrayCountTimesSize) {
  GgufWriter w;
  w.RawKey(Raw("k", kArrayType,
               ByteWriter().Put(kStringType).Put((kMax64 >> 4) + 2)));
  EXPECT_EQ(CodeFor(w), "limit_exceeded");
}

TEST(GgufCve, Cve2024_21836_TensorCountTimesSize) {
  GgufWriter w;
  w.tensor_count = kMax64 / 25 + 2;
  EXPECT_EQ(CodeFor(w), "limit_exceeded");
}

TEST(GgufCve, Cve2024_23496_StringLengthPlusOne) {
  GgufWriter w;
  w.RawKey(ByteWriter().Put(kMax64).Raw("text").bytes());
  EXPECT_EQ(CodeFor(w), "model_truncated");
}

TEST(GgufCve, Cve2024_23605_KeyCountTimesSize) {
  GgufWriter w;
  w.key_value_count = kMax64 / 14 + 2;
  EXPECT_EQ(CodeFor(w), "limit_exceeded");
}

// An error within an array of strings frees those that were read.
TEST(GgufCve, Cve2024_32878_ErrorAfterPartOfAnArray) {
  GgufWriter w;
  w.RawKey(Raw(
      "k", kArrayType,
      ByteWriter().Put(kStringType).Put(3ul).Text("a").Text("b").Put(kMax64)));
  EXPECT_EQ(CodeFor(w), "model_truncated");
}

TEST(GgufCve, Cve2024_41130_TensorsWithoutData) {
  GgufWriter w;
  w.RawTensor("t", {32}, 0, 0);
  EXPECT_EQ(CodeFor(w), "model_truncated");
}

TEST(GgufCve, Cve2025_53630_SumOfPaddedSizes) {
  GgufWriter w;
  constexpr uint64_t kElements = uint64_t{1} << 61;  // 2^63 bytes of F32
  w.RawTensor("a", {kElements}, 0, 0);
  w.RawTensor("b", {kElements}, 0, uint64_t{1} << 63);
  EXPECT_EQ(CodeFor(w), "overflow");
}

// The sum of the sizes fits; with the header before it, it no longer does.
TEST(GgufCve, Cve2026_27940_SumAfterCheck) {
  GgufWriter w;
  constexpr uint64_t kElements = uint64_t{1} << 61;
  w.RawTensor("a", {kElements}, 0, 0);
  w.RawTensor("b", {kElements - 16}, 0, uint64_t{1} << 63);  // 2^63 - 64 bytes
  EXPECT_EQ(CodeFor(w), "overflow");
}

TEST(GgufCve, Cve2026_33298_ByteProduct) {
  GgufWriter w;
  w.RawTensor("t", {1024, 1024, (uint64_t{1} << 42) + 1}, 0, 0);
  EXPECT_EQ(CodeFor(w), "overflow");
}

// The last tensor's end lies beyond the file while its start does not.
TEST(GgufCve, Cve2026_7482_ExtentBeyondTheFile) {
  GgufWriter w;
  w.RawTensor("t", {1024}, 0, 0).RawData(std::string(64, 'x'));
  EXPECT_EQ(CodeFor(w), "model_truncated");
}

TEST(GgufCve, Cve2025_0317_AlignmentZero) {
  GgufWriter w;
  w.Key<uint32_t>("general.alignment", 0);
  w.RawTensor("t", {32}, 0, 0);
  EXPECT_EQ(CodeFor(w), "invalid_alignment");
}

}  // namespace
}  // namespace tiercel
