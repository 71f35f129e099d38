#include "gossamer/sim/late.h"

#include <utility>

namespace gossamer::sim {

LateBoard::LateBoard(const SimMethod& method, const Workload& workload, const HostShape& shape,
                     Network& network, Exchanges::OnMessage on_message)
    : workload_(workload),
      staleness_(method.staleness),
      network_(network),
      book_(method, shape, workload, shape.workers(), network),
      on_message_(std::move(on_message)) {}

LateBoard::Edge& LateBoard::edge(int number, int bucket) {
  const std::size_t buckets = workload_.buckets.size();
  const auto all = static_cast<std::size_t>(network_.edges()) * buckets;
  if (edges_.size() < all) edges_.resize(all);
  return edges_[static_cast<std::size_t>(number) * buckets + static_cast<std::size_t>(bucket)];
}

void LateBoard::send(SimTime now, int worker, int bucket, std::int64_t step) {
  const auto all = book_.find(bucket, step);
  for (const ScriptSend& send : all->of(worker).all_sends) {
    Edge& to = edge(send.edge, bucket);
    if (std::exchange(to.is_under_way, true)) continue;
    network_.depart(now, network_.make(now, {.from = worker,
                                             .to = send.to,
                                             .edge = send.edge,
                                             .bucket = bucket,
                                             .exchange = step,
                                             .bytes = send.bytes}));
  }
}

void LateBoard::arrived(SimTime now, TransferId id) {
  const Transfer& transfer = network_.at(id);
  const Parcel parcel = transfer.parcel;
  if (on_message_) on_message_(message_of(transfer, now));
  network_.remove(id);
  Edge& from = edge(parcel.edge, parcel.bucket);
  from.is_under_way = false;
  from.has_newer = true;
}

int LateBoard::take(int worker, int bucket, std::int64_t step) {
  int skipped = 0;
  const auto all = book_.find(bucket, step);
  for (const ScriptReceive& receive : all->of(worker).all_receives) {
    Edge& from = edge(receive.edge, bucket);
    if (std::exchange(from.has_newer, false)) from.since = step;
    if (from.since < 0 || step - from.since > staleness_) ++skipped;
  }
  return skipped;
}

}  // namespace gossamer::sim
