#include "gossamer/base/errors.h"

#include <gtest/gtest.h>

#include <array>

namespace gossamer {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"ring", "star", "hypercube", "torus"};

TEST(Complaint, HasTheFormPlaceWhatGotRemedy) {
  EXPECT_EQ(to_string({"topology", "ring needs a worker", "0", "use at least 1"}),
            "[topology] ring needs a worker, got 0; use at least 1");
}

TEST(Complaint, LeavesOutEmptyParts) {
  EXPECT_EQ(to_string({.place = "a", .what = "b"}), "[a] b");
  EXPECT_EQ(to_string({.place = "a", .what = "b", .remedy = "c"}), "[a] b; c");
}

TEST(Errors, EachKindHasItsType) {
  EXPECT_THROW(fail_argument({"a", "b"}), std::invalid_argument);
  EXPECT_THROW(fail_io({"a", "b"}), IoError);
  EXPECT_THROW(GOSSAMER_ASSERT(1 == 2), std::logic_error);
  EXPECT_NO_THROW(GOSSAMER_ASSERT(1 == 1));
}

TEST(Errors, AnAssertionNamesConditionAndFile) {
  try {
    GOSSAMER_ASSERT(1 == 2);
    FAIL() << "did not throw";
  } catch (const std::logic_error& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("1 == 2"), std::string::npos) << message;
    EXPECT_NE(message.find("errors_test.cpp"), std::string::npos) << message;
  }
}

TEST(TransportError, NamesBothWorkersTheOperationAndTheTime) {
  const TransportError error(
      {.rank = 3, .peer = 5, .operation = "receive", .elapsed_s = 1.5, .reason = "deadline"});
  EXPECT_STREQ(error.what(),
               "[transport] worker 3: receive with worker 5 failed after 1.500 s: deadline");
  EXPECT_EQ(error.details().peer, 5);
}

TEST(NearestName, ForgivesTypingErrors) {
  EXPECT_EQ(nearest_name("rinf", kNames), "ring");
  EXPECT_EQ(nearest_name("hyper_cube", kNames), "hypercube");
  EXPECT_EQ(nearest_name("tours", kNames), "torus");
}

TEST(NearestName, IsEmptyWhereNothingIsClose) {
  EXPECT_EQ(nearest_name("exponential", kNames), "");
  EXPECT_EQ(nearest_name("ring", {}), "");
}

TEST(NearestName, KnowsTheWordsOfOtherPrograms) {
  constexpr std::string_view kKeys[] = {"lr", "lr_schedule", "steps", "global_batch"};
  EXPECT_EQ(nearest_name("learning_rate", kKeys), "lr");
  EXPECT_EQ(nearest_name("batch_size", kKeys), "global_batch");
  EXPECT_EQ(nearest_name("learning_rate", kNames), "");
}

TEST(UnknownName, ListsTheValidOnesAndTheNearest) {
  try {
    fail_unknown_name("topology", "name", "rinf", kNames);
    FAIL() << "did not throw";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(),
                 "[topology] unknown name, got 'rinf'; did you mean 'ring'? "
                 "valid: ring, star, hypercube, torus");
  }
}

TEST(UnknownName, GuessesNothingWhereNothingIsClose) {
  try {
    fail_unknown_name("topology", "name", "exponential", kNames);
    FAIL() << "did not throw";
  } catch (const std::invalid_argument& error) {
    EXPECT_EQ(std::string(error.what()).find("did you mean"), std::string::npos) << error.what();
  }
}

TEST(Printable, LeavesTextAsItIs) {
  for (const char* text :
       {"", "a key", "\xc3\xa9", "\xc2\xa0", "\xe2\x82\xac", "\xf0\x9f\x90\x9d"}) {
    EXPECT_EQ(printable(text), text);
  }
}

TEST(Printable, WritesWhatATerminalWouldObeyAsNumbers) {
  EXPECT_EQ(printable("a\x1b]0;b\x07"), "a\\x1b]0;b\\x07");
  EXPECT_EQ(printable("a\nb\x7f"), "a\\x0ab\\x7f");
  EXPECT_EQ(printable(std::string_view("\0", 1)), "\\x00");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\xc2\\x9b31m");  // control of Unicode
}

TEST(Printable, WritesWhatIsNoUtf8AsNumbers) {
  EXPECT_EQ(printable("\x9b"
                      "a"),
            "\\x9ba");
  EXPECT_EQ(printable("\xe2\x82"), "\\xe2\\x82");                    // cut off
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf");                    // longer than it may be
  EXPECT_EQ(printable("\xe0\x80\x9b"), "\\xe0\\x80\\x9b");           // the same
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // half of a pair
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // beyond Unicode
}

TEST(Complaint, IsPrintable) {
  EXPECT_EQ(to_string({.place = "x\x1b", .what = "b\nad", .got = "\x9b", .remedy = "\a"}),
            "[x\\x1b] b\\x0aad, got \\x9b; \\x07");
  const TransportError error({.operation = "send", .reason = "\x1b]0;owned\x07"});
  EXPECT_NE(std::string(error.what()).find("\\x1b]0;owned\\x07"), std::string::npos);
}

}  // namespace
}  // namespace gossamer
