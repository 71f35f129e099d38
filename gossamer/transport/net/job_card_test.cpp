#include "gossamer/transport/net/job_card.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "gossamer/base/test_errors.h"

namespace gossamer {
namespace {

const JobCard kJobCard{.place = {.machine = "boot/4",
                                 .name = "a \"name\"",
                                 .node = "3",
                                 .local_rank = 1,
                                 .local_workers = 2},
                       .reach = "boot/4/0",
                       .nonce = "00ff",
                       .has_secret = true};

TEST(JobCard, IsReadAsItWasWritten) {
  const JobCard read = job_card_of(to_text(kJobCard), 0, "train");
  EXPECT_EQ(to_text(read), to_text(kJobCard));
  EXPECT_EQ(read.place.name, kJobCard.place.name);
  EXPECT_EQ(read.place.local_workers, 2);
  EXPECT_TRUE(read.has_secret);
}

/// Whoever reaches the store can write what it likes there.
TEST(JobCard, WhatIsNoneIsRefusedInOneMessage) {
  std::string large = to_text(kJobCard);
  large.replace(large.find(":1,"), 3, ":99999999999,");
  const std::string texts[] = {"",
                               "5",
                               "[]",
                               "{}",
                               "{\"machine\":\"a\"}",
                               large,
                               "{\"machine\":5}",
                               "\x1b[31m",
                               std::string(100, '[')};
  for (const std::string& text : texts) {
    const std::string said =
        message_of<std::invalid_argument>([&] { job_card_of(text, 3, "train"); });
    EXPECT_TRUE(said.starts_with("[train] what the store says of rank 3")) << said;
  }
}

}  // namespace
}  // namespace gossamer
