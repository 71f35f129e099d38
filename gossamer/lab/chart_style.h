#pragma once
/// The style sheet of charts: their letters, and their colours in the dark.

#include <string>

namespace gossamer::drawing {

/// As an element of SVG.
std::string style_sheet();

}  // namespace gossamer::drawing
