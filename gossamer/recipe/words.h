#pragma once
/// The word of each choice of a recipe, in both directions.

#include <string>

#include "gossamer/recipe/recipe.h"

namespace gossamer {

std::string word_of(TaskKind task);
std::string word_of(Objective objective);
std::string word_of(const ModelFacts* model);
std::string word_of(const Pattern* pattern);
std::string word_of(std::optional<GroupMethod> method);
std::string word_of(std::optional<UpdateAt> update);
std::string word_of(Codec codec);
std::string word_of(Late late);
std::string word_of(Lost lost);
std::string word_of(const Optimizer* optimizer);
std::string word_of(LrSchedule schedule);

/// Set the choice. They throw std::invalid_argument that lists the words.
void read_word(const std::string& word, TaskKind& task);
void read_word(const std::string& word, Objective& objective);
void read_word(const std::string& word, const ModelFacts*& model);
void read_word(const std::string& word, const Pattern*& pattern);
void read_word(const std::string& word, std::optional<GroupMethod>& method);
void read_word(const std::string& word, std::optional<UpdateAt>& update);
void read_word(const std::string& word, Codec& codec);
void read_word(const std::string& word, Late& late);
void read_word(const std::string& word, Lost& lost);
void read_word(const std::string& word, const Optimizer*& optimizer);
void read_word(const std::string& word, LrSchedule& schedule);

}  // namespace gossamer
