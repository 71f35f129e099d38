#pragma once
/// For tests: random courses by their seeds, or those that GOSSAMER_SEEDS=FROM:TO asks for.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "gossamer/engine/testing/courses.h"

namespace gossamer::simulation {

/// One job after the other, until one fails: each must come to its end, and be as `expect_right`
/// says. It says of how many nobody was left.
template <class Job>
void play_seeds(Course (*course_of)(std::uint64_t), std::uint64_t from, std::uint64_t to,
                void (*expect_right)(const Course&, const Job&)) {
  if (const char* seeds = std::getenv("GOSSAMER_SEEDS")) {
    const std::string text = seeds;
    from = std::stoull(text);
    to = std::stoull(text.substr(text.find(':') + 1));
  }
  int lost = 0;
  for (std::uint64_t seed = from; seed < to; ++seed) {
    const Course course = course_of(seed);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + to_string(course));
    const Job job(course, seed);
    for (const std::string& problem : job.played.problems) ADD_FAILURE() << problem;
    ASSERT_TRUE(job.played.has_ended) << "some wait for ever";
    expect_right(course, job);
    lost += job.played.is_lost ? 1 : 0;
    if (testing::Test::HasFailure()) return;
  }
  std::printf("%d of %d jobs were lost, with nobody left\n", lost, static_cast<int>(to - from));
}

}  // namespace gossamer::simulation
