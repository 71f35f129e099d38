#pragma once
/// The passes behind the rows of the optimizer table, for float and double.

#include <span>

#include "gossamer/algo/pass.h"

namespace gossamer {

template <class T>
double none_pass(const PassArgs<T>& args, const Mix<T>& mix, std::span<const T> g);
template <class T>
double sgd_pass(const PassArgs<T>& args, const Mix<T>& mix, std::span<const T> g);
template <class T>
double momentum_pass(const PassArgs<T>& args, const Mix<T>& mix, std::span<const T> g);
template <class T>
double adam_pass(const PassArgs<T>& args, const Mix<T>& mix, std::span<const T> g);
template <class T>
double adamw_pass(const PassArgs<T>& args, const Mix<T>& mix, std::span<const T> g);
template <class T>
double accum_adam_pass(const PassArgs<T>& args, const Mix<T>& mix, std::span<const T> g);
template <class T>
double accum_adamw_pass(const PassArgs<T>& args, const Mix<T>& mix, std::span<const T> g);

}  // namespace gossamer
