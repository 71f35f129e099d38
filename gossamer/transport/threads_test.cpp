#include "gossamer/transport/threads.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

#include "gossamer/transport/conformance_fixture.h"

namespace gossamer {
namespace {

using conformance::Bytes;
using conformance::finish;
using conformance::finish_failed;
using conformance::in_ms;
using conformance::patience;
using conformance::pattern;

ClusterSpec two_hosts(const LinkSpec& link, int per_host = 1) {
  ClusterSpec cluster;
  cluster.hosts = {{per_host, link, {}}, {per_host, link, {}}};
  return cluster;
}

double exchange_s(ThreadsFabric& fabric, std::size_t from, std::size_t to, const Bytes& payload,
                  Tag tag) {
  Bytes landing(payload.size());
  const Deadline start = Clock::now();
  Transport& sender = *fabric.transports[from];
  Transport& receiver = *fabric.transports[to];
  const Request received = receiver.receive(static_cast<int>(from), tag, landing, patience());
  const Request sent = sender.send(static_cast<int>(to), tag, payload, patience());
  EXPECT_TRUE(finish(receiver, received) == payload);
  finish(sender, sent);
  return std::chrono::duration<double>(Clock::now() - start).count();
}

TEST(Threads, FabricsOfOneProcessAreIndependent) {
  ThreadsFabric first = make_threads_fabric(two_hosts({}));
  ThreadsFabric second = make_threads_fabric(two_hosts({}));
  Bytes landing(8);
  const Bytes payload = pattern(8, 1);
  const Request sent = first.transports[0]->send(1, {}, payload, patience());
  const Request request = second.transports[1]->receive(0, {}, landing, in_ms(10));
  EXPECT_EQ(finish_failed(*second.transports[1], request).peer, 0);
  first.transports[0]->release(sent);
}

TEST(Threads, LinkBytesCountOnlyWhatCrossesHosts) {
  for (const bool emulate : {false, true}) {
    ThreadsFabric fabric = make_threads_fabric(two_hosts({1e9, 0}, 2), {.emulate_links = emulate});
    exchange_s(fabric, 0, 1, pattern(1000, 1), {});
    exchange_s(fabric, 0, 2, pattern(300, 1), {});
    exchange_s(fabric, 1, 3, pattern(40, 1), {});
    exchange_s(fabric, 3, 0, pattern(5, 1), {});
    const auto bytes = fabric.link_bytes();
    ASSERT_EQ(bytes.size(), 2U);
    EXPECT_EQ(bytes[0].out, 340);
    EXPECT_EQ(bytes[0].in, 5);
    EXPECT_EQ(bytes[1].out, 5);
    EXPECT_EQ(bytes[1].in, 340);
  }
}

TEST(Threads, EmulatedLinkIsNotFasterThanItsRateAndLatency) {
  ThreadsFabric fabric = make_threads_fabric(two_hosts({10e6, 0.01}), {.emulate_links = true});
  const Bytes payload = pattern(300'000, 1);
  EXPECT_GE(exchange_s(fabric, 0, 1, payload, {}), 0.04);
  fabric.set_link(0, {5e6, 0.02});
  EXPECT_GE(exchange_s(fabric, 0, 1, payload, {.step = 1}), 0.08);
}

TEST(Threads, WorkersOfAHostShareItsEmulatedLink) {
  ThreadsFabric fabric = make_threads_fabric(two_hosts({10e6, 0}, 4), {.emulate_links = true});
  const Bytes payload = pattern(100'000, 1);
  const Deadline start = Clock::now();
  {
    std::vector<std::jthread> threads;
    for (std::size_t w = 0; w < 4; ++w) {
      threads.emplace_back([&, w] { exchange_s(fabric, w, 4 + w, payload, {}); });
    }
  }
  EXPECT_GE(Clock::now() - start, std::chrono::milliseconds(40));
}

TEST(Threads, JourneyStartsWithTheSendNotWithTheReceive) {
  ThreadsFabric fabric = make_threads_fabric(two_hosts({1e9, 0.01}), {.emulate_links = true});
  const Bytes payload = pattern(100, 1);
  Bytes landing(100);
  Transport& receiver = *fabric.transports[1];
  const Request sent = fabric.transports[0]->send(1, {}, payload, patience());
  // Receives that are taken back at once: only one that finds the payload there can be done.
  Request received = receiver.receive(0, {}, landing, patience());
  while (receiver.poll(received).state == Status::State::pending) {
    receiver.release(received);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    received = receiver.receive(0, {}, landing, patience());
  }
  EXPECT_EQ(finish(receiver, received), payload);
  EXPECT_EQ(fabric.transports[0]->poll(sent).state, Status::State::done);
  fabric.transports[0]->release(sent);
}

TEST(Threads, WhatCrossesAnEmulatedLinkIsTheReceiversOwn) {
  ThreadsFabric fabric = make_threads_fabric(two_hosts({1e9, 1e-4}), {.emulate_links = true});
  const auto payload = std::make_shared<const Bytes>(pattern(100, 1));
  Bytes landing(100);
  Transport& sender = *fabric.transports[0];
  Transport& receiver = *fabric.transports[1];
  const Request received = receiver.receive(0, {}, landing, patience());
  const Request sent = sender.send(1, {}, *payload, patience(), payload);
  EXPECT_EQ(conformance::wait(receiver, received).payload.data(), landing.data());
  EXPECT_EQ(sender.poll(sent).state, Status::State::done);  // the receive is not released yet
  EXPECT_EQ(landing, *payload);
  receiver.release(received);
  sender.release(sent);
}

TEST(Threads, PayloadOnASlowLinkIsNotDoneBeforeItsDeadline) {
  ThreadsFabric fabric = make_threads_fabric(two_hosts({1000, 0}), {.emulate_links = true});
  const Bytes payload = pattern(100'000, 1);  // 100 s
  Bytes landing(payload.size());
  const Request sent = fabric.transports[0]->send(1, {}, payload, in_ms(10));
  const Request received = fabric.transports[1]->receive(0, {}, landing, in_ms(10));
  EXPECT_NE(finish_failed(*fabric.transports[1], received).reason.find("link"), std::string::npos);
  EXPECT_EQ(finish_failed(*fabric.transports[0], sent).operation, "send");
}

TEST(Threads, LostSendLeavesItsReceiveForANewOne) {
  for (const bool emulate : {false, true}) {
    ThreadsFabric fabric = make_threads_fabric(two_hosts({1e9, 1e-4}), {.emulate_links = emulate});
    const Bytes lost = pattern(50, 1);
    const Bytes payload = pattern(50, 2);
    Bytes landing(50);
    Transport& sender = *fabric.transports[0];
    Transport& receiver = *fabric.transports[1];
    sender.release(sender.send(1, {}, lost, patience()));
    const Request received = receiver.receive(0, {}, landing, patience());
    EXPECT_EQ(receiver.poll(received).state, Status::State::pending);
    const Request sent = sender.send(1, {}, payload, patience());
    EXPECT_EQ(finish(receiver, received), payload);
    finish(sender, sent);
  }
}

TEST(Threads, HandleOutlivesTheTransports) {
  ThreadsFabric fabric = make_threads_fabric(two_hosts({1e9, 0}), {.emulate_links = true});
  exchange_s(fabric, 0, 1, pattern(77, 1), {});
  fabric.transports.clear();
  EXPECT_EQ(fabric.link_bytes()[0].out, 77);
  fabric.set_link(1, {1e6, 0});
}

TEST(Threads, MisuseIsRefused) {
  EXPECT_THROW(make_threads_fabric({}), std::invalid_argument);
  EXPECT_THROW(make_threads_fabric(two_hosts({}, 0)), std::invalid_argument);
  ThreadsFabric free = make_threads_fabric(two_hosts({}));
  EXPECT_THROW(free.set_link(0, {1e6, 0}), std::invalid_argument);
  EXPECT_THROW(free.transports[0]->poll(5), std::invalid_argument);
  ThreadsFabric emulated = make_threads_fabric(two_hosts({}), {.emulate_links = true});
  EXPECT_THROW(emulated.set_link(2, {1e6, 0}), std::invalid_argument);
  EXPECT_THROW(emulated.set_link(0, {0, 0}), std::invalid_argument);
}

}  // namespace
}  // namespace gossamer
