#include "gossamer/cli/lab/method.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "gossamer/algo/choices.h"
#include "gossamer/algo/pattern.h"
#include "gossamer/base/errors.h"
#include "gossamer/exchange/method.h"

namespace gossamer {

const char* const kLabMethodHelp =
    R"(A method is PATTERN@TOPOLOGY, a topology (for cwa), or allreduce, and after colons what differs
from the defaults: lazy, rounds=K, local=H, average=H, adaptive=H (applied in this order), degree=K,
optimizer=NAME, lr=, and its numbers: momentum=, nesterov, beta1=, beta2=, eps=, accumulate=,
weight_decay=, and the pattern's: outer_every=, outer_momentum=, outer_lr=, consensus=.)";

namespace {

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
  options.hyper.outer_every = static_cast<int>(option_of(method, "outer_every", 0));
  options.hyper.outer_momentum = option_of(method, "outer_momentum", Hyper{}.outer_momentum);
  options.hyper.outer_lr = option_of(method, "outer_lr", Hyper{}.outer_lr);
  options.hyper.consensus = option_of(method, "consensus", Hyper{}.consensus);
  options.hyper.noise_share = option_of(method, "noise_share", options.hyper.noise_share);
  options.schedule = facts_of(method).rounds == Rounds::complete
                         ? complete_schedule(shape)
                         : make_schedule(method.schedule, shape);
  return contender;
}

}  // namespace gossamer
