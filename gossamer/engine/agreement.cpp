#include "gossamer/engine/agreement.h"

#include <vector>

#include "gossamer/base/errors.h"
#include "gossamer/base/index.h"
#include "gossamer/base/lines.h"

namespace gossamer {

void require_same(Collectives& collectives, const std::string& place,
                  const std::string& description, const std::string& remedy) {
  std::string expected = description;
  collectives.broadcast(expected);
  const bool differs = description != expected;
  const Seating& seating = collectives.seating();
  std::vector<double> marks(at(seating.workers()), 0);
  if (differs) marks[at(seating.position)] = 1;
  collectives.mean(marks);
  std::string ranks;
  for (int position = 0; position < seating.workers(); ++position) {
    if (marks[at(position)] == 0) continue;
    ranks += (ranks.empty() ? "" : ", ") + std::to_string(seating.rank_at(position));
  }
  if (ranks.empty()) return;
  const std::string what = "all workers must have what worker 0 has";
  if (!differs) {
    fail_argument({.place = place,
                   .what = what,
                   .got = "something else on worker " + ranks + ", whose message says what",
                   .remedy = remedy});
  }
  const LinePair difference = first_difference(description, expected);
  fail_argument({.place = place,
                 .what = what + ": " + difference.there,
                 .got = difference.here + " on worker " + std::to_string(seating.rank()),
                 .remedy = remedy});
}

}  // namespace gossamer
