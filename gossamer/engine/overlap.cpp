#include "gossamer/engine/overlap.h"

#include <algorithm>

namespace gossamer {

double seconds_in(const std::vector<Interval>& on, const std::vector<Interval>& off) {
  struct Edge {
    Clock::time_point at;
    int on = 0;   ///< change of the number of intervals of `on` that we are in
    int off = 0;  ///< of `off`
  };
  std::vector<Edge> edges;
  const auto add = [&](const Interval& interval, int to_on, int to_off) {
    if (interval.end <= interval.begin) return;
    edges.push_back({interval.begin, to_on, to_off});
    edges.push_back({interval.end, -to_on, -to_off});
  };
  for (const Interval& interval : on) add(interval, 1, 0);
  for (const Interval& interval : off) add(interval, 0, 1);
  std::ranges::sort(edges, {}, &Edge::at);
  Clock::duration sum{};
  int inside_on = 0;
  int inside_off = 0;
  for (std::size_t k = 0; k + 1 < edges.size(); ++k) {
    inside_on += edges[k].on;
    inside_off += edges[k].off;
    if (inside_on > 0 && inside_off == 0) sum += edges[k + 1].at - edges[k].at;
  }
  return std::chrono::duration<double>(sum).count();
}

}  // namespace gossamer
