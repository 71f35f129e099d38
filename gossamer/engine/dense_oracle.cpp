#include "gossamer/engine/dense_oracle.h"

#include <cmath>

namespace gossamer::reference {
namespace {

struct Worker {
  std::vector<double> m, v, m_hat, v_hat, b;
  explicit Worker(std::size_t d) : m(d), v(d), m_hat(d), v_hat(d), b(d) {}
};

/// d(g, state) at step t ≥ 1 for one element.
double direction(const Run& run, const Hyper& h, Worker& w, std::size_t k, double g, double x,
                 std::int64_t t) {
  const auto td = static_cast<double>(t);
  if (run.optimizer == "none") return 0;
  const bool coupled = run.optimizer != "adamw" && run.optimizer != "accum_adamw";
  if (coupled) g += h.weight_decay * x;
  const double decay = coupled ? 0 : -h.lr * h.weight_decay * x;
  if (run.optimizer == "sgd") return -h.lr * g;
  if (run.optimizer == "momentum") {
    w.m[k] = t == 1 ? g : h.momentum * w.m[k] + (1 - h.dampening) * g;
    return -h.lr * (h.nesterov ? g + h.momentum * w.m[k] : w.m[k]);
  }
  if (run.optimizer == "adam" || run.optimizer == "adamw") {
    w.m[k] = h.beta1 * w.m[k] + (1 - h.beta1) * g;
    w.v[k] = h.beta2 * w.v[k] + (1 - h.beta2) * g * g;
    const double m_corrected = w.m[k] / (1 - std::pow(h.beta1, td));
    const double v_corrected = w.v[k] / (1 - std::pow(h.beta2, td));
    return -h.lr * m_corrected / (std::sqrt(v_corrected) + h.eps) + decay;
  }
  const auto s = static_cast<std::int64_t>(h.accumulate);
  const auto t_hat = static_cast<double>((t + s - 1) / s);
  const double m = h.beta1 * w.m_hat[k] + (1 - h.beta1) * g;
  const double v = h.beta2 * w.v_hat[k] + (1 - h.beta2) * g * g;
  w.b[k] += g / static_cast<double>(s);
  if (t % s == 0) {
    w.m_hat[k] = h.beta1 * w.m_hat[k] + (1 - h.beta1) * w.b[k];
    w.v_hat[k] = h.beta2 * w.v_hat[k] + (1 - h.beta2) * w.b[k] * w.b[k];
    w.b[k] = 0;
  }
  return -h.lr * (m / (1 - std::pow(h.beta1, t_hat))) /
             (std::sqrt(v / (1 - std::pow(h.beta2, t_hat))) + h.eps) +
         decay;
}

Matrix dense(const Round& round) {
  const auto n = static_cast<std::size_t>(round.workers);
  Matrix w(n, std::vector<double>(n));
  for (std::size_t i = 0; i < n; ++i) {
    for (const Entry& e : round.rows.empty() ? std::vector<Entry>{} : round.rows[i]) {
      w[i][static_cast<std::size_t>(e.worker)] = e.weight;
    }
  }
  for (const std::vector<int>& group : round.groups) {
    for (int i : group) {
      for (int j : group) {
        w[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)] =
            1 / static_cast<double>(group.size());
      }
    }
  }
  return w;
}

Matrix mixed(const Run& run, const Matrix& x, std::int64_t step) {
  Matrix result = x;
  for (std::size_t k = 0; k < x[0].size(); ++k) {
    const Matrix w = dense(round_at(run.schedule, step + run.round_shift[k]));
    for (std::size_t i = 0; i < x.size(); ++i) {
      result[i][k] = 0;
      for (std::size_t j = 0; j < x.size(); ++j) result[i][k] += w[i][j] * x[j][k];
    }
  }
  return result;
}

void clip(std::vector<double>& g, double limit) {
  double norm = 0;
  for (double value : g) norm += value * value;
  norm = std::sqrt(norm);
  if (limit <= 0 || norm <= limit) return;
  for (double& value : g) value *= limit / norm;
}

Matrix gradients(const Run& run, const Matrix& x, const Gradient& gradient, std::int64_t step) {
  Matrix g;
  for (std::size_t i = 0; i < x.size(); ++i) {
    g.push_back(gradient(static_cast<int>(i), step, x[i]));
  }
  if (run.pattern == "allreduce") {
    std::vector<double> mean(x[0].size());
    for (const auto& row : g) {
      for (std::size_t k = 0; k < mean.size(); ++k) {
        mean[k] += row[k] / static_cast<double>(g.size());
      }
    }
    g.assign(g.size(), mean);
  }
  for (auto& row : g) clip(row, run.clip_norm);
  return g;
}

}  // namespace

Matrix run(const Run& run, Matrix x, const Gradient& gradient, std::int64_t steps) {
  std::vector<Worker> workers(x.size(), Worker(x[0].size()));
  for (std::int64_t step = 0; step < steps; ++step) {
    const Matrix g = gradients(run, x, gradient, step);
    Matrix d = x;
    for (std::size_t i = 0; i < x.size(); ++i) {
      for (std::size_t k = 0; k < x[i].size(); ++k) {
        const Hyper& hyper = run.groups[static_cast<std::size_t>(run.group_of[k])];
        d[i][k] = direction(run, hyper, workers[i], k, g[i][k], x[i][k], step + 1);
      }
    }
    const Matrix before = run.pattern.starts_with("cwa") ? mixed(run, x, step) : x;
    for (std::size_t i = 0; i < x.size(); ++i) {
      for (std::size_t k = 0; k < x[i].size(); ++k) x[i][k] = before[i][k] + d[i][k];
    }
    if (run.pattern == "atc") x = mixed(run, x, step);
  }
  return x;
}

}  // namespace gossamer::reference
