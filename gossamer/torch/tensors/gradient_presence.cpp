#include "gossamer/torch/tensors/gradient_presence.h"

#include <ATen/ATen.h>

#include <utility>

#include "gossamer/base/errors.h"
#include "gossamer/engine/tags.h"

namespace gossamer {
namespace {

void put(const std::vector<char>& signs, float*& into) {
  for (const char sign : signs) *into++ = sign != 0 ? 1.0F : 0.0F;
}

std::vector<char> take(std::size_t count, const float*& from) {
  std::vector<char> signs(count);
  for (char& sign : signs) sign = *from++ != 0 ? 1 : 0;
  return signs;
}

}  // namespace

GradientPresence::GradientPresence(const Averagers& all, std::vector<std::string> names)
    : all_(all), names_(std::move(names)) {
  const auto count = static_cast<std::int64_t>(3 * names_.size() + 2);
  average_ = FlatAverage(all_, DType::f32, count, Codec::fp32);
  FlatAverage* const average = &average_;
  place({&average, 1}, all_.runner->transport());
}

void GradientPresence::launch(const GradientSigns& own, std::int64_t steps,
                              FlatAverage::Launch launch) {
  steps_ = steps;
  average_.wait_back();
  auto* const said = average_.flat().mutable_data_ptr<float>();
  float* into = said;
  put(own.is_there, into);
  put(own.travels, into);
  put(own.is_sparse, into);
  said[parity(steps)] = 1;
  said[parity(steps + 1)] = 0;
  launch.stream = stream::kPresence;
  average_.launch(*all_.runner, launch);
}

void GradientPresence::reseat(const Averagers& all) {
  all_ = all;
  average_.reseat(all_);
}

GradientSigns GradientPresence::collect() {
  const at::Tensor means = average_.mean();
  average_.finish();
  const auto* from = means.const_data_ptr<float>();
  check(from);
  GradientSigns any;
  any.is_there = take(names_.size(), from);
  any.travels = take(names_.size(), from);
  any.is_sparse = take(names_.size(), from);
  return any;
}

/// Which share trains a parameter.
std::string GradientPresence::of_workers(float share) const {
  if (all_.rounds) return "neighbours that train it and others that do not";
  const auto workers = static_cast<float>(all_.seating.workers());
  return std::to_string(static_cast<int>(share * workers + 0.5F)) + " of " +
         std::to_string(all_.seating.workers()) + " workers that train it";
}

void GradientPresence::check(const float* means) const {
  const std::string rank = std::to_string(all_.seating.rank());
  if (means[parity(steps_ + 1)] != 0) {
    fail_argument({.place = "Gossip",
                   .what = "workers average their gradients unequally often in a step",
                   .got = "worker " + rank + " in step " + std::to_string(steps_ + 1) +
                          ", others in another one",
                   .remedy = "run equally many backward passes in a step on every rank, all but "
                             "the last inside gossip.no_sync()"});
  }
  const float most = 1 - 0.5F / static_cast<float>(all_.seating.workers());
  for (std::size_t i = 0; i < names_.size(); ++i) {
    const float share = means[names_.size() + i];
    if (share == 0 || share > most) continue;
    fail_argument({.place = "Gossip",
                   .what = "parameter '" + names_[i] + "' is frozen on some workers only",
                   .got = of_workers(share),
                   .remedy = "freeze and thaw parameters alike on every rank"});
  }
}

}  // namespace gossamer
