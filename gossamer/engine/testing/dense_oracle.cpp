#include "gossamer/engine/testing/dense_oracle.h"

#include <cmath>
#include <utility>

namespace gossamer::reference {
namespace {

struct Worker {
  std::vector<double> m, v, m_hat, v_hat, b;
  explicit Worker(std::size_t d) : m(d), v(d), m_hat(d), v_hat(d), b(d) {}
};

/// What the second moment takes up of a gradient g that has made the first moment m, which is
/// `corrected` of what it tends to.
double taken_up(const Hyper& h, double g, double m, double corrected) {
  const double signal = m / corrected;
  return h.noise_share * g * g + (1 - h.noise_share) * signal * signal;
}

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
    const double corrected = 1 - std::pow(h.beta1, td);
    w.v[k] = h.beta2 * w.v[k] + (1 - h.beta2) * taken_up(h, g, w.m[k], corrected);
    const double m_corrected = w.m[k] / corrected;
    const double v_corrected = w.v[k] / (1 - std::pow(h.beta2, td));
    return -h.lr * m_corrected / (std::sqrt(v_corrected) + h.eps) + decay;
  }
  const auto s = static_cast<std::int64_t>(h.accumulate);
  const auto t_hat = static_cast<double>((t + s - 1) / s);
  const double m = h.beta1 * w.m_hat[k] + (1 - h.beta1) * g;
  const double corrected = 1 - std::pow(h.beta1, t_hat);
  const double v = h.beta2 * w.v_hat[k] + (1 - h.beta2) * taken_up(h, g, m, corrected);
  w.b[k] += g / static_cast<double>(s);
  if (t % s == 0) {
    w.m_hat[k] = h.beta1 * w.m_hat[k] + (1 - h.beta1) * w.b[k];
    w.v_hat[k] = h.beta2 * w.v_hat[k] + (1 - h.beta2) * taken_up(h, w.b[k], w.m_hat[k], corrected);
    w.b[k] = 0;
  }
  return -h.lr * (m / corrected) / (std::sqrt(v / (1 - std::pow(h.beta2, t_hat))) + h.eps) + decay;
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
  Matrix w;
  for (std::size_t k = 0; k < x[0].size(); ++k) {
    if (k == 0 || run.round_shift[k] != run.round_shift[k - 1]) {
      w = dense(round_at(run.schedule, step + run.round_shift[k]));
    }
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

namespace {

/// a·A + b·B.
Matrix sum(double a, const Matrix& A, double b, const Matrix& B) {
  Matrix result = A;
  for (std::size_t i = 0; i < A.size(); ++i) {
    for (std::size_t k = 0; k < A[i].size(); ++k) result[i][k] = a * A[i][k] + b * B[i][k];
  }
  return result;
}

Matrix operator+(const Matrix& a, const Matrix& b) { return sum(1, a, 1, b); }
Matrix operator-(const Matrix& a, const Matrix& b) { return sum(1, a, -1, b); }

const Hyper& hyper_of(const Run& run, std::size_t k) {
  return run.groups[static_cast<std::size_t>(run.group_of[k])];
}

Matrix directions(const Run& run, std::vector<Worker>& workers, const Matrix& g, const Matrix& x,
                  std::int64_t step) {
  Matrix d = x;
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t k = 0; k < x[i].size(); ++k) {
      d[i][k] = direction(run, hyper_of(run, k), workers[i], k, g[i][k], x[i][k], step + 1);
    }
  }
  return d;
}

/// What was mixed of the vectors is what the workers go on with.
template <class Mixing>
void mix_state(std::vector<Worker>& workers, std::vector<double> Worker::*vector,
               const Mixing& mixing) {
  Matrix all;
  for (const Worker& worker : workers) all.push_back(worker.*vector);
  all = mixing(all);
  for (std::size_t i = 0; i < workers.size(); ++i) workers[i].*vector = all[i];
}

/// DmSGD, after the step.
void mix_momenta(const Run& run, std::vector<Worker>& workers, std::int64_t step) {
  const auto momentum = run.optimizer.starts_with("accum") ? &Worker::m_hat : &Worker::m;
  mix_state(workers, momentum, [&](const Matrix& m) { return mixed(run, m, step); });
}

/// x after a step with quasi-global momentum, which is in Worker::m.
Matrix quasi_global(const Run& run, std::vector<Worker>& workers, const Matrix& g, const Matrix& x,
                    std::int64_t step) {
  Matrix stepped = x;
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t k = 0; k < x[i].size(); ++k) {
      const Hyper& h = hyper_of(run, k);
      const double gradient = g[i][k] + h.weight_decay * x[i][k];
      const double u = h.momentum * workers[i].m[k] + (1 - h.dampening) * gradient;
      stepped[i][k] -= h.lr * (h.nesterov ? gradient + h.momentum * u : u);
    }
  }
  const Matrix next = mixed(run, stepped, step);
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t k = 0; k < x[i].size(); ++k) {
      double& m = workers[i].m[k];
      m = 0.9 * m + 0.1 * (x[i][k] - next[i][k]) / hyper_of(run, k).lr;
    }
  }
  return next;
}

/// x after a step of push-sum from the products u = v x; `v` has this step's weights, by element
/// because buckets may be at different rounds.
Matrix pushed(const Run& run, Matrix& v, const Matrix& x, const Matrix& d, std::int64_t step) {
  Matrix u = x;
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t k = 0; k < x[i].size(); ++k) u[i][k] = v[i][k] * x[i][k] + d[i][k];
  }
  u = mixed(run, u, step);
  v = mixed(run, v, step);
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t k = 0; k < x[i].size(); ++k) u[i][k] /= v[i][k];
  }
  return u;
}

/// The weights with which every element begins, at the round that it is shifted by.
Matrix first_weights(const Run& run, const Matrix& x) {
  Matrix v = x;
  for (std::size_t k = 0; k < x[0].size(); ++k) {
    std::vector<double> weights(x.size(), 1);
    for (std::int64_t t = 0; t < run.round_shift[k]; ++t) {
      const Matrix a = dense(round_at(run.schedule, t));
      const std::vector<double> before = weights;
      for (std::size_t i = 0; i < x.size(); ++i) {
        weights[i] = 0;
        for (std::size_t j = 0; j < x.size(); ++j) weights[i] += a[i][j] * before[j];
      }
    }
    for (std::size_t i = 0; i < x.size(); ++i) v[i][k] = weights[i];
  }
  return v;
}

/// x + γ (W x − x) + d.
Matrix partly_mixed(const Run& run, const Matrix& x, const Matrix& d, std::int64_t step) {
  Matrix next = mixed(run, x, step);
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t k = 0; k < x[i].size(); ++k) {
      const double gamma = hyper_of(run, k).consensus;
      next[i][k] = x[i][k] + gamma * (next[i][k] - x[i][k]) + d[i][k];
    }
  }
  return next;
}

/// cwa_moments, before the step.
void mix_moments(const Run& run, std::vector<Worker>& workers, std::int64_t step) {
  const bool accumulates = run.optimizer.starts_with("accum");
  for (const auto vector :
       {accumulates ? &Worker::m_hat : &Worker::m, accumulates ? &Worker::v_hat : &Worker::v}) {
    mix_state(workers, vector,
              [&](const Matrix& all) { return partly_mixed(run, all, all - all, step); });
  }
}

/// What SlowMo and NoLoCo keep: the slow weights, and their momentum u as SlowMo has it.
struct SlowWeights {
  Matrix anchor, u;
};

/// x after the outer steps of the elements whose round has one; `x` is mixed.
Matrix slow_step(const Run& run, SlowWeights& slow, Matrix x, std::int64_t step) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t k = 0; k < x[i].size(); ++k) {
      const Hyper& h = hyper_of(run, k);
      if ((step + run.round_shift[k] + 1) % h.outer_every != 0) continue;
      double& anchor = slow.anchor[i][k];
      double& u = slow.u[i][k];
      u = h.outer_momentum * u + (anchor - x[i][k]);
      x[i][k] = anchor -= h.outer_lr * u;
    }
  }
  return x;
}

}  // namespace

Matrix run(const Run& run, Matrix x, const Gradient& gradient, std::int64_t steps) {
  std::vector<Worker> workers(x.size(), Worker(x[0].size()));
  const Matrix zero = x - x;
  Matrix psi_before = x;
  Matrix x_before = x;
  Matrix d_before = zero;
  Matrix g_before = zero;
  Matrix tracker = zero;
  SlowWeights slow{x, zero};
  Matrix v = first_weights(run, x);
  const std::string& pattern = run.pattern;
  for (std::int64_t step = 0; step < steps; ++step) {
    Matrix g = gradients(run, x, gradient, step);
    if (pattern == "qg_dmsgd") {
      x = quasi_global(run, workers, g, x, step);
      continue;
    }
    if (pattern == "gradient_tracking") {
      tracker = mixed(run, tracker, step) + (g - g_before);
      g_before = std::exchange(g, tracker);
    } else if (pattern == "gradient_tracking_atc") {
      tracker = mixed(run, tracker + (g - g_before), step);
      g_before = std::exchange(g, tracker);
    }
    if (pattern == "gradient_gossip") {
      x = mixed(run, x, step);
      x = x + directions(run, workers, mixed(run, g, step), x, step);
      continue;
    }
    if (pattern == "cwa_moments") mix_moments(run, workers, step);
    const Matrix d = directions(run, workers, g, x, step);
    const Matrix x_now = x;
    if (pattern == "allreduce") {
      x = x + d;
    } else if (pattern == "atc" || pattern == "dmsgd" || pattern == "gradient_tracking_atc") {
      x = mixed(run, x + d, step);
      if (pattern == "dmsgd") mix_momenta(run, workers, step);
    } else if (pattern == "exact_diffusion") {
      const Matrix psi = x + d;
      x = mixed(run, psi + (x - psi_before), step);
      psi_before = psi;
    } else if (pattern.starts_with("extra") && step > 0) {
      const Matrix twice = x + mixed(run, x, step);
      const Matrix half = sum(0.5, x_before, 0.5, mixed(run, x_before, step));
      x = twice - half + (d - d_before);
    } else if (pattern == "push_sum") {
      x = pushed(run, v, x, d, step);
    } else if (pattern == "slowmo" || pattern == "noloco") {
      if (pattern == "noloco") slow.anchor = mixed(run, slow.anchor, step);
      x = slow_step(run, slow, mixed(run, x + d, step), step);
    } else if (pattern == "dsgd_ac" || pattern == "cwa_moments") {
      x = partly_mixed(run, x, d, step);
    } else {
      x = mixed(run, x, step) + d;
    }
    x_before = x_now;
    d_before = d;
  }
  return x;
}

}  // namespace gossamer::reference
