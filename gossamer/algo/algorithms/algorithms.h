#pragma once
/// The passes behind the rows of the pattern table, for float and double.

#include "gossamer/algo/optimizer.h"
#include "gossamer/algo/pass.h"

namespace gossamer {

template <class T>
double cwa_combine(const PassArgs<T>& args, const Optimizer& optimizer);
template <class T>
double cwa_difference_combine(const PassArgs<T>& args, const Optimizer& optimizer);
template <class T>
double atc_prepare(const PassArgs<T>& args, const Optimizer& optimizer);
template <class T>
double atc_combine(const PassArgs<T>& args, const Optimizer& optimizer);
template <class T>
double allreduce_combine(const PassArgs<T>& args, const Optimizer& optimizer);
template <class T>
double extra_combine(const PassArgs<T>& args, const Optimizer& optimizer);
template <class T>
double extra_difference_combine(const PassArgs<T>& args, const Optimizer& optimizer);
template <class T>
double exact_diffusion_prepare(const PassArgs<T>& args, const Optimizer& optimizer);
template <class T>
double exact_diffusion_combine(const PassArgs<T>& args, const Optimizer& optimizer);
template <class T>
double gradient_tracking_combine(const PassArgs<T>& args, const Optimizer& optimizer);
template <class T>
double dmsgd_combine(const PassArgs<T>& args, const Optimizer& optimizer);
template <class T>
double qg_dmsgd_prepare(const PassArgs<T>& args, const Optimizer& optimizer);
template <class T>
double qg_dmsgd_combine(const PassArgs<T>& args, const Optimizer& optimizer);

}  // namespace gossamer
