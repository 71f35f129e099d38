#pragma once
/// Pictures of curves: figures go as JSON to the Python package, which draws them with matplotlib.

#include <string>
#include <vector>

#include "gossamer/base/json.h"

namespace gossamer {

struct Drawing {
  std::string place;                   ///< opens messages: "lab figure"
  Json figures;                        ///< figure_json of one, or an array of them
  std::vector<std::string> arguments;  ///< where to: {"--svg", "a.svg"}; see report/charts.py
};

/// Starts Python and waits until the pictures are written. What was printed on stdout is flushed
/// before. Returns the exit code of the command: 0, or that of Python, which has said why. Throws
/// as python_command, and OutsideError where Python cannot be started or is killed.
int draw(const Drawing& drawing);

/// Throws OutsideError where the file cannot be written because of its folder: better said before
/// hours of work than after.
void check_place_of(const std::string& place, const std::string& what, const std::string& path);

}  // namespace gossamer
