// The method of a run: [algorithm] as a MethodSpec, and back.

#include <algorithm>

#include "gossamer/base/json.h"
#include "gossamer/base/units.h"
#include "gossamer/recipe/spec.h"

namespace gossamer {
namespace {

struct Key {
  std::string_view key;  ///< of method_fields()
  std::string (*get)(const TrainSpec& spec);
  void (*set)(TrainSpec& spec, const std::string& value);
};

/// 0 stands for what a field is without it.
template <auto member>
std::string number(const TrainSpec& spec) {
  return spec.*member == 0 ? "" : std::to_string(spec.*member);
}

template <auto member>
void set_number(TrainSpec& spec, const std::string& value) {
  spec.*member = value.empty() ? 0 : std::stoi(value);
}

template <auto member>
std::string text(const TrainSpec& spec) {
  return spec.*member;
}

template <auto member>
void set_text(TrainSpec& spec, const std::string& value) {
  spec.*member = value;
}

/// An option of the pattern that is at its default says nothing.
template <auto member>
std::string option(const TrainSpec& spec) {
  const auto value = spec.hyper.*member;
  return value == Hyper{}.*member ? "" : Json(value).dump();
}

template <auto member>
void set_option(TrainSpec& spec, const std::string& value) {
  using Number = std::remove_cvref_t<decltype(spec.hyper.*member)>;
  spec.hyper.*member = value.empty() ? Hyper{}.*member : static_cast<Number>(std::stod(value));
}

using S = TrainSpec;

constexpr Key kKeys[] = {
    {"degree", number<&S::degree>,
     [](S& s, const std::string& v) { s.degree = v.empty() ? 1 : std::stoi(v); }},
    {"codec", text<&S::codec>,
     [](S& s, const std::string& v) { s.codec = v.empty() ? "fp32" : v; }},
    {"lazy", [](const S& s) { return std::string(s.lazy ? "yes" : "no"); },
     [](S& s, const std::string& v) { s.lazy = !v.empty(); }},
    {"rounds_per_step", number<&S::rounds_per_step>, set_number<&S::rounds_per_step>},
    {"local_steps", number<&S::local_steps>, set_number<&S::local_steps>},
    {"global_average", number<&S::global_average>, set_number<&S::global_average>},
    {"adaptive_average", number<&S::adaptive_average>, set_number<&S::adaptive_average>},
    {"group_method", text<&S::group_method>, set_text<&S::group_method>},
    {"update", text<&S::update>, set_text<&S::update>},
    {"stagger", [](const S& s) { return std::string(s.stagger ? "yes" : "no"); },
     [](S& s, const std::string& v) { s.stagger = v.empty(); }},
    {"staleness",
     [](const S& s) { return s.late == "skip" ? std::to_string(s.staleness) : std::string(); },
     [](S& s, const std::string& v) {
       s.late = v.empty() ? "wait" : "skip";
       s.staleness = v.empty() ? 1 : std::stoll(v);
     }},
    {"late", text<&S::late>, [](S&, const std::string&) {}},
    {"outer_every", option<&Hyper::outer_every>, set_option<&Hyper::outer_every>},
    {"outer_momentum", option<&Hyper::outer_momentum>, set_option<&Hyper::outer_momentum>},
    {"outer_lr", option<&Hyper::outer_lr>, set_option<&Hyper::outer_lr>},
    {"consensus", option<&Hyper::consensus>, set_option<&Hyper::consensus>},
};

const MethodField& field_of(std::string_view key) {
  return *std::ranges::find(method_fields(), key, &MethodField::key);
}

}  // namespace

MethodSpec method_of(const TrainSpec& spec) {
  MethodSpec method{.schedule = {.topology = spec.topology, .seed = spec.seed},
                    .pattern = spec.pattern};
  for (const std::string& rate : spec.link_rates) {
    method.schedule.link_rates.push_back(parse_rate(rate, "link_rates"));
  }
  for (const Key& key : kKeys) {
    const std::string value = key.get(spec);
    if (!value.empty()) field_of(key.key).set(method, value);
  }
  // The baseline of a run is what DDP does.
  const bool is_plain = averages_gradients(method) && method.codec == Codec::fp32;
  if (is_plain && !method.group_method) method.group_method = GroupMethod::ring;
  return method;
}

void set_method(const MethodSpec& method, TrainSpec& spec) {
  spec.topology = method.schedule.topology;
  spec.pattern = method.pattern;
  for (const Key& key : kKeys) key.set(spec, field_of(key.key).get(method));
  if (averages_gradients(method) && !method.group_method && !facts_of(method).is_ddp) {
    spec.group_method = "hierarchical";
  }
}

Schedule schedule_of(const TrainSpec& spec) {
  const MethodSpec method = method_of(spec);
  return make_schedule(method.schedule, host_shape_of(spec));
}

}  // namespace gossamer
