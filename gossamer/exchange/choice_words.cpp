#include "gossamer/exchange/choice_words.h"

#include "gossamer/base/choice.h"

namespace gossamer {
namespace {

constexpr Choice<GroupMethod> kGroupMethods[] = {{"hierarchical", GroupMethod::hierarchical},
                                                 {"direct", GroupMethod::direct},
                                                 {"ring", GroupMethod::ring}};
constexpr Choice<UpdateAt> kUpdates[] = {{"step", UpdateAt::step},
                                         {"backward", UpdateAt::backward}};
constexpr Choice<Late> kLates[] = {{"wait", Late::wait}, {"skip", Late::skip}};
constexpr Choice<Lost> kLosts[] = {{"error", Lost::error}, {"go_on", Lost::go_on}};

}  // namespace

std::string_view name_of(GroupMethod method) { return name_in(kGroupMethods, method); }
std::string_view name_of(UpdateAt update) { return name_in(kUpdates, update); }
std::string_view name_of(Late late) { return name_in(kLates, late); }
std::string_view name_of(Lost lost) { return name_in(kLosts, lost); }

GroupMethod find_group_method(std::string_view word) {
  return choose(kGroupMethods, word, {"method", "group method"});
}
UpdateAt find_update(std::string_view word) { return choose(kUpdates, word, {"method", "update"}); }
Late find_late(std::string_view word) { return choose(kLates, word, {"method", "late"}); }
Lost find_lost(std::string_view word) { return choose(kLosts, word, {"method", "lost"}); }

std::vector<std::string_view> group_method_names() { return names_in(kGroupMethods); }
std::vector<std::string_view> update_names() { return names_in(kUpdates); }

}  // namespace gossamer
