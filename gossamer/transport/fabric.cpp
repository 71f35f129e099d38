#include "gossamer/transport/fabric.h"

#include <string>

#include "gossamer/base/errors.h"

namespace gossamer {
namespace {

HostShape checked_shape(const ClusterSpec& cluster) {
  for (const HostSpec& host : cluster.hosts) {
    if (host.workers < 1) {
      fail_argument({.place = "cluster",
                     .what = "every host must have at least 1 worker",
                     .got = std::to_string(host.workers)});
    }
  }
  HostShape shape = cluster.shape();
  if (shape.workers() < 1) {
    fail_argument({.place = "cluster", .what = "there must be at least 1 worker"});
  }
  return shape;
}

}  // namespace

Fabric::Fabric(const ClusterSpec& cluster, const ThreadsOptions& options)
    : shape_(checked_shape(cluster)), wake_ups_(static_cast<std::size_t>(shape_.workers())) {
  if (options.emulate_links) {
    emulator_ = std::make_unique<LinkEmulator>(cluster, [this](const Cargo& cargo, FlightId id) {
      if (edge(cargo.from, cargo.to).arrive(cargo.tag, id)) ring(cargo.from, cargo.to);
    });
  }
  for (int from = 0; from < workers(); ++from) {
    for (int to = 0; to < workers(); ++to) {
      // What crosses a link is the receiver's own, as between machines: a sender need not wait
      // until it has been read.
      const bool crosses = emulator_ && shape_.host_of(from) != shape_.host_of(to);
      const Lends lends = crosses ? Lends::nothing : Lends::any_memory;
      edges_.emplace_back(from, to, emulator_.get(), lends);
    }
  }
}

Edge& Fabric::edge(int from, int to) {
  return edges_[static_cast<std::size_t>(from) * wake_ups_.size() + static_cast<std::size_t>(to)];
}

Edge& Fabric::edge_of(const Operation& operation) {
  return operation.sending ? edge(operation.rank, operation.peer)
                           : edge(operation.peer, operation.rank);
}

void Fabric::ring(int a, int b) {
  wake_up(a).notify();
  wake_up(b).notify();
}

void Fabric::close(int rank, int peer, const CloseReasons& reasons) {
  const bool sends_ended = edge(rank, peer).close(reasons);
  const bool receives_ended = edge(peer, rank).close({reasons.to_receiver, reasons.to_sender});
  if (sends_ended || receives_ended) ring(rank, peer);
}

std::vector<HostBytes> Fabric::link_bytes() {
  std::vector<HostBytes> bytes(static_cast<std::size_t>(shape_.hosts()));
  for (int from = 0; from < workers(); ++from) {
    for (int to = 0; to < workers(); ++to) {
      const auto a = static_cast<std::size_t>(shape_.host_of(from));
      const auto b = static_cast<std::size_t>(shape_.host_of(to));
      if (a == b) continue;
      const std::int64_t crossed = edge(from, to).traffic().bytes;
      bytes[a].out += crossed;
      bytes[b].in += crossed;
    }
  }
  return bytes;
}

void Fabric::set_link(int host, const LinkSpec& link) {
  if (!emulator_) {
    fail_argument({.place = "links",
                   .what = "this fabric does not emulate links",
                   .remedy = "make it with emulate_links = true"});
  }
  if (host < 0 || host >= shape_.hosts()) {
    fail_argument({.place = "links",
                   .what = "no such host",
                   .got = std::to_string(host) + " of " + std::to_string(shape_.hosts())});
  }
  emulator_->set_link(host, link);
}

}  // namespace gossamer
