#include "gossamer/lab/stretches.h"

#include "gossamer/base/errors.h"

namespace gossamer {

std::vector<Stretch> stretches_of(const Round& round) {
  GOSSAMER_ASSERT(!is_partition(round));
  std::vector<Stretch> all;
  for (int i = 0; i < round.workers; ++i) {
    Stretch own{.begin = i, .end = i + 1, .self_weight = 0, .terms = {}};
    for (const Entry& entry : round.rows[static_cast<std::size_t>(i)]) {
      if (entry.worker == i) {
        own.self_weight = entry.weight;
      } else {
        own.terms.push_back({entry.worker - i, entry.weight});
      }
    }
    const bool goes_on =
        !all.empty() && all.back().self_weight == own.self_weight && all.back().terms == own.terms;
    if (goes_on) {
      all.back().end = own.end;
    } else {
      all.push_back(std::move(own));
    }
  }
  return all;
}

}  // namespace gossamer
