#pragma once
/// The words of a method's choices: step, backward; wait, skip; error, go_on; hierarchical, …

#include <string_view>
#include <vector>

#include "gossamer/exchange/method.h"

namespace gossamer {

std::string_view name_of(GroupMethod method);
std::string_view name_of(UpdateAt update);
std::string_view name_of(Late late);
std::string_view name_of(Lost lost);

/// Throw std::invalid_argument that lists the words.
GroupMethod find_group_method(std::string_view word);
UpdateAt find_update(std::string_view word);
Late find_late(std::string_view word);
Lost find_lost(std::string_view word);

std::vector<std::string_view> group_method_names();
std::vector<std::string_view> update_names();

}  // namespace gossamer
