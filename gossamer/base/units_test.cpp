#include "gossamer/base/units.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>

#include "gossamer/base/test_errors.h"

namespace gossamer {
namespace {

TEST(ParseRate, BitsAreEightPerByte) {
  EXPECT_DOUBLE_EQ(parse_rate("20Mbit/s"), 2.5e6);
  EXPECT_DOUBLE_EQ(parse_rate("25Gbit/s"), 3.125e9);
  EXPECT_DOUBLE_EQ(parse_rate("8bit/s"), 1);
}

TEST(ParseRate, BytesTakeDecimalAndBinaryPrefixes) {
  EXPECT_DOUBLE_EQ(parse_rate("1.5GB/s"), 1.5e9);
  EXPECT_DOUBLE_EQ(parse_rate("2MiB/s"), 2 * 1048576.0);
  EXPECT_DOUBLE_EQ(parse_rate("7 B/s"), 7);
}

TEST(ParseRate, UnlimitedIsInfinite) { EXPECT_TRUE(std::isinf(parse_rate("unlimited"))); }

TEST(ParseRate, UnknownUnitListsTheValidOnesAndTheNearest) {
  const std::string message =
      message_of<std::invalid_argument>([] { parse_rate("20Mbit", "cluster.toml:3:8"); });
  EXPECT_NE(message.find("[cluster.toml:3:8] unknown unit in '20Mbit', got 'Mbit'"),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("did you mean '20Mbit/s'?"), std::string::npos) << message;
  EXPECT_NE(message.find("GiB/s"), std::string::npos) << message;
}

TEST(Units, HintsKeepTheQuantity) {
  const std::pair<const char*, const char*> rates[] = {
      {"1Gbps", "1Gbit/s"},      {"1Gb/s", "1Gbit/s"}, {"100mbit", "100Mbit/s"},
      {"2 Gbits/s", "2 Gbit/s"}, {"10GBps", "10GB/s"}, {"1gbit/s", "1Gbit/s"},
      {"3MB", "3MB/s"},          {"5Kbps", "5kbit/s"}, {"1.5GiBps", "1.5GiB/s"}};
  for (const auto& [written, meant] : rates) {
    const std::string message = message_of<std::invalid_argument>([&] { parse_rate(written); });
    const std::string hint = "did you mean '" + std::string(meant) + "'?";
    EXPECT_NE(message.find(hint), std::string::npos) << message;
  }
  const std::pair<const char*, const char*> durations[] = {
      {"250msec", "250ms"}, {"5sec", "5s"}, {"1µs", "1us"}, {"2m", "2min"}, {"3hours", "3h"}};
  for (const auto& [written, meant] : durations) {
    const std::string message = message_of<std::invalid_argument>([&] { parse_duration(written); });
    const std::string hint = "did you mean '" + std::string(meant) + "'?";
    EXPECT_NE(message.find(hint), std::string::npos) << message;
  }
  const std::string size = message_of<std::invalid_argument>([] { parse_bytes("8M"); });
  EXPECT_NE(size.find("did you mean '8MB'?"), std::string::npos) << size;
}

TEST(Units, ANumberAloneLacksItsUnit) {
  const std::string message = message_of<std::invalid_argument>([] { parse_rate("1", "plan"); });
  EXPECT_EQ(message,
            "[plan] the unit is missing, got '1'; write a number and a unit, e.g. 20Mbit/s, "
            "1.5GB/s or unlimited");
}

TEST(ParseDuration, EveryUnit) {
  EXPECT_DOUBLE_EQ(parse_duration("5ns"), 5e-9);
  EXPECT_DOUBLE_EQ(parse_duration("200us"), 2e-4);
  EXPECT_DOUBLE_EQ(parse_duration("1ms"), 1e-3);
  EXPECT_DOUBLE_EQ(parse_duration("2s"), 2);
  EXPECT_DOUBLE_EQ(parse_duration("3min"), 180);
  EXPECT_DOUBLE_EQ(parse_duration("1.5h"), 5400);
  EXPECT_DOUBLE_EQ(parse_duration("0s"), 0);
}

TEST(ParseDuration, RefusesWhatIsNotANumberWithAUnit) {
  for (const char* text : {"", "s", "-1s", "+1s", "inf", "nan s", "1", "1 s x", "1e999s", "1S"}) {
    EXPECT_THROW(parse_duration(text), std::invalid_argument) << "'" << text << "'";
  }
}

TEST(ParseBytes, DecimalAndBinary) {
  EXPECT_EQ(parse_bytes("512B"), 512);
  EXPECT_EQ(parse_bytes("8MB"), 8'000'000);
  EXPECT_EQ(parse_bytes("4MiB"), 4 * 1024 * 1024);
  EXPECT_EQ(parse_bytes("1.1MB"), 1'100'000);
  EXPECT_EQ(parse_bytes("2TiB"), std::int64_t{2} << 40);
}

TEST(ParseBytes, RefusesFractionsOfABytesAndOverflow) {
  EXPECT_THROW(parse_bytes("0.5B"), std::invalid_argument);
  EXPECT_THROW(parse_bytes("1.0005kB"), std::invalid_argument);
  EXPECT_THROW(parse_bytes("10000000TB"), std::invalid_argument);
  EXPECT_THROW(parse_bytes("8"), std::invalid_argument);
}

TEST(Units, WhatIsTooLargeForANumberIsNotUnlimited) {
  EXPECT_THROW(parse_rate("1e308TB/s"), std::invalid_argument);
  EXPECT_THROW(parse_duration("1e308h"), std::invalid_argument);
  EXPECT_THROW(parse_bytes("1e308TiB"), std::invalid_argument);
}

TEST(Format, ChoosesTheUnitThatLeavesOneToThreeDigits) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(8e6), "8 MB");
  EXPECT_EQ(format_bytes(1536), "1.54 kB");
  EXPECT_EQ(format_bytes(999'999), "1 MB");
  EXPECT_EQ(format_bytes(999), "999 B");
  EXPECT_EQ(format_rate(2.5e6), "20 Mbit/s");
  EXPECT_EQ(format_rate(3.125e9), "25 Gbit/s");
  EXPECT_EQ(format_rate(INFINITY), "unlimited");
}

TEST(Format, DurationsReadNaturally) {
  EXPECT_EQ(format_duration(0), "0 s");
  EXPECT_EQ(format_duration(2e-4), "200 us");
  EXPECT_EQ(format_duration(1e-6), "1 us");
  EXPECT_EQ(format_duration(0.0123456), "12.3 ms");
  EXPECT_EQ(format_duration(1.5), "1.5 s");
  EXPECT_EQ(format_duration(119), "119 s");
  EXPECT_EQ(format_duration(125), "2 min 5 s");
  EXPECT_EQ(format_duration(3600), "1 h");
  EXPECT_EQ(format_duration(3780), "1 h 3 min");
}

TEST(Format, WhatItPrintsParsesBackToThreeDigits) {
  for (double value = 1e-9; value < 100; value *= 1.37) {
    EXPECT_NEAR(parse_duration(format_duration(value)) / value, 1, 5e-3) << value;
  }
  for (double value = 1; value < 1e14; value *= 1.37) {
    EXPECT_NEAR(parse_rate(format_rate(value)) / value, 1, 5e-3) << value;
  }
}

}  // namespace
}  // namespace gossamer
