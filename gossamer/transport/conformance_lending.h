#pragma once
/// Conformance, third part: payloads with an owner, which may be read in place.

#include <algorithm>

#include "gossamer/transport/conformance_fixture.h"

namespace gossamer::conformance {

/// A payload and its owner.
inline std::shared_ptr<const Bytes> owned(std::size_t size, std::uint64_t seed) {
  return std::make_shared<const Bytes>(pattern(size, seed));
}

TEST_P(TransportConformance, OwnedPayloadArrivesAndComesBackWithTheRelease) {
  make(2);
  Tag tag;
  for (const std::size_t size : {1UL, 1023UL, 1UL << 20}) {
    for (const bool receive_first : {true, false}) {
      const auto payload = owned(size, 5);
      Bytes landing(size);
      Request received = 0;
      if (receive_first) received = worker(1).receive(0, tag, landing, patience());
      const Request sent = worker(0).send(1, tag, *payload, patience(), payload);
      if (!receive_first) received = worker(1).receive(0, tag, landing, patience());
      const Status status = wait(worker(1), received);
      ASSERT_EQ(status.state, Status::State::done);
      EXPECT_TRUE(std::ranges::equal(status.payload, *payload)) << size << " " << receive_first;
      const bool in_place = status.payload.data() == payload->data();
      EXPECT_EQ(in_place, worker(0).describe().serves_in_place);
      if (in_place) {
        EXPECT_EQ(worker(0).poll(sent).state, Status::State::pending);
      }
      worker(1).release(received);
      EXPECT_EQ(wait(worker(0), sent).state, Status::State::done);
      worker(0).release(sent);
      ++tag.step;
    }
  }
}

TEST_P(TransportConformance, LentPayloadOutlivesItsDeadlineItsSendAndItsSender) {
  make(3);
  for (const int sender : {0, 2}) {
    auto payload = owned(4096, 7);
    Bytes landing(4096);
    const Request received = worker(1).receive(sender, {}, landing, patience());
    const Deadline deadline = in_ms(1'000);
    const Request sent = worker(sender).send(1, {}, *payload, deadline, payload);
    ASSERT_EQ(wait(worker(1), received).state, Status::State::done);
    if (sender == 0) {
      while (Clock::now() <= deadline) worker(0).progress(deadline);
      EXPECT_NE(worker(0).poll(sent).state, Status::State::failed);
      worker(0).release(sent);
    } else {
      transports_[2].reset();
    }
    payload.reset();
    const Status status = worker(1).poll(received);
    ASSERT_EQ(status.state, Status::State::done);
    EXPECT_TRUE(std::ranges::equal(status.payload, pattern(4096, 7)));
    worker(1).release(received);
  }
  expect_exchange(0, 1, {.step = 1}, 64);
}

TEST_P(TransportConformance, BorrowerThatLeavesEndsTheSend) {
  make(2);
  const auto payload = owned(4096, 9);
  Bytes landing(4096);
  const Request received = worker(1).receive(0, {}, landing, patience());
  const Request sent = worker(0).send(1, {}, *payload, patience(), payload);
  ASSERT_EQ(wait(worker(1), received).state, Status::State::done);
  transports_[1].reset();
  EXPECT_NE(wait(worker(0), sent).state, Status::State::pending);
  worker(0).release(sent);
}

TEST_P(TransportConformance, OwnedPayloadThatNobodyReceivesEndsByItsDeadline) {
  make(2);
  const auto payload = owned(4096, 11);
  const Request sent = worker(0).send(1, {}, *payload, in_ms(50), payload);
  EXPECT_NE(wait(worker(0), sent).state, Status::State::pending);
  worker(0).release(sent);
  expect_exchange(0, 1, {.step = 1}, 64);
}

}  // namespace gossamer::conformance
