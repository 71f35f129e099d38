#pragma once
/// Methods side by side on one problem: curves with bands, and ratios in a table.

#include <string>
#include <vector>

#include "gossamer/chart/chart.h"
#include "gossamer/lab/run.h"

namespace gossamer {

struct Contender {
  std::string name;
  LabOptions options;
};

struct Repeats {
  int trials = 4;
  int threads = 2;
};

/// A contender's trials.
struct Outcome {
  std::string name;
  std::vector<std::vector<Point>> trials;
};

/// Each contender's trials draw the same samples. `minimiser` is the problem's.
std::vector<Outcome> compare(const Problem& problem, const std::vector<double>& minimiser,
                             const std::vector<Contender>& contenders, const Repeats& repeats);

/// A member of Point against the steps: the mean over trials and twice its standard error.
Series series_of(const Outcome& outcome, double Point::*member);

/// All of them, with logarithmic y.
Chart chart_of(const std::string& title, const std::vector<Outcome>& outcomes,
               double Point::*member, const std::string& label);

/// Of the last point: its mean over the trials, and the standard error of that.
struct Final {
  double mean = 0;
  double error = 0;
};
Final last_of(const Outcome& outcome, double Point::*member);

/// For tables: three digits, such as 0.00754, 1.23e-07 or 24.9.
std::string three_digits(double value);

/// Rows {name, final MSE, ± of it, ratio to the first outcome's, final disagreement}, under
/// kFinalHeader.
std::vector<std::vector<std::string>> final_rows(const std::vector<Outcome>& outcomes);
extern const std::vector<std::string> kFinalHeader;

}  // namespace gossamer
