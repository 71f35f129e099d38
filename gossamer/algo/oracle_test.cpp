// The closed forms of stochastic quadratics, which no implementation enters.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <vector>

#include "gossamer/algo/pattern.h"
#include "gossamer/base/rng.h"
#include "gossamer/graph/topology.h"

namespace gossamer {
namespace {

constexpr int kWorkers = 8;
constexpr std::size_t kCoordinates = 5000;  // independent copies of one experiment
constexpr double kStep = 0.05;
constexpr double kNoise = 0.7;
constexpr double kTolerance = 0.1;  // five standard deviations of a variance over the coordinates

using Rows = std::vector<std::vector<double>>;

/// f_i = ½‖x − b_i‖² with b_i = cos(i) and gradient noise kNoise.
double centre(int worker) { return std::cos(static_cast<double>(worker)); }

/// What the neighbours of a worker read: a copy of its x, or x itself while the new x goes
/// elsewhere.
enum class Exchange { by_copy, where_it_is };

/// One step of a pattern with plain SGD over all workers.
void step_all(const Pattern& pattern, const Round& round, Exchange exchange, Rows& x, Rng& rng) {
  const Optimizer& sgd = find_optimizer("sgd");
  Rows g = x;
  for (int i = 0; i < kWorkers; ++i) {
    for (double& value : g[static_cast<std::size_t>(i)]) {
      value += kNoise * rng.normal() - centre(i);
    }
  }
  const auto args = [&](std::size_t i) {
    return PassArgs<double>{.x = x[i], .g = g[i], .numbers = {.hyper = {.lr = kStep}}};
  };
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (pattern.f64.prepare != nullptr) pattern.f64.prepare(args(i), sgd);
  }
  const bool copies = exchange == Exchange::by_copy;
  Rows other = x;  // the copies, or where the new x goes
  for (std::size_t i = 0; i < x.size(); ++i) {
    std::vector<Source<double>> sources;
    Mix<double> mix{.self_weight = 0};
    for (const Entry& entry : row_of(round, static_cast<int>(i))) {
      const auto j = static_cast<std::size_t>(entry.worker);
      if (j == i) {
        mix.self_weight = entry.weight;
      } else {
        sources.push_back({(copies ? other : x)[j].data(), entry.weight});
      }
    }
    mix.sources = sources;
    PassArgs<double> combining = args(i);
    combining.mixes[0] = mix;
    if (!copies) combining.out = other[i];
    pattern.f64.combine(combining, sgd);
  }
  if (!copies) x.swap(other);
}

Rows stationary_state(std::string_view pattern, Exchange exchange) {
  const Schedule ring = make_topology("ring", {.shape = even_hosts(kWorkers, 1)});
  Rows x(kWorkers, std::vector<double>(kCoordinates, 0.0));
  Rng rng(11);
  for (int t = 0; t < 300; ++t) {
    step_all(find_pattern(pattern), round_at(ring, t), exchange, x, rng);
  }
  return x;
}

/// Column k of the real Fourier basis, an orthonormal eigenbasis of the ring.
std::vector<double> mode(int k) {
  std::vector<double> v(kWorkers);
  double norm = 0;
  for (int i = 0; i < kWorkers; ++i) {
    const double angle = 2 * std::numbers::pi * ((k + 1) / 2) * i / kWorkers;
    v[static_cast<std::size_t>(i)] = k % 2 == 1 ? std::cos(angle) : std::sin(angle);
    if (k == 0) v[static_cast<std::size_t>(i)] = 1;
    norm += v[static_cast<std::size_t>(i)] * v[static_cast<std::size_t>(i)];
  }
  for (double& value : v) value /= std::sqrt(norm);
  return v;
}

double eigenvalue(int k) {
  return 1.0 / 3 + 2.0 / 3 * std::cos(2 * std::numbers::pi * ((k + 1) / 2) / kWorkers);
}

double dot(const std::vector<double>& v, const std::function<double(int)>& of) {
  double sum = 0;
  for (int i = 0; i < kWorkers; ++i) sum += v[static_cast<std::size_t>(i)] * of(i);
  return sum;
}

/// Checks E c² of every mode against `expected(λ, b_λ)`.
void expect_second_moments(std::string_view pattern, Exchange exchange,
                           const std::function<double(double, double)>& expected) {
  const Rows x = stationary_state(pattern, exchange);
  for (int k = 0; k < kWorkers; ++k) {
    const std::vector<double> v = mode(k);
    double moment = 0;
    for (std::size_t d = 0; d < kCoordinates; ++d) {
      const double c = dot(v, [&](int i) { return x[static_cast<std::size_t>(i)][d]; });
      moment += c * c / static_cast<double>(kCoordinates);
    }
    const double formula = expected(eigenvalue(k), dot(v, centre));
    EXPECT_NEAR(moment / formula, 1, kTolerance) << pattern << ", mode " << k;
  }
}

TEST(Oracle, AtcHasTheStationaryMomentsOfTheClosedForm) {
  expect_second_moments("atc", Exchange::by_copy, [](double l, double b) {
    const double bias = l * kStep * b / (1 - l * (1 - kStep));
    const double spread = l * l * kStep * kStep * kNoise * kNoise;
    return bias * bias + spread / (1 - l * l * (1 - kStep) * (1 - kStep));
  });
}

TEST(Oracle, CwaHasTheStationaryMomentsOfTheClosedForm) {
  for (const Exchange exchange : {Exchange::by_copy, Exchange::where_it_is}) {
    expect_second_moments("cwa", exchange, [](double l, double b) {
      const double bias = kStep * b / (1 - l + kStep);
      return bias * bias + kStep * kStep * kNoise * kNoise / (1 - (l - kStep) * (l - kStep));
    });
  }
}

/// The vectors of one worker before a step; all but `out` are the same for every instance.
struct Worker {
  std::vector<double> x = numbers(0), out = numbers(1), g = numbers(2), received = numbers(3);
  std::vector<std::vector<double>> state = {3, std::vector<double>(x.size(), 0.25)};
  std::vector<std::vector<double>> kept = {3, received};  ///< the pattern's
  std::vector<Source<double>> sources{{received.data(), 0.5}};

  static std::vector<double> numbers(std::uint64_t stream) {
    std::vector<double> values(777);
    Rng rng(5, stream);
    for (double& value : values) value = rng.normal();
    return values;
  }

  double combine(const Pattern& pattern, const Optimizer& optimizer, bool to_out) {
    const Mix<double> mix{.self_weight = 0.5, .sources = sources, .measure_distance = true};
    PassArgs<double> args{.x = x, .g = g, .mixes = {mix, mix, mix}};
    if (to_out) args.out = out;
    for (std::size_t k = 0; k < state.size(); ++k) {
      args.optimizer_state[k] = state[k];
      args.pattern_state[k] = kept[k];
    }
    return pattern.f64.combine(args, optimizer);
  }
};

TEST(Tables, CombinesIntoOutWhatTheyWouldWriteOverX) {
  for (const Pattern& pattern : patterns()) {
    for (const Optimizer& optimizer : optimizers()) {
      const Worker before;
      Worker in_place, apart;
      const double distance = in_place.combine(pattern, optimizer, false);
      EXPECT_EQ(apart.combine(pattern, optimizer, true), distance);
      const bool stays = pattern.launch == Launch::after_local_update;
      EXPECT_EQ(apart.x, stays ? in_place.x : before.x) << pattern.name << " " << optimizer.name;
      EXPECT_EQ(apart.out, stays ? before.out : in_place.x) << pattern.name << optimizer.name;
      EXPECT_EQ(apart.state, in_place.state) << pattern.name << " " << optimizer.name;
      EXPECT_EQ(apart.kept, in_place.kept) << pattern.name << " " << optimizer.name;
    }
  }
}

TEST(Tables, WhatOnlyMixesPutsTheMixInThePlaceOfX) {
  for (const Pattern& pattern : patterns()) {
    if (!pattern.only_mixes) continue;
    const std::span<const Payload> last = pattern.payloads_of(pattern.stages() - 1);
    ASSERT_EQ(std::vector(last.begin(), last.end()), std::vector{Payload::parameters});
    Worker from_x, from_copy;
    from_x.combine(pattern, find_optimizer("adam"), false);
    const std::vector<double> copy = from_copy.x;
    for (double& value : from_copy.x) value = 1e3;
    const std::array<Source<double>, 2> sources{{{copy.data(), 0.5}, from_copy.sources[0]}};
    const Mix<double> mix{.self_weight = 0, .sources = sources};
    pattern.f64.combine({.x = from_copy.x, .mixes = {mix}}, find_optimizer("adam"));
    EXPECT_EQ(from_copy.x, from_x.x) << pattern.name;
    EXPECT_EQ(from_copy.state, from_x.state) << pattern.name;
    EXPECT_EQ(from_copy.kept, from_x.kept) << pattern.name;
  }
}

TEST(Atc, PreparesInPlaceWhateverTheDestination) {
  const Optimizer& sgd = find_optimizer("sgd");
  const Pattern& atc = find_pattern("atc");
  const Worker before;
  Worker w;
  atc.f64.prepare({.x = w.x, .out = w.out, .g = w.g, .numbers = {.hyper = {.lr = 0.5}}}, sgd);
  EXPECT_EQ(w.out, before.out);
  for (std::size_t i = 0; i < w.x.size(); ++i) {
    ASSERT_EQ(w.x[i], std::fma(-0.5, before.g[i], before.x[i]));
  }
}

TEST(Tables, NamesAreUniqueAndFound) {
  for (const Optimizer& optimizer : optimizers()) {
    EXPECT_EQ(&find_optimizer(optimizer.name), &optimizer);
  }
  for (const Pattern& pattern : patterns()) EXPECT_EQ(&find_pattern(pattern.name), &pattern);
}

TEST(Tables, UnknownNamesListTheValidAndTheNearest) {
  try {
    find_optimizer("adamww");
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean 'adamw'?"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("accum_adam"), std::string::npos);
  }
}

TEST(Hyper, ValuesOutOfRangeAreNamed) {
  for (const Hyper& bad :
       {Hyper{.lr = -1}, Hyper{.lr = NAN}, Hyper{.beta1 = 1}, Hyper{.beta2 = 2}, Hyper{.eps = 0},
        Hyper{.accumulate = 0}, Hyper{.dampening = 0.1, .nesterov = true}, Hyper{.consensus = 0},
        Hyper{.consensus = 1.1}, Hyper{.outer_every = -1}, Hyper{.outer_momentum = 1},
        Hyper{.outer_lr = 0}}) {
    EXPECT_THROW(check_hyper(bad), std::invalid_argument);
  }
  EXPECT_NO_THROW(check_hyper({}));
}

}  // namespace
}  // namespace gossamer
