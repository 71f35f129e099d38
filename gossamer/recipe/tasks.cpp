#include "gossamer/recipe/tasks.h"

#include <iterator>

#include "gossamer/base/choice.h"

namespace gossamer {
namespace {

static_assert(std::size(kTasks) == std::size(kAllTasks));

constexpr Choice<Objective> kObjectives[] = {{"next", Objective::next},
                                             {"masked", Objective::masked}};

}  // namespace

std::string_view name_of(TaskKind task) { return kTasks[static_cast<std::size_t>(task)].name; }

TaskKind find_task(std::string_view name) {
  std::vector<std::string_view> names;
  for (const TaskKind task : kAllTasks) {
    if (name_of(task) == name) return task;
    names.push_back(name_of(task));
  }
  fail_unknown_name("tasks", "kind of data", name, names);
}

std::string_view name_of(Objective objective) { return name_in(kObjectives, objective); }

Objective find_objective(std::string_view name) {
  return choose(kObjectives, name, {"text", "objective"});
}

}  // namespace gossamer
