// Each instruction set against the scalar codecs: bits, alignment, and what is around the buffers.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "gossamer/base/codec.h"
#include "gossamer/kernels/guarded_buffer.h"
#include "gossamer/kernels/kernel_table.h"

namespace gossamer {
namespace {

constexpr std::array kFastIsas{Isa::avx2, Isa::avx512};
constexpr std::size_t kLongest = 2 * kCodecBlock + 3;

/// Bytes with sentinels on both sides, `shift` bytes behind where the memory begins.
class GuardedBytes {
 public:
  GuardedBytes(std::size_t count, std::size_t shift)
      : storage_(count + 2 * kGuard + shift, kSentinel), count_(count), begin_(kGuard + shift) {}
  unsigned char* data() { return storage_.data() + begin_; }
  bool operator==(const GuardedBytes& other) const = default;
  bool sentinels_intact() const {
    for (std::size_t i = 0; i < storage_.size(); ++i) {
      const bool outside = i < begin_ || i >= begin_ + count_;
      if (outside && storage_[i] != kSentinel) return false;
    }
    return true;
  }

 private:
  static constexpr std::size_t kGuard = 64;
  static constexpr unsigned char kSentinel = 0xA5;
  std::vector<unsigned char> storage_;
  std::size_t count_;
  std::size_t begin_;
};

/// Numbers of all magnitudes, zeros of both signs, denormals, and what is not finite.
enum class Content { ordinary, wide, tiny, wild };
constexpr std::array kContents{Content::ordinary, Content::wide, Content::tiny, Content::wild};

template <class T>
T number(Content content, Rng& rng) {
  using Limits = std::numeric_limits<float>;
  const T plain = static_cast<T>(4 * rng.uniform() - 2);
  switch (content) {
    case Content::ordinary:
      return plain;
    case Content::wide:
      return plain * static_cast<T>(std::pow(10.0, 70 * rng.uniform() - 35));
    case Content::tiny:
      return rng.uniform() < 0.3 ? T{-0.0} : plain * static_cast<T>(Limits::denorm_min() * 300);
    case Content::wild: {
      constexpr std::array kWild{Limits::infinity(),   -Limits::infinity(),
                                 Limits::quiet_NaN(),  std::bit_cast<float>(0xFFC012FFu),
                                 Limits::max(),        Limits::lowest(),
                                 Limits::denorm_min(), -0.0F};
      const auto which = static_cast<std::size_t>(rng.uniform() * kWild.size());
      return rng.uniform() < 0.01 ? static_cast<T>(kWild[which]) : plain;
    }
  }
  __builtin_unreachable();
}

struct Case {
  Codec codec;
  Content content;
  std::size_t count, shift;
  int kept;  // 0: not asked for, 1: in x, 2: apart
  bool error;

  std::string text() const {
    return std::string(name_of(codec)) + ", content " + std::to_string(static_cast<int>(content)) +
           ", n " + std::to_string(count) + ", shift " + std::to_string(shift) + ", kept " +
           std::to_string(kept) + ", error " + std::to_string(error);
  }
};

template <class T>
struct Workspace {
  explicit Workspace(const Case& c)
      : x(c.count, c.shift, 0),
        kept(c.count, c.shift / 2, 1),
        error(c.count, 2 * c.shift, 2),
        coded(coded_bytes(c.codec, static_cast<std::int64_t>(c.count)), c.shift) {
    Rng rng(23, c.count);
    for (T& value : x.values()) value = number<T>(c.content, rng);
  }
  Encoding<T> job(const Case& c) {
    return {.x = x.data(),
            .count = c.count,
            .coded = coded.data(),
            .kept = c.kept == 0 ? nullptr : (c.kept == 1 ? x : kept).data(),
            .own = static_cast<T>(c.count % 2),
            .keep = T(0.4),
            .error = c.error ? error.data() : nullptr};
  }
  GuardedBuffer<T> x, kept, error;
  GuardedBytes coded;
};

/// The same bits, but for the payload of a NaN, which no instruction set promises.
template <class T>
bool same_numbers(const GuardedBuffer<T>& a, const GuardedBuffer<T>& b) {
  for (std::size_t i = 0; i < a.values().size(); ++i) {
    const T left = a.values()[i];
    const T right = b.values()[i];
    if (std::isnan(left) && std::isnan(right)) continue;
    if (std::memcmp(&left, &right, sizeof(T)) != 0) return false;
  }
  return a.sentinels_intact() && b.sentinels_intact();
}

template <class T>
void encode_on(Isa isa, Codec codec, const Encoding<T>& job) {
  kernel_table<T>(isa).codecs[static_cast<std::size_t>(codec)].encode(job);
}

template <class T>
void decode_on(Isa isa, Codec codec, const Decoding<T>& job, bool add = false) {
  const CodecKernels<T>& passes = kernel_table<T>(isa).codecs[static_cast<std::size_t>(codec)];
  (add ? passes.decode_add : passes.decode)(job);
}

template <class T>
void expect_same_as_ref(Isa isa, const Case& c) {
  Workspace<T> fast(c);
  Workspace<T> slow(c);
  encode_on<T>(isa, c.codec, fast.job(c));
  encode_on<T>(Isa::ref, c.codec, slow.job(c));
  ASSERT_TRUE(fast.coded == slow.coded && fast.coded.sentinels_intact() &&
              same_numbers(fast.x, slow.x) && same_numbers(fast.kept, slow.kept) &&
              same_numbers(fast.error, slow.error))
      << name_of(isa) << ", " << c.text();
}

template <class T>
void check_encode(Isa isa, Codec codec, Content content) {
  for (std::size_t count = 0; count <= kLongest; ++count) {
    for (const int kept : {0, 1, 2}) {
      for (const bool error : {false, true}) {
        expect_same_as_ref<T>(isa, {codec, content, count, count % 4, kept, error});
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

/// [offset, offset + count) decoded over, and added to, other numbers.
template <class T>
void expect_part_of(const GuardedBuffer<T>& whole, Isa isa, Codec codec, Decoding<T> part) {
  for (const bool add : {false, true}) {
    GuardedBuffer<T> expected(part.count, part.offset % 3, 8);
    GuardedBuffer<T> got(part.count, part.offset % 3, 8);
    for (std::size_t i = 0; i < part.count; ++i) {
      const T decoded = whole.values()[part.offset + i];
      expected.values()[i] = add ? expected.values()[i] + decoded : decoded;
    }
    part.into = got.data();
    decode_on<T>(isa, codec, part, add);
    ASSERT_TRUE(same_numbers(got, expected))
        << name_of(isa) << ", " << name_of(codec) << ", offset " << part.offset << ", count "
        << part.count << ", add " << add;
  }
}

/// Every offset with short and long rests, against a decoding of the whole by the scalar code.
template <class T>
void check_decode(Isa isa, Codec codec, Content content) {
  const Case c{codec, content, kLongest, 3, 0, false};
  Workspace<T> w(c);
  encode_on<T>(Isa::ref, codec, w.job(c));
  GuardedBuffer<T> whole(kLongest, 0, 7);
  decode_on<T>(Isa::ref, codec, {.coded = w.coded.data(), .into = whole.data(), .count = kLongest});
  for (std::size_t offset = 0; offset < kLongest; ++offset) {
    const std::size_t left = kLongest - offset;
    for (const std::size_t count : {std::size_t{0}, std::size_t{17}, left / 2, left}) {
      if (count > left) continue;
      expect_part_of<T>(whole, isa, codec,
                        {.coded = w.coded.data(), .offset = offset, .count = count});
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

template <class T>
class CodecTables : public testing::Test {};
using Elements = testing::Types<float, double>;
TYPED_TEST_SUITE(CodecTables, Elements);

TYPED_TEST(CodecTables, HaveARowForEveryCodec) {
  for (const Isa isa : {Isa::ref, Isa::avx2, Isa::avx512}) {
    if (!supports(isa)) continue;
    EXPECT_TRUE(has_all_codecs(kernel_table<TypeParam>(isa))) << name_of(isa);
  }
}

TYPED_TEST(CodecTables, EncodingHasTheBitsOfRefOnEveryIsa) {
  for (const Isa isa : kFastIsas) {
    if (!supports(isa)) continue;
    for (const Codec codec : kLossyCodecs) {
      for (const Content content : kContents) check_encode<TypeParam>(isa, codec, content);
    }
  }
}

TYPED_TEST(CodecTables, DecodingAnyRangeHasTheBitsOfRefOnEveryIsa) {
  for (const Isa isa : {Isa::ref, Isa::avx2, Isa::avx512}) {
    if (!supports(isa)) continue;
    for (const Codec codec : kLossyCodecs) {
      for (const Content content : kContents) check_decode<TypeParam>(isa, codec, content);
    }
  }
}

}  // namespace
}  // namespace gossamer
