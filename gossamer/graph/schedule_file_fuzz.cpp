// Files of mixing matrices.

#include <cmath>

#include "gossamer/base/fuzz.h"
#include "gossamer/base/scratch_folder.h"
#include "gossamer/graph/schedule_file.h"

namespace gossamer {
namespace schedule_file_fuzz {

constexpr int kMostTried = 64;

void check_round(const Schedule& schedule, std::int64_t t) {
  const Round round = round_at(schedule, t);
  fuzz_check(round.workers == schedule.shape.workers(), "a round for other workers");
  check_stochastic(round, schedule.stochasticity);
  for (int i = 0; i < round.workers; ++i) {
    for (const Entry& entry : row_of(round, i)) {
      fuzz_check(std::isfinite(entry.weight) && entry.weight >= 0, "a weight that is none");
    }
  }
}

}  // namespace schedule_file_fuzz

bool fuzz_schedule_file(std::span<const std::byte> bytes) {
  using namespace schedule_file_fuzz;
  const ScratchFolder folder;
  const std::string path = folder.put("w.json", FuzzBytes(bytes).text()).native();
  return takes([&] {
    const HostShape shape = shape_in_file(path);
    if (shape.workers() > kMostTried) return;
    const Schedule schedule = schedule_from_file(path, shape);
    for (std::int64_t t = 0; t < std::min(schedule.period, 8); ++t) check_round(schedule, t);
  });
}

}  // namespace gossamer
