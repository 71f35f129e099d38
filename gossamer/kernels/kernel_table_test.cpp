#include "gossamer/kernels/kernel_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "gossamer/kernels/fused_passes.h"

namespace gossamer {
namespace {

constexpr std::array kFastIsas{Isa::avx2, Isa::avx512};

/// n = 0 … 2·lanes + 1 of the widest vectors, then some around the tile.
template <class T>
std::vector<std::size_t> sizes() {
  std::vector<std::size_t> result;
  for (std::size_t n = 0; n <= 2 * (64 / sizeof(T)) + 1; ++n) result.push_back(n);
  for (const std::size_t n : {255u, 256u, 257u, 2071u}) result.push_back(n);
  return result;
}

template <class T>
struct Case {
  const Pass<T>* pass;
  std::size_t count, shift, sources;
  bool measure;
};

template <class T>
void expect_same_as_ref(Isa isa, const Case<T>& c) {
  Workspace<T> fast(c.count, c.shift, c.sources);
  Workspace<T> slow(c.count, c.shift, c.sources);
  const Range range{c.count / 5, c.count};
  const double distance = c.pass->run(kernel_table<T>(isa), range, fast.mix(c.measure), fast);
  const double expected = c.pass->run(kernel_table<T>(Isa::ref), range, slow.mix(c.measure), slow);
  const auto fast_buffers = fast.buffers();
  const auto slow_buffers = slow.buffers();
  bool same = distance == expected && (c.measure || distance == 0);
  for (std::size_t i = 0; i < fast_buffers.size(); ++i) {
    same = same && fast_buffers[i]->sentinels_intact();
    same = same && same_bits<T>(fast_buffers[i]->values(), slow_buffers[i]->values());
  }
  ASSERT_TRUE(same) << c.pass->name << ", " << name_of(isa) << ", n " << c.count << ", shift "
                    << c.shift << ", sources " << c.sources << ", measure " << c.measure
                    << ", distance " << distance << " instead of " << expected;
}

template <class T>
void check_all(Isa isa) {
  for (const Pass<T>& pass : all_passes<T>()) {
    for (const std::size_t count : sizes<T>()) {
      for (const std::size_t shift : {0u, 1u, 3u}) {
        if (count > 1000 && shift != 1) continue;
        for (std::size_t sources = 0; sources <= 5; ++sources) {
          for (const bool measure : {false, true}) {
            expect_same_as_ref<T>(isa, {&pass, count, shift, sources, measure});
            if (testing::Test::HasFatalFailure()) return;
          }
        }
      }
    }
  }
}

template <class T>
void expect_same_as_in_place(Isa isa, const Case<T>& c, std::size_t out_shift) {
  const Workspace<T> before(c.count, c.shift, c.sources, out_shift);
  Workspace<T> in_place(c.count, c.shift, c.sources, out_shift);
  Workspace<T> apart(c.count, c.shift, c.sources, out_shift);
  const Range range{c.count / 5, c.count - c.count / 7};
  const auto run = [&](Workspace<T>& w, bool to_out) {
    return c.pass->run(kernel_table<T>(isa), range, w.mix(c.measure, to_out), w);
  };
  const double expected = run(in_place, false);
  const double distance = run(apart, true);
  // What must be in the buffers: the new x in the range of `out`, the old x in x.
  const auto new_x = in_place.x.values().subspan(range.begin, range.end - range.begin);
  const auto place = in_place.out.values().subspan(range.begin, range.end - range.begin);
  std::ranges::copy(new_x, place.begin());
  std::ranges::copy(before.x.values(), in_place.x.values().begin());
  bool same = distance == expected;
  for (std::size_t i = 0; i < apart.buffers().size(); ++i) {
    same = same && apart.buffers()[i]->sentinels_intact();
    same = same && same_bits<T>(apart.buffers()[i]->values(), in_place.buffers()[i]->values());
  }
  ASSERT_TRUE(same) << c.pass->name << ", " << name_of(isa) << ", n " << c.count << ", shift "
                    << c.shift << ", shift of out " << out_shift << ", sources " << c.sources
                    << ", measure " << c.measure << ", distance " << distance << " instead of "
                    << expected;
}

/// Lengths around the groups and tiles that out-of-place passes work in.
template <class T>
void check_out_of_place(Isa isa) {
  for (const Pass<T>& pass : all_passes<T>()) {
    for (const std::size_t count : {0u, 1u, 3u, 17u, 41u, 97u, 131u, 203u, 399u, 1031u}) {
      for (const std::size_t out_shift : {0u, 1u, 2u, 7u}) {
        for (const std::size_t sources : {0u, 1u, 2u, 3u, 5u}) {
          for (const bool measure : {false, true}) {
            const Case<T> c{&pass, count, count % 2, sources, measure};
            expect_same_as_in_place<T>(isa, c, out_shift);
            if (testing::Test::HasFatalFailure()) return;
          }
        }
      }
    }
  }
}

template <class T>
class KernelTables : public testing::Test {};
using Elements = testing::Types<float, double>;
TYPED_TEST_SUITE(KernelTables, Elements);

TYPED_TEST(KernelTables, FusedPassesHaveTheBitsOfRefOnEveryIsa) {
  for (const Isa isa : kFastIsas) {
    if (supports(isa)) check_all<TypeParam>(isa);
  }
}

TYPED_TEST(KernelTables, OutOfPlacePassesHaveTheBitsOfInPlaceAndLeaveXAlone) {
  for (const Isa isa : {Isa::ref, Isa::avx2, Isa::avx512}) {
    if (supports(isa)) check_out_of_place<TypeParam>(isa);
  }
}

TYPED_TEST(KernelTables, SumsHaveTheBitsOfRefOnEveryIsa) {
  using T = TypeParam;
  for (const Isa isa : kFastIsas) {
    if (!supports(isa)) continue;
    for (const std::size_t count : sizes<T>()) {
      for (std::size_t terms = 0; terms <= 6; ++terms) {
        Workspace<T> fast(count, 1, terms);
        Workspace<T> slow(count, 1, terms);
        const auto run = [&](Isa which, Workspace<T>& w) {
          std::vector<const T*> pointers;
          for (auto& buffer : w.received) pointers.push_back(buffer.data());
          if (terms > 2) pointers[2] = w.x.data();
          kernel_table<T>(which).sum_into(
              {count / 7, count},
              {.into = w.x.data(), .terms = pointers.data(), .term_count = terms, .scale = T(0.3)});
        };
        run(isa, fast);
        run(Isa::ref, slow);
        ASSERT_TRUE(same_bits<T>(fast.x.values(), slow.x.values()) && fast.x.sentinels_intact())
            << name_of(isa) << ", n " << count << ", terms " << terms;
      }
    }
  }
}

TYPED_TEST(KernelTables, NormsHaveTheBitsOfRefOnEveryIsa) {
  using T = TypeParam;
  const KernelTable<T>& ref = kernel_table<T>(Isa::ref);
  for (const Isa isa : kFastIsas) {
    if (!supports(isa)) continue;
    const KernelTable<T>& fast = kernel_table<T>(isa);
    for (const std::size_t count : sizes<T>()) {
      Workspace<T> w(count, 1, 0);
      const Range range{count / 3, count};
      ASSERT_EQ(fast.sum_squares(range, w.x.data()), ref.sum_squares(range, w.x.data())) << count;
      ASSERT_EQ(fast.distance_squares(range, w.x.data(), w.g.data()),
                ref.distance_squares(range, w.x.data(), w.g.data()))
          << count;
    }
  }
}

TEST(KernelTables, RefuseWhatTheMachineLacks) {
  for (const Isa isa : kFastIsas) {
    if (supports(isa)) continue;
    EXPECT_THROW(kernel_table<float>(isa), std::invalid_argument);
    EXPECT_THROW(copy_function(isa), std::invalid_argument);
  }
}

}  // namespace
}  // namespace gossamer
