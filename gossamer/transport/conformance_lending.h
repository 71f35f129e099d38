#pragma once
/// Conformance, third part: payloads with an owner, which may be read in place.

#include <algorithm>

#include "gossamer/transport/conformance_fixture.h"

namespace gossamer::conformance {

/// A payload and its owner.
struct Owned {
  std::span<const std::byte> payload;
  Owner owner;
};

/// Patterned bytes in memory that the transport lends, or, if it lends none, in any.
inline Owned owned(const Transport& transport, std::size_t size, std::uint64_t seed) {
  const Bytes bytes = pattern(size, seed);
  if (transport.describe().lends == Lends::shared_memory) {
    const auto memory = std::make_shared<SharedMemory>(size + 64);
    std::ranges::copy(bytes, memory->data() + 64);
    return {{memory->data() + 64, size}, std::shared_ptr<const SharedMemory>(memory)};
  }
  const auto memory = std::make_shared<const Bytes>(bytes);
  return {*memory, memory};
}

TEST_P(TransportConformance, OwnedPayloadArrivesAndComesBackWithTheRelease) {
  make(2);
  const bool is_lent = worker(0).describe().lends != Lends::nothing;
  Tag tag;
  for (const std::size_t size : {1UL, 1023UL, 1UL << 20}) {
    for (const bool receive_first : {true, false}) {
      const Owned own = owned(worker(0), size, 5);
      Bytes landing(size);
      Request received = 0;
      if (receive_first) received = worker(1).receive(0, tag, landing, patience());
      const Request sent = worker(0).send(1, tag, own.payload, patience(), own.owner);
      if (!receive_first) received = worker(1).receive(0, tag, landing, patience());
      const Status status = wait(worker(1), received);
      ASSERT_EQ(status.state, Status::State::done);
      EXPECT_TRUE(std::ranges::equal(status.payload, own.payload)) << size << " " << receive_first;
      EXPECT_EQ(status.payload.data() != landing.data(), is_lent);
      if (is_lent) {
        EXPECT_EQ(worker(0).poll(sent).state, Status::State::pending);
      }
      worker(1).release(received);
      EXPECT_EQ(wait(worker(0), sent).state, Status::State::done);
      worker(0).release(sent);
      ++tag.step;
    }
  }
}

TEST_P(TransportConformance, PayloadWithAnOwnerElsewhereArrives) {
  make(2);
  const auto payload = std::make_shared<const Bytes>(pattern(100'000, 3));
  Bytes landing(payload->size());
  const Request received = worker(1).receive(0, {}, landing, patience());
  const Request sent = worker(0).send(1, {}, *payload, patience(), payload);
  EXPECT_EQ(finish(worker(1), received), *payload);
  finish(worker(0), sent);
}

TEST_P(TransportConformance, LentPayloadOutlivesItsDeadlineItsSendAndItsSender) {
  make(3);
  for (const int sender : {0, 2}) {
    Owned own = owned(worker(sender), 4096, 7);
    Bytes landing(4096);
    const Request received = worker(1).receive(sender, {}, landing, patience());
    const Deadline deadline = in_ms(1'000);
    const Request sent = worker(sender).send(1, {}, own.payload, deadline, own.owner);
    ASSERT_EQ(wait(worker(1), received).state, Status::State::done);
    if (sender == 0) {
      while (Clock::now() <= deadline) worker(0).progress(deadline);
      EXPECT_NE(worker(0).poll(sent).state, Status::State::failed);
      worker(0).release(sent);
    } else {
      transports_[2].reset();
    }
    own = {};
    const Status status = worker(1).poll(received);
    ASSERT_EQ(status.state, Status::State::done);
    EXPECT_TRUE(std::ranges::equal(status.payload, pattern(4096, 7)));
    worker(1).release(received);
  }
  expect_exchange(0, 1, {.step = 1}, 64);
}

TEST_P(TransportConformance, BorrowerThatLeavesEndsTheSend) {
  make(2);
  const Owned own = owned(worker(0), 4096, 9);
  Bytes landing(4096);
  const Request received = worker(1).receive(0, {}, landing, patience());
  const Request sent = worker(0).send(1, {}, own.payload, patience(), own.owner);
  ASSERT_EQ(wait(worker(1), received).state, Status::State::done);
  transports_[1].reset();
  EXPECT_NE(wait(worker(0), sent).state, Status::State::pending);
  worker(0).release(sent);
}

TEST_P(TransportConformance, OwnedPayloadThatNobodyReceivesEndsByItsDeadline) {
  make(2);
  const Owned own = owned(worker(0), 4096, 11);
  const Request sent = worker(0).send(1, {}, own.payload, in_ms(50), own.owner);
  EXPECT_NE(wait(worker(0), sent).state, Status::State::pending);
  worker(0).release(sent);
  expect_exchange(0, 1, {.step = 1}, 64);
}

}  // namespace gossamer::conformance
