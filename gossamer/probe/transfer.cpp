#include "gossamer/probe/transfer.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>

#include "gossamer/engine/tags.h"

namespace gossamer {
namespace {

constexpr std::size_t kUnderWay = 4;
constexpr std::int64_t kMostMessages = std::int64_t{1} << 24;  // of a transfer, at most
constexpr int kRoundTrips = 21;
constexpr int kWarmUp = 3;
constexpr std::size_t kSmall = 64;

double since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace

Transfers::Transfers(ExchangeRunner& runner, std::int64_t most_bytes)
    : runner_(runner),
      outgoing_(std::make_shared<SharedMemory>(static_cast<std::size_t>(most_bytes))),
      incoming_(std::make_shared<SharedMemory>(static_cast<std::size_t>(most_bytes) * kUnderWay)) {
  // Pages that were never written would be read faster than parameters are.
  std::memset(outgoing_->data(), 1, outgoing_->size());
  std::memset(incoming_->data(), 1, incoming_->size());
}

Request Transfers::post(std::int64_t number, std::int64_t message, int peer, bool sends,
                        std::span<std::byte> bytes) {
  const Tag tag{number * kMostMessages + message, stream::kProbe, 0};
  const Deadline deadline = deadline_after(runner_.timeout_s());
  Transport& transport = runner_.transport();
  return sends ? transport.send(peer, tag, bytes, deadline, outgoing_)
               : transport.receive(peer, tag, bytes, deadline);
}

bool Transfers::has_ended(Request request, std::span<std::byte> landing) {
  Transport& transport = runner_.transport();
  const Status status = transport.poll(request);
  if (status.state == Status::State::pending) return false;
  if (!landing.empty()) land(status, landing.data());
  transport.release(request);
  if (status.error) std::rethrow_exception(status.error);
  return true;
}

void Transfers::nap() {
  runner_.transport().progress(Clock::now() + kLongestNap);
  runner_.while_waiting();
}

void Transfers::finish(Request request, std::span<std::byte> landing) {
  while (!has_ended(request, landing)) nap();
}

double Transfers::run(std::int64_t number, const Transfer& transfer) {
  const auto size = static_cast<std::size_t>(transfer.message_bytes);
  const std::int64_t to_send = transfer.to < 0 ? 0 : transfer.messages;
  const std::int64_t to_take = transfer.from < 0 ? 0 : transfer.messages;
  const auto landing = [&](std::int64_t message) {
    const auto place = static_cast<std::size_t>(message) % kUnderWay;
    return std::span(incoming_->data() + place * size, size);
  };
  std::deque<Request> sends;
  std::deque<std::pair<Request, std::int64_t>> takes;
  std::int64_t sent = 0;
  std::int64_t taken = 0;
  const auto begin = Clock::now();
  while (true) {
    for (; taken < to_take && takes.size() < kUnderWay; ++taken) {
      takes.emplace_back(post(number, taken, transfer.from, false, landing(taken)), taken);
    }
    for (; sent < to_send && sends.size() < kUnderWay; ++sent) {
      sends.push_back(post(number, sent, transfer.to, true, {outgoing_->data(), size}));
    }
    if (sends.empty() && takes.empty()) return to_send + to_take == 0 ? 0 : since(begin);
    // Whatever ends first makes room: who waited for one kind only could wait for a peer that
    // waits.
    bool moved = false;
    while (!takes.empty() && has_ended(takes.front().first, landing(takes.front().second))) {
      takes.pop_front();
      moved = true;
    }
    while (!sends.empty() && has_ended(sends.front(), {})) {
      sends.pop_front();
      moved = true;
    }
    if (!moved) nap();
  }
}

double Transfers::one_way_s(std::int64_t number, int peer, bool leads) {
  const std::span<std::byte> out(outgoing_->data(), kSmall);
  const std::span<std::byte> in(incoming_->data(), kSmall);
  std::vector<double> trips;
  for (int k = 0; k < kRoundTrips; ++k) {
    const auto begin = Clock::now();
    const auto send = [&] { return post(number, 2 * k + (leads ? 0 : 1), peer, true, out); };
    const auto take = [&] { return post(number, 2 * k + (leads ? 1 : 0), peer, false, in); };
    if (leads) {
      const Request there = send();
      finish(take(), in);
      if (k >= kWarmUp) trips.push_back(since(begin));
      finish(there, {});
    } else {
      finish(take(), in);
      finish(send(), {});
    }
  }
  if (trips.empty()) return 0;
  const auto middle = trips.begin() + std::ssize(trips) / 2;
  std::ranges::nth_element(trips, middle);
  return *middle / 2;
}

}  // namespace gossamer
