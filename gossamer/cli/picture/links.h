#pragma once
/// The links of one round as SVG elements, and the colours of their weights.

#include <string>
#include <vector>

#include "gossamer/cli/picture/layout.h"
#include "gossamer/graph/round.h"

namespace gossamer {

/// Of so many different weights, each has a colour of its own.
constexpr std::size_t kMostWeightColours = 5;

/// A coordinate with two decimals at most.
std::string shown(double value);

/// One attribute of an element, with the space before it.
std::string attribute(const char* name, double value);

/// The different weights on (or off) the diagonal, to 1e-9, in falling order.
std::vector<double> distinct_weights(const Round& round, bool diagonal);

/// A colour for each of a few different weights; one neutral colour where there are many or one.
int colour_of(double weight, const std::vector<double>& weights);

/// A line for each pair with a weight, an arrow where only one direction has it.
std::string draw_links(const Round& round, const PictureLayout& layout);

}  // namespace gossamer
