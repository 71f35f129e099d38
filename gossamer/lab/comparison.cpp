#include "gossamer/lab/comparison.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace gossamer {

const std::vector<std::string> kFinalHeader = {"method", "MSE", "±", "ratio to the first",
                                               "disagreement"};

std::vector<Outcome> compare(const Problem& problem, const std::vector<double>& minimiser,
                             const std::vector<Contender>& contenders, const Repeats& repeats) {
  std::vector<Outcome> outcomes;
  for (const Contender& contender : contenders) {
    outcomes.push_back({contender.name, run_trials(problem, minimiser, contender.options,
                                                   repeats.trials, repeats.threads)});
  }
  return outcomes;
}

Series series_of(const Outcome& outcome, double Point::*member) {
  const Curve curve = curve_of(outcome.trials, member);
  Series series{.name = outcome.name, .x = curve.step, .y = curve.mean};
  for (std::size_t k = 0; outcome.trials.size() > 1 && k < curve.mean.size(); ++k) {
    series.low.push_back(std::max(curve.mean[k] - 2 * curve.error[k], 0.0));
    series.high.push_back(curve.mean[k] + 2 * curve.error[k]);
  }
  return series;
}

Chart chart_of(const std::string& title, const std::vector<Outcome>& outcomes,
               double Point::*member, const std::string& label) {
  Chart chart{.title = title, .x = {.label = "step"}, .y = {.label = label, .log = true}};
  if (member == &Point::error) chart.caption = "MSE: meanᵢ ‖xᵢ − x*‖² over the workers i";
  for (const Outcome& outcome : outcomes) chart.series.push_back(series_of(outcome, member));
  return chart;
}

Final last_of(const Outcome& outcome, double Point::*member) {
  const Curve curve = curve_of(outcome.trials, member);
  return {curve.mean.back(), curve.error.back()};
}

std::string three_digits(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3g", value);
  return text.data();
}

std::vector<std::vector<std::string>> final_rows(const std::vector<Outcome>& outcomes) {
  std::vector<std::vector<std::string>> rows;
  const double first = last_of(outcomes.front(), &Point::error).mean;
  for (const Outcome& outcome : outcomes) {
    const Final mse = last_of(outcome, &Point::error);
    rows.push_back({outcome.name, three_digits(mse.mean), three_digits(mse.error),
                    three_digits(mse.mean / first),
                    three_digits(last_of(outcome, &Point::disagreement).mean)});
  }
  return rows;
}

}  // namespace gossamer
