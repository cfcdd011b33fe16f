#include "models/format/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lib/status/error.h"
#include "models/format/files_for_test.h"

// The names B01 ... B11 are the lines of the project's table of bad inputs.

namespace tiercel::safetensors_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Returns a file with this header and that many bytes of data.
std::string FileOf(std::string_view header, size_t data_bytes) {
  const uint64_t length = header.size();
  std::string bytes(reinterpret_cast<const char*>(&length), sizeof(length));
  bytes.append(header);
  for (size_t i = 0; i < data_bytes; ++i) {
    bytes += static_cast<char>('a' + i % 26);
  }
  return bytes;
}

absl::StatusOr<SafetensorsHeader> Parse(const std::string& bytes) {
  return ReadSafetensorsHeader(*MemoryFile(bytes));
}

// Returns the stable code of the parsing error; "" for success.
std::string CodeForBytes(const std::string& bytes) {
  const absl::StatusOr<SafetensorsHeader> header = Parse(bytes);
  if (header.ok()) return "";
  EXPECT_EQ(ClassOf(header.status()), ErrorClass::kInput);
  return CodeOf(header.status());
}
std::string CodeFor(std::string_view header, size_t data_bytes) {
  return CodeForBytes(FileOf(header, data_bytes));
}

// Returns a header with one tensor "t" with these fields.
std::string Fields(std::string_view fields) {
  return absl::StrCat("{\"t\":{", std::string(fields), "}}");
}
// Returns a header with one tensor "t" of type F32 with this shape and these
// offsets.
std::string F32(std::string_view shape, std::string_view offsets) {
  return Fields(absl::StrCat("\"dtype\":\"F32\",\"shape\":", std::string(shape),
                             ",\"data_offsets\":", std::string(offsets)));
}

TEST(Safetensors, ListsTensorsInTheOrderOfTheirData) {
  const std::string bytes =
      FileOf(R"({"__metadata__":{"format":"pt","x":""},)"
             R"("b":{"dtype":"BF16","shape":[2,3],"data_offsets":[4,16]},)"
             R"("a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},)"
             R"("c":{"shape":[1],"data_offsets":[16,18],"dtype":"F16"}}   )",
             18);
  const absl::StatusOr<SafetensorsHeader> header = Parse(bytes);
  ASSERT_TRUE(header.ok()) << header.status();
  ASSERT_THAT(header->tensors, SizeIs(3));
  const uint64_t data = bytes.size() - 18;
  EXPECT_EQ(header->tensors[0].name, "a");
  EXPECT_EQ(header->tensors[0].type, DType::kF32);
  EXPECT_THAT(header->tensors[0].shape, IsEmpty());
  EXPECT_EQ(header->tensors[0].offset, data);
  EXPECT_EQ(header->tensors[0].bytes, 4u);
  EXPECT_EQ(header->tensors[1].name, "b");
  EXPECT_EQ(header->tensors[1].type, DType::kBF16);
  EXPECT_THAT(header->tensors[1].shape, ElementsAre(2, 3));
  EXPECT_EQ(header->tensors[1].offset, data + 4);
  EXPECT_EQ(header->tensors[1].bytes, 12u);
  EXPECT_EQ(header->tensors[2].type, DType::kF16);
  EXPECT_EQ(header->tensors[2].offset, data + 16);
  EXPECT_THAT(header->unread, IsEmpty());
}

TEST(Safetensors, TensorsThatAreNoWeightsAreNamed) {
  const absl::StatusOr<SafetensorsHeader> header = Parse(
      FileOf(R"({"ids":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},)"
             R"("w":{"dtype":"F16","shape":[1],"data_offsets":[8,10]},)"
             R"("mask":{"dtype":"BOOL","shape":[3],"data_offsets":[10,13]}})",
             13));
  ASSERT_TRUE(header.ok()) << header.status();
  ASSERT_THAT(header->tensors, SizeIs(1));
  EXPECT_THAT(header->unread,
              ElementsAre(std::pair("ids", "I64"), std::pair("mask", "BOOL")));
}

TEST(Safetensors, EmptyHeaderIsAnEmptyFile) {
  EXPECT_EQ(CodeFor("{}", 0), "");
  EXPECT_EQ(CodeFor("{}", 1), "invalid_offset");
}

TEST(Safetensors, B01HeaderLengths) {
  for (size_t size = 0; size < 8; ++size) {
    EXPECT_EQ(CodeForBytes(std::string(size, '\0')), "header_truncated");
  }
  const auto with_length = [](uint64_t length, std::string_view rest) {
    return CodeForBytes(std::string(reinterpret_cast<const char*>(&length), 8) +
                        std::string(rest));
  };
  EXPECT_EQ(with_length(0, "{}"), "invalid_header");
  EXPECT_EQ(with_length(1, "{}"), "invalid_header");
  EXPECT_EQ(with_length(2, "{}"), "");
  EXPECT_EQ(with_length(3, "{}"), "header_truncated");
  EXPECT_EQ(with_length(UINT64_MAX, "{}"), "header_too_large");
  EXPECT_EQ(with_length(UINT64_MAX - 7, "{}"), "header_too_large");
  EXPECT_EQ(with_length(100'000'001, "{}"), "header_too_large");
  EXPECT_EQ(with_length(100'000'000, "{}"), "header_truncated");
}

TEST(Safetensors, B02HeadersThatAreNotTheForm) {
  const std::string good = F32("[1]", "[0,4]");
  ASSERT_EQ(CodeFor(good, 4), "");
  for (const std::string& header : {
           std::string("not JSON"),
           std::string("[]"),
           std::string("\"text\""),
           std::string("1"),
           std::string("null"),
           " " + good,
           "\xef\xbb\xbf" + good,
           good + "{}",
           good + "x",
           good.substr(0, good.size() - 1),
           good + std::string(1, '\0'),
           good + std::string(1, '\0') + "PK",
           std::string("{\"t\xff\":{}}"),
           std::string("{\"a\":1}"),
           std::string("{\"a\":[]}"),
           std::string("{\"a\":\"text\"}"),
           std::string("{\"a\":null}"),
           std::string("{\"a\":{}}"),
           std::string("{\"a\":{\"dtype\":{}}}"),
           std::string(R"({"a":{"dtype":"F32","shape":[]}})"),
           std::string(R"({"__metadata__":[]})"),
       }) {
    EXPECT_EQ(CodeFor(header, 4), "invalid_header") << header;
  }
}

TEST(Safetensors, B02DeepHeaders) {
  std::string arrays = "{\"a\":" + std::string(100'000, '[');
  EXPECT_EQ(CodeFor(arrays, 0), "invalid_header");
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  EXPECT_EQ(CodeFor(objects, 0), "invalid_header");
  std::string shape = "{\"a\":{\"shape\":" + std::string(100'000, '[');
  EXPECT_EQ(CodeFor(shape, 0), "invalid_header");
}

TEST(Safetensors, B03Duplicates) {
  const std::string entry =
      R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  EXPECT_EQ(CodeFor(absl::StrCat("{\"t\":", entry, ",\"t\":", entry, "}"), 4),
            "invalid_header");
  for (const char* twice :
       {R"("dtype":"F32")", R"("shape":[1])", R"("data_offsets":[0,4])"}) {
    EXPECT_EQ(CodeFor(Fields(absl::StrCat(
                          R"("dtype":"F32","shape":[1],"data_offsets":[0,4],)",
                          twice)),
                      4),
              "invalid_header");
  }
  EXPECT_EQ(CodeFor(R"({"__metadata__":{},"__metadata__":{}})", 0),
            "invalid_header");
  EXPECT_EQ(CodeFor(R"({"__metadata__":{"a":"1","a":"2"}})", 0),
            "invalid_header");
  // The published pair of tensors with one name: a reader may load either.
  EXPECT_EQ(CodeFor(R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                    R"("t":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
                    8),
            "invalid_header");
}

// As the library safetensors reads them.
TEST(Safetensors, UnknownFieldsAreSkipped) {
  const auto code = [](std::string_view field) {
    return CodeFor(
        Fields(absl::StrCat(R"("dtype":"F32","strides":)", std::string(field),
                            R"(,"shape":[1],"data_offsets":[0,4])")),
        4);
  };
  for (const char* value : {"1", "-1", "1.5", "null", "true", "\"F16\"", "[]",
                            "{}", R"([1,{"dtype":"F16","shape":[{}]},[],"x"])",
                            R"({"a":[1],"a":{"b":null}})", R"(1,"strides":[2])",
                            "123456789012345678901234567890"}) {
    EXPECT_EQ(code(value), "") << value;
  }
  for (const char* value : {"NaN", "[1}", "[", "1e999"}) {
    EXPECT_EQ(code(value), "invalid_header") << value;
  }
  EXPECT_EQ(code(std::string(125, '[') + std::string(125, ']')), "");
  EXPECT_EQ(code(std::string(126, '[') + std::string(126, ']')),
            "invalid_header");
  EXPECT_EQ(CodeFor(R"({"a":{"x":{"dtype":"F32","shape":[0],)"
                    R"("data_offsets":[0,0]}}})",
                    0),
            "invalid_header");
}

TEST(Safetensors, B04Numbers) {
  for (const char* offsets :
       {"[-1,3]", "[0,4.0]", "[0,4e0]", "[0,\"4\"]", "[0,18446744073709551616]",
        "[0,true]", "[0,null]", "[0,[4]]", "[-0,4]", "\"0,4\"", "4"}) {
    EXPECT_EQ(CodeFor(F32("[1]", offsets), 4), "invalid_header") << offsets;
  }
  for (const char* offsets : {"[4,0]", "[]", "[4]", "[0,4,4]", "[0,2,4]"}) {
    EXPECT_EQ(CodeFor(F32("[1]", offsets), 4), "invalid_offset") << offsets;
  }
  for (const char* shape : {"[-1]", "[1.0]", "[1e3]", "[\"1\"]", "[true]",
                            "[18446744073709551616]", "1", "{}"}) {
    EXPECT_EQ(CodeFor(F32(shape, "[0,4]"), 4), "invalid_header") << shape;
  }
}

TEST(Safetensors, B05CoverOfTheData) {
  const auto two = [](int a0, int a1, int b0, int b1, size_t data_bytes) {
    return CodeFor(
        absl::StrFormat(
            R"({"a":{"dtype":"U8","shape":[%d],"data_offsets":[%d,%d]},)"
            R"("b":{"dtype":"U8","shape":[%d],"data_offsets":[%d,%d]}})",
            a1 - a0, a0, a1, b1 - b0, b0, b1),
        data_bytes);
  };
  EXPECT_EQ(two(0, 4, 4, 8, 8), "");
  EXPECT_EQ(two(4, 8, 0, 4, 8), "");
  EXPECT_EQ(two(0, 4, 4, 4, 4), "");                 // b is empty
  EXPECT_EQ(two(0, 4, 5, 8, 8), "invalid_offset");   // hole
  EXPECT_EQ(two(0, 4, 3, 8, 8), "invalid_offset");   // overlap
  EXPECT_EQ(two(0, 4, 0, 4, 8), "invalid_offset");   // the same bytes
  EXPECT_EQ(two(1, 4, 4, 8, 8), "invalid_offset");   // a hole at the start
  EXPECT_EQ(two(0, 4, 4, 8, 9), "invalid_offset");   // bytes after the end
  EXPECT_EQ(two(0, 4, 4, 8, 64), "invalid_offset");  // an archive there, say
  EXPECT_EQ(two(0, 4, 4, 8, 7), "invalid_offset");   // beyond the end
  EXPECT_EQ(two(0, 4, 4, 8, 0), "invalid_offset");
}

TEST(Safetensors, B06Shapes) {
  EXPECT_EQ(CodeFor(F32("[]", "[0,4]"), 4), "");     // a scalar
  EXPECT_EQ(CodeFor(F32("[3,0]", "[0,0]"), 0), "");  // nothing
  EXPECT_EQ(CodeFor(F32("[2]", "[0,4]"), 4), "invalid_shape");
  EXPECT_EQ(CodeFor(F32("[0]", "[0,4]"), 4), "invalid_shape");
  EXPECT_EQ(CodeFor(F32("[1,1,1,1,1,1,1,1]", "[0,4]"), 4), "");
  EXPECT_EQ(CodeFor(F32("[1,1,1,1,1,1,1,1,1]", "[0,4]"), 4), "limit_exceeded");
  std::string many = "[1";
  for (int i = 1; i < 65; ++i) many += ",1";
  EXPECT_EQ(CodeFor(F32(many + "]", "[0,4]"), 4), "limit_exceeded");
  EXPECT_EQ(CodeFor(F32("[4294967296,4294967296]", "[0,4]"), 4), "overflow");
  EXPECT_EQ(CodeFor(F32("[18446744073709551615]", "[0,4]"), 4), "overflow");
  // 2^59 elements of 32 bits: 2^64 bits.
  EXPECT_EQ(CodeFor(F32("[576460752303423488]", "[0,4]"), 4), "overflow");
  // Beyond int64_t, saved from overflow by the 0.
  EXPECT_EQ(CodeFor(F32("[0,9223372036854775808]", "[0,0]"), 0), "overflow");
  EXPECT_EQ(
      CodeFor(Fields(R"("dtype":"F4","shape":[3],"data_offsets":[0,1])"), 1),
      "invalid_shape");
}

TEST(Safetensors, B07Dtypes) {
  const auto of_type = [](std::string_view dtype, size_t bytes) {
    return CodeFor(Fields(absl::StrFormat(
                       R"("dtype":"%s","shape":[1],"data_offsets":[0,%d])",
                       std::string(dtype), bytes)),
                   bytes);
  };
  for (const auto& [dtype, bytes] : {std::pair("F99", 4), std::pair("f32", 4),
                                     std::pair("", 4), std::pair("F32 ", 4)}) {
    EXPECT_EQ(of_type(dtype, bytes), "unsupported_dtype") << dtype;
  }
  for (const auto& [dtype, bytes] :
       {std::pair("F32", 4), std::pair("F16", 2), std::pair("BF16", 2),
        std::pair("F64", 8), std::pair("C64", 8), std::pair("F8_E4M3", 1),
        std::pair("F8_E5M2", 1), std::pair("F8_E8M0", 1), std::pair("I64", 8),
        std::pair("I32", 4), std::pair("I16", 2), std::pair("I8", 1),
        std::pair("U64", 8), std::pair("U32", 4), std::pair("U16", 2),
        std::pair("U8", 1), std::pair("BOOL", 1)}) {
    EXPECT_EQ(of_type(dtype, bytes), "") << dtype;
  }
  EXPECT_THAT(std::string(Parse(FileOf(Fields(R"("dtype":"F99","shape":[1],)"
                                              R"("data_offsets":[0,8])"),
                                       8))
                              .status()
                              .message()),
              HasSubstr("tensor \"t\": unknown dtype \"F99\""));
}

TEST(Safetensors, B08MetadataValues) {
  for (const char* value : {"1", "null", "true", "[]", "{}", "1.5", "-1"}) {
    EXPECT_EQ(
        CodeFor(absl::StrCat("{\"__metadata__\":{\"k\":", value, "}}"), 0),
        "invalid_header")
        << value;
  }
  EXPECT_EQ(CodeFor(R"({"__metadata__":{"k":"v","l":""}})", 0), "");
  EXPECT_EQ(CodeFor(R"({"__metadata__":null})", 0), "");
  EXPECT_EQ(CodeFor(R"({"__metadata__":null,"__metadata__":{}})", 0),
            "invalid_header");
}

TEST(Safetensors, B09AMillionTensors) {
  std::string header = "{";
  for (int i = 0; i < 1'000'000; ++i) {
    absl::StrAppend(&header, i == 0 ? "" : ",", "\"tensor.number.", i,
                    R"(":{"dtype":"F32","shape":[0],"data_offsets":[0,0]})");
  }
  header += "}";
  ASSERT_LT(header.size(), 100'000'000u);
  EXPECT_EQ(CodeFor(header, 0), "limit_exceeded");
}

TEST(Safetensors, B10HeadersOfAnyLengthLoad) {
  for (int padding = 0; padding < 9; ++padding) {
    const std::string header = F32("[2]", "[0,8]") + std::string(padding, ' ');
    auto checkpoint = OpenSafetensors(
        "d", MemoryOpener({{"d/config.json", "{}"},
                           {"d/model.safetensors", FileOf(header, 8)}}));
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    std::string data(8, '?');
    const absl::Status read =
        (*checkpoint)
            ->Read(*(*checkpoint)->Find("t"), 0,
                   {reinterpret_cast<std::byte*>(data.data()), data.size()});
    ASSERT_TRUE(read.ok()) << read;
    EXPECT_EQ(data, "abcdefgh");
  }
}

TEST(Safetensors, EveryBitFlipOfAHeader) {
  std::string bytes =
      FileOf(R"({"__metadata__":{"format":"pt"},)"
             R"("b":{"dtype":"BF16","shape":[2,3],"data_offsets":[4,16]},)"
             R"("a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})",
             16);
  for (size_t bit = 0; bit < (bytes.size() - 16) * 8; ++bit) {
    const auto mask = static_cast<char>(1 << (bit % 8));
    bytes[bit / 8] ^= mask;
    const absl::StatusOr<SafetensorsHeader> header = Parse(bytes);
    if (!header.ok()) {
      EXPECT_EQ(ClassOf(header.status()), ErrorClass::kInput);
      EXPECT_NE(CodeOf(header.status()), "internal");
    } else {
      for (const TensorInfo& tensor : header->tensors) {
        EXPECT_LE(tensor.offset + tensor.bytes, bytes.size());
      }
    }
    bytes[bit / 8] ^= mask;
  }
}

// ---------------------------------------------------------------------------
// Directories

using Files = std::map<std::string, std::string>;

std::string OneTensor(std::string_view name) {
  return FileOf(absl::StrCat("{\"", std::string(name),
                             R"(":{"dtype":"F32","shape":[1],)"
                             R"("data_offsets":[0,4]}})"),
                4);
}

Files TwoShards() {
  return {{"d/config.json", R"({"model_type":"llama"})"},
          {"d/model.safetensors.index.json",
           R"({"metadata":{"total_size":8},"weight_map":)"
           R"({"a":"one.safetensors","b":"two.safetensors"}})"},
          {"d/one.safetensors", OneTensor("a")},
          {"d/two.safetensors", OneTensor("b")}};
}

absl::Status OpenStatus(const Files& files) {
  return OpenSafetensors("d", MemoryOpener(files)).status();
}

TEST(SafetensorsDirectory, ReadsShardsAndSideFiles) {
  Files files = TwoShards();
  files["d/generation_config.json"] = R"({"eos_token_id":[1,2]})";
  files["d/tokenizer.json"] = R"({"version":"1.0"})";
  files["d/chat_template.jinja"] = "{{ messages }}";
  files["d/chat_template.json"] = R"({"chat_template":"x"})";
  const auto checkpoint = OpenSafetensors("d", MemoryOpener(files));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ((*checkpoint)->format(), Checkpoint::Format::kSafetensors);
  ASSERT_THAT((*checkpoint)->tensors(), SizeIs(2));
  EXPECT_EQ((*checkpoint)->Find("a")->file, 0);
  EXPECT_EQ((*checkpoint)->Find("b")->file, 1);
  EXPECT_EQ((*checkpoint)->Find("c"), nullptr);
  const nlohmann::json& side = (*checkpoint)->side_files();
  EXPECT_EQ(side["config.json"]["model_type"], "llama");
  EXPECT_EQ(side["generation_config.json"]["eos_token_id"][1], 2);
  EXPECT_EQ(side["tokenizer.json"]["version"], "1.0");
  EXPECT_EQ(side["chat_template.jinja"], "{{ messages }}");
  EXPECT_EQ(side["chat_template.json"]["chat_template"], "x");
  EXPECT_FALSE(side.contains("tokenizer_config.json"));
  EXPECT_THAT((*checkpoint)->warnings(), IsEmpty());
  EXPECT_EQ((*checkpoint)->file_bytes(), files["d/one.safetensors"].size() * 2);
}

TEST(SafetensorsDirectory, NeedsConfigAndWeights) {
  Files files = TwoShards();
  files.erase("d/config.json");
  EXPECT_EQ(CodeOf(OpenStatus(files)), "not_a_checkpoint");
  EXPECT_EQ(ClassOf(OpenStatus(files)), ErrorClass::kInput);
  files = TwoShards();
  files.erase("d/model.safetensors.index.json");
  EXPECT_EQ(CodeOf(OpenStatus(files)), "not_a_checkpoint");
}

// Headers are enough to describe a model, and so is config.json alone.
TEST(SafetensorsDirectory, WhatIsMissingIsToldWhereHeadersAreEnough) {
  const auto missing = [](const Files& files, size_t tensors) {
    const auto checkpoint =
        OpenSafetensors("d", MemoryOpener(files), Checkpoint::Need::kHeaders);
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
    if (!checkpoint.ok()) return std::string();
    EXPECT_THAT((*checkpoint)->tensors(), SizeIs(tensors));
    return std::string((*checkpoint)->missing().message());
  };
  Files files = TwoShards();
  EXPECT_EQ(missing(files, 2), "");
  files["d/one.safetensors"].pop_back();
  EXPECT_EQ(
      missing(files, 2),
      "d/one.safetensors: tensor \"a\" ends at 4; the file has 3 bytes of "
      "data");
  files["d/one.safetensors"].resize(12);
  EXPECT_THAT(missing(files, 1), HasSubstr("d/one.safetensors: the header"));
  files["d/one.safetensors"] = OneTensor("c");
  EXPECT_THAT(missing(files, 2), HasSubstr("\"a\" is not in"));
  files.erase("d/one.safetensors");
  EXPECT_THAT(missing(files, 1), HasSubstr("\"one.safetensors\" is missing"));
  const char* const index = "d/model.safetensors.index.json";
  files[index] = R"({"weight_map":{}})";
  EXPECT_EQ(missing(files, 0),
            "d/model.safetensors.index.json: \"weight_map\" lists no tensors");
  EXPECT_EQ(CodeOf(OpenStatus(files)), "invalid_index");
  files.erase(index);
  EXPECT_THAT(missing(files, 0), HasSubstr("has neither model.safetensors"));
  files["d/model.safetensors"] = OneTensor("a");
  EXPECT_EQ(missing(files, 1), "");
  // More than 64 bits could count are never described.
  files["d/model.safetensors"] =
      FileOf(R"({"a":{"dtype":"F32","shape":[1152921504606846976],)"
             R"("data_offsets":[0,4611686018427387904]}})",
             4);
  EXPECT_EQ(missing(files, 0).substr(0, 19), "d/model.safetensors");
}

TEST(SafetensorsDirectory, BrokenFilesThatItNeedsAreNamed) {
  for (const char* name : {"d/config.json", "d/model.safetensors.index.json"}) {
    Files files = TwoShards();
    files[name] = "{\"a\":1,\"a\":2}";
    EXPECT_EQ(CodeOf(OpenStatus(files)), "invalid_json");
    EXPECT_THAT(std::string(OpenStatus(files).message()), HasSubstr(name));
  }
}

// Returns the code of the reason why a side file of this text is not read; ""
// if it is.
std::string CodeOfSideFile(const std::string& name, const std::string& text) {
  Files files = TwoShards();
  files["d/" + name] = text;
  const auto checkpoint = OpenSafetensors("d", MemoryOpener(files));
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  if (!checkpoint.ok()) return "";
  const UnreadFiles& unread = (*checkpoint)->unread_files();
  EXPECT_NE(unread.count(name), (*checkpoint)->side_files().count(name));
  if (unread.empty()) return "";
  const absl::Status& why = unread.begin()->second;
  EXPECT_THAT(std::string(why.message()), HasSubstr("d/" + name + ": "));
  return CodeOf(why);
}

TEST(SafetensorsDirectory, BrokenSideFilesAreLeftOut) {
  for (const char* name :
       {"generation_config.json", "tokenizer.json", "tokenizer_config.json",
        "special_tokens_map.json", "added_tokens.json", "vocab.json"}) {
    for (const char* text : {"{\"a\":1,\"a\":2}", "", "{\"a", "[1]", "null",
                             "{\"a\": \"\xff\"}"}) {
      EXPECT_EQ(CodeOfSideFile(name, text), "invalid_json") << name << text;
    }
    EXPECT_EQ(CodeOfSideFile(name, "{}"), "");
  }
  EXPECT_EQ(CodeOfSideFile("chat_template.jinja", "\xff"), "invalid_text");
  EXPECT_EQ(CodeOfSideFile("chat_template.jinja", ""), "");
}

constexpr char kPointer[] =
    "version https://git-lfs.github.com/spec/v1\n"
    "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e23"
    "93\nsize 12345\n";

TEST(SafetensorsDirectory, PointersOfGitLfsAreNamed) {
  Files whole = TwoShards();
  whole["d/model.safetensors"] = OneTensor("a");
  for (const char* name :
       {"d/config.json", "d/two.safetensors", "d/model.safetensors.index.json",
        "d/model.safetensors"}) {
    Files files =
        absl::StrContains(name, "two") || absl::StrContains(name, "index")
            ? TwoShards()
            : whole;
    files[name] = kPointer;
    EXPECT_EQ(CodeOf(OpenStatus(files)), "git_lfs_pointer") << name;
    EXPECT_THAT(std::string(OpenStatus(files).message()), HasSubstr(name));
  }
  for (const char* name :
       {"tokenizer.json", "tokenizer_config.json", "generation_config.json",
        "special_tokens_map.json", "added_tokens.json", "vocab.json",
        "merges.txt", "tokenizer.model", "chat_template.jinja"}) {
    EXPECT_EQ(CodeOfSideFile(name, kPointer), "git_lfs_pointer") << name;
  }
  // A long text that begins so is none.
  whole["d/chat_template.jinja"] = kPointer + std::string(900, ' ');
  EXPECT_TRUE(OpenStatus(whole).ok());
}

TEST(SafetensorsDirectory, AVocabularyIsReadWhereThereIsNoTokenizer) {
  Files files = TwoShards();
  files["d/vocab.json"] = R"({"a":0})";
  files["d/merges.txt"] = "a b\n";
  files["d/tokenizer.model"] = std::string("\n\x80\0", 3);
  const auto side = [&] {
    return (*OpenSafetensors("d", MemoryOpener(files)))->side_files();
  };
  EXPECT_EQ(side()["vocab.json"]["a"], 0);
  EXPECT_EQ(side()["merges.txt"], "a b\n");
  EXPECT_EQ(side()["tokenizer.model"], std::string("\n\x80\0", 3));
  files["d/tokenizer.json"] = "{}";
  EXPECT_FALSE(side().contains("vocab.json"));
  EXPECT_FALSE(side().contains("tokenizer.model"));
  files["d/tokenizer.json"] = "{";  // a broken one is not replaced
  EXPECT_FALSE(side().contains("vocab.json"));
}

TEST(SafetensorsDirectory, HugeSideFileIsRefusedUnread) {
  EXPECT_EQ(CodeOfSideFile("tokenizer.json", std::string((64 << 20) + 1, ' ')),
            "limit_exceeded");
}

TEST(SafetensorsDirectory, B11FileNamesThatLeadElsewhere) {
  for (const char* name :
       {"../../etc/passwd", "/etc/passwd", "a/b", "..", ".", "", "a\\\\b",
        "one.safetensors\\u0000", "./one.safetensors"}) {
    Files files = TwoShards();
    files["d/model.safetensors.index.json"] = absl::StrCat(
        R"({"weight_map":{"a":")", name, R"(","b":"two.safetensors"}})");
    EXPECT_EQ(CodeOf(OpenStatus(files)), "invalid_index") << name;
    EXPECT_THAT(std::string(OpenStatus(files).message()),
                HasSubstr("need a plain file name"));
  }
}

TEST(SafetensorsDirectory, B11IndexOfAnotherForm) {
  for (const char* index :
       {"[]", "{}", "1", R"({"weight_map":[]})", R"({"weight_map":{"a":1}})",
        R"({"weight_map":{"a":null}})", R"({"weight_map":"x"})"}) {
    Files files = TwoShards();
    files["d/model.safetensors.index.json"] = index;
    EXPECT_EQ(CodeOf(OpenStatus(files)), "invalid_index") << index;
  }
}

TEST(SafetensorsDirectory, B11MissingShard) {
  Files files = TwoShards();
  files.erase("d/two.safetensors");
  EXPECT_EQ(CodeOf(OpenStatus(files)), "invalid_index");
  EXPECT_THAT(std::string(OpenStatus(files).message()),
              HasSubstr("two.safetensors"));
}

TEST(SafetensorsDirectory, B11TensorInTheWrongShard) {
  Files files = TwoShards();
  std::swap(files["d/one.safetensors"], files["d/two.safetensors"]);
  EXPECT_EQ(CodeOf(OpenStatus(files)), "invalid_index");
  EXPECT_THAT(std::string(OpenStatus(files).message()), HasSubstr("\"a\""));
}

// A shard may have more than the index lists for it: what the index lists for
// another is left out, and what it lists for none is used.
TEST(SafetensorsDirectory, TensorTheIndexDoesNotListIsAWarning) {
  Files files = TwoShards();
  files["d/one.safetensors"] =
      FileOf(R"({"c":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
             R"("a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
             8);
  files["d/two.safetensors"] =
      FileOf(R"({"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
             R"("a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
             8);
  const auto checkpoint = OpenSafetensors("d", MemoryOpener(files));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ((*checkpoint)->Find("a")->file, 0);
  std::vector<std::string> names;
  for (const TensorInfo& tensor : (*checkpoint)->tensors()) {
    names.push_back(tensor.name);
  }
  EXPECT_THAT(names, ElementsAre("c", "a", "b"));  // in file order
  EXPECT_THAT((*checkpoint)->warnings(),
              ElementsAre(HasSubstr("\"c\" is used, although"),
                          HasSubstr("\"a\" is not used")));
}

TEST(SafetensorsDirectory, ListedTensorOfIntegersIsAWarning) {
  Files files = TwoShards();
  files["d/two.safetensors"] =
      FileOf(R"({"b":{"dtype":"I32","shape":[1],"data_offsets":[0,4]}})", 4);
  const auto checkpoint = OpenSafetensors("d", MemoryOpener(files));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ((*checkpoint)->Find("b"), nullptr);
  EXPECT_THAT((*checkpoint)->warnings(), ElementsAre(HasSubstr("\"b\"")));
}

}  // namespace
}  // namespace tiercel::safetensors_test
