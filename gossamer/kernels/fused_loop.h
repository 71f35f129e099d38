#pragma once
/// The loop of every fused pass, written once and plainly. Note [One loop, many instruction sets]:
/// this file, streaming.h, rules.h, reductions.h, codec_loops.h, rounding_loops.h and fast_table.h
/// are included only by the *_table.cpp files, each of which is compiled for its own instruction
/// set. So all is in an unnamed namespace and calls only compiler builtins: a shared inline
/// function would be emitted once per instruction set, and the linker would keep any. What has no
/// builtin of one name for all, stores past the caches, comes as the parameter Stream.
/// Multiply-adds are written out and contraction is off, so that all instruction sets and the
/// scalar code give the same bits.

#include <cstddef>

#include "gossamer/kernels/digest_tiles.h"
#include "gossamer/kernels/kernel_table.h"
#include "gossamer/kernels/reductions.h"
#include "gossamer/kernels/streaming.h"

namespace gossamer {
namespace {

[[gnu::always_inline]] inline float fma(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}
[[gnu::always_inline]] inline double fma(double a, double b, double c) {
  return __builtin_fma(a, b, c);
}
[[gnu::always_inline]] inline float root(float a) { return __builtin_sqrtf(a); }
[[gnu::always_inline]] inline double root(double a) { return __builtin_sqrt(a); }

/// Mixes with a number of sources that the compiler knows.
template <class T, std::size_t Count>
struct Mixer {
  T self_weight;
  T weights[Count + 1];
  const T* sources[Count + 1];

  explicit Mixer(const MixArgs<T>& mix) : self_weight(static_cast<T>(mix.self_weight)) {
    for (std::size_t k = 0; k < Count; ++k) {
      weights[k] = static_cast<T>(mix.sources[k].weight);
      sources[k] = mix.sources[k].data;
    }
  }
  [[gnu::always_inline]] T operator()(T x, std::size_t i) const {
    T mixed = self_weight * x;
#pragma GCC unroll 4
    for (std::size_t k = 0; k < Count; ++k) mixed = fma(weights[k], sources[k][i], mixed);
    return mixed;
  }
};

/// Hands out what mix_tile computed: element i is at[i].
template <class T>
struct Premixed {
  const T* at;

  [[gnu::always_inline]] T operator()(T, std::size_t i) const { return at[i]; }
};

/// tile += weight·source. A function of its own, because the compiler would not vectorise it as a
/// loop in a loop.
template <class T>
[[gnu::noinline]] void add_weighted(T* __restrict tile, const T* source, T weight,
                                    std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) tile[i] = fma(weight, source[i], tile[i]);
}

/// mixed of a tile for any number of sources.
template <class T>
void mix_tile(Range range, const MixArgs<T>& mix, T* __restrict tile) {
  const std::size_t count = range.end - range.begin;
  const T self_weight = static_cast<T>(mix.self_weight);
  const T* x = mix.x + range.begin;
  for (std::size_t i = 0; i < count; ++i) tile[i] = self_weight * x[i];
  for (std::size_t k = 0; k < mix.source_count; ++k) {
    const Source<T>& source = mix.sources[k];
    add_weighted(tile, source.data + range.begin, static_cast<T>(source.weight), count);
  }
}

/// Calls tile(sub-range) for each tile of the range, in order.
template <class F>
void for_each_tile(Range range, const F tile) {
  for (std::size_t begin = range.begin; begin < range.end; begin += kTile) {
    const std::size_t left = range.end - begin;
    tile(Range{begin, begin + (left < kTile ? left : kTile)});
  }
}

/// out ← step(mixed, x); `out` is x itself or apart from it.
template <class T, class Mix, class Step>
void apply(Range range, const T* x, T* out, const Mix mixer, const Step step) {
#pragma GCC ivdep
  for (std::size_t i = range.begin; i < range.end; ++i) {
    const T old = x[i];
    out[i] = step(mixer(old, i), old, i);
  }
}

/// Whether a step writes its buffer b without having read it.
template <class Step>
constexpr bool kSetsB = false;

constexpr std::size_t kLine = 64;  // bytes of a line of the caches

/// Elements that are computed on the stack before they are streamed: four lines. Much longer bursts
/// of such stores hold up the reads.
template <class T>
constexpr std::size_t kGroup = 4 * kLine / sizeof(T);

/// How many elements lie before the first one at the start of a line.
template <class T>
std::size_t to_line(const T* a) {
  return (kLine - reinterpret_cast<std::size_t>(a) % kLine) % kLine / sizeof(T);
}

/// Does what apply does in place for a whole tile of digests; returns the digest of the next, see
/// Note [Digests ahead].
template <class Stream, class T, class Mix, class Step>
Digest apply_ahead(std::size_t begin, T* x, const Mix mixer, const Step step) {
  static_assert(kGroup<T> * sizeof(T) == kDigested);
  Digester<Stream> next;
  for (std::size_t i = begin; i < begin + kDigestTile; i += kGroup<T>) {
#pragma GCC ivdep
    for (std::size_t j = 0; j < kGroup<T>; ++j) {
      const T old = x[i + j];
      x[i + j] = step(mixer(old, i + j), old, i + j);
    }
    next.add(x + i + kDigestTile);
  }
  return next.fold();
}

/// Does what apply does where something is written that was not read: b if the step sets it, `out`
/// unless it is x. That goes past the caches, which saves reading its lines; Stream::fence() is
/// left to do. b, or else `out`, begins at a line; a rest of the range is stored plainly, and so is
/// `out` if b begins at a line and `out` does not.
template <class Stream, class T, class Mix, class Step>
void apply_streamed(Range range, const T* x, T* out, const Mix mixer, const Step step) {
  const bool streams_out = !kSetsB<Step> || (out != x && to_line(out + range.begin) == 0);
  std::size_t i = range.begin;
  for (; i + kGroup<T> <= range.end; i += kGroup<T>) {
    alignas(kLine) T fresh[kGroup<T>];
    alignas(kLine) T fresh_b[kGroup<T>];
    T* const to = streams_out ? fresh : out + i;
    Step group_step = step;
    if constexpr (kSetsB<Step>) group_step.b = fresh_b - i;
#pragma GCC ivdep
    for (std::size_t j = 0; j < kGroup<T>; ++j) {
      const T old = x[i + j];
      to[j] = group_step(mixer(old, i + j), old, i + j);
    }
    if (streams_out) stream<Stream>(out + i, fresh, sizeof fresh);
    if constexpr (kSetsB<Step>) stream<Stream>(step.b + i, fresh_b, sizeof fresh_b);
  }
  apply(Range{i, range.end}, x, out, mixer, step);
}

/// Whether a pass writes anything that it has not read.
template <class Step, class T>
bool streams(const MixArgs<T>& mix) {
  return kSetsB<Step> || mix.out != mix.x;
}

/// How many elements of the range lie before the line where apply_streamed can begin.
template <class T, class Step>
std::size_t head_of(Range range, const MixArgs<T>& mix, const Step& step) {
  std::size_t head = to_line(mix.out + range.begin);
  if constexpr (kSetsB<Step>) head = to_line(step.b + range.begin);
  const std::size_t count = range.end - range.begin;
  return head < count ? head : count;
}

template <class Stream, class T, class Mix, class Step>
void sweep(Range range, const MixArgs<T>& mix, const Mix mixer, const Step& step) {
  if (!streams<Step>(mix)) return apply(range, mix.x, mix.out, mixer, step);
  const std::size_t first = range.begin + head_of(range, mix, step);
  apply(Range{range.begin, first}, mix.x, mix.out, mixer, step);
  apply_streamed<Stream>(Range{first, range.end}, mix.x, mix.out, mixer, step);
}

/// For any number of sources, and for the distance: tiles are mixed on the stack first. They are
/// streamed only if they begin at lines: lines in two parts would cost more than they save.
template <class Stream, class T, class Step>
double sweep_tiles(Range range, const MixArgs<T>& mix, const Step& step) {
  const bool at_lines = streams<Step>(mix) && head_of(range, mix, step) == 0;
  SquareLanes<T> distance;
  alignas(kLine) T mixed[kTile];
  for_each_tile(range, [&](Range tile) {
    mix_tile(tile, mix, mixed);
    if (mix.measure_distance) {
      distance.add_difference(mix.x + tile.begin, mixed, tile.end - tile.begin);
    }
    const Premixed<T> premixed{mixed - tile.begin};
    if (at_lines) {
      apply_streamed<Stream>(tile, mix.x, mix.out, premixed, step);
    } else {
      apply(tile, mix.x, mix.out, premixed, step);
    }
  });
  return mix.measure_distance ? distance.fold() : 0;
}

template <class Stream, class T, class Step>
double sweep_all(Range range, const MixArgs<T>& mix, const Step& step) {
  if (mix.measure_distance) return sweep_tiles<Stream>(range, mix, step);
  switch (mix.source_count) {
    case 0:
      sweep<Stream>(range, mix, Mixer<T, 0>(mix), step);
      break;
    case 1:
      sweep<Stream>(range, mix, Mixer<T, 1>(mix), step);
      break;
    case 2:
      sweep<Stream>(range, mix, Mixer<T, 2>(mix), step);
      break;
    case 3:
      sweep<Stream>(range, mix, Mixer<T, 3>(mix), step);
      break;
    default:
      return sweep_tiles<Stream>(range, mix, step);
  }
  return 0;
}

/// Tile by tile, without the first source where x is what its digest says.
template <class Stream, class T, class Step>
double sweep_digested(Range range, const MixArgs<T>& mix, const Step& step) {
  const MixArgs<T> rest = without_first(mix);
  const bool fits = rest.source_count == 1 || rest.source_count == 2;
  const bool looks_ahead = fits && !streams<Step>(mix) && !mix.measure_distance;
  double distance = 0;
  Range tile = digest_tile(range, range.begin);
  Digest digest = digest_of<Stream>(tile, mix.x);
  while (tile.begin < range.end) {
    const bool is_same = digest == mix.digests[tile.begin / kDigestTile];
    const Range next = digest_tile(range, tile.end);
    if (is_same && looks_ahead && next.end - next.begin == kDigestTile) {
      digest = rest.source_count == 1
                   ? apply_ahead<Stream>(tile.begin, mix.out, Mixer<T, 1>(rest), step)
                   : apply_ahead<Stream>(tile.begin, mix.out, Mixer<T, 2>(rest), step);
    } else {
      distance += sweep_all<Stream>(tile, is_same ? rest : mix, step);
      digest = digest_of<Stream>(next, mix.x);
    }
    tile = next;
  }
  return distance;
}

/// One fused pass with the step of a rule.
template <class Stream, class T, class Step>
double run(Range range, const MixArgs<T>& mix, const Step step) {
  const double distance = mix.digests == nullptr ? sweep_all<Stream>(range, mix, step)
                                                 : sweep_digested<Stream>(range, mix, step);
  if (streams<Step>(mix)) Stream::fence();
  return distance;
}

}  // namespace
}  // namespace gossamer
