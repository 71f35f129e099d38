#include "gossamer/torch/tensors/gradient_average.h"

#include <torch/csrc/autograd/engine.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "gossamer/base/errors.h"
#include "gossamer/torch/tensors/arrivals.h"
#include "gossamer/torch/tensors/gradient_rounds.h"

namespace gossamer {
namespace {

std::vector<at::Tensor> tensors_of(const std::vector<AveragedTensor>& named) {
  std::vector<at::Tensor> tensors;
  for (const AveragedTensor& each : named) {
    const at::Device device = each.tensor.device();
    if (device != named.front().tensor.device() || device.is_meta()) {
      fail_argument({.place = "Gossip",
                     .what = "gradients that are averaged must be in one place",
                     .got = "parameter '" + named.front().name + "' on " +
                            named.front().tensor.device().str() + ", '" + each.name + "' on " +
                            device.str(),
                     .remedy = "move the whole model to one device"});
    }
    tensors.push_back(each.tensor);
  }
  return tensors;
}

}  // namespace

struct GradientAverage::State {
  /// Held by what autograd calls at the end of a pass: expires if the pass fails.
  struct Pass {
    bool has_ended = false;
  };

  std::vector<at::Tensor> tensors;
  bool at_end = false;
  StandIns stand_ins;
  bool enabled = true;
  std::optional<Arrivals> arrivals;
  std::optional<GradientRounds> rounds;  ///< nothing when the owner is gone
  std::weak_ptr<Pass> pass;              ///< under way; none without a backward

  std::vector<GradientMark> means;  ///< by tensor: as the last pass left its gradient
  std::vector<char> is_mean;        ///< by tensor: since the last step, and nothing has come since
  bool has_passed = false;          ///< since the last step
  std::size_t steps = 0;

  bool is_in_pass() const {
    const auto alive = pass.lock();
    return alive && !alive->has_ended;
  }
  bool is_new(std::size_t i) const;
  bool are_averaged() const;
  void take_stand_ins() const {
    if (stand_ins.take) stand_ins.take();
  }

  void arrive(std::size_t i, const std::shared_ptr<State>& self);
  void begin_pass(const std::shared_ptr<State>& self);
  void queue_round(const std::shared_ptr<State>& self, const std::shared_ptr<Pass>& token);
  void open(bool in_step);
  bool advance();
  void take(std::size_t i);
  void finish_now();
};

// Passes.

void GradientAverage::State::arrive(std::size_t i, const std::shared_ptr<State>& self) {
  if (!rounds) return;
  if (!enabled) {
    is_mean[i] = 0;
    return;
  }
  if (!is_in_pass()) {
    // A hook that has stepped was called before this one, and its step has averaged the gradient.
    if (!is_new(i)) return;
    begin_pass(self);
  }
  is_mean[i] = 0;
  rounds->arrive(i);
}

void GradientAverage::State::begin_pass(const std::shared_ptr<State>& self) {
  // A pass of which the backward has failed may have sent something: others wait for the rest.
  if (rounds->is_open()) rounds->drop();
  open(false);
  const auto token = std::make_shared<Pass>();
  pass = token;
  auto& engine = torch::autograd::Engine::get_default_engine();
  if (!at_end) {
    queue_round(self, token);
    return;
  }
  // Whoever else ends the pass has asked for it by the time when this is called.
  engine.queue_callback([self, token] { self->queue_round(self, token); });
}

void GradientAverage::State::queue_round(const std::shared_ptr<State>& self,
                                         const std::shared_ptr<Pass>& token) {
  torch::autograd::Engine::get_default_engine().queue_callback([self, token] {
    if (token->has_ended || !self->rounds) return;
    if (self->advance()) {
      self->queue_round(self, token);
    } else {
      token->has_ended = true;
    }
  });
}

/// `in_step`: also with gradients that were assigned to frozen tensors.
void GradientAverage::State::open(bool in_step) {
  take_stand_ins();
  std::vector<char> travels;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    travels.push_back(tensors[i].requires_grad() || (in_step && is_new(i)) ? 1 : 0);
  }
  rounds->open(std::move(travels), steps);
}

bool GradientAverage::State::advance() {
  if (rounds->next()) return true;
  if (stand_ins.give) stand_ins.give();
  has_passed = true;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (rounds->travels(i)) take(i);
  }
  return false;
}

void GradientAverage::State::take(std::size_t i) {
  means[i] = GradientMark(tensors[i].grad());
  is_mean[i] = 1;
}

/// Ends the pass under way, or one that has failed, or makes one of what stands in `.grad`.
void GradientAverage::State::finish_now() {
  if (const auto token = pass.lock()) token->has_ended = true;
  if (!rounds->is_open()) open(true);
  while (advance()) continue;
}

// What has been averaged.

/// Whether a gradient stands there that no pass has seen.
bool GradientAverage::State::is_new(std::size_t i) const {
  const at::Tensor& gradient = tensors[i].grad();
  return gradient.defined() && !means[i].is_of(gradient);
}

bool GradientAverage::State::are_averaged() const {
  if (rounds->is_open() || !has_passed) return false;
  take_stand_ins();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const at::Tensor& gradient = tensors[i].grad();
    if (!gradient.defined()) continue;
    const bool is_old = tensors[i].requires_grad()
                            ? is_mean[i] != 0 && means[i].is_in(gradient)
                            : !is_new(i);  // what was left there when it was frozen
    if (!is_old) return false;
  }
  return true;
}

// The owner's side.

GradientAverage::GradientAverage(const std::vector<AveragedTensor>& tensors,
                                 const GradientOptions& options, ExchangeRunner& runner,
                                 Seating seating)
    : state_(std::make_shared<State>()) {
  State& state = *state_;
  state.tensors = tensors_of(tensors);
  state.at_end = options.at_end;
  state.stand_ins = options.stand_ins;
  state.means.resize(tensors.size());
  state.is_mean.resize(tensors.size());
  const bool settles = options.lost != nullptr && !options.rounds;
  if (settles && options.collectives->has_come_back()) seating = alone(seating);
  state.rounds.emplace(tensors, options,
                       Averagers{.runner = &runner,
                                 .seating = std::move(seating),
                                 .rounds = options.rounds,
                                 .seated = options.rounds ? options.seated : nullptr,
                                 .lost = options.lost,
                                 .settles = settles ? options.collectives : nullptr});
  const std::weak_ptr<State> weak = state_;
  state.arrivals.emplace(
      state.tensors,
      [weak](std::size_t i) {
        if (const auto alive = weak.lock()) alive->arrive(i, alive);
      },
      [weak](std::size_t i) {
        if (const auto alive = weak.lock()) alive->is_mean[i] = 0;
      });
}

GradientAverage::~GradientAverage() {
  stop();
  state_->rounds.reset();  // what a pass under way holds lives on without the transport
}

void GradientAverage::arrive(std::size_t tensor) { state_->arrive(tensor, state_); }

void GradientAverage::wait_until_given(Deadline deadline) {
  if (state_->rounds) state_->rounds->wait_until_given(deadline);
}

void GradientAverage::stop() {
  if (const auto token = state_->pass.lock()) token->has_ended = true;
  state_->arrivals.reset();
}

void GradientAverage::set_enabled(bool enabled) { state_->enabled = enabled; }

bool GradientAverage::are_averaged() const { return state_->are_averaged(); }

std::vector<at::Tensor> GradientAverage::averaged() const {
  std::vector<at::Tensor> found;
  if (!state_->are_averaged()) return found;
  for (std::size_t i = 0; i < state_->tensors.size(); ++i) {
    if (state_->is_mean[i] != 0) found.push_back(state_->tensors[i]);
  }
  return found;
}

void GradientAverage::take_as_averaged(const std::vector<at::Tensor>& tensors) {
  state_->take_stand_ins();
  for (std::size_t i = 0; i < state_->tensors.size(); ++i) {
    const auto is_it = [&](const at::Tensor& each) { return each.is_same(state_->tensors[i]); };
    if (std::ranges::none_of(tensors, is_it)) continue;
    state_->has_passed = true;
    state_->take(i);
  }
}

void GradientAverage::average_missed() {
  if (!state_->are_averaged()) state_->finish_now();
}

void GradientAverage::end_step() {
  State& state = *state_;
  ++state.steps;
  state.has_passed = false;
  std::ranges::fill(state.is_mean, 0);
  state.arrivals->watch_new();
}

void GradientAverage::pass_without_backward() { state_->finish_now(); }

std::int64_t GradientAverage::passes() const { return state_->rounds->passes(); }

double GradientAverage::exposed_s() const { return state_->rounds->exposed_s(); }

double GradientAverage::hidden_s() const { return state_->rounds->hidden_s(); }

}  // namespace gossamer
