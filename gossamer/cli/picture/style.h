#pragma once
/// The colours of topology pictures, light and dark, as classes of a style sheet.

#include <string>

namespace gossamer {

/// Which colour a mark has. The first ones are for groups and weights.
constexpr int kInsideColour = 0;   ///< groups inside one of several hosts
constexpr int kBrightColours = 8;  ///< how many colours follow it
constexpr int kLineColour = 9;     ///< links that all have one weight, or many
constexpr int kAloneColour = 10;   ///< workers in no group

/// The class attribute of a mark filled, or drawn along its line, with a colour.
std::string filled(int colour);
std::string stroked(int colour);

/// The style sheet, as an element.
std::string picture_style();

}  // namespace gossamer
