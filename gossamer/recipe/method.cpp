// The method of a run: [algorithm] as a MethodSpec, and back, and as numbers of the passes.

#include <algorithm>
#include <type_traits>

#include "gossamer/base/json.h"
#include "gossamer/base/units.h"
#include "gossamer/recipe/recipe.h"
#include "gossamer/recipe/words.h"

namespace gossamer {
namespace {

using A = AlgorithmSection;

struct Key {
  std::string_view key;  ///< of method_fields()
  std::string (*get)(const A& algorithm);
  void (*set)(A& algorithm, const std::string& value);
  /// Of options: the number for the passes.
  void (*hand_over)(const A& algorithm, Hyper& hyper) = nullptr;
};

/// 0 stands for what a field is without it.
template <auto member>
std::string number(const A& algorithm) {
  return algorithm.*member == 0 ? "" : std::to_string(algorithm.*member);
}

template <auto member>
void set_number(A& algorithm, const std::string& value) {
  algorithm.*member = value.empty() ? 0 : std::stoi(value);
}

template <auto member>
std::string word(const A& algorithm) {
  return word_of(algorithm.*member);
}

template <auto member>
void set_word(A& algorithm, const std::string& value) {
  if (value.empty()) {
    algorithm.*member = A{}.*member;
  } else {
    read_word(value, algorithm.*member);
  }
}

/// An option of the pattern; at its default it says nothing.
template <auto member, auto in_hyper>
constexpr Key option(std::string_view key) {
  using Number = std::remove_cvref_t<decltype(A{}.*member)>;
  return {
      .key = key,
      .get =
          [](const A& algorithm) {
            const Number value = algorithm.*member;
            return value == A{}.*member ? std::string() : Json(value).dump();
          },
      .set =
          [](A& algorithm, const std::string& value) {
            algorithm.*member = value.empty() ? A{}.*member : static_cast<Number>(std::stod(value));
          },
      .hand_over = [](const A& algorithm, Hyper& hyper) { hyper.*in_hyper = algorithm.*member; }};
}

constexpr Key kKeys[] = {
    {"degree", number<&A::degree>,
     [](A& a, const std::string& v) { a.degree = v.empty() ? 1 : std::stoi(v); }},
    {"codec", word<&A::codec>, set_word<&A::codec>},
    {"lazy", [](const A& a) { return std::string(a.lazy ? "yes" : "no"); },
     [](A& a, const std::string& v) { a.lazy = !v.empty(); }},
    {"rounds_per_step", number<&A::rounds_per_step>, set_number<&A::rounds_per_step>},
    {"local_steps", number<&A::local_steps>, set_number<&A::local_steps>},
    {"global_average", number<&A::global_average>, set_number<&A::global_average>},
    {"adaptive_average", number<&A::adaptive_average>, set_number<&A::adaptive_average>},
    {"group_method", word<&A::group_method>, set_word<&A::group_method>},
    {"update", word<&A::update>, set_word<&A::update>},
    {"stagger", [](const A& a) { return std::string(a.stagger ? "yes" : "no"); },
     [](A& a, const std::string& v) { a.stagger = v.empty(); }},
    {"staleness",
     [](const A& a) { return a.late == Late::skip ? std::to_string(a.staleness) : std::string(); },
     [](A& a, const std::string& v) {
       a.late = v.empty() ? Late::wait : Late::skip;
       a.staleness = v.empty() ? 1 : std::stoll(v);
     }},
    option<&A::outer_every, &Hyper::outer_every>("outer_every"),
    option<&A::outer_momentum, &Hyper::outer_momentum>("outer_momentum"),
    option<&A::outer_lr, &Hyper::outer_lr>("outer_lr"),
    option<&A::consensus, &Hyper::consensus>("consensus"),
};

const MethodField& field_of(std::string_view key) {
  return *std::ranges::find(method_fields(), key, &MethodField::key);
}

/// The pattern that stands in for ddp.
const Pattern& baseline() {
  return *std::ranges::find_if(patterns(), [](const Pattern& p) { return averages_gradients(p); });
}

}  // namespace

MethodSpec method_of(const AlgorithmSection& algorithm, std::uint64_t seed) {
  MethodSpec method{.schedule = {.topology = algorithm.topology, .seed = seed},
                    .pattern = std::string(algorithm.pattern->name)};
  for (const std::string& rate : algorithm.link_rates) {
    method.schedule.link_rates.push_back(parse_rate(rate, "link_rates"));
  }
  for (const Key& key : kKeys) {
    const std::string value = key.get(algorithm);
    if (!value.empty()) field_of(key.key).set(method, value);
  }
  // The baseline of a run is what DDP does.
  const bool is_plain = averages_gradients(method) && method.codec == Codec::fp32;
  if (is_plain && !method.group_method) method.group_method = GroupMethod::ring;
  return method;
}

void set_method(const MethodSpec& method, AlgorithmSection& algorithm) {
  // DDP's hook is not run here; its codec is, with hierarchical averages.
  const bool is_ddp = facts_of(method).is_ddp && method.codec == Codec::fp32;
  algorithm.topology = method.schedule.topology;
  algorithm.pattern = facts_of(method).is_ddp ? &baseline() : &find_pattern(method.pattern);
  for (const Key& key : kKeys) key.set(algorithm, field_of(key.key).get(method));
  if (averages_gradients(method) && !method.group_method && !is_ddp) {
    algorithm.group_method = GroupMethod::hierarchical;
  }
}

Hyper hyper_of(const OptimizerSection& optimizer, const AlgorithmSection& algorithm) {
  Hyper hyper = optimizer.hyper;
  for (const Key& key : kKeys) {
    if (key.hand_over != nullptr) key.hand_over(algorithm, hyper);
  }
  return hyper;
}

}  // namespace gossamer
