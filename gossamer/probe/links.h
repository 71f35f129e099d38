#pragma once
/// How fast the links between the workers of a job are, measured by transfers between them.

#include <vector>

#include "gossamer/base/cluster.h"
#include "gossamer/engine/collectives.h"
#include "gossamer/engine/exchange_runner.h"

namespace gossamer {

struct LinkProbeOptions {
  double transfer_s = 1.0;  ///< about how long the transfers that count take
  int most_rounds = 8;      ///< in each of which every host talks to one other
  /// Bytes that cross a link for each byte that is sent: links are rated by the former.
  double overhead = 1;
};

/// Note [Probed links]: hosts talk in pairs, all pairs at once and both ways, every worker with its
/// counterpart; then the workers of each host in a circle, all at once. A transfer is done with m
/// and 4m messages and the difference counts, so that what a queue holds and what starting costs
/// cancels; m is found by trying, and the quickest of several counts. A pair is as fast as its
/// slower link, so a host's rate is that of its fastest pair, and its latency that of its quickest:
/// a host that is faster than all others is taken for as fast as the second. Hosts that differ by
/// less than 5 % (latencies: 40 %) are taken for equal.
///
/// Returns the same on all workers, and leaves unlimited what cannot be measured: links of a single
/// host, the inside of hosts with one worker. Takes about 4 · transfer_s for each round.
/// Collective.
ClusterSpec probe_links(ExchangeRunner& runner, Collectives& collectives,
                        const LinkProbeOptions& options = {});

/// Sets the device links of the cluster's hosts from what each worker has measured of its own,
/// while all did: unlimited where it has no device. Means over the workers of a host; hosts that
/// differ by less than probe_links() tells apart are taken for equal. Collective.
void merge_devices(Collectives& collectives, const LinkSpec& own, ClusterSpec& cluster);

/// The pairs of hosts of each round: every host is in at most one pair of it, and each pair is in
/// one of the hosts − 1 (an odd number: hosts) rounds.
std::vector<std::vector<std::pair<int, int>>> rounds_of_pairs(int hosts);

/// Values that are within `tolerance` of the smallest of their group are replaced by the group's
/// mean; infinite ones stay.
std::vector<double> even_out(const std::vector<double>& values, double tolerance);

}  // namespace gossamer
