#include "gossamer/engine/collectives.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "gossamer/base/errors.h"
#include "gossamer/base/index.h"
#include "gossamer/engine/elements.h"
#include "gossamer/engine/tags.h"
#include "gossamer/graph/round.h"
#include "gossamer/transport/scoped_request.h"

namespace gossamer {
namespace {

/// A call that is begun again has a number of its own.
constexpr std::int64_t kCallsOfAnAttempt = std::int64_t{1} << 48;

/// At most.
constexpr std::int64_t kCallsOfAStep = 1 << 16;

/// Beyond all numbers of other calls.
constexpr std::int64_t kFirstOfSettled = std::int64_t{1} << 47;

std::span<std::byte> bytes_of(std::string& text) { return std::as_writable_bytes(std::span(text)); }

/// A text that several can be made one of: position and length stand before it.
std::string packed(std::int64_t position, const std::string& text) {
  const std::int64_t head[2] = {position, std::ssize(text)};
  std::string all(sizeof head, '\0');
  std::memcpy(all.data(), head, sizeof head);
  return all + text;
}

std::vector<std::string> unpacked(const std::string& all, int workers) {
  std::vector<std::string> texts(at(workers));
  for (std::size_t begin = 0; begin < all.size();) {
    std::int64_t head[2];
    std::memcpy(head, all.data() + begin, sizeof head);
    const std::size_t size = at(head[1]);
    texts.at(at(head[0])) = all.substr(begin + sizeof head, size);
    begin += sizeof head + size;
  }
  return texts;
}

}  // namespace

void Collectives::go_on_without(LostPeers& lost, Lookout& lookout) {
  council_ = std::make_unique<Council>(runner_.transport(), seating_, lost, lookout,
                                       runner_.timeout_s(), [this] { runner_.while_waiting(); });
}

void Collectives::at_step(std::int64_t steps) {
  if (!council_) return;
  calls_ = std::max(calls_, steps * kCallsOfAStep);
  steps_ = steps;
  council_->at_step(steps);
}

std::vector<int> Collectives::took_part() const { return ranks_of(circle_.seating); }

/// Does the work among those that are left, until they all have done it. It may be done several
/// times, each with a call number of its own.
template <class Work>
void Collectives::among_those_left(std::int64_t call, const Work& work) {
  circle_.call = call;
  if (!council_) return work();
  for (bool is_done = false; !is_done;) {
    circle_.seating = council_->begin(call);
    if (council_->is_over()) return;
    circle_.tree = tree_of(circle_.seating);
    circle_.call = call + council_->attempt() * kCallsOfAnAttempt;
    try {
      work();
      is_done = council_->end();
    } catch (const CallBegunAnew&) {
      continue;
    } catch (const TransportError& error) {
      const Fault fault = error.details().fault;
      if (fault == Fault::late || fault == Fault::other) throw;
    }
  }
}

void Collectives::mean(DType dtype, const void* from, void* into, std::int64_t count) {
  if (!council_) {
    return among_those_left(
        [&] { mean_among_those_left(dtype, from, into, count, stream::kCollectives); });
  }
  const auto* const begin = static_cast<const std::byte*>(from);
  const std::vector<std::byte> kept(begin, begin + at(count) * size_of(dtype));
  among_those_left(
      [&] { mean_among_those_left(dtype, kept.data(), into, count, stream::kCollectives); });
}

Seating Collectives::settle(std::int64_t number, const Seating& among,
                            const std::function<void()>& again) {
  if (council_) council_->at_step(steps_ + 1);
  among_those_left(kFirstOfSettled + number, [&] {
    if (!have_same_ranks(circle_.seating, among)) again();
  });
  return circle_.seating;
}

void Collectives::mean_among_those_left(DType dtype, const void* from, void* into,
                                        std::int64_t count, std::int32_t stream) {
  const Seating& seating = circle_.seating;
  const Plan plan =
      compile(complete_round(seating.workers()), seating, count, {.finished_averages = true});
  Arena arena;
  const auto exchange = runner_.launch(
      {.plan = &plan, .dtype = dtype, .arena = &arena, .step = circle_.call, .stream = stream},
      {.data = from});
  wait(*exchange);
  for (const Piece& piece : plan.pieces) {
    const Slice own{0, piece.offset, piece.count};
    const std::byte* result = exchange->at(piece.terms.empty() ? own : piece.terms[0].slice);
    elements::copy(dtype, elements::address(dtype, into, piece.offset), result, piece.count);
  }
  exchange->finish();
}

void Collectives::while_waiting() {
  runner_.while_waiting();
  if (council_) council_->check();
}

void Collectives::wait(Exchange& exchange) {
  if (!council_) return exchange.wait();
  try {
    while (!exchange.advance()) {
      runner_.transport().progress(Clock::now() + std::chrono::milliseconds(5));
      while_waiting();
    }
    exchange.wait();
  } catch (...) {
    exchange.give_up();
    throw;
  }
}

void Collectives::finish(Request request, std::span<std::byte> landing) {
  Transport& transport = runner_.transport();
  const ScopedRequest releases{transport, request};
  Status status = transport.poll(request);
  while (status.state == Status::State::pending) {
    transport.progress(Clock::now() + std::chrono::milliseconds(5));
    while_waiting();
    status = transport.poll(request);
  }
  if (status.error) std::rethrow_exception(status.error);
  land(status, landing.data());
}

void Collectives::broadcast(std::span<std::byte> bytes) {
  among_those_left([&] { broadcast_once(bytes, 0); });
}

void Collectives::broadcast_once(std::span<std::byte> bytes, std::int32_t slot) {
  const Tag tag{circle_.call, stream::kCollectives, slot};
  const Deadline deadline = deadline_after(runner_.timeout_s());
  const Tree& tree = circle_.tree;
  Transport& transport = runner_.transport();
  if (tree.parent >= 0) finish(transport.receive(tree.parent, tag, bytes, deadline), bytes);
  std::vector<ScopedRequest> sends;
  for (const int child : tree.children) {
    sends.emplace_back(transport, transport.send(child, tag, bytes, deadline));
  }
  for (ScopedRequest& send : sends) finish(send.take());
}

void Collectives::broadcast(std::string& text) {
  among_those_left([&] { broadcast_once(text, 0); });
}

void Collectives::broadcast_once(std::string& text, std::int32_t slot) {
  std::uint64_t size = text.size();
  broadcast_once(std::as_writable_bytes(std::span(&size, 1)), slot);
  text.resize(size);
  broadcast_once(bytes_of(text), slot + 1);
}

void Collectives::send_text(int peer, const std::string& text) {
  const Deadline deadline = deadline_after(runner_.timeout_s());
  std::uint64_t size = text.size();
  const std::span<const std::byte> head = std::as_bytes(std::span(&size, 1));
  const Tag of_size{circle_.call, stream::kCollectives, 0};
  const Tag of_text{circle_.call, stream::kCollectives, 1};
  Transport& transport = runner_.transport();
  ScopedRequest first{transport, transport.send(peer, of_size, head, deadline)};
  ScopedRequest second{transport,
                       transport.send(peer, of_text, std::as_bytes(std::span(text)), deadline)};
  finish(first.take());
  finish(second.take());
}

std::string Collectives::receive_text(int peer) {
  const Deadline deadline = deadline_after(runner_.timeout_s());
  const Tag of_size{circle_.call, stream::kCollectives, 0};
  const Tag of_text{circle_.call, stream::kCollectives, 1};
  std::uint64_t size = 0;
  const std::span<std::byte> head = std::as_writable_bytes(std::span(&size, 1));
  Transport& transport = runner_.transport();
  finish(transport.receive(peer, of_size, head, deadline), head);
  std::string text(size, '\0');
  finish(transport.receive(peer, of_text, bytes_of(text), deadline), bytes_of(text));
  return text;
}

std::vector<std::string> Collectives::gather(const std::string& own) {
  std::string all;
  among_those_left([&] {
    all = packed(seating_.position, own);
    for (const int child : circle_.tree.children) all += receive_text(child);
    if (circle_.tree.parent >= 0) send_text(circle_.tree.parent, all);
    broadcast_once(all, 2);
  });
  return unpacked(all, workers());
}

void Collectives::barrier() {
  double nothing = 0;
  mean({&nothing, 1});
}

}  // namespace gossamer
