#include "gossamer/transport/net/store_entry.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "gossamer/base/test_errors.h"

namespace gossamer {
namespace {

const StoreEntry kEntry{.place = {.machine = "boot/4",
                                  .name = "a \"name\"",
                                  .node = "3",
                                  .local_rank = 1,
                                  .local_workers = 2},
                        .reach = "boot/4/0",
                        .nonce = "00ff",
                        .has_secret = true};

TEST(StoreEntry, IsReadAsItWasWritten) {
  const StoreEntry read = store_entry_of(to_text(kEntry), 0, "train");
  EXPECT_EQ(to_text(read), to_text(kEntry));
  EXPECT_EQ(read.place.name, kEntry.place.name);
  EXPECT_EQ(read.place.local_workers, 2);
  EXPECT_TRUE(read.has_secret);
}

/// Whoever reaches the store can write what it likes there.
TEST(StoreEntry, WhatIsNoneIsRefusedInOneMessage) {
  std::string large = to_text(kEntry);
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
    const std::string message =
        message_of<std::invalid_argument>([&] { store_entry_of(text, 3, "train"); });
    EXPECT_TRUE(message.starts_with("[train] what the store says of rank 3")) << message;
  }
}

}  // namespace
}  // namespace gossamer
