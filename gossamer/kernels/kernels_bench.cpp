// The fused passes beside a copy and a triad of as many elements. bytes_per_second counts what
// bench/METRICS.md says; every answer is compared with the scalar kernels before it is timed.
#include <benchmark/benchmark.h>

#include <array>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <vector>

#include "gossamer/kernels/codec.h"
#include "gossamer/kernels/copy.h"
#include "gossamer/kernels/finite.h"
#include "gossamer/kernels/kernel_table.h"
#include "gossamer/kernels/mix_accum_adam.h"
#include "gossamer/kernels/mix_adam.h"
#include "gossamer/kernels/mix_momentum.h"
#include "gossamer/kernels/mix_only.h"
#include "gossamer/kernels/mix_sgd.h"
#include "gossamer/kernels/norm.h"
#include "gossamer/kernels/stream_yardstick.h"
#include "gossamer/kernels/sum.h"

namespace gossamer {
namespace {

struct Buffers {
  explicit Buffers(std::size_t count)
      : x(count),
        out(count),
        received(count),
        g(count),
        m(count),
        v(count),
        b(count),
        coded(4 * count) {
    for (std::size_t i = 0; i < count; ++i) {
      const float ramp = static_cast<float>(i % 1013) / 1013.0F;
      x[i] = ramp - 0.5F;
      received[i] = 0.4F - ramp;
      g[i] = 0.3F * ramp - 0.1F;
      m[i] = 0.1F * ramp;
      v[i] = 0.01F + ramp;
      b[i] = 0.2F * ramp;
    }
  }
  std::vector<float> x, out, received, g, m, v, b;
  std::vector<std::byte> coded;

  std::span<std::byte> coded_as(Codec codec) {
    return std::span(coded).first(coded_bytes(codec, static_cast<std::int64_t>(x.size())));
  }
};

using Pass = std::function<void(Buffers&, const Mix<float>&)>;

void adamw(Buffers& w, const Mix<float>& mix) {
  mix_adam<float>({.x = w.x, .g = w.g, .m = w.m, .v = w.v}, mix,
                  {.weight_decay = 0.01, .decoupled = true, .t = 3});
}

void adamw_out(Buffers& w, const Mix<float>& mix) {
  mix_adam<float>({.x = w.x, .out = w.out, .g = w.g, .m = w.m, .v = w.v}, mix,
                  {.weight_decay = 0.01, .decoupled = true, .t = 3});
}

Pass accum_adamw(std::int64_t t) {
  return [t](Buffers& w, const Mix<float>& mix) {
    mix_accum_adam<float>({.x = w.x, .g = w.g, .m = w.m, .v = w.v, .b = w.b}, mix,
                          {.weight_decay = 0.01, .decoupled = true, .t = t, .period = 4});
  };
}

void momentum(Buffers& w, const Mix<float>& mix) {
  mix_momentum<float>({.x = w.x, .g = w.g, .buf = w.m}, mix, {.lr = 1e-3, .momentum = 0.9});
}

void sgd(Buffers& w, const Mix<float>& mix) {
  mix_sgd<float>({.x = w.x, .g = w.g}, mix, {.lr = 1e-3});
}

void mix(Buffers& w, const Mix<float>& mix) { mix_only<float>({.x = w.x}, mix); }

/// What is sent, b, is copied before each pass, as the engine does.
Pass after_copy(const Pass& pass) {
  return [pass](Buffers& w, const Mix<float>& mix) {
    copy_streaming(w.b.data(), w.x.data(), w.x.size() * sizeof(float));
    pass(w, mix);
  };
}

/// The same with x + w (y_j − y_i) in the place of (1 − w) x + w y_j, where y_i is what was sent.
Pass by_difference(const Pass& pass) {
  return after_copy([pass](Buffers& w, const Mix<float>&) {
    const std::array<Source<float>, 2> sources{{{w.b.data(), -0.5}, {w.received.data(), 0.5}}};
    pass(w, {.self_weight = 1, .sources = sources});
  });
}

/// The same where digests say that x is still what was sent.
Pass by_digests(const Pass& pass) {
  return [pass, digests = std::vector<Digest>()](Buffers& w, const Mix<float>&) mutable {
    digests.resize(digest_count(w.x.size()));
    copy_digested<float>(w.x, w.b, digests);
    const std::array<Source<float>, 2> sources{{{w.b.data(), -0.5}, {w.received.data(), 0.5}}};
    pass(w, {.self_weight = 1, .sources = sources, .digests = digests});
  };
}

Pass copy_with_digests() {
  return [digests = std::vector<Digest>()](Buffers& w, const Mix<float>&) mutable {
    digests.resize(digest_count(w.x.size()));
    copy_digested<float>(w.x, w.b, digests);
  };
}

void sum_two(Buffers& w, const Mix<float>&) {
  const std::vector<const float*> terms{w.g.data(), w.received.data()};
  sum_into<float>(w.b, terms, 0.5);
}

void copy(Buffers& w, const Mix<float>&) {
  copy_streaming(w.b.data(), w.g.data(), w.g.size() * sizeof(float));
}

void plain_triad(Buffers& w, const Mix<float>&) {
  triad(w.b.size(), w.b.data(), w.g.data(), w.received.data());
}

void streaming_triad(Buffers& w, const Mix<float>&) {
  triad_streaming(w.b.size(), w.b.data(), w.g.data(), w.received.data());
}

void norm(Buffers& w, const Mix<float>&) { benchmark::DoNotOptimize(sum_squares<float>(w.g)); }

void finite(Buffers& w, const Mix<float>&) { benchmark::DoNotOptimize(all_finite<float>(w.g)); }

Pass encode_as(Codec codec) {
  return [codec](Buffers& w, const Mix<float>&) {
    encode<float>(codec, {.x = w.g, .coded = w.coded_as(codec)});
  };
}

Pass encode_kept(Codec codec) {
  return [codec](Buffers& w, const Mix<float>&) {
    encode<float>(codec, {.x = w.x, .coded = w.coded_as(codec), .kept = w.x.data(), .keep = 1});
  };
}

Pass encode_error(Codec codec) {
  return [codec](Buffers& w, const Mix<float>&) {
    encode<float>(codec, {.x = w.g, .coded = w.coded_as(codec), .error = w.b.data()});
  };
}

Pass encode_kept_error(Codec codec) {
  return [codec](Buffers& w, const Mix<float>&) {
    encode<float>(
        codec,
        {.x = w.x, .coded = w.coded_as(codec), .kept = w.x.data(), .keep = 1, .error = w.b.data()});
  };
}

Pass decode_from(Codec codec) {
  return
      [codec](Buffers& w, const Mix<float>&) { decode<float>(codec, w.coded_as(codec), 0, w.b); };
}

Pass decode_added(Codec codec) {
  return [codec](Buffers& w, const Mix<float>&) {
    decode_add<float>(codec, w.coded_as(codec), 0, w.b);
  };
}

/// What decode_add saves: b += decoded, a part at a time that stays in the nearest cache.
Pass decode_then_sum(Codec codec) {
  return [codec](Buffers& w, const Mix<float>&) {
    constexpr std::size_t kPart = 4096;
    std::array<float, kPart> part;
    for (std::size_t begin = 0; begin < w.b.size(); begin += kPart) {
      const std::size_t count = std::min(kPart, w.b.size() - begin);
      const std::span<float> into = std::span(w.b).subspan(begin, count);
      decode<float>(codec, w.coded_as(codec), static_cast<std::int64_t>(begin),
                    std::span(part).first(count));
      const std::array<const float*, 2> terms{into.data(), part.data()};
      sum_into<float>(into, terms, 1.0);
    }
  };
}

Mix<float> half_half(const std::vector<Source<float>>& sources) {
  return {.self_weight = 0.5, .sources = sources};
}

/// One AdamW step over a block, from w.x to `out`.
void step(const KernelTable<float>& kernels, Buffers& w, std::vector<float>& out) {
  const Source<float> source{w.received.data(), 0.5};
  kernels.mix_adam({0, w.x.size()},
                   {.x = w.x.data(),
                    .out = out.data(),
                    .self_weight = 0.5,
                    .sources = &source,
                    .source_count = 1},
                   {.g = w.g.data(),
                    .m = w.m.data(),
                    .v = w.v.data(),
                    .beta1 = 0.9F,
                    .beta2 = 0.99F,
                    .minus_step = -0.1F,
                    .eps = 1e-6F});
}

/// The scalar AdamW step has the bits of the active kernels, in place and out of place.
void check_against_ref() {
  constexpr std::size_t kCount = 65536 - 3;
  Buffers slow(kCount);
  step(kernel_table<float>(Isa::ref), slow, slow.x);
  for (std::vector<float> Buffers::*const target : {&Buffers::x, &Buffers::out}) {
    Buffers fast(kCount);
    step(active_kernels<float>(), fast, fast.*target);
    if (fast.*target != slow.x || fast.m != slow.m || fast.v != slow.v) {
      throw std::logic_error("the fast kernels disagree with the scalar ones");
    }
  }
}

void encode_by(const KernelTable<float>& kernels, Codec codec, Buffers& w) {
  const Encoding<float> job{.x = w.x.data(),
                            .count = w.x.size(),
                            .coded = reinterpret_cast<unsigned char*>(w.coded.data()),
                            .kept = w.out.data(),
                            .keep = 1,
                            .error = w.g.data()};
  const CodecKernels<float>& passes = kernels.codecs[static_cast<std::size_t>(codec)];
  passes.encode(job);
  const Decoding<float> back{.coded = job.coded, .into = w.b.data(), .count = job.count};
  passes.decode(back);
  passes.decode_add(back);
}

void check_codecs_against_ref() {
  constexpr std::size_t kCount = 65536 - 3;
  for (const Codec codec : kLossyCodecs) {
    Buffers slow(kCount), fast(kCount);
    encode_by(kernel_table<float>(Isa::ref), codec, slow);
    encode_by(active_kernels<float>(), codec, fast);
    if (fast.coded != slow.coded || fast.out != slow.out || fast.g != slow.g || fast.b != slow.b) {
      throw std::logic_error("the fast codecs disagree with the scalar ones");
    }
  }
}

void run(benchmark::State& state, const Pass& pass, double bytes_per_element) {
  check_against_ref();
  check_codecs_against_ref();
  const auto count = static_cast<std::size_t>(state.range(0));
  Buffers buffers(count);
  const std::vector<Source<float>> sources{{buffers.received.data(), 0.5}};
  const Mix<float> mix = half_half(sources);
  for (auto _ : state) {
    pass(buffers, mix);
    benchmark::ClobberMemory();
  }
  state.SetLabel(std::string(isa_name()));
  const auto elements = static_cast<double>(state.iterations() * state.range(0));
  state.SetBytesProcessed(static_cast<std::int64_t>(elements * bytes_per_element));
}

#define GOSSAMER_BENCH(name, pass, bytes) \
  BENCHMARK_CAPTURE(run, name, pass, bytes)->Arg(16 << 10)->Arg(25'000'000)->UseRealTime()

GOSSAMER_BENCH(copy, copy, 8);
GOSSAMER_BENCH(copy_with_digests, copy_with_digests(), 8);
GOSSAMER_BENCH(triad, plain_triad, 12);
GOSSAMER_BENCH(triad_streaming, streaming_triad, 12);
GOSSAMER_BENCH(mix_adamw, adamw, 32);
GOSSAMER_BENCH(mix_adamw_out_of_place, adamw_out, 32);
GOSSAMER_BENCH(mix_accum_adamw_first, accum_adamw(1), 28);
GOSSAMER_BENCH(mix_accum_adamw_middle, accum_adamw(2), 32);
GOSSAMER_BENCH(mix_accum_adamw_last, accum_adamw(4), 36);
GOSSAMER_BENCH(mix_momentum, momentum, 24);
GOSSAMER_BENCH(mix_sgd, sgd, 16);

#define GOSSAMER_SENT_BENCH(name, pass, bytes)                           \
  GOSSAMER_BENCH(name##_after_copy, after_copy(pass), 8 + bytes);        \
  GOSSAMER_BENCH(name##_by_difference, by_difference(pass), 12 + bytes); \
  GOSSAMER_BENCH(name##_by_digests, by_digests(pass), 8 + bytes)

GOSSAMER_SENT_BENCH(mix, mix, 12);
GOSSAMER_SENT_BENCH(mix_sgd, sgd, 16);
GOSSAMER_SENT_BENCH(mix_adamw, adamw, 32);

GOSSAMER_BENCH(sum_two, sum_two, 12);
GOSSAMER_BENCH(sum_squares, norm, 4);
GOSSAMER_BENCH(all_finite, finite, 4);

#define GOSSAMER_CODEC_BENCH(codec, bytes)                                                  \
  GOSSAMER_BENCH(encode_##codec, encode_as(Codec::codec), 4 + bytes);                       \
  GOSSAMER_BENCH(encode_##codec##_kept, encode_kept(Codec::codec), 8 + bytes);              \
  GOSSAMER_BENCH(encode_##codec##_error, encode_error(Codec::codec), 12 + bytes);           \
  GOSSAMER_BENCH(encode_##codec##_kept_error, encode_kept_error(Codec::codec), 16 + bytes); \
  GOSSAMER_BENCH(decode_##codec, decode_from(Codec::codec), 4 + bytes);                     \
  GOSSAMER_BENCH(decode_add_##codec, decode_added(Codec::codec), 8 + bytes);                \
  GOSSAMER_BENCH(decode_then_sum_##codec, decode_then_sum(Codec::codec), 8 + bytes)

GOSSAMER_CODEC_BENCH(bf16, 2);
GOSSAMER_CODEC_BENCH(int8, 260.0 / 256);

}  // namespace
}  // namespace gossamer
