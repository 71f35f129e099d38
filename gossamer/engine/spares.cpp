#include "gossamer/engine/spares.h"

#include <algorithm>

#include "gossamer/algo/pattern.h"
#include "gossamer/base/errors.h"

namespace gossamer {

bool wants_spares(const EngineOptions& options, const Transport& transport) {
  const Pattern& pattern = find_pattern(options.pattern);
  return sends_parameters_ahead(pattern) && transport.describe().lends != Lends::nothing;
}

bool can_alternate(const EngineOptions& options, const std::vector<Bucket>& buckets) {
  const auto spares =
      std::ranges::count_if(buckets, [](const Bucket& b) { return b.spare.data != nullptr; });
  const bool can = spares > 0 && sends_parameters_ahead(find_pattern(options.pattern));
  GOSSAMER_ASSERT(!can || spares == std::ssize(buckets));
  return can;
}

}  // namespace gossamer
