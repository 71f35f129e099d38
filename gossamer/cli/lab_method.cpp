#include "gossamer/cli/lab_method.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "gossamer/algo/choices.h"
#include "gossamer/algo/pattern.h"
#include "gossamer/base/errors.h"
#include "gossamer/graph/schedule_spec.h"

namespace gossamer {

const char* const kLabMethodHelp =
    R"(A method is PATTERN@TOPOLOGY, or allreduce, and after colons what differs from the defaults:
lazy, rounds=K, local=H, average=H, adaptive=H (applied in this order), degree=K,
optimizer=NAME, lr=, and its numbers: momentum=, nesterov, beta1=, beta2=, eps=, accumulate=,
weight_decay=, and the pattern's: outer_every=, outer_momentum=, outer_lr=, consensus=.)";

namespace {

struct Word {
  std::string key;
  std::string value;  ///< empty: none
};

struct Number {
  std::string_view key;
  double Hyper::*member;
};

constexpr Number kNumbers[] = {{"momentum", &Hyper::momentum},
                               {"beta1", &Hyper::beta1},
                               {"beta2", &Hyper::beta2},
                               {"eps", &Hyper::eps},
                               {"noise_share", &Hyper::noise_share},
                               {"weight_decay", &Hyper::weight_decay},
                               {"consensus", &Hyper::consensus},
                               {"outer_momentum", &Hyper::outer_momentum},
                               {"outer_lr", &Hyper::outer_lr}};

struct Count {
  std::string_view key;
  int ScheduleSpec::*member;
};

constexpr Count kCounts[] = {{"rounds", &ScheduleSpec::rounds_per_step},
                             {"local", &ScheduleSpec::local_steps},
                             {"average", &ScheduleSpec::global_average},
                             {"adaptive", &ScheduleSpec::adaptive_average}};

std::vector<std::string> split(const std::string& text, char sign) {
  std::vector<std::string> parts(1);
  for (char letter : text) {
    if (letter == sign) {
      parts.emplace_back();
    } else {
      parts.back() += letter;
    }
  }
  return parts;
}

[[noreturn]] void refuse(const std::string& method, const std::string& what,
                         const std::string& got) {
  const std::string subject = "method " + method + ": " + what;
  fail_argument({.place = "lab",
                 .what = subject,
                 .got = "'" + got + "'",
                 .remedy = "see `gossamer lab run --help`"});
}

double number_of(const std::string& method, const Word& word) {
  char* end = nullptr;
  const double value = std::strtod(word.value.c_str(), &end);
  const bool is_good = !word.value.empty() && *end == '\0' && std::isfinite(value);
  if (!is_good) refuse(method, word.key + " takes a number", word.value);
  return value;
}

int count_of(const std::string& method, const Word& word) {
  const double value = number_of(method, word);
  const bool is_good = value >= 1 && value <= 1e9 && value == std::floor(value);
  if (!is_good) refuse(method, word.key + " takes a whole number from 1 up", word.value);
  return static_cast<int>(value);
}

[[noreturn]] void refuse_word(const std::string& key) {
  std::vector<std::string_view> names = {"lazy", "degree",   "optimizer",
                                         "lr",   "nesterov", "accumulate"};
  for (const Number& number : kNumbers) names.push_back(number.key);
  for (const Count& count : kCounts) names.push_back(count.key);
  fail_unknown_name("lab", "word of a method", key, names);
}

/// Does what a word says; `false` where it is not known.
void apply(const std::string& method, const Word& word, LabOptions& options, ScheduleSpec& spec) {
  const auto count = std::ranges::find(kCounts, word.key, &Count::key);
  const auto number = std::ranges::find(kNumbers, word.key, &Number::key);
  if (count != std::end(kCounts)) {
    spec.*(count->member) = count_of(method, word);
  } else if (number != std::end(kNumbers)) {
    options.hyper.*(number->member) = number_of(method, word);
  } else if (word.key == "lazy") {
    spec.lazy = true;
  } else if (word.key == "nesterov") {
    options.hyper.nesterov = true;
  } else if (word.key == "degree") {
    spec.degree = count_of(method, word);
  } else if (word.key == "accumulate") {
    options.hyper.accumulate = count_of(method, word);
  } else if (word.key == "outer_every") {
    options.hyper.outer_every = count_of(method, word);
  } else if (word.key == "lr") {
    options.step_size.first = number_of(method, word);
  } else if (word.key == "optimizer") {
    check_optimizer_choice(word.value);
    options.optimizer = word.value;
  } else {
    refuse_word(word.key);
  }
}

}  // namespace

Contender parse_lab_method(const std::string& text, const HostShape& shape,
                           const LabOptions& defaults) {
  const std::vector<std::string> words = split(text, ':');
  const std::vector<std::string> head = split(words[0], '@');
  Contender contender{.name = text, .options = defaults};
  contender.options.pattern = find_pattern(head[0]).name;
  const bool needs_topology = find_pattern(head[0]).rounds == Rounds::schedule;
  if (head.size() > 2 || (needs_topology && head.size() < 2)) {
    refuse(text, "it is PATTERN@TOPOLOGY, such as " + head[0] + "@ring", words[0]);
  }
  ScheduleSpec spec;
  if (head.size() == 2) spec.topology = head[1];
  for (std::size_t k = 1; k < words.size(); ++k) {
    const std::size_t sign = words[k].find('=');
    const Word word{words[k].substr(0, sign),
                    sign == std::string::npos ? "" : words[k].substr(sign + 1)};
    apply(text, word, contender.options, spec);
  }
  contender.options.schedule = make_schedule(spec, shape);
  return contender;
}

}  // namespace gossamer
