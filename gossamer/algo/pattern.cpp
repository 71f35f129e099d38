#include "gossamer/algo/pattern.h"

#include <algorithm>
#include <vector>

#include "gossamer/algo/algorithms/algorithms.h"
#include "gossamer/base/errors.h"

namespace gossamer {
namespace {

constexpr Payload kParameters[] = {Payload::parameters};
constexpr Payload kGradients[] = {Payload::gradients};
constexpr Payload kCopy[] = {Payload::copy};
constexpr std::string_view kSent[] = {"sent"};

constexpr Pattern kPatterns[] = {
    {.name = "cwa",
     .summary = "combine while adapt: parameters travel during forward and backward",
     .launch = Launch::after_previous_update,
     .rounds = Rounds::schedule,
     .payloads = kParameters,
     .state = {},
     .prepare_f32 = nullptr,
     .prepare_f64 = nullptr,
     .combine_f32 = cwa_combine<float>,
     .combine_f64 = cwa_combine<double>},
    {.name = "cwa_difference",
     .summary = "as cwa for parameters that change while they travel; sends a copy",
     .launch = Launch::after_previous_update,
     .rounds = Rounds::schedule,
     .payloads = kCopy,
     .state = kSent,
     .prepare_f32 = nullptr,
     .prepare_f64 = nullptr,
     .combine_f32 = cwa_difference_combine<float>,
     .combine_f64 = cwa_difference_combine<double>},
    {.name = "atc",
     .summary = "adapt then combine: local update first, then the mix waits for the neighbours",
     .launch = Launch::after_local_update,
     .rounds = Rounds::schedule,
     .payloads = kParameters,
     .state = {},
     .prepare_f32 = atc_prepare<float>,
     .prepare_f64 = atc_prepare<double>,
     .combine_f32 = atc_combine<float>,
     .combine_f64 = atc_combine<double>},
    {.name = "allreduce",
     .summary = "every gradient is averaged over all workers: the baseline",
     .launch = Launch::before_update,
     .rounds = Rounds::complete,
     .payloads = kGradients,
     .state = {},
     .prepare_f32 = nullptr,
     .prepare_f64 = nullptr,
     .combine_f32 = allreduce_combine<float>,
     .combine_f64 = allreduce_combine<double>},
};

}  // namespace

std::span<const Pattern> patterns() { return kPatterns; }

const Pattern& find_pattern(std::string_view name) {
  const auto found = std::ranges::find(kPatterns, name, &Pattern::name);
  if (found != std::end(kPatterns)) return *found;
  std::vector<std::string_view> names;
  for (const Pattern& pattern : kPatterns) names.push_back(pattern.name);
  fail_unknown_name("pattern", "pattern", name, names);
}

}  // namespace gossamer
