#include "gossamer/engine/collectives.h"

#include <cstring>

#include "gossamer/base/index.h"
#include "gossamer/engine/elements.h"
#include "gossamer/engine/tags.h"
#include "gossamer/graph/round.h"

namespace gossamer {
namespace {

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

void Collectives::mean(DType dtype, const void* from, void* into, std::int64_t count) {
  const Plan plan =
      compile(complete_round(workers()), seating_, count, {.finished_averages = true});
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
    elements::copy(dtype, elements::address(dtype, into, piece.offset), result, piece.count);
  }
  exchange->finish();
}

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
  const Tag tag{calls_++, stream::kCollectives, 0};
  const Deadline deadline = deadline_after(runner_.timeout_s());
  Transport& transport = runner_.transport();
  if (tree_.parent >= 0) finish(transport.receive(tree_.parent, tag, bytes, deadline), bytes);
  std::vector<Request> sends;
  for (const int child : tree_.children) {
    sends.push_back(transport.send(child, tag, bytes, deadline));
  }
  for (const Request send : sends) finish(send);
}

void Collectives::broadcast(std::string& text) {
  std::uint64_t size = text.size();
  broadcast(std::as_writable_bytes(std::span(&size, 1)));
  text.resize(size);
  broadcast(bytes_of(text));
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
  std::string all = packed(seating_.position, own);
  for (const int child : tree_.children) all += receive_text(child, call);
  if (tree_.parent >= 0) send_text(tree_.parent, all, call);
  broadcast(all);
  return unpacked(all, workers());
}

void Collectives::barrier() {
  double nothing = 0;
  mean({&nothing, 1});
}

}  // namespace gossamer
