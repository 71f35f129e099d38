// The passes against their formulas, computed here from scratch in long double.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "gossamer/base/parallel.h"
#include "gossamer/kernels/guarded_buffer.h"
#include "gossamer/kernels/mix_accum_adam.h"
#include "gossamer/kernels/mix_adam.h"
#include "gossamer/kernels/mix_momentum.h"
#include "gossamer/kernels/mix_only.h"
#include "gossamer/kernels/mix_sgd.h"

namespace gossamer {
namespace {

using Real = long double;
using Reals = std::vector<Real>;
constexpr std::size_t kCount = 53;

template <class T>
struct Fixture {
  GuardedBuffer<T> x{kCount, 0, 0};
  GuardedBuffer<T> g{kCount, 0, 1};
  GuardedBuffer<T> first{kCount, 0, 2};
  GuardedBuffer<T> second{kCount, 0, 3};
  std::vector<Source<T>> sources{{first.data(), 0.3}, {second.data(), 0.2}};
  Mix<T> mix{.self_weight = 0.5, .sources = sources, .measure_distance = true};

  Reals exact(std::span<const T> values) { return {values.begin(), values.end()}; }
  /// What self_weight·x + Σ w·src is for element i.
  Real mixed(const Reals& at, std::size_t i) {
    return 0.5L * at[i] + 0.3L * first.values()[i] + 0.2L * second.values()[i];
  }
  void new_gradient(std::uint64_t step) {
    Rng rng(5, step);
    for (T& value : g.values()) value = static_cast<T>(rng.normal());
  }
  void expect_near(const Reals& expected, std::span<const T> got, int steps) {
    const Real tolerance = 20 * steps * Real{std::numeric_limits<T>::epsilon()};
    for (std::size_t i = 0; i < kCount; ++i) {
      ASSERT_NEAR(static_cast<double>(got[i] - expected[i]), 0.0,
                  static_cast<double>(tolerance * (1 + std::abs(expected[i]))))
          << "element " << i;
    }
  }
};

template <class T>
class Formulas : public testing::Test {};
using Elements = testing::Types<float, double>;
TYPED_TEST_SUITE(Formulas, Elements);

TYPED_TEST(Formulas, MixOnlyIsTheWeightedSumAndReturnsTheDistance) {
  Fixture<TypeParam> f;
  Reals x = f.exact(f.x.values());
  Real distance = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    const Real mixed = f.mixed(x, i);
    distance += (x[i] - mixed) * (x[i] - mixed);
    x[i] = mixed;
  }
  const double got = mix_only<TypeParam>({.x = f.x.values()}, f.mix);
  f.expect_near(x, f.x.values(), 1);
  EXPECT_NEAR(got / static_cast<double>(distance), 1.0,
              20.0 * static_cast<double>(std::numeric_limits<TypeParam>::epsilon()));
}

TYPED_TEST(Formulas, SgdStepsFromTheMixWithTheDecayOfTheUnmixed) {
  Fixture<TypeParam> f;
  Reals x = f.exact(f.x.values());
  for (std::size_t i = 0; i < kCount; ++i) {
    x[i] = f.mixed(x, i) - 0.1L * (2 * Real{f.g.values()[i]} + 0.25L * x[i]);
  }
  mix_sgd<TypeParam>({.x = f.x.values(), .g = f.g.values()}, f.mix,
                     {.lr = 0.1, .weight_decay = 0.25, .grad_scale = 2});
  f.expect_near(x, f.x.values(), 1);
}

TYPED_TEST(Formulas, MomentumFollowsItsRecursionFromTheFirstStep) {
  for (const bool nesterov : {false, true}) {
    Fixture<TypeParam> f;
    const Real dampening = nesterov ? 0 : 0.25L;
    Reals x = f.exact(f.x.values());
    Reals buf(kCount);
    GuardedBuffer<TypeParam> state(kCount, 1, 9);  // what is in it must not matter
    for (int t = 1; t <= 4; ++t) {
      f.new_gradient(static_cast<std::uint64_t>(t));
      for (std::size_t i = 0; i < kCount; ++i) {
        const Real g = Real{f.g.values()[i]} + 0.125L * x[i];
        buf[i] = t == 1 ? g : 0.75L * buf[i] + (1 - dampening) * g;
        x[i] = f.mixed(x, i) - 0.1L * (nesterov ? g + 0.75L * buf[i] : buf[i]);
      }
      mix_momentum<TypeParam>({.x = f.x.values(), .g = f.g.values(), .buf = state.values()}, f.mix,
                              {.lr = 0.1,
                               .momentum = 0.75,
                               .dampening = static_cast<double>(dampening),
                               .weight_decay = 0.125,
                               .nesterov = nesterov,
                               .first_step = t == 1});
    }
    f.expect_near(x, f.x.values(), 4);
  }
}

/// One step of Adam on exact numbers: the formula of mix_adam.h.
struct ExactAdam {
  Real lr = 0.01L, beta1 = 0.9L, beta2 = 0.98L, eps = 1e-3L, decay = 0.1L;
  Real noise_share = 1;

  /// What the second moment takes up of a gradient that has made the first moment m.
  Real square(Real g, Real m, Real t) const {
    const Real signal = m / (1 - std::pow(beta1, t));
    return noise_share * g * g + (1 - noise_share) * signal * signal;
  }

  Real step(Real m, Real v, Real t) const {
    const Real root = std::sqrt(v) / std::sqrt(1 - std::pow(beta2, t));
    return lr / (1 - std::pow(beta1, t)) * m / (root + eps);
  }
};

TYPED_TEST(Formulas, AdamAndAdamWFollowTheirRecursion) {
  for (const auto& [decoupled, share] : {std::pair{false, 1.0}, {true, 1.0}, {true, 0.125}}) {
    const ExactAdam adam{.noise_share = share};
    Fixture<TypeParam> f;
    std::vector<TypeParam> m_state(kCount), v_state(kCount);
    Reals x = f.exact(f.x.values()), m(kCount), v(kCount);
    for (int t = 1; t <= 5; ++t) {
      f.new_gradient(static_cast<std::uint64_t>(t));
      for (std::size_t i = 0; i < kCount; ++i) {
        const Real g = 0.5L * Real{f.g.values()[i]} + (decoupled ? 0 : adam.decay * x[i]);
        m[i] = adam.beta1 * m[i] + (1 - adam.beta1) * g;
        v[i] = adam.beta2 * v[i] + (1 - adam.beta2) * adam.square(g, m[i], t);
        const Real decayed = decoupled ? adam.lr * adam.decay * x[i] : 0;
        x[i] = f.mixed(x, i) - adam.step(m[i], v[i], t) - decayed;
      }
      mix_adam<TypeParam>({.x = f.x.values(), .g = f.g.values(), .m = m_state, .v = v_state}, f.mix,
                          {.lr = 0.01,
                           .beta1 = 0.9,
                           .beta2 = 0.98,
                           .eps = 1e-3,
                           .noise_share = share,
                           .weight_decay = 0.1,
                           .decoupled = decoupled,
                           .t = t,
                           .grad_scale = 0.5});
    }
    f.expect_near(x, f.x.values(), 5);
    f.expect_near(m, m_state, 5);
    f.expect_near(v, v_state, 5);
  }
}

/// The published recursion with all its stores, also those that the passes leave out.
struct ExactAccumAdam {
  ExactAdam adam;
  std::int64_t s;
  bool decoupled;
  Reals m = Reals(kCount), v = Reals(kCount), b = Reals(kCount);

  template <class T>
  void step(std::int64_t t, Fixture<T>& f, Reals& x) {
    const Real t_hat = static_cast<Real>((t + s - 1) / s);
    for (std::size_t i = 0; i < kCount; ++i) {
      const Real g = Real{f.g.values()[i]} + (decoupled ? 0 : adam.decay * x[i]);
      const Real now_m = adam.beta1 * m[i] + (1 - adam.beta1) * g;
      const Real now_v = adam.beta2 * v[i] + (1 - adam.beta2) * adam.square(g, now_m, t_hat);
      const Real decayed = decoupled ? adam.lr * adam.decay * x[i] : 0;
      x[i] = f.mixed(x, i) - adam.step(now_m, now_v, t_hat) - decayed;
      b[i] += g / static_cast<Real>(s);
      if (t % s != 0) continue;
      m[i] = adam.beta1 * m[i] + (1 - adam.beta1) * b[i];
      v[i] = adam.beta2 * v[i] + (1 - adam.beta2) * adam.square(b[i], m[i], t_hat);
      b[i] = 0;
    }
  }
};

TYPED_TEST(Formulas, AccumAdamFollowsItsRecursionForEveryPeriod) {
  for (const std::int64_t period : {1, 2, 3, 4}) {
    for (const auto& [decoupled, share] : {std::pair{false, 1.0}, {true, 1.0}, {true, 0.125}}) {
      Fixture<TypeParam> f;
      ExactAccumAdam exact{.adam = {.noise_share = share}, .s = period, .decoupled = decoupled};
      Reals x = f.exact(f.x.values());
      std::vector<TypeParam> m(kCount), v(kCount);
      GuardedBuffer<TypeParam> b(kCount, 1, 9);  // what is in it must not matter
      for (std::int64_t t = 1; t <= 9; ++t) {
        f.new_gradient(static_cast<std::uint64_t>(t));
        exact.step(t, f, x);
        mix_accum_adam<TypeParam>(
            {.x = f.x.values(), .g = f.g.values(), .m = m, .v = v, .b = b.values()}, f.mix,
            {.lr = 0.01,
             .beta1 = 0.9,
             .beta2 = 0.98,
             .eps = 1e-3,
             .noise_share = share,
             .weight_decay = 0.1,
             .decoupled = decoupled,
             .t = t,
             .period = period});
      }
      f.expect_near(x, f.x.values(), 9);
      f.expect_near(exact.m, m, 9);
      f.expect_near(exact.v, v, 9);
    }
  }
}

TYPED_TEST(Formulas, SgdAloneIsOneFusedMultiplyAdd) {
  using T = TypeParam;
  Fixture<T> f;
  std::vector<T> expected(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    expected[i] = std::fma(static_cast<T>(-0.013), f.g.values()[i], f.x.values()[i]);
  }
  mix_sgd<T>({.x = f.x.values(), .g = f.g.values()}, {}, {.lr = 0.013});
  EXPECT_TRUE(same_bits<T>(f.x.values(), expected));
}

/// One step of every kind of pass, from x to `out` or over x where that is empty.
template <class T>
struct Steps {
  std::vector<T> buf = std::vector<T>(kCount), m = buf, v = buf, b = buf;

  double step(int kind, std::span<T> x, std::span<T> out, Fixture<T>& f, std::int64_t t) {
    const std::span<const T> g = f.g.values();
    const AdamStep adam{.weight_decay = 0.1, .decoupled = true, .t = t};
    const AccumAdamStep accum{.weight_decay = 0.1, .decoupled = true, .t = t, .period = 3};
    switch (kind) {
      case 0:
        return mix_only<T>({x, out}, f.mix);
      case 1:
        return mix_sgd<T>({x, out, g}, f.mix, {.lr = 0.1});
      case 2:
        return mix_momentum<T>({x, out, g, buf}, f.mix, {.lr = 0.1, .momentum = 0.9});
      case 3:
        return mix_adam<T>({x, out, g, m, v}, f.mix, adam);
      default:
        return mix_accum_adam<T>({x, out, g, m, v, b}, f.mix, accum);
    }
  }
};

TYPED_TEST(Formulas, TwoBuffersInTurnsHoldWhatOneWould) {
  using T = TypeParam;
  for (int kind = 0; kind < 5; ++kind) {
    Fixture<T> f;
    Steps<T> with_one, with_two;
    GuardedBuffer<T> here(kCount, 0, 0), there(kCount, 0, 9);
    for (std::int64_t t = 1; t <= 7; ++t) {
      f.new_gradient(static_cast<std::uint64_t>(t));
      const std::vector<T> old(f.x.values().begin(), f.x.values().end());
      const double distance = with_one.step(kind, f.x.values(), {}, f, t);
      EXPECT_EQ(with_two.step(kind, here.values(), there.values(), f, t), distance);
      EXPECT_TRUE(same_bits<T>(here.values(), old)) << "pass " << kind << ", step " << t;
      std::swap(here, there);
      EXPECT_TRUE(same_bits<T>(here.values(), f.x.values())) << "pass " << kind << ", step " << t;
    }
    EXPECT_TRUE(here.sentinels_intact() && there.sentinels_intact()) << "pass " << kind;
  }
}

TYPED_TEST(Formulas, DestinationsThatDoNotFitAreRefused) {
  using T = TypeParam;
  Fixture<T> f;
  const std::span<T> x = f.x.values();
  std::vector<T> long_enough(kCount + 1);
  const std::span<T> too_long = long_enough;
  const auto message = [&](int kind, std::span<T> from, std::span<T> out) {
    try {
      Steps<T>{}.step(kind, from, out, f, 1);
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  for (int kind = 0; kind < 5; ++kind) {
    EXPECT_NE(message(kind, x, too_long).find("out must have as many elements as x, 53, got 54"),
              std::string::npos);
    EXPECT_NE(message(kind, x, x).find("out must not overlap x"), std::string::npos);
    EXPECT_NE(
        message(kind, too_long.first(kCount), too_long.last(kCount)).find("out must not overlap x"),
        std::string::npos);
  }
}

TYPED_TEST(Formulas, LengthsAndCountersAreChecked) {
  using T = TypeParam;
  Fixture<T> f;
  const std::span<T> x = f.x.values();
  const std::span<T> less = f.g.values().first(kCount - 1);
  EXPECT_THROW(mix_sgd<T>({.x = x, .g = less}, f.mix, {}), std::invalid_argument);
  EXPECT_THROW(mix_momentum<T>({.x = x, .g = x, .buf = less}, f.mix, {}), std::invalid_argument);
  EXPECT_THROW(mix_adam<T>({.x = x, .g = x, .m = x, .v = less}, f.mix, {}), std::invalid_argument);
  EXPECT_THROW(mix_adam<T>({.x = x, .g = x, .m = x, .v = x}, f.mix, {.t = 0}),
               std::invalid_argument);
  EXPECT_THROW(
      mix_accum_adam<T>({.x = x, .g = x, .m = x, .v = x, .b = less}, f.mix, {.t = 1, .period = 2}),
      std::invalid_argument);
  EXPECT_THROW(mix_accum_adam<T>({.x = x, .g = x, .m = x, .v = x, .b = x}, f.mix, {.period = 0}),
               std::invalid_argument);
}

TEST(FusedPasses, NeitherThreadsNorADestinationChangeABit) {
  constexpr std::size_t kLarge = 5 * 65536 + 77;
  const GuardedBuffer<float> received(kLarge, 0, 8);
  const std::vector<Source<float>> sources{{received.values().data(), 0.5}};
  const Mix<float> mix{.self_weight = 0.5, .sources = sources, .measure_distance = true};
  const AdamStep step{.weight_decay = 0.1, .decoupled = true, .t = 3};
  std::vector<std::vector<float>> results;
  std::vector<double> distances;
  for (const int threads : {0, 1, 2, 3}) {
    for (const bool apart : {false, true}) {
      const auto pool = threads == 0 ? nullptr : std::make_unique<WorkerPool>(threads);
      GuardedBuffer<float> x(kLarge, 0, 0), g(kLarge, 0, 1), m(kLarge, 0, 2), other(kLarge, 3, 3);
      std::vector<float> v(kLarge, 0.5F);
      const std::span<float> out = apart ? other.values() : std::span<float>{};
      distances.push_back(
          mix_adam<float>({.x = x.values(), .out = out, .g = g.values(), .m = m.values(), .v = v},
                          mix, step, pool.get()));
      const std::span<float> result = apart ? out : x.values();
      results.emplace_back(result.begin(), result.end());
    }
  }
  for (std::size_t i = 1; i < results.size(); ++i) {
    EXPECT_EQ(distances[i], distances[0]);
    EXPECT_TRUE(same_bits<float>(results[i], results[0]));
  }
}

}  // namespace
}  // namespace gossamer
