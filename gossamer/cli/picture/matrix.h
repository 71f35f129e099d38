#pragma once
/// One round as its mixing matrix, for more workers than can be drawn one by one.

#include <string>

#include "gossamer/base/cluster.h"
#include "gossamer/graph/round.h"

namespace gossamer {

/// W in a square of this side around (0, 0): row i is what worker i takes. Groups have a colour
/// each, other weights one colour that is the stronger the larger the weight.
std::string draw_matrix(const Round& round, const HostShape& shape, double side);

/// The weights in words for this picture.
std::string describe_matrix(const Round& round);

}  // namespace gossamer
