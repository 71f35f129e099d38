// Collective calls of those that are left.
#include "gossamer/engine/council.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gossamer/base/errors.h"
#include "gossamer/base/index.h"
#include "gossamer/base/rng.h"
#include "gossamer/engine/collectives.h"
#include "gossamer/engine/testing/engine_case.h"
#include "gossamer/engine/worker_threads.h"
#include "gossamer/transport/threads.h"

#ifdef __SANITIZE_THREAD__
/// libstdc++ counts who holds an exception in code that the sanitizer does not see.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() {
  return "race:std::__exception_ptr::exception_ptr::_M_release\n";
}
#endif

namespace gossamer {
namespace council_test {

struct Death {};

/// What a call has given to one worker.
struct Answer {
  std::vector<double> means;
  std::string gathered;
  std::string heard;
  std::vector<int> took_part;
  bool operator==(const Answer&) const = default;
};

constexpr int kCalls = 6;

/// Each rank in `deaths` ends when it has waited so often.
struct Fleet {
  std::vector<int> per_host;
  std::map<int, int> deaths;
};

/// By call, what the survivors got.
std::vector<std::map<int, Answer>> answers_of(const Fleet& fleet) {
  std::vector<std::map<int, Answer>> answers(kCalls);
  std::mutex mutex;
  const HostShape shape{fleet.per_host};
  std::atomic<int> at_work = shape.workers();
  run_workers(
      make_threads_transports(engine_case::free_links(HostShape{fleet.per_host})),
      [&](Transport& transport) {
        const int rank = transport.describe().rank;
        const auto death = fleet.deaths.find(rank);
        int waits = death == fleet.deaths.end() ? -1 : death->second;
        std::atomic<bool> is_dead = false;
        const auto while_waiting = [&] {
          if (waits >= 0 && --waits < 0) throw Death();
        };
        try {
          std::vector<int> peers;
          for (int other = 0; other < shape.workers(); ++other) {
            if (other != rank) peers.push_back(other);
          }
          ExchangeRunner runner(transport, 20, while_waiting);
          LostPeers lost(transport, peers);
          Collectives collectives(runner, {shape, rank});
          Lookout lookout(transport, lost, 0);
          collectives.go_on_without(lost, lookout);
          for (int call = 0; call < kCalls; ++call) {
            Answer answer;
            answer.means.assign(37, 0);
            for (int i = 0; i < 37; ++i) answer.means[at(i)] = (1 << rank) + i;
            collectives.mean(answer.means);
            std::string gathered;
            for (const std::string& each : collectives.gather("worker " + std::to_string(rank))) {
              answer.gathered += each + ";";
            }
            answer.took_part = collectives.took_part();
            answer.heard = "from " + std::to_string(rank);
            collectives.broadcast(answer.heard);
            const std::lock_guard lock(mutex);
            answers[at(call)][rank] = answer;
          }
        } catch (const Death&) {
          --at_work;
          return;  // its transport ends now
        }
        --at_work;
        while (at_work > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      });
  return answers;
}

/// The workers in whose mean Σ 2^rank / n is `mean`; nothing: it is of no set.
std::optional<std::set<int>> members_of(double mean, int workers) {
  for (int n = 1; n <= workers; ++n) {
    const double sum = mean * n;
    const auto whole = std::llround(sum);
    if (std::abs(sum - static_cast<double>(whole)) > 1e-9) continue;
    std::set<int> members;
    for (int rank = 0; rank < workers; ++rank) {
      if ((whole >> rank & 1) != 0) members.insert(rank);
    }
    if (std::ssize(members) == n) return members;
  }
  return std::nullopt;
}

void expect_one_answer_for_all(const Fleet& fleet) {
  const int workers = HostShape{fleet.per_host}.workers();
  const auto answers = answers_of(fleet);
  for (const auto& of_call : answers) {
    for (int rank = 0; rank < workers; ++rank) {
      if (!fleet.deaths.contains(rank)) {
        ASSERT_TRUE(of_call.contains(rank)) << rank;
      }
    }
    const Answer& first = of_call.begin()->second;
    for (const auto& [rank, answer] : of_call) {
      if (!fleet.deaths.contains(rank)) {
        EXPECT_EQ(answer.means, first.means) << rank;
        EXPECT_EQ(answer.gathered, first.gathered) << rank;
        EXPECT_EQ(answer.heard, first.heard) << rank;
      }
    }
    const auto members = members_of(first.means[0], workers);
    ASSERT_TRUE(members.has_value()) << first.means[0];
    for (int rank = 0; rank < workers; ++rank) {
      if (!fleet.deaths.contains(rank)) {
        EXPECT_TRUE(members->contains(rank)) << rank;
      }
    }
  }
}

TEST(Council, AllTakePartWhereNobodyIsLost) {
  const auto answers = answers_of({.per_host = {2, 1, 2}, .deaths = {}});
  for (const auto& of_call : answers) {
    ASSERT_EQ(of_call.size(), 5U);
    for (const auto& [rank, answer] : of_call) {
      EXPECT_DOUBLE_EQ(answer.means[3], 31. / 5 + 3);
      EXPECT_EQ(answer.gathered, "worker 0;worker 1;worker 2;worker 3;worker 4;");
      EXPECT_EQ(answer.heard, "from 0");
      EXPECT_EQ(answer.took_part, (std::vector{0, 1, 2, 3, 4}));
    }
  }
}

TEST(Council, FirstWorkerMayBeTheLostOne) {
  const auto answers = answers_of({.per_host = {1, 1, 1}, .deaths = {{0, 0}}});
  const Answer& last = answers.back().at(2);
  EXPECT_EQ(last.gathered, ";worker 1;worker 2;");
  EXPECT_EQ(last.heard, "from 1");
  EXPECT_DOUBLE_EQ(last.means[0], 3);
}

TEST(Council, WhoeverDiesWheneverTheRestGetOneAnswer) {
  Rng rng(7);
  for (int trial = 0; trial < 60; ++trial) {
    Fleet fleet{.per_host = {2, 1, 2, 1}, .deaths = {}};
    const int deaths = 1 + static_cast<int>(rng.below(3));
    while (std::ssize(fleet.deaths) < deaths) {
      fleet.deaths[static_cast<int>(rng.below(6))] = static_cast<int>(rng.below(90));
    }
    SCOPED_TRACE("trial " + std::to_string(trial));
    expect_one_answer_for_all(fleet);
    if (HasFailure()) return;
  }
}

}  // namespace council_test
}  // namespace gossamer
