#include "gossamer/engine/collectives.h"

#include <cstring>

#include "gossamer/base/errors.h"
#include "gossamer/graph/round.h"

namespace gossamer {
namespace {
constexpr std::int32_t kCollectiveStream = -1;
}

void Collectives::mean(DType dtype, const void* from, void* into, std::int64_t count) {
  const Plan plan =
      compile(complete_round(workers()), shape_, rank_, count, {.finished_averages = true});
  Arena arena;
  const auto exchange = runner_.launch({.plan = &plan,
                                        .dtype = dtype,
                                        .arena = &arena,
                                        .step = calls_++,
                                        .stream = kCollectiveStream},
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

Tag Collectives::next_tag() { return {calls_++, kCollectiveStream, 0}; }

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

void Collectives::barrier() {
  double nothing = 0;
  mean({&nothing, 1});
}

}  // namespace gossamer
