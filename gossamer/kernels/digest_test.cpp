#include "gossamer/kernels/digest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "gossamer/base/test_errors.h"
#include "gossamer/kernels/fused_passes.h"

namespace gossamer {
namespace {

constexpr std::array kEveryIsa{Isa::ref, Isa::avx2, Isa::avx512};

template <class T>
std::vector<Digest> digests_of(Isa isa, std::span<const T> x) {
  std::vector<T> copy(x.size());
  std::vector<Digest> digests(digest_count(x.size()));
  kernel_table<T>(isa).copy_digested({0, x.size()}, x.data(), copy.data(), digests.data());
  EXPECT_TRUE(same_bits<T>(copy, x));
  return digests;
}

template <class T>
class Digests : public testing::Test {};
using Elements = testing::Types<float, double>;
TYPED_TEST_SUITE(Digests, Elements);

template <class T>
using Edit = std::function<void(std::span<T>)>;

/// What users do to parameters, and what a weak sum of them does not see.
template <class T>
std::vector<Edit<T>> edits() {
  return {
      [](std::span<T> x) { x.back() = std::nextafter(x.back(), T(9)); },
      [](std::span<T> x) { std::ranges::fill(x, T(0)); },
      [](std::span<T> x) { std::ranges::fill(x, T(1)); },
      [](std::span<T> x) { std::ranges::fill(x, T(2)); },
      [](std::span<T> x) { std::ranges::for_each(x, [](T& value) { value = -value; }); },
      [](std::span<T> x) { std::ranges::for_each(x, [](T& value) { value *= 2; }); },
      [](std::span<T> x) { x[0] = -x[0], x[x.size() / 2] = -x[x.size() / 2]; },
      [](std::span<T> x) { std::swap(x.front(), x.back()); },
      [](std::span<T> x) { std::ranges::rotate(x, x.begin() + 64 / sizeof(T)); },
      [](std::span<T> x) { std::ranges::rotate(x, x.begin() + 128 / sizeof(T)); },
      [](std::span<T> x) { std::ranges::reverse(x); },
  };
}

TYPED_TEST(Digests, TellApartWhatUsersMakeOfATile) {
  using T = TypeParam;
  for (const Isa isa : kEveryIsa) {
    if (!supports(isa)) continue;
    for (const std::size_t count : {std::size_t{100}, kDigestTile}) {
      const GuardedBuffer<T> x(count, 1, 0);
      std::set<Digest> seen{digests_of<T>(isa, x.values()).at(0)};
      for (const Edit<T>& edit : edits<T>()) {
        GuardedBuffer<T> edited(count, 1, 0);
        edit(edited.values());
        seen.insert(digests_of<T>(isa, edited.values()).at(0));
      }
      EXPECT_EQ(seen.size(), edits<T>().size() + 1) << name_of(isa) << ", n " << count;
    }
  }
}

TYPED_TEST(Digests, EachBitOfATileCounts) {
  using T = TypeParam;
  for (const Isa isa : kEveryIsa) {
    if (!supports(isa)) continue;
    GuardedBuffer<T> x(300, 3, 0);
    std::set<Digest> seen{digests_of<T>(isa, x.values()).at(0)};
    const std::span<unsigned char> bytes(reinterpret_cast<unsigned char*>(x.data()),
                                         300 * sizeof(T));
    for (unsigned char& byte : bytes) {
      for (int bit = 0; bit < 8; ++bit) {
        byte = static_cast<unsigned char>(byte ^ (1U << bit));
        seen.insert(digests_of<T>(isa, x.values()).at(0));
        byte = static_cast<unsigned char>(byte ^ (1U << bit));
      }
    }
    EXPECT_EQ(seen.size(), 8 * bytes.size() + 1) << name_of(isa);
  }
}

TYPED_TEST(Digests, CopiesHaveTheDigestsOfThePassesWhereverTheyAre) {
  using T = TypeParam;
  for (const Isa isa : kEveryIsa) {
    if (!supports(isa)) continue;
    for (const std::size_t count : {std::size_t{0}, std::size_t{5}, 3 * kDigestTile + 77}) {
      const GuardedBuffer<T> x(count, 0, 0);
      const std::vector<Digest> expected = digests_of<T>(isa, x.values());
      for (const std::size_t shift : {0U, 1U, 5U}) {
        const GuardedBuffer<T> moved(count, shift + 1, 0);
        GuardedBuffer<T> to(count, shift, 1);
        std::vector<Digest> digests(expected.size());
        kernel_table<T>(isa).copy_digested({0, count}, moved.values().data(), to.data(),
                                           digests.data());
        EXPECT_EQ(digests, expected);
        EXPECT_TRUE(same_bits<T>(to.values(), x.values()) && to.sentinels_intact());
      }
    }
  }
}

/// A vector of which a copy was sent, and which was then changed in every third tile.
template <class T>
struct Sent {
  Sent(Isa isa, std::size_t count, std::size_t sources, std::size_t out_shift = 0)
      : w(count, 0, sources, out_shift), digests(digests_of<T>(isa, w.x.values())) {
    std::ranges::copy(w.x.values(), w.received[0].values().begin());
    w.mix_sources[0].weight = -0.75;
    for (std::size_t tile = 0; tile < digests.size(); ++tile) {
      const std::size_t begin = tile * kDigestTile;
      if (is_changed(tile)) {
        w.x.values()[begin] += 1;
      } else {  // so that whoever reads it is found
        const auto of_tile = w.received[0].values().subspan(begin);
        std::ranges::fill(of_tile.first(std::min(kDigestTile, of_tile.size())),
                          std::numeric_limits<T>::quiet_NaN());
      }
    }
  }

  static bool is_changed(std::size_t tile) { return tile % 3 == 1; }

  MixArgs<T> mix(bool measure, bool to_out) {
    MixArgs<T> args = w.mix(measure, to_out);
    args.self_weight = 1;
    args.digests = digests.data();
    return args;
  }

  Workspace<T> w;
  std::vector<Digest> digests;
};

/// The pass tile by tile, each with the mix that is right for it.
template <class T>
double expected_pass(const Pass<T>& pass, Sent<T>& sent, bool measure, bool to_out) {
  MixArgs<T> changed = sent.mix(measure, to_out);
  changed.digests = nullptr;
  MixArgs<T> unchanged = changed;
  unchanged.self_weight = 1 - 0.75;
  unchanged.sources += 1;
  unchanged.source_count -= 1;
  double distance = 0;
  const std::size_t count = sent.w.x.values().size();
  for (std::size_t tile = 0; tile < sent.digests.size(); ++tile) {
    const std::size_t begin = tile * kDigestTile;
    distance += pass.run(kernel_table<T>(Isa::ref), {begin, std::min(count, begin + kDigestTile)},
                         Sent<T>::is_changed(tile) ? changed : unchanged, sent.w);
  }
  return distance;
}

template <class T>
void check_passes(Isa isa, std::size_t count, std::size_t sources) {
  for (const Pass<T>& pass : all_passes<T>()) {
    for (const int flags : {0, 1, 2, 3}) {
      const bool measure = flags % 2 == 1;
      const bool to_out = flags / 2 == 1;
      Sent<T> sent(isa, count, sources);
      Sent<T> slow(isa, count, sources);
      const double distance =
          pass.run(kernel_table<T>(isa), {0, count}, sent.mix(measure, to_out), sent.w);
      bool same = distance == expected_pass(pass, slow, measure, to_out);
      for (std::size_t i = 0; i < sent.w.buffers().size(); ++i) {
        same = same && sent.w.buffers()[i]->sentinels_intact();
        same = same && same_bits<T>(sent.w.buffers()[i]->values(), slow.w.buffers()[i]->values());
      }
      ASSERT_TRUE(same) << pass.name << ", " << name_of(isa) << ", n " << count << ", sources "
                        << sources << ", flags " << flags;
    }
  }
}

TYPED_TEST(Digests, WhatIsUnchangedIsMixedWithoutReadingTheCopy) {
  for (const Isa isa : kEveryIsa) {
    if (!supports(isa)) continue;
    for (const std::size_t count : {std::size_t{9}, 4 * kDigestTile + 33}) {
      for (const std::size_t sources : {1U, 2U, 3U, 4U}) {
        check_passes<TypeParam>(isa, count, sources);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TEST(DigestArguments, LengthsAreChecked) {
  std::vector<float> x(5000), to(5000);
  std::vector<Digest> digests(2);
  EXPECT_EQ(message_of<std::invalid_argument>([&] { copy_digested<float>(x, to, digests); }),
            "[copy_digested] there must be 3 digests, got 2; one for each tile of 2048 elements");
  digests.resize(3);
  EXPECT_NO_THROW(copy_digested<float>(x, to, digests));
  to.pop_back();
  EXPECT_THROW(copy_digested<float>(x, to, digests), std::invalid_argument);
}

}  // namespace
}  // namespace gossamer
