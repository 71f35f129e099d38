#include "gossamer/base/choice.h"

namespace gossamer {

std::string listed(const std::vector<std::string_view>& names, std::string_view last) {
  std::string text;
  for (std::size_t k = 0; k < names.size(); ++k) {
    if (k > 0) text += k + 1 == names.size() ? last : ", ";
    text += names[k];
  }
  return text;
}

}  // namespace gossamer
