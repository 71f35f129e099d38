#pragma once
/// Conformance, second part: deadlines, cancelling, closing, leaving and misuse.

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "gossamer/transport/conformance_fixture.h"

namespace gossamer::conformance {

/// Posts with `post` something that must be refused: by std::invalid_argument or a failed request.
template <class Post>
void expect_refused(Transport& transport, Post post) {
  Request request = 0;
  try {
    request = post();
  } catch (const std::invalid_argument&) {
    return;
  }
  EXPECT_FALSE(finish_failed(transport, request).reason.empty());
}

constexpr std::byte kSentinel{0xA5};
inline bool untouched(const Bytes& bytes) { return all_are(bytes, kSentinel); }

/// Backwards, so that a copy still in progress must come across the marks.
inline void mark(Bytes& bytes) {
  constexpr std::size_t kAtOnce = 512;
  std::span<std::byte> left = bytes;
  while (!left.empty()) {
    const std::span<std::byte> last = left.last(std::min(left.size(), kAtOnce));
    std::memset(last.data(), static_cast<int>(kSentinel), last.size());
    left = left.first(left.size() - last.size());
  }
}

TEST_P(TransportConformance, ReceiveWithoutSenderFailsAtItsDeadlineAndOthersGoOn) {
  make(3);
  Bytes landing(8);
  const Deadline start = Clock::now();
  const Request request = worker(0).receive(2, {}, landing, in_ms(50));
  expect_exchange(0, 1, {}, 4096);
  const auto error = finish_failed(worker(0), request);
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(10));
  EXPECT_EQ(error.rank, 0);
  EXPECT_EQ(error.peer, 2);
  EXPECT_EQ(error.operation, "receive");
  EXPECT_EQ(error.fault, Fault::late);
  EXPECT_GE(error.elapsed_s, 0.049);
  EXPECT_FALSE(error.reason.empty());
  expect_exchange(0, 1, {.step = 1}, 4096);
  expect_exchange(2, 0, {.step = 1}, 4096);
}

TEST_P(TransportConformance, SendThatNobodyReceivesEndsByItsDeadline) {
  make(2);
  const Bytes payload = pattern(8 << 20, 1);
  const Request request = worker(0).send(1, {}, payload, in_ms(50));
  const Deadline start = Clock::now();
  const Status status = wait(worker(0), request);  // done if the transport has buffers of its own
  EXPECT_NE(status.state, Status::State::pending);
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(10));
  worker(0).release(request);
  expect_exchange(0, 1, {.step = 1}, 64);
}

TEST_P(TransportConformance, ReleasedReceiveLeavesItsBufferAlone) {
  make(2);
  constexpr std::size_t kSize = 1 << 20;
  const Bytes payload = pattern(kSize, 1);
  Bytes landing(kSize, kSentinel);
  worker(1).release(worker(1).receive(0, {}, landing, patience()));
  const Request sent = worker(0).send(1, {}, payload, in_ms(50));  // comes later
  expect_exchange(0, 1, {.step = 1}, kSize);
  wait(worker(0), sent);
  worker(0).release(sent);
  EXPECT_TRUE(untouched(landing));
}

TEST_P(TransportConformance, ReleaseInTheMiddleOfATransferLeavesBothBuffersAlone) {
  make(2);
  constexpr std::size_t kSize = 4 << 20;
  for (int step = 0; step < 24; ++step) {
    Bytes payload = pattern(kSize, 1);
    Bytes landing(kSize);
    const Request received = worker(1).receive(0, {.step = step}, landing, patience());
    Request sent = 0;
    std::jthread sender([&] { sent = worker(0).send(1, {.step = step}, payload, patience()); });
    std::this_thread::sleep_for(std::chrono::microseconds(50 * step));
    worker(1).release(received);
    mark(landing);
    sender.join();
    worker(0).release(sent);
    std::fill(payload.begin(), payload.end(), kSentinel);  // a race here is seen by TSan
    EXPECT_TRUE(untouched(landing)) << step;
  }
  expect_exchange(0, 1, {.step = 100}, kSize);
}

TEST_P(TransportConformance, LeavingInTheMiddleOfATransferLeavesTheBufferAlone) {
  constexpr std::size_t kSize = 4 << 20;
  const Bytes payload = pattern(kSize, 1);
  for (int step = 0; step < 24; ++step) {
    make(2);
    Bytes landing(kSize);
    worker(1).receive(0, {}, landing, patience());
    Request sent = 0;
    std::jthread sender([&] { sent = worker(0).send(1, {}, payload, patience()); });
    std::this_thread::sleep_for(std::chrono::microseconds(50 * step));
    transports_[1].reset();
    mark(landing);
    sender.join();
    wait(worker(0), sent);
    worker(0).release(sent);
    EXPECT_TRUE(untouched(landing)) << step;
  }
}

TEST_P(TransportConformance, CancelledRequestsDoNotDisturbOthers) {
  make(2);
  constexpr int kMessages = 60;
  std::vector<Bytes> payloads;
  std::vector<Bytes> landings;
  for (int i = 0; i < kMessages; ++i) {
    payloads.push_back(pattern(3000, static_cast<std::uint64_t>(i)));
    landings.emplace_back(3000, kSentinel);
  }
  std::vector<Request> sent;
  std::vector<Request> received;
  for (int i = 0; i < kMessages; ++i) {
    const auto k = static_cast<std::size_t>(i);
    received.push_back(worker(1).receive(0, {.step = i}, landings[k], patience()));
    if (i % 3 == 1) {
      worker(1).release(received.back());
      received.back() = 0;
    }
  }
  for (int i = 0; i < kMessages; ++i) {
    const auto k = static_cast<std::size_t>(i);
    sent.push_back(worker(0).send(1, {.step = i}, payloads[k], patience()));
  }
  for (std::size_t i = 0; i < kMessages; ++i) {
    if (received[i] != 0) {
      EXPECT_EQ(finish(worker(1), received[i]), payloads[i]) << i;
      finish(worker(0), sent[i]);
    } else {
      worker(0).release(sent[i]);  // whatever has become of it
      EXPECT_TRUE(untouched(landings[i])) << i;
    }
  }
}

TEST_P(TransportConformance, DifferentSizesFailBothSides) {
  make(2);
  for (const std::size_t size : {0UL, 9UL, 17UL, 1UL << 20}) {
    const auto step = static_cast<std::int64_t>(size);
    const Bytes payload = pattern(size, 1);
    Bytes landing(16);
    const Request received = worker(1).receive(0, {.step = step}, landing, in_ms(20'000));
    const Request sent = worker(0).send(1, {.step = step}, payload, in_ms(20'000));
    const auto receiver_error = finish_failed(worker(1), received);
    EXPECT_NE(receiver_error.reason.find("16"), std::string::npos) << receiver_error.reason;
    EXPECT_NE(receiver_error.reason.find(std::to_string(size)), std::string::npos);
    EXPECT_EQ(receiver_error.fault, size == 0 ? Fault::refused : Fault::other);
    EXPECT_EQ(finish_failed(worker(0), sent).operation, "send");
  }
  expect_exchange(0, 1, {.step = 1}, 100);
}

TEST_P(TransportConformance, CloseFailsPendingAndLaterRequestsOnBothSidesOnly) {
  make(3);
  Bytes landing(8);
  const Bytes payload = pattern(8, 1);
  const Request own = worker(0).receive(1, {}, landing, in_ms(20'000));
  Bytes other_landing(8);
  const Request other = worker(1).receive(0, {}, other_landing, in_ms(20'000));
  worker(0).close(1);
  EXPECT_EQ(worker(0).poll(own).state, Status::State::failed);  // at once
  const auto error = finish_failed(worker(0), own);
  EXPECT_EQ(error.peer, 1);
  EXPECT_EQ(error.fault, Fault::lost);
  EXPECT_LT(error.elapsed_s, 19);
  const auto other_error = finish_failed(worker(1), other);
  EXPECT_EQ(other_error.fault, Fault::lost);
  EXPECT_LT(other_error.elapsed_s, 19);
  for (int side = 0; side < 2; ++side) {
    Transport& me = worker(side);
    const Request sent = me.send(1 - side, {.step = 1}, payload, in_ms(20'000));
    EXPECT_LT(finish_failed(me, sent).elapsed_s, 19);
    const Request received = me.receive(1 - side, {.step = 1}, landing, in_ms(20'000));
    EXPECT_LT(finish_failed(me, received).elapsed_s, 19);
  }
  worker(0).close(1);  // again: nothing happens
  expect_exchange(0, 2, {}, 4096);
  expect_exchange(2, 1, {}, 4096);
}

TEST_P(TransportConformance, PeerThatLeavesFailsWhatIsPendingWithIt) {
  make(3);
  Bytes landing(8);
  Bytes abandoned(8);
  const Bytes payload = pattern(1 << 20, 1);
  const Request pending = worker(0).receive(2, {}, landing, in_ms(20'000));
  const Request sent = worker(0).send(2, {.step = 1}, payload, in_ms(20'000));
  worker(2).receive(0, {.step = 9}, abandoned, in_ms(20'000));
  transports_[2].reset();
  const auto error = finish_failed(worker(0), pending);
  EXPECT_EQ(error.peer, 2);
  EXPECT_EQ(error.fault, Fault::lost);
  EXPECT_LT(error.elapsed_s, 19);
  wait(worker(0), sent);
  worker(0).release(sent);
  const Request later = worker(0).receive(2, {.step = 2}, landing, in_ms(20'000));
  EXPECT_LT(finish_failed(worker(0), later).elapsed_s, 19);
  expect_exchange(0, 1, {}, 4096);
}

TEST_P(TransportConformance, WorkersMayLeaveWhileOthersStillTalk) {
  make(4);
  on_every_worker([&](int rank) {
    Bytes landing(50'000);
    const Bytes payload = pattern(50'000, 1);
    Transport& me = worker(rank);
    for (int step = 0; step < 10 + 10 * rank; ++step) {  // worker 0 leaves first, then 1, …
      const Tag tag{.step = step};
      const Request unheard = me.send((rank + 2) % 4, tag, payload, patience());
      const Request received = me.receive((rank + 1) % 4, tag, landing, patience());
      const Request sent = me.send((rank + 3) % 4, tag, payload, patience());
      for (const Request request : {received, sent}) {
        if (wait(me, request).state == Status::State::done) {
          me.release(request);
        } else {
          EXPECT_LT(finish_failed(me, request).elapsed_s, 30);  // by the peer, not by the deadline
        }
      }
      if (step % 2 == 0) me.release(unheard);
    }
    transports_[static_cast<std::size_t>(rank)].reset();
  });
}

TEST_P(TransportConformance, PendingTagIsRefused) {
  make(2);
  Bytes first(8);
  Bytes second(8);
  const Bytes payload = pattern(8, 1);
  const Request request = worker(1).receive(0, {}, first, patience());
  expect_refused(worker(1), [&] { return worker(1).receive(0, {}, second, patience()); });
  const Request sent = worker(0).send(1, {}, payload, patience());
  EXPECT_EQ(finish(worker(1), request), payload);
  finish(worker(0), sent);
}

TEST_P(TransportConformance, OneselfAndNoRankAreRefused) {
  make(2);
  Bytes landing(8);
  for (const int peer : {-1, 0, 2, 1000}) {
    EXPECT_THROW(worker(0).send(peer, {}, landing, patience()), std::invalid_argument) << peer;
    EXPECT_THROW(worker(0).receive(peer, {}, landing, patience()), std::invalid_argument) << peer;
    EXPECT_THROW(worker(0).close(peer), std::invalid_argument) << peer;
  }
}

TEST_P(TransportConformance, ReleaseOfNoRequestDoesNothing) {
  make(1);
  worker(0).release(0);
  EXPECT_EQ(worker(0).describe().workers, 1);
}

}  // namespace gossamer::conformance
