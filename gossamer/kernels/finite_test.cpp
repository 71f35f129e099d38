#include "gossamer/kernels/finite.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "gossamer/kernels/kernel_table.h"

namespace gossamer {
namespace {

template <class T>
class AllFinite : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(AllFinite, Types);

TYPED_TEST(AllFinite, AcceptsTheLargestTheSmallestAndNone) {
  using Limits = std::numeric_limits<TypeParam>;
  const std::vector<TypeParam> values{Limits::max(), Limits::lowest(), Limits::denorm_min(),
                                      Limits::min(), TypeParam{0},     -TypeParam{0}};
  EXPECT_TRUE(all_finite<TypeParam>(values));
  EXPECT_TRUE(all_finite<TypeParam>({}));
}

TYPED_TEST(AllFinite, FindsOneAnywhereInTheRangeOnEveryIsa) {
  using Limits = std::numeric_limits<TypeParam>;
  for (const Isa isa : {Isa::ref, Isa::avx2, Isa::avx512}) {
    if (!supports(isa)) continue;
    const auto test = kernel_table<TypeParam>(isa).all_finite;
    for (const std::size_t size : {1u, 2u, 7u, 33u, 64u, 4095u, 4096u, 4097u, 8200u}) {
      std::vector<TypeParam> values(size + 2, TypeParam{1});
      values.front() = values.back() = Limits::infinity();  // outside of the range
      const Range range{1, size + 1};
      for (const std::size_t place : {std::size_t{1}, 1 + size / 2, size}) {
        for (const TypeParam bad : {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(),
                                    -Limits::quiet_NaN(), Limits::signaling_NaN()}) {
          values[place] = bad;
          EXPECT_FALSE(test(range, values.data())) << name_of(isa) << " " << size << " " << place;
          values[place] = TypeParam{1};
        }
      }
      EXPECT_TRUE(test(range, values.data())) << name_of(isa) << " " << size;
    }
  }
}

}  // namespace
}  // namespace gossamer
