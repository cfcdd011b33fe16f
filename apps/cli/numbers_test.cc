#include "apps/cli/numbers.h"

#include <cstdint>
#include <limits>

#include "gtest/gtest.h"

namespace tiercel::cli {
namespace {

TEST(ParseIntTest, ReadsWholeNumbers) {
  EXPECT_EQ(ParseInt("0"), 0);
  EXPECT_EQ(ParseInt("-1"), -1);
  EXPECT_EQ(ParseInt("007"), 7);
  EXPECT_EQ(ParseInt("9223372036854775807"),
            std::numeric_limits<int64_t>::max());
  EXPECT_EQ(ParseInt("-9223372036854775808"),
            std::numeric_limits<int64_t>::min());
}

TEST(ParseIntTest, RefusesEverythingElse) {
  for (const char* text :
       {"", " ", "+1", " 1", "1 ", "1x", "x", "1.0", "1e3", "0x10", "--1", "-",
        "1,000", "9223372036854775808", "-9223372036854775809"}) {
    EXPECT_FALSE(ParseInt(text).has_value()) << "'" << text << "'";
  }
  EXPECT_FALSE(ParseInt(std::string_view("1\0", 2)).has_value());
}

TEST(ParseUnsignedTest, HasNoSign) {
  EXPECT_EQ(ParseUnsigned("18446744073709551615"),
            std::numeric_limits<uint64_t>::max());
  EXPECT_FALSE(ParseUnsigned("-1").has_value());
  EXPECT_FALSE(ParseUnsigned("18446744073709551616").has_value());
}

TEST(ParseRealTest, ReadsFiniteNumbersOnly) {
  EXPECT_EQ(ParseReal("0.8"), 0.8);
  EXPECT_EQ(ParseReal("-1"), -1.0);
  EXPECT_EQ(ParseReal("1e3"), 1000.0);
  EXPECT_EQ(ParseReal(".5"), 0.5);
  for (const char* text : {"", "nan", "inf", "-inf", "1e400", "0,8", "1 ",
                           "0.8f", "infinity", "0x1p3"}) {
    EXPECT_FALSE(ParseReal(text).has_value()) << "'" << text << "'";
  }
}

TEST(ParseTokenCountTest, AThousandIs1024) {
  EXPECT_EQ(ParseTokenCount("4k"), 4096);
  EXPECT_EQ(ParseTokenCount("1K"), 1024);
  EXPECT_EQ(ParseTokenCount("4096"), 4096);
  EXPECT_EQ(ParseTokenCount("-1"), -1);
  for (const char* text :
       {"", "k", "4kk", "4.5k", "-4k", "4 k", "4m", "9007199254740992k"}) {
    EXPECT_FALSE(ParseTokenCount(text).has_value()) << text;
  }
}

TEST(ParseIntListTest, NeedsANumberBetweenCommas) {
  EXPECT_EQ(ParseIntList("512"), std::vector<int64_t>({512}));
  EXPECT_EQ(ParseIntList("0,-1,7"), std::vector<int64_t>({0, -1, 7}));
  for (const char* text : {"", ",", "1,", ",1", "1,,2", "1, 2", "1;2"}) {
    EXPECT_FALSE(ParseIntList(text).has_value()) << "'" << text << "'";
  }
}

TEST(ParseSeedRangeTest, FirstToLast) {
  const std::optional<SeedRange> range = ParseSeedRange("3:7");
  ASSERT_TRUE(range.has_value());
  EXPECT_EQ(range->first, 3u);
  EXPECT_EQ(range->last, 7u);
  EXPECT_EQ(ParseSeedRange("5:5")->last, 5u);
  EXPECT_EQ(ParseSeedRange("0:18446744073709551615")->last,
            std::numeric_limits<uint64_t>::max());
  for (const char* text : {"", ":", "3", "3:", ":3", "7:3", "-1:3", "1:2:3"}) {
    EXPECT_FALSE(ParseSeedRange(text).has_value()) << "'" << text << "'";
  }
}

TEST(ParseSizeTest, UnitsOf1024AndOf1000) {
  EXPECT_EQ(ParseSize("4096"), 4096);
  EXPECT_EQ(ParseSize("7B"), 7);
  EXPECT_EQ(ParseSize("1KiB"), 1024);
  EXPECT_EQ(ParseSize("1.5MiB"), 1.5 * 1048576);
  EXPECT_EQ(ParseSize("24GiB"), 24.0 * 1073741824);
  EXPECT_EQ(ParseSize("3kB"), 3e3);
  EXPECT_EQ(ParseSize("500MB"), 5e8);
  EXPECT_EQ(ParseSize("0.5GB"), 5e8);
  for (const char* text : {"", "0", "-1", "GiB", "1gib", "1 GiB", "1KB", "1e30",
                           "nan", "1GiBB", "0.1"}) {
    EXPECT_FALSE(ParseSize(text).has_value()) << text;
  }
}

TEST(ParseSimulationTest, DeviceLinkAndLatency) {
  const auto all = ParseSimulation("device=24GiB,link=25GB/s,latency=10");
  ASSERT_TRUE(all.has_value());
  EXPECT_EQ(all->device_bytes, uint64_t{24} << 30);
  EXPECT_EQ(all->link_bytes_per_s, 25e9);
  EXPECT_EQ(all->latency_us, 10);
  const auto two = ParseSimulation("link=2GB/s,device=100MB");
  ASSERT_TRUE(two.has_value());
  EXPECT_EQ(two->device_bytes, 100'000'000u);
  EXPECT_EQ(two->latency_us, 0);
  EXPECT_FALSE(two->strict_seed.has_value());
  const auto strict = ParseSimulation("device=1GB,strict=7,link=1GB/s");
  ASSERT_TRUE(strict.has_value());
  EXPECT_EQ(strict->device_bytes, 1'000'000'000u);
  EXPECT_EQ(strict->strict_seed, 7u);
  const auto host = ParseSimulation("device=1GB,host=3GB/s,link=1GB/s");
  ASSERT_TRUE(host.has_value());
  EXPECT_EQ(host->host_bytes_per_s, 3e9);
  EXPECT_EQ(strict->host_bytes_per_s, 0);
  const auto alone = ParseSimulation("strict=0");
  ASSERT_TRUE(alone.has_value());
  EXPECT_EQ(alone->device_bytes, 0u);
  EXPECT_EQ(alone->strict_seed, 0u);
  for (const char* text : {"",
                           "strict=",
                           "strict=-1",
                           "strict=1.5",
                           "strict=1,strict=2",
                           "strict=1,device=1GB",
                           "strict=1,latency=3",
                           "device=1GB",
                           "link=1GB/s",
                           "device=1GB,link=1GB",
                           "device=1GB,link=1GB/s,latency=-1",
                           "device=1GB,link=1GB/s,speed=1",
                           "device=1GB,device=1GB,link=1GB/s",
                           "device=1GB,,link=1GB/s",
                           "device=,link=1GB/s",
                           "1GB,1GB/s",
                           "device=1GB,link=/s",
                           "host=1GB/s",
                           "device=1GB,host=1GB/s",
                           "device=1GB,link=1GB/s,host=1GB",
                           "strict=1,host=1GB/s",
                           "device=1GB,link=1GB/s,host=1GB/s,host=1GB/s"}) {
    EXPECT_FALSE(ParseSimulation(text).has_value()) << text;
  }
}

TEST(GroupedTest, ThreeDigitsEach) {
  EXPECT_EQ(Grouped(0), "0");
  EXPECT_EQ(Grouped(999), "999");
  EXPECT_EQ(Grouped(1000), "1,000");
  EXPECT_EQ(Grouped(7012345), "7,012,345");
  EXPECT_EQ(Grouped(-999), "-999");
  EXPECT_EQ(Grouped(-1000), "-1,000");
  EXPECT_EQ(Grouped(std::numeric_limits<int64_t>::min()),
            "-9,223,372,036,854,775,808");
}

TEST(BytesTest, PicksTheUnit) {
  EXPECT_EQ(Bytes(0), "0 B");
  EXPECT_EQ(Bytes(1023), "1023 B");
  EXPECT_EQ(Bytes(1024), "1.00 KiB");
  EXPECT_EQ(Bytes(1.5 * 1024 * 1024), "1.50 MiB");
  EXPECT_EQ(Bytes(5.0 * 1024 * 1024 * 1024 * 1024 * 1024), "5120.00 TiB");
}

TEST(FixedTest, DigitsAfterThePoint) {
  EXPECT_EQ(Fixed(1.005, 1), "1.0");
  EXPECT_EQ(Fixed(-0.5, 2), "-0.50");
  EXPECT_EQ(Fixed(1234567.0, 0), "1234567");
  EXPECT_EQ(Fixed(std::numeric_limits<double>::max(), 2).size(), 312u);
}

}  // namespace
}  // namespace tiercel::cli
