// Whom a worker gives up when the network fails for one host, for a part of them, or for all.

#include "gossamer/transport/net/silence_watch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

namespace gossamer {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kLongest{5};
constexpr std::size_t kWorkers = 5;

/// A moment of these tests, in ms after their begin.
Deadline moment(std::int64_t ms) { return Deadline(seconds(1000) + milliseconds(ms)); }

/// Whose link is away in which time.
struct Outage {
  std::vector<std::size_t> of;
  std::int64_t from_ms;
  std::int64_t until_ms;

  bool parts(std::size_t a, std::size_t b, std::int64_t at_ms) const {
    const auto is_out = [&](std::size_t rank) { return std::ranges::find(of, rank) != of.end(); };
    return at_ms >= from_ms && at_ms < until_ms && (is_out(a) || is_out(b));
  }
};

/// One direction of a connection: words that are lost are sent again as TCP does it, at intervals
/// that double. Who speaks all the time says a word each 30 ms, who has nothing to say one a beat,
/// sometimes a beat late.
struct Way {
  std::size_t from;
  std::size_t to;
  std::int64_t next_ms;
  std::int64_t retry_ms = 0;  ///< 0: nothing was lost
};

/// Which worker gave up which, until a minute after the outage.
struct GivenUp {
  std::size_t by;
  std::size_t whom;
  std::int64_t at_ms;
};

std::vector<GivenUp> run(const Outage& outage, std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto up_to = [&](std::int64_t limit) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(limit));
  };
  std::vector<Way> ways;
  std::vector<std::vector<LastHeard>> heard(kWorkers, std::vector<LastHeard>(kWorkers));
  std::vector<SilenceWatch> watches;
  std::vector<std::int64_t> beats;
  for (std::size_t a = 0; a < kWorkers; ++a) {
    watches.emplace_back(kLongest, 0);
    beats.push_back(up_to(1000));
    for (std::size_t b = 0; b < kWorkers; ++b) {
      if (a != b) ways.push_back({a, b, up_to(1000)});
      heard[a][b] = {.state = LastHeard::State::there, .at = moment(0)};
    }
  }
  std::vector<GivenUp> found;
  for (std::int64_t now = 0; now < outage.until_ms + 60'000; now += 10) {
    for (Way& way : ways) {
      if (now < way.next_ms) continue;
      if (outage.parts(way.from, way.to, now)) {
        way.retry_ms = way.retry_ms == 0 ? 200 : 2 * way.retry_ms;
        way.next_ms = now + way.retry_ms;
        continue;
      }
      way.retry_ms = 0;
      heard[way.to][way.from].at = moment(now);
      const bool is_busy = (way.to - way.from + kWorkers) % kWorkers == 1;
      way.next_ms = now + (is_busy ? 30 : 1000 + up_to(2) * up_to(1500));
    }
    for (std::size_t own = 0; own < kWorkers; ++own) {
      if (now < beats[own]) continue;
      beats[own] = now + 1000 + up_to(300);
      const auto silent = watches[own].look(heard[own], static_cast<int>(own), moment(now));
      for (std::size_t whom = 0; whom < kWorkers; ++whom) {
        if (silent[whom] != Silence::given_up) continue;
        if (heard[own][whom].state == LastHeard::State::there) found.push_back({own, whom, now});
        heard[own][whom].state = LastHeard::State::given_up;
      }
    }
  }
  return found;
}

TEST(SilenceWatch, NobodyIsGivenUpWhereAllAreCutOff) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    const std::int64_t away_ms = 1000 * (1 + seed % 20);
    const auto found = run({{0, 1, 2, 3, 4}, 10'000, 10'000 + away_ms}, seed);
    EXPECT_TRUE(found.empty()) << "seed " << seed << ": " << found.front().by << " gave up "
                               << found.front().whom << " at " << found.front().at_ms << " ms";
  }
}

TEST(SilenceWatch, WhoIsCutOffIsGivenUpByTheOthersAndGivesNobodyUp) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    const auto found = run({{3}, 10'000, 30'000}, seed);
    std::vector<std::size_t> by;
    for (const GivenUp& each : found) {
      EXPECT_EQ(each.whom, 3U) << "seed " << seed;
      EXPECT_GT(each.at_ms, 12'500) << "seed " << seed;  // it was last heard up to 2.5 s before
      EXPECT_LT(each.at_ms, 18'000) << "seed " << seed;
      by.push_back(each.by);
    }
    std::ranges::sort(by);
    EXPECT_EQ(by, std::vector<std::size_t>({0, 1, 2, 4})) << "seed " << seed;
  }
}

TEST(SilenceWatch, AfterAnOutageOfAllOneThatStaysAwayIsGivenUp) {
  SilenceWatch watch(kLongest, 0);
  std::vector<LastHeard> heard(3, {.state = LastHeard::State::there, .at = moment(0)});
  std::optional<std::int64_t> given_up_ms;
  for (std::int64_t now = 0; now < 60'000; now += 1000) {
    if (now >= 20'000) heard[1].at = moment(now - 100);
    const auto silent = watch.look(heard, 0, moment(now));
    EXPECT_NE(silent[1], Silence::given_up);
    if (silent[2] == Silence::given_up && !given_up_ms) given_up_ms = now;
  }
  ASSERT_TRUE(given_up_ms);
  EXPECT_GT(*given_up_ms, 37'500);  // as patient as it had waited, and 5 s more
  EXPECT_LT(*given_up_ms, 45'000);
}

TEST(SilenceWatch, WithoutANumberOnlySilenceCounts) {
  SilenceWatch watch(kLongest, std::nullopt);
  const std::vector<LastHeard> heard{{.state = LastHeard::State::there, .at = moment(0)},
                                     {},
                                     {.state = LastHeard::State::there, .at = moment(2000)}};
  using enum Silence;
  EXPECT_EQ(watch.look(heard, 1, moment(4000)), std::vector({none, none, none}));
  EXPECT_EQ(watch.look(heard, 1, moment(5000)), std::vector({suspected, none, none}));
  EXPECT_EQ(watch.look(heard, 1, moment(5001)), std::vector({given_up, none, none}));
  EXPECT_EQ(watch.look(heard, 1, moment(7001)), std::vector({given_up, none, given_up}));
}

}  // namespace
}  // namespace gossamer
