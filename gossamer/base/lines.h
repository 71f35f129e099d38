#pragma once
/// Texts line by line.

#include <string>
#include <string_view>

namespace gossamer {

/// A line of one text and the line of another text in its place; "nothing" behind a text's end.
struct LinePair {
  std::string here, there;
};

/// The first lines that differ. Where none do, both are "nothing".
LinePair first_difference(std::string_view here, std::string_view there);

}  // namespace gossamer
