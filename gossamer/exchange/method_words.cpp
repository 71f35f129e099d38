// Methods in words: one table of fields for all doors.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "gossamer/base/choice.h"
#include "gossamer/base/errors.h"
#include "gossamer/exchange/choice_words.h"
#include "gossamer/exchange/method.h"
#include "gossamer/graph/schedule_file.h"
#include "gossamer/graph/topology.h"

namespace gossamer {
namespace {

constexpr int kLargestNumber = 1'000'000;
constexpr std::string_view kHalf = "fp16";  // of DDP's hook: as many bytes as bf16

double number_of(std::string_view word, const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_whole = error == std::errc() && end == text.data() + text.size();
  if (is_whole && std::isfinite(value)) return value;
  fail_argument({.place = "method",
                 .what = "'" + std::string(word) + "' needs a number",
                 .got = "'" + text + "'",
                 .remedy = "for example " + std::string(word) + "=0.5"});
}

int count_of(std::string_view word, const std::string& text, int least = 1) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_whole = error == std::errc() && end == text.data() + text.size();
  if (is_whole && value >= least && value <= kLargestNumber) return value;
  fail_argument({.place = "method",
                 .what = "'" + std::string(word) + "' needs a number from " +
                         std::to_string(least) + " to " + std::to_string(kLargestNumber),
                 .got = "'" + text + "'",
                 .remedy = "for example " + std::string(word) + "=4"});
}

constexpr Choice<bool> kAnswers[] = {
    {"yes", true}, {"no", false}, {"true", true}, {"false", false}};
bool answer_of(const std::string& text) { return choose(kAnswers, text, {"method", "answer"}); }

std::string unless(int value, int usual) { return value == usual ? "" : std::to_string(value); }

std::string text_of(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return {text, end};
}

void set_option(MethodSpec& method, const char* name, double value) {
  const auto found = std::ranges::find(method.options, name, &PatternOption::name);
  if (found != method.options.end()) {
    found->value = value;
  } else {
    method.options.push_back({name, value});
    std::ranges::sort(method.options, {}, &PatternOption::name);
  }
}

std::string option_text(const MethodSpec& method, std::string_view name) {
  const auto found = std::ranges::find(method.options, name, &PatternOption::name);
  return found == method.options.end() ? "" : text_of(found->value);
}

using M = MethodSpec;
using Text = const std::string&;

// In the order in which they stand in a name, and in which modifiers apply.
constexpr MethodField kFields[] = {
    {"degree", "degree", [](M& m, Text v) { m.schedule.degree = count_of("degree", v); },
     [](const M& m) { return unless(m.schedule.degree, 1); }},
    {"codec", "", [](M& m, Text v) { m.codec = find_codec(v); },
     [](const M& m) {
       return m.codec == Codec::fp32 ? std::string() : std::string(name_of(m.codec));
     }},
    {"lazy", "lazy", [](M& m, Text v) { m.schedule.lazy = v.empty() || answer_of(v); },
     [](const M& m) { return std::string(m.schedule.lazy ? "yes" : ""); }},
    {"rounds_per_step", "rounds",
     [](M& m, Text v) { m.schedule.rounds_per_step = count_of("rounds", v); },
     [](const M& m) { return unless(m.schedule.rounds_per_step, 1); }},
    {"local_steps", "local", [](M& m, Text v) { m.schedule.local_steps = count_of("local", v); },
     [](const M& m) { return unless(m.schedule.local_steps, 1); }},
    {"global_average", "average",
     [](M& m, Text v) { m.schedule.global_average = count_of("average", v); },
     [](const M& m) { return unless(m.schedule.global_average, 0); }},
    {"adaptive_average", "adaptive",
     [](M& m, Text v) { m.schedule.adaptive_average = count_of("adaptive", v); },
     [](const M& m) { return unless(m.schedule.adaptive_average, 0); }},
    {"group_method", "group", [](M& m, Text v) { m.group_method = find_group_method(v); },
     [](const M& m) {
       return m.group_method ? std::string(name_of(*m.group_method)) : std::string();
     }},
    {"update", "", [](M& m, Text v) { m.update = find_update(v); },
     [](const M& m) { return m.update ? std::string(name_of(*m.update)) : std::string(); }},
    {"stagger", "stagger", [](M& m, Text v) { m.stagger = answer_of(v); },
     [](const M& m) { return std::string(m.stagger ? "" : "no"); }},
    {"late", "", [](M& m, Text v) { m.late = find_late(v); },
     [](const M&) { return std::string(); }},
    {"staleness", "skip",
     [](M& m, Text v) {
       m.late = Late::skip;
       m.staleness = v.empty() ? 1 : count_of("skip", v, 0);
     },
     [](const M& m) { return m.late == Late::skip ? std::to_string(m.staleness) : std::string(); }},
    {"outer_every", "outer_every",
     [](M& m, Text v) { set_option(m, "outer_every", count_of("outer_every", v)); },
     [](const M& m) { return option_text(m, "outer_every"); }},
    {"outer_momentum", "outer_momentum",
     [](M& m, Text v) { set_option(m, "outer_momentum", number_of("outer_momentum", v)); },
     [](const M& m) { return option_text(m, "outer_momentum"); }},
    {"outer_lr", "outer_lr",
     [](M& m, Text v) { set_option(m, "outer_lr", number_of("outer_lr", v)); },
     [](const M& m) { return option_text(m, "outer_lr"); }},
    {"consensus", "consensus",
     [](M& m, Text v) { set_option(m, "consensus", number_of("consensus", v)); },
     [](const M& m) { return option_text(m, "consensus"); }},
    {"noise_share", "noise_share",
     [](M& m, Text v) { set_option(m, "noise_share", number_of("noise_share", v)); },
     [](const M& m) { return option_text(m, "noise_share"); }},
};

/// The field whose value is a word of its own: fp32, backward.
const MethodField* field_of_value(std::string_view value) {
  for (const std::string_view update : update_names()) {
    if (value == update) return std::ranges::find(kFields, "update", &MethodField::key);
  }
  for (const Codec codec : kAllCodecs) {
    if (value == name_of(codec)) return std::ranges::find(kFields, "codec", &MethodField::key);
  }
  return nullptr;
}

std::vector<std::string> split(std::string_view text, char sign) {
  std::vector<std::string> parts(1);
  for (const char letter : text) {
    if (letter == sign) {
      parts.emplace_back();
    } else {
      parts.back() += letter;
    }
  }
  return parts;
}

bool is_pattern(std::string_view name) {
  return name == ddp_facts().name ||
         std::ranges::find(pattern_facts(), name, &PatternFacts::name) != pattern_facts().end();
}

/// Of a method that is named by its topology alone.
std::string topology_of(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Topology& topology : topologies()) {
    const bool is_alias = !topology.alias.empty() && name == topology.alias;
    if (name == topology.name || is_alias) return full_name(name);
    names.push_back(topology.name);
  }
  if (is_schedule_file(name)) return full_name(name);
  names.push_back(ddp_facts().name);
  for (const PatternFacts& pattern : pattern_facts()) names.push_back(pattern.name);
  fail_unknown_name("method", "method", name, names);
}

/// PATTERN@TOPOLOGY, or what stands for it.
void read_head(const std::string& head, std::string_view text, MethodSpec& method) {
  const std::vector<std::string> parts = split(head, '@');
  const auto refuse = [&](const std::string& remedy) {
    fail_argument({.place = "method",
                   .what = "a method begins with PATTERN@TOPOLOGY, a topology, allreduce or ddp",
                   .got = "'" + std::string(text) + "'",
                   .remedy = remedy});
  };
  if (parts.size() == 1 && !is_pattern(head)) {
    method.schedule.topology = topology_of(head);
    return;
  }
  method.pattern = parts[0];
  const PatternFacts& pattern = facts_of(method);
  const bool has_topology = parts.size() == 2;
  if (parts.size() > 2) refuse("for example atc@ring");
  if (has_topology == (pattern.rounds == Rounds::schedule)) {
    if (has_topology) method.schedule.topology = full_name(parts[1]);
    return;
  }
  refuse(has_topology ? "leave the topology out: " + parts[0] + " averages over all workers"
                      : "name the topology, as in " + parts[0] + "@ring");
}

[[noreturn]] void refuse_word(const std::string& word) {
  std::vector<std::string_view> names;
  for (const Codec codec : kAllCodecs) names.push_back(name_of(codec));
  for (const std::string_view update : update_names()) names.push_back(update);
  for (const MethodField& field : kFields) {
    if (!field.word.empty()) names.push_back(field.word);
  }
  fail_unknown_name("method", "word after a method", word, names);
}

/// Words that a pattern which averages over all workers cannot make sense of.
void check_words(const MethodSpec& method, std::string_view text) {
  const bool is_of_a_hook = method.codec == Codec::fp32 || method.codec == Codec::bf16;
  if (facts_of(method).is_ddp && !is_of_a_hook) {
    fail_argument({.place = "method",
                   .what = "DDP's own hooks compress to bf16 or fp16",
                   .got = "'" + std::string(text) + "'",
                   .remedy = "take ddp:bf16, or allreduce:int8"});
  }
  if (facts_of(method).rounds == Rounds::schedule) return;
  ScheduleSpec plain = MethodSpec{}.schedule;
  plain.topology = method.schedule.topology;
  const bool is_plain = method.schedule == plain && method.late == Late::wait && method.stagger;
  if (is_plain) return;
  fail_argument({.place = "method",
                 .what = method.pattern + " averages gradients over everybody in every step",
                 .got = "'" + std::string(text) + "'",
                 .remedy = "leave what changes the topology out, or take a topology"});
}

std::string short_topology(const std::string& name) {
  for (const Topology& topology : topologies()) {
    if (name == topology.name && !topology.alias.empty()) return std::string(topology.alias);
  }
  return name;
}

}  // namespace

std::span<const MethodField> method_fields() { return kFields; }

MethodSpec parse_method(
    std::string_view text,
    const std::function<bool(const std::string& word, const std::string& value)>& other) {
  const std::vector<std::string> words = split(text, ':');
  MethodSpec method;
  read_head(words[0], text, method);
  for (std::size_t k = 1; k < words.size(); ++k) {
    const std::size_t sign = words[k].find('=');
    const std::string word = words[k].substr(0, sign);
    const bool has_value = sign != std::string::npos;
    const std::string value = has_value ? words[k].substr(sign + 1) : "";
    if (word == kHalf && !has_value && facts_of(method).is_ddp) {
      method.codec = Codec::bf16;
      continue;
    }
    if (const MethodField* field = has_value ? nullptr : field_of_value(word)) {
      field->set(method, word);
      continue;
    }
    const auto field = std::ranges::find(kFields, word, &MethodField::word);
    if (field != std::end(kFields) && !word.empty()) {
      field->set(method, value);
    } else if (!other || !other(word, value)) {
      refuse_word(has_value && field_of_value(word) ? words[k] : word);
    }
  }
  check_words(method, text);
  return method;
}

std::string name_of(const MethodSpec& method) {
  const bool has_topology = facts_of(method).rounds == Rounds::schedule;
  std::string name = method.pattern == MethodSpec{}.pattern ? "" : method.pattern;
  if (has_topology) {
    name += (name.empty() ? "" : "@") + short_topology(method.schedule.topology);
  }
  for (const MethodField& field : kFields) {
    const std::string value = field.get(method);
    if (value.empty()) continue;
    name += ":";
    if (field.word.empty()) {
      name += value;
    } else {
      name += std::string(field.word) + (field.key == "lazy" ? "" : "=" + value);
    }
  }
  return name;
}

}  // namespace gossamer
