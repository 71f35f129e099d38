#include "gossamer/cli/lab/method.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "gossamer/algo/choices.h"
#include "gossamer/algo/pattern.h"
#include "gossamer/base/errors.h"
#include "gossamer/exchange/method.h"

namespace gossamer {

namespace {

constexpr const char* kHelp =
    R"(A method is PATTERN@TOPOLOGY, a topology (for cwa), or allreduce, and after colons what differs
from the defaults: lazy, rounds=K, local=H, average=H, adaptive=H (applied in this order), degree=K,
optimizer=NAME, lr=, and its numbers: momentum=, nesterov, beta1=, beta2=, eps=, accumulate=,
weight_decay=, and the pattern's:
)";

struct Number {
  std::string_view key;
  double Hyper::*member;
};

constexpr Number kNumbers[] = {{"momentum", &Hyper::momentum},
                               {"beta1", &Hyper::beta1},
                               {"beta2", &Hyper::beta2},
                               {"eps", &Hyper::eps},
                               {"weight_decay", &Hyper::weight_decay}};

[[noreturn]] void refuse(const std::string& method, const std::string& what,
                         const std::string& got) {
  const std::string subject = "method " + method + ": " + what;
  fail_argument({.place = "lab",
                 .what = subject,
                 .got = "'" + got + "'",
                 .remedy = "see `gossamer lab run --help`"});
}

double number_of(const std::string& method, const std::string& key, const std::string& value) {
  char* end = nullptr;
  const double number = std::strtod(value.c_str(), &end);
  const bool is_good = !value.empty() && *end == '\0' && std::isfinite(number);
  if (!is_good) refuse(method, key + " takes a number", value);
  return number;
}

int count_of(const std::string& method, const std::string& key, const std::string& value) {
  const double number = number_of(method, key, value);
  const bool is_good = number >= 1 && number <= 1e9 && number == std::floor(number);
  if (!is_good) refuse(method, key + " takes a whole number from 1 up", value);
  return static_cast<int>(number);
}

/// What a word says of the optimizer; false where it says nothing of it.
bool apply(const std::string& method, const std::string& key, const std::string& value,
           LabOptions& options) {
  const auto number = std::ranges::find(kNumbers, key, &Number::key);
  if (number != std::end(kNumbers)) {
    options.hyper.*(number->member) = number_of(method, key, value);
  } else if (key == "nesterov") {
    options.hyper.nesterov = true;
  } else if (key == "accumulate") {
    options.hyper.accumulate = count_of(method, key, value);
  } else if (key == "lr") {
    options.step_size.first = number_of(method, key, value);
  } else if (key == "optimizer") {
    check_optimizer_choice(value);
    options.optimizer = find_optimizer(value).name;
  } else {
    return false;
  }
  return true;
}

/// The lab computes steps without time and without codings.
void check_untimed(const std::string& text, const MethodSpec& method) {
  const auto leave_out = [&](const char* what) {
    refuse(text, "the lab has steps only, leave " + std::string(what) + " out", text);
  };
  if (facts_of(method).is_ddp) refuse(text, "ddp is allreduce here", "ddp");
  if (method.codec != Codec::fp32) leave_out("the codec");
  if (method.update) leave_out("when updates happen");
  if (method.late == Late::skip) leave_out("skip");
  if (method.group_method) leave_out("the group method");
}

}  // namespace

std::string lab_method_help() {
  std::vector<std::string_view> options;
  for (const Pattern& pattern : patterns()) {
    for (const std::string_view option : pattern.options) {
      if (std::ranges::find(options, option) == options.end()) options.push_back(option);
    }
  }
  std::string text = kHelp;
  for (const std::string_view option : options) {
    text += std::string(option) + (option == options.back() ? "=." : "=, ");
  }
  return text;
}

Contender parse_lab_method(const std::string& text, const HostShape& shape,
                           const LabOptions& defaults) {
  Contender contender{.name = text, .options = defaults};
  LabOptions& options = contender.options;
  const MethodSpec method =
      parse_method(text, [&](const std::string& word, const std::string& value) {
        return apply(text, word, value, options);
      });
  check_untimed(text, method);
  options.pattern = find_pattern(method.pattern).name;
  for (const PatternOption& option : method.options) {
    set_option(options.hyper, option.name, option.value);
  }
  options.schedule = facts_of(method).rounds == Rounds::complete
                         ? complete_schedule(shape)
                         : make_schedule(method.schedule, shape);
  return contender;
}

}  // namespace gossamer
