#include "gossamer/cli/plan/published_table.h"

#include <algorithm>

#include "gossamer/cli/text_table.h"
#include "gossamer/model/published.h"
#include "gossamer/model/published_fit.h"

namespace gossamer {
namespace {

std::string off_by(const FittedPoint& point, bool is_relative) {
  return formatted("%+.1f %s", 100 * point.residual, is_relative ? "%" : "points");
}

/// Hours of a poster's row, and those of the model: its speed-up over the same all-reduce.
std::string hours_of(const std::string& task, const FittedPoint& point) {
  for (const PosterRow& row : poster_rows()) {
    if (row.task != task || row.topology != point.name) continue;
    const double allreduce = row.hours / (1 - row.speed_up);
    return formatted("  %.2f h, model %.2f", row.hours, allreduce * (1 - point.predicted));
  }
  return "";
}

std::string hardware_of(const std::string& task) {
  for (const PosterRow& row : poster_rows()) {
    if (row.task == task) {
      return formatted(" (poster: speed-up over all-reduce in %%, %s, %d hosts x %d)",
                       std::string(row.hardware).c_str(), row.hosts, row.workers_per_host);
    }
  }
  return "";
}

std::string table_of(const PublishedCase& published) {
  const FitProblem& problem = published.problem;
  const Fit fit = fit_constants(problem);
  const std::vector<FittedPoint> alone = predicted_from_others(problem);
  std::string text = fit.name + hardware_of(fit.name) + "\n";
  text += formatted("  %zu numbers; fitted to them, %zu:", fit.points.size(), fit.constants.size());
  for (const auto& [name, value] : fit.constants)
    text += formatted(" %s %.4g,", name.c_str(), value);
  text.back() = '\n';
  if (!published.predicted.empty()) {
    text += "  predicted from bytes:";
    for (const auto& [name, value] : published.predicted) {
      text += formatted(" %s %.4g,", name.c_str(), value);
    }
    text.back() = '\n';
  }
  const double scale = problem.is_relative ? 1 : 100;
  for (std::size_t k = 0; k < fit.points.size(); ++k) {
    const FittedPoint& point = fit.points[k];
    text += formatted("  %-28s published %6.4g  fitted %6.4g, %-12s", point.name.c_str(),
                      scale * point.measured, scale * point.predicted,
                      off_by(point, problem.is_relative).c_str());
    if (!alone.empty()) {
      text += formatted("  from the others %6.4g, %-12s", scale * alone[k].predicted,
                        off_by(alone[k], problem.is_relative).c_str());
    }
    text += hours_of(fit.name, point);
    text.erase(text.find_last_not_of(' ') + 1);
    text += "\n";
  }
  if (!published.note.empty()) text += "  " + published.note + "\n";
  return text;
}

}  // namespace

std::string published_table() {
  std::string text =
      "fitted: the model with constants that are fitted to all numbers of the case.\n"
      "from the others: a prediction, with constants that are fitted to all numbers but this "
      "one.\n";
  for (const PublishedCase& published : published_cases()) text += table_of(published);
  text += "ImageNet, ResNet-50, 90 epochs, 8 GPUs per host (lecture)\n";
  for (const ImageNetPoint& point : imagenet_points()) {
    text +=
        formatted("  %-20s %3d hosts %6.1f h  top-1 %.2f %%\n", std::string(point.method).c_str(),
                  point.hosts, point.hours, point.top1_percent);
  }
  return text;
}

Json published_json() {
  Json json = Json::array();
  for (const PublishedCase& published : published_cases()) {
    const FitProblem& problem = published.problem;
    const Fit fit = fit_constants(problem);
    const std::vector<FittedPoint> alone = predicted_from_others(problem);
    Json entry{{"name", fit.name}, {"relative", problem.is_relative}, {"note", published.note}};
    for (const auto& [name, value] : fit.constants) entry["constants"][name] = value;
    for (const auto& [name, value] : published.predicted) entry["predicted"][name] = value;
    for (std::size_t k = 0; k < fit.points.size(); ++k) {
      const FittedPoint& point = fit.points[k];
      Json row{{"name", point.name},
               {"published", point.measured},
               {"model", point.predicted},
               {"residual", point.residual}};
      if (!alone.empty()) row["from_others"] = alone[k].predicted;
      entry["points"].push_back(row);
    }
    for (const PosterRow& row : poster_rows()) {
      if (row.task == fit.name) entry["hours"][std::string(row.topology)] = row.hours;
    }
    json.push_back(entry);
  }
  return json;
}

}  // namespace gossamer
