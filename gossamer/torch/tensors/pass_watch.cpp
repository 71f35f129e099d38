#include "gossamer/torch/tensors/pass_watch.h"

#include <torch/csrc/autograd/engine.h>

#include <utility>

namespace gossamer {

using Kind = TimelineEvent::Kind;

struct PassWatch::State {
  Recorder* recorder = nullptr;
  bool in_pass = false;
  bool has_passed = false;  ///< a pass has begun since the last step

  void begin_pass(const std::shared_ptr<State>& self) {
    in_pass = has_passed = true;
    recorder->did(Kind::forward);
    const auto end = [weak = std::weak_ptr(self)] {
      if (const auto alive = weak.lock()) alive->end_pass();
    };
    torch::autograd::Engine::get_default_engine().queue_callback(end);
  }
  void end_pass() {
    if (!std::exchange(in_pass, false)) return;
    recorder->did(Kind::backward);
  }
};

PassWatch::PassWatch(std::vector<at::Tensor> tensors, Recorder& recorder)
    : state_(std::make_shared<State>()),
      arrivals_(std::move(tensors), [weak = std::weak_ptr(state_)](std::size_t) {
        const auto alive = weak.lock();
        if (alive && !alive->in_pass) alive->begin_pass(alive);
      }) {
  state_->recorder = &recorder;
}

void PassWatch::begin_update() {
  state_->end_pass();  // one that failed has not come to its end
  state_->recorder->did(state_->has_passed ? Kind::update : Kind::forward);
}

void PassWatch::end_update() {
  state_->has_passed = false;
  arrivals_.watch_new();
}

}  // namespace gossamer
