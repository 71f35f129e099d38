#pragma once
/// The table of the fast kernels for the instruction set that the including file is compiled for;
/// see Note [One loop, many instruction sets] in fused_loop.h.

#include "gossamer/kernels/codec_loops.h"
#include "gossamer/kernels/rules.h"

namespace gossamer {
namespace {

template <class T, class Stream>
double fast_mix_only(Range range, const MixArgs<T>& mix) {
  return run<Stream>(range, mix, KeepMixed<T>{});
}

template <class T, class Stream>
double fast_mix_sgd(Range range, const MixArgs<T>& mix, const SgdArgs<T>& step) {
  return run<Stream>(range, mix, SgdRule<T>{step});
}

template <class T, class Stream>
double fast_mix_momentum(Range range, const MixArgs<T>& mix, const MomentumArgs<T>& step) {
  if (step.first_step) {
    return step.nesterov ? run<Stream>(range, mix, MomentumRule<T, true, true>{step})
                         : run<Stream>(range, mix, MomentumRule<T, true, false>{step});
  }
  return step.nesterov ? run<Stream>(range, mix, MomentumRule<T, false, true>{step})
                       : run<Stream>(range, mix, MomentumRule<T, false, false>{step});
}

template <class T, class Stream>
double fast_mix_adam(Range range, const MixArgs<T>& mix, const AdamArgs<T>& step) {
  return run<Stream>(range, mix, AdamRule<T>{step});
}

template <class T, class Stream, AccumPhase Phase>
double run_accum(Range range, const MixArgs<T>& mix, const AccumAdamArgs<T>& step) {
  return run<Stream>(range, mix, AccumAdamRule<T, Phase>{step.adam, step.b, step.inverse_period});
}

template <class T, class Stream>
double fast_mix_accum_adam(Range range, const MixArgs<T>& mix, const AccumAdamArgs<T>& step) {
  switch (step.phase) {
    case AccumPhase::first:
      return run_accum<T, Stream, AccumPhase::first>(range, mix, step);
    case AccumPhase::middle:
      return run_accum<T, Stream, AccumPhase::middle>(range, mix, step);
    case AccumPhase::last:
      return run_accum<T, Stream, AccumPhase::last>(range, mix, step);
    case AccumPhase::only:
      return run_accum<T, Stream, AccumPhase::only>(range, mix, step);
  }
  __builtin_unreachable();
}

/// `into` may be one of the terms: each element is read before it is written.
template <class T, std::size_t Count>
void sum_few(Range range, const SumArgs<T>& sum) {
  T* const into = sum.into;
  const T scale = sum.scale;
  const T* terms[Count];
  for (std::size_t k = 0; k < Count; ++k) terms[k] = sum.terms[k];
#pragma GCC ivdep
  for (std::size_t i = range.begin; i < range.end; ++i) {
    T total = terms[0][i];
#pragma GCC unroll 4
    for (std::size_t k = 1; k < Count; ++k) total += terms[k][i];
    into[i] = scale * total;
  }
}

template <class T>
void sum_many(Range range, const SumArgs<T>& sum) {
  for_each_tile(range, [&](Range tile) {
    alignas(64) T total[kTile] = {};
    const std::size_t count = tile.end - tile.begin;
    for (std::size_t k = 0; k < sum.term_count; ++k) {
      const T* term = sum.terms[k] + tile.begin;
      if (k == 0) {
        __builtin_memcpy(total, term, count * sizeof(T));
      } else {
        add_weighted(total, term, T{1}, count);
      }
    }
    T* const into = sum.into + tile.begin;
    for (std::size_t i = 0; i < count; ++i) into[i] = sum.scale * total[i];
  });
}

template <class T>
void fast_sum_into(Range range, const SumArgs<T>& sum) {
  switch (sum.term_count) {
    case 1:
      return sum_few<T, 1>(range, sum);
    case 2:
      return sum_few<T, 2>(range, sum);
    case 3:
      return sum_few<T, 3>(range, sum);
    case 4:
      return sum_few<T, 4>(range, sum);
    default:
      return sum_many(range, sum);
  }
}

template <class T>
double fast_sum_squares(Range range, const T* a) {
  SquareLanes<T> lanes;
  lanes.add(a + range.begin, range.end - range.begin);
  return lanes.fold();
}

template <class T>
double fast_distance_squares(Range range, const T* a, const T* b) {
  SquareLanes<T> lanes;
  for_each_tile(range, [&](Range tile) {
    lanes.add_difference(a + tile.begin, b + tile.begin, tile.end - tile.begin);
  });
  return lanes.fold();
}

template <class T>
bool fast_all_finite(Range range, const T* a) {
  for (std::size_t begin = range.begin; begin < range.end; begin += kTestedAtOnce) {
    const std::size_t left = range.end - begin;
    if (!are_finite(a + begin, left < kTestedAtOnce ? left : kTestedAtOnce)) return false;
  }
  return true;
}

template <class T, class Stream>
void fast_copy_digested(Range range, const T* x, T* to, Digest* digests) {
  for_each_digest(range, digests, [&](Range tile, Digest& digest) {
    const std::size_t count = tile.end - tile.begin;
    if (count == kDigestTile && to_line(to + tile.begin) == 0) {
      digest = copy_tile<Stream>(to + tile.begin, x + tile.begin);
    } else {
      digest = digest_of<Stream>(tile, x);
      streaming_copy<Stream>(to + tile.begin, x + tile.begin, count * sizeof(T));
    }
  });
  Stream::fence();
}

template <class T, class Stream>
constexpr KernelTable<T> kFastTable{
    .mix_only = fast_mix_only<T, Stream>,
    .mix_sgd = fast_mix_sgd<T, Stream>,
    .mix_momentum = fast_mix_momentum<T, Stream>,
    .mix_adam = fast_mix_adam<T, Stream>,
    .mix_accum_adam = fast_mix_accum_adam<T, Stream>,
    .copy_digested = fast_copy_digested<T, Stream>,
    .sum_into = fast_sum_into<T>,
    .sum_squares = fast_sum_squares<T>,
    .distance_squares = fast_distance_squares<T>,
    .all_finite = fast_all_finite<T>,
    .codecs = {{},
               {fast_encode_bf16<T>, fast_decode_bf16<T, false>, fast_decode_bf16<T, true>},
               {fast_encode_int8<T>, fast_decode_int8<T, false>, fast_decode_int8<T, true>}},
};

}  // namespace
}  // namespace gossamer
