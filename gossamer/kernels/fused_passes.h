#pragma once
/// For tests: all fused passes as a list, and what they work on.

#include <array>
#include <cmath>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "gossamer/kernels/guarded_buffer.h"
#include "gossamer/kernels/kernel_table.h"

namespace gossamer {

/// What one fused pass works on; v is made non-negative as the optimizers keep it.
template <class T>
struct Workspace {
  Workspace(std::size_t count, std::size_t shift, std::size_t sources, std::size_t out_shift = 0)
      : x(count, shift, 0),
        out(count, out_shift, 20),
        g(count, shift / 2, 1),
        m(count, shift, 2),
        v(count, 0, 3),
        b(count, shift + 1, 4) {
    for (T& value : v.values()) value = std::abs(value);
    for (std::size_t k = 0; k < sources; ++k) received.emplace_back(count, k, 5 + k);
    for (auto& buffer : received) {
      mix_sources.push_back(
          {.data = buffer.data(), .weight = 0.1 * (1 + double(mix_sources.size()))});
    }
  }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  /// Into `out`, or over x.
  MixArgs<T> mix(bool measure, bool to_out = false) {
    return {.x = x.data(),
            .out = to_out ? out.data() : x.data(),
            .self_weight = 0.3,
            .sources = mix_sources.data(),
            .source_count = mix_sources.size(),
            .measure_distance = measure};
  }

  std::array<GuardedBuffer<T>*, 6> buffers() { return {&x, &out, &g, &m, &v, &b}; }

  GuardedBuffer<T> x, out, g, m, v, b;
  std::vector<GuardedBuffer<T>> received;
  std::vector<Source<T>> mix_sources;
};

template <class T>
struct Pass {
  std::string name;
  std::function<double(const KernelTable<T>&, Range, const MixArgs<T>&, Workspace<T>&)> run;
};

template <class T>
AdamArgs<T> adam_args_of(Workspace<T>& w, T coupled, T decoupled) {
  return {.g = w.g.data(),
          .m = w.m.data(),
          .v = w.v.data(),
          .grad_scale = T(0.7),
          .beta1 = T(0.9),
          .beta2 = T(0.98),
          .one_minus_beta1 = T(0.1),
          .one_minus_beta2 = T(0.02),
          .minus_step = T(-0.05),
          .root_correction = T(1.4),
          .noise = decoupled != 0 ? T(0.3) : T(1),
          .signal = decoupled != 0 ? T(0.8) : T(0),
          .eps = T(1e-6),
          .coupled_decay = coupled,
          .minus_decay = decoupled};
}

template <class T>
void add_sgd_passes(std::vector<Pass<T>>& passes) {
  for (const T decay : {T(0), T(0.01)}) {
    const std::string suffix = decay == 0 ? "" : "+decay";
    passes.push_back(
        {"sgd" + suffix, [=](auto& table, Range range, auto& mix, auto& w) {
           return table.mix_sgd(
               range, mix,
               {.g = w.g.data(), .grad_scale = T(0.7), .minus_lr = T(-0.1), .weight_decay = decay});
         }});
    for (const int flags : {0, 1, 2, 3}) {
      passes.push_back({"momentum" + std::to_string(flags) + suffix,
                        [=](auto& table, Range range, auto& mix, auto& w) {
                          return table.mix_momentum(range, mix,
                                                    {.g = w.g.data(),
                                                     .buf = w.b.data(),
                                                     .grad_scale = T(0.7),
                                                     .minus_lr = T(-0.1),
                                                     .momentum = T(0.9),
                                                     .one_minus_dampening = T(0.8),
                                                     .weight_decay = decay,
                                                     .nesterov = flags / 2 == 1,
                                                     .first_step = flags % 2 == 1});
                        }});
    }
  }
}

template <class T>
void add_adam_passes(std::vector<Pass<T>>& passes) {
  for (const auto& [suffix, coupled, decoupled] :
       {std::tuple{"", T(0), T(0)}, std::tuple{"+decay", T(0.01), T(0)},
        std::tuple{"w", T(0), T(-0.01)}}) {
    passes.push_back(
        {std::string("adam") + suffix, [=](auto& table, Range range, auto& mix, auto& w) {
           return table.mix_adam(range, mix, adam_args_of(w, coupled, decoupled));
         }});
    for (const AccumPhase phase :
         {AccumPhase::first, AccumPhase::middle, AccumPhase::last, AccumPhase::only}) {
      passes.push_back({"accum_adam" + std::to_string(static_cast<int>(phase)) + suffix,
                        [=](auto& table, Range range, auto& mix, auto& w) {
                          return table.mix_accum_adam(range, mix,
                                                      {.adam = adam_args_of(w, coupled, decoupled),
                                                       .b = w.b.data(),
                                                       .inverse_period = T(0.25),
                                                       .phase = phase});
                        }});
    }
  }
}

template <class T>
std::vector<Pass<T>> all_passes() {
  std::vector<Pass<T>> passes;
  passes.push_back({"mix_only", [](auto& table, Range range, auto& mix, auto&) {
                      return table.mix_only(range, mix);
                    }});
  add_sgd_passes(passes);
  add_adam_passes(passes);
  return passes;
}

}  // namespace gossamer
