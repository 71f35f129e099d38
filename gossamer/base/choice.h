#pragma once
/// Words that stand for values: a choice is a constexpr table of them.

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "gossamer/base/errors.h"

namespace gossamer {

template <class Value>
struct Choice {
  std::string_view name;
  Value value;
};

template <class Value, std::size_t n>
std::vector<std::string_view> names_in(const Choice<Value> (&choices)[n]) {
  std::vector<std::string_view> names;
  for (const Choice<Value>& choice : choices) names.push_back(choice.name);
  return names;
}

/// The first word that stands for the value, which has one.
template <class Value, std::size_t n>
std::string_view name_in(const Choice<Value> (&choices)[n], Value value) {
  return std::ranges::find(choices, value, &Choice<Value>::value)->name;
}

/// Where a word comes from and what it is: both are for the message.
struct Asked {
  std::string_view place;
  std::string_view kind;
};

/// What the word stands for. Throws std::invalid_argument that lists the valid words.
template <class Value, std::size_t n>
Value choose(const Choice<Value> (&choices)[n], std::string_view word, const Asked& asked) {
  const auto found = std::ranges::find(choices, word, &Choice<Value>::name);
  if (found != std::ranges::end(choices)) return found->value;
  fail_unknown_name(asked.place, asked.kind, word, names_in(choices));
}

/// "a, b or c".
std::string listed(const std::vector<std::string_view>& names, std::string_view last = " or ");

}  // namespace gossamer
