#include "gossamer/engine/testing/courses.h"

#include <span>

#include "gossamer/base/rng.h"

namespace gossamer::simulation {
namespace {

template <class T>
const T& one_of(Rng& rng, const std::vector<T>& all) {
  return all[rng.below(all.size())];
}

}  // namespace

Course course_of(std::uint64_t seed) {
  Rng rng(seed, 1);
  Course course;
  course.pattern = one_of<std::string>(
      rng, {"cwa", "cwa", "cwa", "atc", "allreduce", "gradient_tracking", "extra"});
  course.topology =
      one_of<std::string>(rng, {"ring", "ring", "alternating_exponential_ring", "one_peer_ring",
                                "complete", "grid", "base_k", "random", "star"});
  const bool is_directed = course.pattern != "extra" && rng.below(5) == 0;
  if (is_directed) {
    course.topology =
        one_of<std::string>(rng, {"one_peer_exponential", "exponential", "directed_ring"});
  }
  if (course.pattern == "extra") course.topology = "ring";  // one round, symmetric
  const auto hosts = 2 + rng.below(4);
  const bool are_alike = rng.below(2) == 0;
  const auto each = 1 + rng.below(2);
  for (std::uint64_t host = 0; host < hosts; ++host) {
    course.per_host.push_back(static_cast<int>(are_alike ? each : 1 + rng.below(2)));
  }
  course.update =
      course.pattern == "cwa" && rng.below(3) == 0 ? UpdateAt::backward : UpdateAt::step;
  course.calls_every = static_cast<int>(1 + rng.below(40));
  course.step_s = 0.001 + 0.01 * rng.uniform();
  const int workers = course.workers();
  course.fates.resize(at(workers));
  course.comes_back.assign(at(workers), true);
  const auto faults = rng.below(5);
  double when = 0.02;
  for (std::uint64_t k = 0; k < faults; ++k) {
    const auto rank = at(static_cast<int>(rng.below(static_cast<std::uint64_t>(workers))));
    when += rng.below(3) == 0 ? 0.01 * rng.uniform() : 2 * rng.uniform();
    Fate fate{.at_s = when};
    if (rng.below(4) == 0) {
      fate = {.kind = Fate::Kind::killed_sending, .send = static_cast<int>(1 + rng.below(200))};
    } else if (rng.below(4) == 0) {
      fate = {.kind = Fate::Kind::frozen, .at_s = when, .for_s = 3 * rng.uniform()};
    }
    course.fates[rank].push_back(fate);
  }
  for (int rank = 0; rank < workers; ++rank) {
    course.comes_back[at(rank)] = rng.below(3) != 0;
    if (course.pattern != "allreduce") continue;
    // Replicas that come back get their bits from the layer above.
    auto& fates = course.fates[at(rank)];
    const auto last =
        std::ranges::find_if(fates, [](const Fate& f) { return f.kind != Fate::Kind::frozen; });
    if (last != fates.end()) fates.erase(last + 1, fates.end());
    course.comes_back[at(rank)] = false;
  }
  if (std::ranges::count_if(course.fates, &std::vector<Fate>::empty) == 0) course.fates[0].clear();
  return course;
}

Course silent_course_of(std::uint64_t seed) {
  Course course = course_of(seed);
  course.is_silent = true;
  Rng rng(seed, 2);
  const auto workers = static_cast<std::uint64_t>(course.workers());
  const bool are_parted = rng.below(2) == 0;
  for (std::size_t rank = 0; rank < workers; ++rank) {
    if (course.pattern == "allreduce") course.pattern = "cwa";
    course.comes_back[rank] = true;
    const bool freezes = rng.below(are_parted ? 6 : 3) == 0;
    if (!freezes) continue;
    const Fate fate{.kind = Fate::Kind::frozen,
                    .at_s = 0.02 + 4 * rng.uniform(),
                    .for_s = rng.below(2) == 0 ? 1 + 8 * rng.uniform() : 20 * rng.uniform()};
    course.fates[rank].insert(course.fates[rank].begin(), fate);
  }
  if (are_parted) {
    course.part_at_s = 0.02 + 4 * rng.uniform();
    course.part_for_s = rng.below(3) == 0 ? 4 * rng.uniform() : 40 * rng.uniform();
    for (int rank = 0; rank < course.workers(); ++rank) {
      if (rng.below(2) == 0) course.parted.insert(rank);
    }
  }
  return course;
}

Course growing_course_of(std::uint64_t seed) {
  Course course = course_of(seed);
  Rng rng(seed, 3);
  const int workers = course.workers();
  if (course.pattern == "allreduce") {  // replicas that come get their bits from the layer above
    course.pattern = "cwa";
    course.comes_back.assign(at(workers), true);
  }
  const int begin = 1 + static_cast<int>(rng.below(static_cast<std::uint64_t>(workers - 1)));
  for (int rank = begin; rank < workers; ++rank) {
    course.fates[at(rank)].clear();
    course.joins_at_s[rank] = 0.02 + 6 * rng.uniform();
  }
  const auto stay =
      std::ranges::count_if(std::span(course.fates).first(at(begin)), &std::vector<Fate>::empty);
  if (stay == 0) course.fates[0].clear();
  return course;
}

std::string to_string(const Course& course) {
  std::string text = course.pattern + " on " + course.topology + " of";
  for (const int workers : course.per_host) text += " " + std::to_string(workers);
  for (int rank = 0; rank < course.workers(); ++rank) {
    for (const Fate& fate : course.fates[at(rank)]) {
      text += "; worker " + std::to_string(rank);
      if (fate.kind == Fate::Kind::killed_sending) {
        text += " killed in send " + std::to_string(fate.send);
      } else {
        text += fate.kind == Fate::Kind::killed ? " killed" : " frozen";
        text += " at " + std::to_string(fate.at_s) + " s";
        if (fate.for_s > 0) text += " for " + std::to_string(fate.for_s) + " s";
      }
    }
    if (course.stays_away(rank)) text += ", and stays away";
  }
  for (const auto& [rank, when_s] : course.joins_at_s) {
    text += "; worker " + std::to_string(rank) + " joins at " + std::to_string(when_s) + " s";
  }
  for (const int rank : course.parted) text += "; worker " + std::to_string(rank) + " parted";
  if (!course.parted.empty()) {
    text += " at " + std::to_string(course.part_at_s) + " s for " +
            std::to_string(course.part_for_s) + " s";
  }
  return text;
}

}  // namespace gossamer::simulation
