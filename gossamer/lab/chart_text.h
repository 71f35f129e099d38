#pragma once
/// What charts write with: coordinates and text that is escaped, measured and broken into lines.

#include <string>
#include <string_view>
#include <vector>

namespace gossamer::drawing {

/// A coordinate with at most two decimals.
std::string pixels(double value);

/// As content or attribute of XML: bytes that are no UTF-8 become U+FFFD, control characters
/// spaces.
std::string escaped(std::string_view text);

/// How wide a sans-serif font of that size in pixels sets the text, rather too much than too
/// little.
double text_width(std::string_view text, double size);

/// Broken at spaces into lines of that width, and inside of words that are wider.
std::vector<std::string> wrapped(std::string_view text, double width, double size);

/// A text element of that class. `words` is markup already.
std::string text_at(double x, double y, std::string_view style, std::string_view words);

/// ` name="value"` with a coordinate.
std::string attribute(std::string_view name, double value);

}  // namespace gossamer::drawing
