#include "gossamer/train/say_changes.h"

#include <cstdio>

namespace gossamer {

std::vector<int> say_changes(int rank, const StepReport& report) {
  std::vector<int> ranks;
  for (const LostPeer& lost : report.lost) {
    std::fprintf(stderr, "gossamer: worker %d goes on without worker %d, lost in step %lld: %s\n",
                 rank, lost.peer, static_cast<long long>(report.step), lost.why.c_str());
    ranks.push_back(lost.peer);
  }
  for (const PeerBack& back : report.back) {
    std::fprintf(stderr, "gossamer: worker %d: worker %d is back from step %lld on\n", rank,
                 back.peer, static_cast<long long>(back.steps + 1));
  }
  if (!report.among.empty() && rank == report.among.front()) {
    std::fprintf(stderr,
                 "gossamer: after step %lld the topology is formed anew among %zu workers\n",
                 static_cast<long long>(report.step), report.among.size());
  }
  return ranks;
}

}  // namespace gossamer
