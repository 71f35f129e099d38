#include "gossamer/base/json.h"

#include <stdexcept>
#include <string>

namespace gossamer {

Json parse_json(std::string_view text, int levels) {
  using Event = Json::parse_event_t;
  const auto check = [&](int depth, Event event, Json&) {
    const bool begins = event == Event::object_start || event == Event::array_start;
    if (begins && depth >= levels) {
      throw std::invalid_argument("JSON nested in more than " + std::to_string(levels) + " levels");
    }
    return true;
  };
  try {
    return Json::parse(text, check);
  } catch (const Json::exception& error) {
    throw std::invalid_argument(std::string("not JSON: ") + error.what());
  }
}

}  // namespace gossamer
