#include "gossamer/engine/collectives.h"

#include <cstring>

#include "gossamer/base/errors.h"
#include "gossamer/engine/tags.h"
#include "gossamer/graph/round.h"

namespace gossamer {
namespace {

std::span<std::byte> bytes_of(std::string& text) { return std::as_writable_bytes(std::span(text)); }

/// A text that several can be made one of: rank and length stand before it.
std::string packed(std::int64_t rank, const std::string& text) {
  const std::int64_t head[2] = {rank, static_cast<std::int64_t>(text.size())};
  std::string all(sizeof head, '\0');
  std::memcpy(all.data(), head, sizeof head);
  return all + text;
}

std::vector<std::string> unpacked(const std::string& all, int workers) {
  std::vector<std::string> texts(static_cast<std::size_t>(workers));
  for (std::size_t at = 0; at < all.size();) {
    std::int64_t head[2];
    std::memcpy(head, all.data() + at, sizeof head);
    const auto size = static_cast<std::size_t>(head[1]);
    texts.at(static_cast<std::size_t>(head[0])) = all.substr(at + sizeof head, size);
    at += sizeof head + size;
  }
  return texts;
}

}  // namespace

void Collectives::mean(DType dtype, const void* from, void* into, std::int64_t count) {
  const Plan plan =
      compile(complete_round(workers()), shape_, rank_, count, {.finished_averages = true});
  Arena arena;
  const auto exchange = runner_.launch({.plan = &plan,
                                        .dtype = dtype,
                                        .arena = &arena,
                                        .step = calls_++,
                                        .stream = stream::kCollectives},
                                       {.data = from});
  exchange->wait();
  for (const Piece& piece : plan.pieces) {
    const Slice own{0, piece.offset, piece.count};
    const std::byte* result = exchange->at(piece.terms.empty() ? own : piece.terms[0].slice);
    const std::size_t element = size_of(dtype);
    std::memmove(static_cast<std::byte*>(into) + static_cast<std::size_t>(piece.offset) * element,
                 result, static_cast<std::size_t>(piece.count) * element);
  }
  exchange->finish();
}

std::vector<int> tree_peers(int rank, int workers) {
  std::vector<int> peers;
  if (rank > 0) peers.push_back((rank - 1) / 2);
  for (int child = 2 * rank + 1; child <= 2 * rank + 2 && child < workers; ++child) {
    peers.push_back(child);
  }
  return peers;
}

Tag Collectives::next_tag() { return {calls_++, stream::kCollectives, 0}; }

void Collectives::finish(Request request, std::span<std::byte> landing) {
  Transport& transport = runner_.transport();
  Status status = transport.poll(request);
  while (status.state == Status::State::pending) {
    transport.progress(Clock::now() + std::chrono::milliseconds(5));
    runner_.while_waiting();
    status = transport.poll(request);
  }
  land(status, landing.data());
  transport.release(request);
  if (status.error) std::rethrow_exception(status.error);
}

void Collectives::broadcast(std::span<std::byte> bytes) {
  const Tag tag = next_tag();
  const Deadline deadline = deadline_after(runner_.timeout_s());
  Transport& transport = runner_.transport();
  std::vector<Request> sends;
  for (const int peer : tree_peers(rank_, workers())) {
    if (peer < rank_) {
      finish(transport.receive(peer, tag, bytes, deadline), bytes);
    } else {
      sends.push_back(transport.send(peer, tag, bytes, deadline));
    }
  }
  for (const Request send : sends) finish(send);
}

void Collectives::send_text(int peer, const std::string& text, std::int64_t call) {
  const Deadline deadline = deadline_after(runner_.timeout_s());
  std::uint64_t size = text.size();
  const std::span<const std::byte> head = std::as_bytes(std::span(&size, 1));
  Transport& transport = runner_.transport();
  const Request first = transport.send(peer, {call, stream::kCollectives, 0}, head, deadline);
  const Request second = transport.send(peer, {call, stream::kCollectives, 1},
                                        std::as_bytes(std::span(text)), deadline);
  finish(first);
  finish(second);
}

std::string Collectives::receive_text(int peer, std::int64_t call) {
  const Deadline deadline = deadline_after(runner_.timeout_s());
  std::uint64_t size = 0;
  const std::span<std::byte> head = std::as_writable_bytes(std::span(&size, 1));
  Transport& transport = runner_.transport();
  finish(transport.receive(peer, {call, stream::kCollectives, 0}, head, deadline), head);
  std::string text(size, '\0');
  finish(transport.receive(peer, {call, stream::kCollectives, 1}, bytes_of(text), deadline),
         bytes_of(text));
  return text;
}

std::vector<std::string> Collectives::gather(const std::string& own) {
  const std::int64_t call = calls_++;
  std::string all = packed(rank_, own);
  for (const int peer : tree_peers(rank_, workers())) {
    if (peer > rank_) all += receive_text(peer, call);
  }
  if (rank_ > 0) send_text((rank_ - 1) / 2, all, call);
  std::uint64_t size = all.size();
  broadcast(std::as_writable_bytes(std::span(&size, 1)));
  all.resize(size);
  broadcast(bytes_of(all));
  return unpacked(all, workers());
}

void Collectives::barrier() {
  double nothing = 0;
  mean({&nothing, 1});
}

}  // namespace gossamer
