#include "gossamer/engine/testing/simulated_job.h"

#include <cstdio>

#include "gossamer/base/errors.h"
#include "gossamer/base/index.h"

namespace gossamer::simulation {
namespace {

constexpr int kMostTries = 40;
constexpr std::chrono::minutes kLimit{30};

bool has_come_too_late(const std::string& text) {
  return text.find("too fast") != std::string::npos ||
         text.find("comes back as well") != std::string::npos ||
         text.find("the same workers") != std::string::npos;
}

std::set<int> late_in(const std::map<int, double>& joins_at_s) {
  std::set<int> ranks;
  for (const auto& [rank, when_s] : joins_at_s) ranks.insert(rank);
  return ranks;
}

}  // namespace

bool is_of_silence(const std::exception& error) {
  const auto* failure = dynamic_cast<const TransportError*>(&error);
  if (failure == nullptr) return false;
  const TransportError::Details& details = failure->details();
  return details.fault == Fault::expelled || details.reason.starts_with("cannot come back");
}

SimulatedJob::SimulatedJob(const Course& course, std::uint64_t seed, Work work)
    : course_(course),
      shape_{course.per_host},
      work_(std::move(work)),
      simulation_(
          shape_.workers(), seed,
          {.strangers_for = seconds(course.strangers_for_s), .late = late_in(course.joins_at_s)}),
      begin_(simulation_.now()),
      next_fate_(at(shape_.workers()), 0),
      generations_(at(shape_.workers()), 0),
      tries_(at(shape_.workers()), 0),
      open_(shape_.workers()) {
  for (int rank = 0; rank < shape_.workers(); ++rank) {
    const auto joins = course_.joins_at_s.find(rank);
    if (joins == course_.joins_at_s.end()) {
      simulation_.begin(rank, begin_, life_of(rank));
    } else {
      ++generations_[at(rank)];
      simulation_.begin(rank, begin_ + seconds(joins->second), life_of(rank));
    }
  }
  if (!course_.parted.empty()) {
    simulation_.part(course_.parted, begin_ + seconds(course_.part_at_s),
                     seconds(course_.part_for_s));
  }
  simulation_.when_over([this](int rank, std::uint64_t) { end_life(rank); });
  played_.has_ended = simulation_.run(kLimit);
  played_.took_s = std::chrono::duration<double>(simulation_.now() - begin_).count();
  played_.digest = simulation_.digest();
}

Simulation::Life SimulatedJob::life_of(int rank) {
  const LifeName life{rank, generations_[at(rank)]++};
  return [this, life](Transport& transport) {
    try {
      meet_fate(life);
      work_(*this, transport, life);
    } catch (const std::exception& error) {
      fail(life, error);
    }
  };
}

void SimulatedJob::tell(LifeName life, const std::string& text) const {
  if (!tells_) return;
  const double since_s = std::chrono::duration<double>(simulation_.now() - begin_).count();
  std::fprintf(stderr, "%10.4f s  worker %d, life %d: %s\n", since_s, life.first,
               static_cast<int>(life.second), text.c_str());
}

void SimulatedJob::begin_work(LifeName life) {
  at_work_.insert(life.first);
  tell(life, "begins to work");
}

void SimulatedJob::fail(LifeName life, const std::exception& error) {
  const std::string text = error.what();
  tell(life, text);
  if (at_work_.contains(life.first)) failure_ = text;
  if (is_of_silence(error)) played_.expelled.insert(life);
  may_try_again_ = has_come_too_late(text) || (course_.is_silent && is_of_silence(error));
  if (may_try_again_ && ++tries_[at(life.first)] <= (course_.is_silent ? 20 : 1) * kMostTries) {
    return;
  }
  may_try_again_ = false;
  if (played_.is_lost) return;
  played_.problems.push_back("worker " + std::to_string(life.first) + ", life " +
                             std::to_string(life.second) + ": " + text);
}

void SimulatedJob::end_life(int rank) {
  tell({rank, generations_[at(rank)] - 1}, "its life is over");
  doomed_.erase(rank);
  const std::string failure = std::exchange(failure_, "");
  const bool was_last = at_work_.erase(rank) > 0 && at_work_.empty();
  if (played_.through.contains(rank)) return;
  if (was_last && played_.through.empty()) lose_all(failure);
  const bool tries_again = std::exchange(may_try_again_, false);
  const bool stays_away =
      !course_.comes_back[at(rank)] && next_fate_[at(rank)] == course_.fates[at(rank)].size();
  if (!played_.problems.empty() || played_.is_lost || (stays_away && !tries_again)) {
    --open_;
    return;
  }
  const double pause_s =
      tries_again ? (course_.is_silent ? 1 : 0.1) * rng().uniform() : 0.02 + 2 * rng().uniform();
  simulation_.begin(rank, simulation_.now() + seconds(pause_s), life_of(rank));
}

/// Whoever ends since others go on without it is not the last one: then these others are.
void SimulatedJob::lose_all(const std::string& failure) {
  if (failure.empty() || failure.find("is cut off") != std::string::npos) {
    played_.is_lost = true;
  } else {
    played_.problems.push_back("the last one at work has ended: " + failure);
  }
}

bool SimulatedJob::is_settled() const {
  for (int rank = 0; rank < shape_.workers(); ++rank) {
    if (next_fate_[at(rank)] < course_.fates[at(rank)].size()) return false;
  }
  const bool is_over = simulation_.now() > begin_ + seconds(course_.last_fault_s());
  return is_over && doomed_.empty() && std::ssize(at_work_) == open_;
}

void SimulatedJob::meet_fate(LifeName life) {
  const auto [rank, generation] = life;
  std::size_t& next = next_fate_[at(rank)];
  const auto& fates = course_.fates[at(rank)];
  while (next < fates.size()) {
    const Fate& fate = fates[next++];
    const Time when = begin_ + seconds(fate.at_s);
    if (fate.kind == Fate::Kind::frozen) {
      simulation_.freeze(rank, generation, when, seconds(fate.for_s));
      continue;
    }
    doomed_.insert(rank);
    if (fate.kind == Fate::Kind::killed) return simulation_.kill(rank, generation, when);
    simulation_.kill_at_send(rank, generation, fate.send);
    // It may send nothing.
    return simulation_.kill(rank, generation, simulation_.now() + seconds(3));
  }
}

void SimulatedJob::end_work(Transport& transport, LifeName life) {
  played_.through.insert(life.first);
  at_work_.erase(life.first);
  --open_;
  while (open_ > 0) transport.progress(Clock::now() + std::chrono::milliseconds(20));
}

}  // namespace gossamer::simulation
