#pragma once
/// The passes behind the rows of the pattern table, for float and double.

#include "gossamer/algo/optimizer.h"
#include "gossamer/algo/pass.h"

namespace gossamer {

template <class T>
double cwa_combine(const PassArgs<T>& args, const Optimizer& optimizer);
template <class T>
double cwa_moments_combine(const PassArgs<T>& args, const Optimizer& optimizer);
template <class T>
double atc_prepare(const PassArgs<T>& args, const Optimizer& optimizer);
template <class T>
double atc_combine(const PassArgs<T>& args, const Optimizer& optimizer);
template <class T>
double allreduce_combine(const PassArgs<T>& args, const Optimizer& optimizer);
template <class T>
double extra_combine(const PassArgs<T>& args, const Optimizer& optimizer);
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
template <class T>
double gradient_tracking_atc_prepare(const PassArgs<T>& args, const Optimizer& optimizer);
template <class T>
double gradient_tracking_atc_middle(const PassArgs<T>& args, const Optimizer& optimizer);
template <class T>
double gradient_gossip_middle(const PassArgs<T>& args, const Optimizer& optimizer);
template <class T>
double gradient_gossip_combine(const PassArgs<T>& args, const Optimizer& optimizer);
template <class T>
double push_sum_prepare(const PassArgs<T>& args, const Optimizer& optimizer);
template <class T>
double slowmo_combine(const PassArgs<T>& args, const Optimizer& optimizer);
template <class T>
double noloco_combine(const PassArgs<T>& args, const Optimizer& optimizer);
template <class T>
double dsgd_ac_combine(const PassArgs<T>& args, const Optimizer& optimizer);

}  // namespace gossamer
