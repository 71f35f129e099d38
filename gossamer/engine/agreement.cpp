#include "gossamer/engine/agreement.h"

#include <cstdint>
#include <sstream>
#include <vector>

#include "gossamer/base/errors.h"

namespace gossamer {
namespace {

std::string from_rank_0(Collectives& collectives, const std::string& own) {
  std::uint64_t size = own.size();
  collectives.broadcast(std::as_writable_bytes(std::span(&size, 1)));
  std::string text = own;
  text.resize(size);
  collectives.broadcast(std::as_writable_bytes(std::span(text)));
  return text;
}

struct Difference {
  std::string here, there;
};

Difference first_difference(const std::string& here, const std::string& there) {
  std::istringstream ours(here);
  std::istringstream theirs(there);
  for (;;) {
    Difference line;
    const bool more_here = static_cast<bool>(std::getline(ours, line.here));
    const bool more_there = static_cast<bool>(std::getline(theirs, line.there));
    if (!more_here) line.here = "nothing";
    if (!more_there) line.there = "nothing";
    if (line.here != line.there || (!more_here && !more_there)) return line;
  }
}

}  // namespace

void require_same(Collectives& collectives, const std::string& place,
                  const std::string& description, const std::string& remedy) {
  const std::string expected = from_rank_0(collectives, description);
  const bool differs = description != expected;
  std::vector<double> marks(static_cast<std::size_t>(collectives.workers()), 0);
  if (differs) marks[static_cast<std::size_t>(collectives.rank())] = 1;
  collectives.mean(marks);
  std::string ranks;
  for (std::size_t rank = 0; rank < marks.size(); ++rank) {
    if (marks[rank] > 0) ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
  }
  if (ranks.empty()) return;
  const std::string what = "all workers must have what worker 0 has";
  if (!differs) {
    fail_argument({.place = place,
                   .what = what,
                   .got = "something else on worker " + ranks + ", whose message says what",
                   .remedy = remedy});
  }
  const Difference difference = first_difference(description, expected);
  fail_argument({.place = place,
                 .what = what + ": " + difference.there,
                 .got = difference.here + " on worker " + std::to_string(collectives.rank()),
                 .remedy = remedy});
}

}  // namespace gossamer
