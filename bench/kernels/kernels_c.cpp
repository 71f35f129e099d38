// A C interface to the kernels and to the memory yardsticks, for run.py. It exports no layout: what
// a step is told, it is told by the name of its field, and the rest has the kernel's defaults.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <variant>

#include "gossamer/kernels/copy.h"
#include "gossamer/kernels/isa.h"
#include "gossamer/kernels/mix_accum_adam.h"
#include "gossamer/kernels/mix_adam.h"
#include "gossamer/kernels/mix_momentum.h"
#include "gossamer/kernels/mix_sgd.h"
#include "gossamer/kernels/stream_yardstick.h"

using gossamer::AccumAdamStep;
using gossamer::AdamStep;
using gossamer::MomentumStep;
using gossamer::Source;

namespace {

template <class Step>
struct Field {
  std::string_view name;
  std::variant<double Step::*, std::int64_t Step::*, bool Step::*> member;
};

constexpr Field<MomentumStep> kMomentum[] = {
    {"lr", &MomentumStep::lr},
    {"momentum", &MomentumStep::momentum},
    {"dampening", &MomentumStep::dampening},
    {"weight_decay", &MomentumStep::weight_decay},
    {"nesterov", &MomentumStep::nesterov},
    {"first_step", &MomentumStep::first_step},
};
template <class Step>
constexpr Field<Step> kAdam[] = {
    {"lr", &Step::lr},
    {"beta1", &Step::beta1},
    {"beta2", &Step::beta2},
    {"eps", &Step::eps},
    {"weight_decay", &Step::weight_decay},
    {"decoupled", &Step::decoupled},
    {"t", &Step::t},
};
constexpr Field<AccumAdamStep> kPeriod[] = {{"period", &AccumAdamStep::period}};

template <class Step>
bool set(Step& step, std::span<const Field<Step>> fields, std::string_view name, double value) {
  for (const Field<Step>& field : fields) {
    if (field.name != name) continue;
    std::visit(
        [&](auto member) {
          step.*member = static_cast<std::remove_reference_t<decltype(step.*member)>>(value);
        },
        field.member);
    return true;
  }
  return false;
}

bool set_field(MomentumStep& step, std::string_view name, double value) {
  return set<MomentumStep>(step, kMomentum, name, value);
}
bool set_field(AdamStep& step, std::string_view name, double value) {
  return set<AdamStep>(step, kAdam<AdamStep>, name, value);
}
bool set_field(AccumAdamStep& step, std::string_view name, double value) {
  return set<AccumAdamStep>(step, kAdam<AccumAdamStep>, name, value) ||
         set<AccumAdamStep>(step, kPeriod, name, value);
}

/// The other of the two that are mixed; null: there is none.
gossamer::Mix<float> one_source(double self_weight, const Source<float>& source) {
  const std::size_t sources = source.data == nullptr ? 0 : 1;
  return {.self_weight = self_weight, .sources = std::span(&source, sources)};
}

}  // namespace

struct BenchStep {
  std::variant<MomentumStep, AdamStep, AccumAdamStep> value;
};

extern "C" {

const char* gk_isa() { return gossamer::isa_name().data(); }

/// Null for a kind that there is not. The caller gives it to gk_free.
BenchStep* gk_step(const char* kind) {
  const std::string_view name = kind;
  if (name == "momentum") return new BenchStep{MomentumStep{}};
  if (name == "adam") return new BenchStep{AdamStep{}};
  if (name == "accum_adam") return new BenchStep{AccumAdamStep{}};
  return nullptr;
}

void gk_free(BenchStep* step) { delete step; }

/// False for a field that the step has not.
bool gk_set(BenchStep* step, const char* field, double value) {
  return std::visit([&](auto& own) { return set_field(own, field, value); }, step->value);
}

void gk_mix_sgd(std::size_t n, float* x, const float* g, double self_weight, const float* other,
                double weight, double lr, double weight_decay) {
  const Source<float> source{other, weight};
  gossamer::mix_sgd<float>({.x = {x, n}, .g = {g, n}}, one_source(self_weight, source),
                           {.lr = lr, .weight_decay = weight_decay});
}

void gk_mix_momentum(std::size_t n, float* x, const float* g, float* buf, double self_weight,
                     const float* other, double weight, const BenchStep* step) {
  const Source<float> source{other, weight};
  gossamer::mix_momentum<float>({.x = {x, n}, .g = {g, n}, .buf = {buf, n}},
                                one_source(self_weight, source),
                                std::get<MomentumStep>(step->value));
}

void gk_mix_adam(std::size_t n, float* x, const float* g, float* m, float* v, double self_weight,
                 const float* other, double weight, const BenchStep* step) {
  const Source<float> source{other, weight};
  gossamer::mix_adam<float>({.x = {x, n}, .g = {g, n}, .m = {m, n}, .v = {v, n}},
                            one_source(self_weight, source), std::get<AdamStep>(step->value));
}

void gk_mix_accum_adam(std::size_t n, float* x, const float* g, float* m, float* v, float* b,
                       double self_weight, const float* other, double weight,
                       const BenchStep* step) {
  const Source<float> source{other, weight};
  gossamer::mix_accum_adam<float>({.x = {x, n}, .g = {g, n}, .m = {m, n}, .v = {v, n}, .b = {b, n}},
                                  one_source(self_weight, source),
                                  std::get<AccumAdamStep>(step->value));
}

void gk_triad(std::size_t n, float* a, const float* b, const float* c) {
  gossamer::triad(n, a, b, c);
}

void gk_triad_streaming(std::size_t n, float* a, const float* b, const float* c) {
  gossamer::triad_streaming(n, a, b, c);
}

void gk_copy(std::size_t n, float* a, const float* b) {
  gossamer::copy_streaming(a, b, n * sizeof(float));
}
}
