#include "models/format/metadata.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/status/error.h"

namespace tiercel::metadata_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Metadata Sample() {
  Metadata m;
  m.Set("int", int64_t{-5});
  m.Set("uint", uint64_t{7});
  m.Set("huge", UINT64_MAX);
  m.Set("float", 1.5);
  m.Set("bool", true);
  m.Set("text", std::string("x"));
  m.Set("ints", std::vector<int64_t>{-1, 2});
  m.Set("uints", std::vector<uint64_t>{1, 2});
  m.Set("huges", std::vector<uint64_t>{UINT64_MAX});
  m.Set("floats", std::vector<double>{0.5});
  m.Set("texts", std::vector<std::string>{"a", "b"});
  m.Set("bools", std::vector<bool>{true});
  return m;
}

template <typename T>
std::string CodeFor(const absl::StatusOr<T>& value) {
  return value.ok() ? "" : CodeOf(value.status());
}

TEST(Metadata, GetInt) {
  const Metadata m = Sample();
  EXPECT_EQ(*m.GetInt("int", -5, 5), -5);
  EXPECT_EQ(*m.GetInt("uint", 0, 7), 7);
  for (const auto& [key, least, most] :
       {std::tuple("int", -4, 5), std::tuple("uint", 0, 6),
        std::tuple("uint", 8, 9), std::tuple("absent", 0, 9),
        std::tuple("float", 0, 9), std::tuple("bool", 0, 9),
        std::tuple("text", 0, 9), std::tuple("uints", 0, 9)}) {
    EXPECT_EQ(CodeFor(m.GetInt(key, least, most)), "invalid_metadata") << key;
  }
  EXPECT_EQ(CodeFor(m.GetInt("huge", INT64_MIN, INT64_MAX)),
            "invalid_metadata");
  EXPECT_THAT(std::string(m.GetInt("huge", 0, 9).status().message()),
              HasSubstr("\"huge\" is 18446744073709551615; need 0 to 9"));
  EXPECT_THAT(std::string(m.GetInt("text", 0, 9).status().message()),
              HasSubstr("\"text\" is a string; need an integer"));
}

TEST(Metadata, FindIsEmptyForAbsentKeysOnly) {
  const Metadata m = Sample();
  EXPECT_FALSE(m.FindInt("absent", 0, 9)->has_value());
  EXPECT_FALSE(m.FindFloat("absent")->has_value());
  EXPECT_FALSE(m.FindBool("absent")->has_value());
  EXPECT_FALSE(m.FindString("absent")->has_value());
  EXPECT_FALSE(m.FindInts("absent")->has_value());
  EXPECT_FALSE(m.FindFloats("absent")->has_value());
  EXPECT_EQ(*m.FindStrings("absent"), nullptr);
  EXPECT_EQ(m.FindFloat("float")->value(), 1.5);
  EXPECT_EQ(m.FindBool("bool")->value(), true);
  EXPECT_EQ(m.FindString("text")->value(), "x");
  EXPECT_THAT(**m.FindStrings("texts"), ElementsAre("a", "b"));
  EXPECT_EQ(CodeFor(m.FindFloat("int")), "invalid_metadata");
  EXPECT_EQ(CodeFor(m.FindBool("int")), "invalid_metadata");
  EXPECT_EQ(CodeFor(m.FindString("int")), "invalid_metadata");
  EXPECT_EQ(CodeFor(m.FindStrings("text")), "invalid_metadata");
}

TEST(Metadata, ArraysAreConverted) {
  const Metadata m = Sample();
  EXPECT_THAT(**m.FindInts("ints"), ElementsAre(-1, 2));
  EXPECT_THAT(**m.FindInts("uints"), ElementsAre(1, 2));
  EXPECT_THAT(**m.FindFloats("ints"), ElementsAre(-1.0, 2.0));
  EXPECT_THAT(**m.FindFloats("uints"), ElementsAre(1.0, 2.0));
  EXPECT_THAT(**m.FindFloats("floats"), ElementsAre(0.5));
  EXPECT_EQ(CodeFor(m.FindInts("huges")), "invalid_metadata");
  EXPECT_EQ(CodeFor(m.FindInts("floats")), "invalid_metadata");
  EXPECT_EQ(CodeFor(m.FindInts("int")), "invalid_metadata");
  EXPECT_EQ(CodeFor(m.FindFloats("bools")), "invalid_metadata");
  EXPECT_EQ(CodeFor(m.FindFloats("texts")), "invalid_metadata");
}

}  // namespace
}  // namespace tiercel::metadata_test
