#pragma once
/// One round as SVG elements, drawn over a PictureLayout.

#include <string>
#include <vector>

#include "gossamer/cli/picture/layout.h"
#include "gossamer/graph/round.h"

namespace gossamer {

/// Which colour a worker, or a whole host, shows; −1: it is in no group.
struct Colouring {
  std::vector<int> of_worker;
  std::vector<int> of_host;  ///< only where the whole host is in one group of several workers
};

Colouring colour_groups(const Round& round, const HostShape& shape);

/// Boxes, links or groups, and workers. Groups across hosts have a colour each, groups inside one
/// of several hosts are grey; other rounds have lines (arrows where only one direction has the
/// weight), coloured by weight where there are a few different ones, else thicker for more.
std::string draw_round(const Round& round, const HostShape& shape, const PictureLayout& layout);

/// "1/3", or "1/5 to 1/3".
std::string describe_range(const std::vector<double>& weights);

/// The weights in words, as the content of an SVG text: "groups of 4: 1/4, pairs: 1/2" or
/// "from neighbours 1/3, kept 1/3", with the colours that draw_round gives to different weights.
std::string describe_weights(const Round& round);

}  // namespace gossamer
