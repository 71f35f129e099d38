#include "gossamer/cli/published_table.h"

#include <algorithm>
#include <cstdio>

#include "gossamer/model/published.h"
#include "gossamer/model/published_fit.h"

namespace gossamer {
namespace {

std::string line(const char* form, auto... values) {
  char text[256];
  std::snprintf(text, sizeof text, form, values...);
  return text;
}

}  // namespace

std::string published_table() {
  std::string text;
  for (const FitProblem& problem : published_problems()) {
    const Fit fit = fit_constants(problem);
    text += fit.name + "\n  fitted:";
    for (const auto& [name, value] : fit.constants) {
      text += line(" %s %.4g", name.c_str(), value);
    }
    text += "\n";
    const char* kind = problem.is_relative ? "%" : "points";
    for (const FittedPoint& point : fit.points) {
      const double scale = problem.is_relative ? 1 : 100;
      text += line("  %-34s published %8.4g  model %8.4g  off by %+.1f %s\n", point.name.c_str(),
                   scale * point.measured, scale * point.predicted, 100 * point.residual, kind);
    }
  }
  text += "ImageNet, ResNet-50, 90 epochs, 8 GPUs per host (lecture)\n";
  for (const ImageNetPoint& point : imagenet_points()) {
    text += line("  %-16s %3d hosts %6.1f h  top-1 %.2f %%\n", std::string(point.method).c_str(),
                 point.hosts, point.hours, point.top1_percent);
  }
  return text;
}

Json published_json() {
  Json json = Json::array();
  for (const FitProblem& problem : published_problems()) {
    const Fit fit = fit_constants(problem);
    Json entry{{"name", fit.name}, {"relative", problem.is_relative}};
    for (const auto& [name, value] : fit.constants) entry["constants"][name] = value;
    for (const FittedPoint& point : fit.points) {
      entry["points"].push_back({{"name", point.name},
                                 {"published", point.measured},
                                 {"model", point.predicted},
                                 {"residual", point.residual}});
    }
    json.push_back(entry);
  }
  return json;
}

}  // namespace gossamer
