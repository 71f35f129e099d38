#pragma once
/// What the tests of the conformance suite share: cases, patterned buffers, and waiting.

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "gossamer/base/errors.h"
#include "gossamer/base/rng.h"
#include "gossamer/transport/transport.h"

namespace gossamer::conformance {

/// A transport under test: its name, and a maker of `workers` connected transports by rank.
struct Case {
  std::string name;
  std::function<std::vector<std::unique_ptr<Transport>>(int workers)> make;
};

inline std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }
inline std::string name_of(const ::testing::TestParamInfo<Case>& info) { return info.param.name; }

using Bytes = std::vector<std::byte>;

// Loops over single bytes take seconds under the thread sanitizer, so whole ranges are handled.

/// `size` bytes that differ between seeds and positions.
inline Bytes pattern(std::size_t size, std::uint64_t seed) {
  Rng rng(seed, size);
  std::vector<std::uint64_t> words((size + 7) / 8);
  for (std::uint64_t& word : words) word = rng.next();
  Bytes bytes(size);
  if (size != 0) std::memcpy(bytes.data(), words.data(), size);
  return bytes;
}

inline bool same(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

inline bool all_are(std::span<const std::byte> bytes, std::byte value) {
  return bytes.empty() ||
         (bytes[0] == value && same(bytes.subspan(1), bytes.first(bytes.size() - 1)));
}

inline Deadline in_ms(int ms) { return Clock::now() + std::chrono::milliseconds(ms); }
/// Long enough for the slowest machine; no passing test waits for it.
inline Deadline patience() { return in_ms(60'000); }

/// Progresses until the request has ended.
inline Status wait(Transport& transport, Request request) {
  for (;;) {
    const Status status = transport.poll(request);
    if (status.state != Status::State::pending) return status;
    transport.progress(patience());
  }
}

/// Waits and releases; the content of a receive is returned as a copy. Fails the test on an error.
inline Bytes finish(Transport& transport, Request request) {
  const Status status = wait(transport, request);
  Bytes content(status.payload.begin(), status.payload.end());
  if (status.state == Status::State::failed) {
    try {
      std::rethrow_exception(status.error);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
  transport.release(request);
  return content;
}

/// Waits for the request, which must fail, releases it and returns what the error says.
inline TransportError::Details finish_failed(Transport& transport, Request request) {
  const Status status = wait(transport, request);
  EXPECT_EQ(status.state, Status::State::failed);
  TransportError::Details details;
  if (status.error) {
    try {
      std::rethrow_exception(status.error);
    } catch (const TransportError& error) {
      details = error.details();
    } catch (const std::exception& error) {
      ADD_FAILURE() << "not a TransportError: " << error.what();
    }
  }
  transport.release(request);
  return details;
}

class TransportConformance : public ::testing::TestWithParam<Case> {
 protected:
  void make(int workers) { transports_ = GetParam().make(workers); }
  int workers() const { return static_cast<int>(transports_.size()); }
  Transport& worker(int rank) { return *transports_[static_cast<std::size_t>(rank)]; }

  /// One thread per worker runs `body(rank)`.
  void on_every_worker(const std::function<void(int rank)>& body) {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < workers(); ++rank) threads.emplace_back(body, rank);
  }

  /// Sends `size` patterned bytes between two workers and checks what arrives.
  void expect_exchange(int from, int to, Tag tag, std::size_t size) {
    const Bytes payload = pattern(size, 11);
    Bytes landing(size);
    const Request received = worker(to).receive(from, tag, landing, patience());
    const Request sent = worker(from).send(to, tag, payload, patience());
    EXPECT_TRUE(same(finish(worker(to), received), payload));
    finish(worker(from), sent);
  }

  std::vector<std::unique_ptr<Transport>> transports_;
};

}  // namespace gossamer::conformance
