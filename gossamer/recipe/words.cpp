#include "gossamer/recipe/words.h"

#include "gossamer/algo/choices.h"
#include "gossamer/exchange/choice_words.h"

namespace gossamer {
namespace {

/// No word stands for what is usual.
template <class Value>
std::string word_or_none(const std::optional<Value>& value) {
  return value ? std::string(name_of(*value)) : "";
}

}  // namespace

std::string word_of(TaskKind task) { return std::string(name_of(task)); }
std::string word_of(Objective objective) { return std::string(name_of(objective)); }
std::string word_of(const ModelFacts* model) {
  return model == nullptr ? "" : std::string(model->name);
}
std::string word_of(const Pattern* pattern) { return std::string(pattern->name); }
std::string word_of(std::optional<GroupMethod> method) { return word_or_none(method); }
std::string word_of(std::optional<UpdateAt> update) { return word_or_none(update); }
std::string word_of(Codec codec) { return std::string(name_of(codec)); }
std::string word_of(Late late) { return std::string(name_of(late)); }
std::string word_of(Lost lost) { return std::string(name_of(lost)); }
std::string word_of(const Optimizer* optimizer) { return std::string(optimizer->name); }
std::string word_of(LrSchedule schedule) { return std::string(name_of(schedule)); }

void read_word(const std::string& word, TaskKind& task) { task = find_task(word); }
void read_word(const std::string& word, Objective& objective) { objective = find_objective(word); }
void read_word(const std::string& word, const ModelFacts*& model) {
  model = word.empty() ? nullptr : &find_model_facts(word);
}
void read_word(const std::string& word, const Pattern*& pattern) { pattern = &find_pattern(word); }
void read_word(const std::string& word, std::optional<GroupMethod>& method) {
  method = word.empty() ? std::nullopt : std::optional(find_group_method(word));
}
void read_word(const std::string& word, std::optional<UpdateAt>& update) {
  update = word.empty() ? std::nullopt : std::optional(find_update(word));
}
void read_word(const std::string& word, Codec& codec) { codec = find_codec(word); }
void read_word(const std::string& word, Late& late) { late = find_late(word); }
void read_word(const std::string& word, Lost& lost) { lost = find_lost(word); }
void read_word(const std::string& word, const Optimizer*& optimizer) {
  check_optimizer_choice(word);
  optimizer = &find_optimizer(word);
}
void read_word(const std::string& word, LrSchedule& schedule) { schedule = find_lr_schedule(word); }

}  // namespace gossamer
