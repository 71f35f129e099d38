#include "bindings/engine_handle.h"

#include <algorithm>

#include "gossamer/base/errors.h"
#include "gossamer/transport/threads.h"

namespace gossamer::python {
namespace {

std::shared_ptr<Transport> transport_of_one_worker() {
  return std::move(make_threads_transports({.hosts = {{.workers = 1}}})[0]);
}

}  // namespace

EngineHandle::EngineHandle(const OrNone<TransportHandle>& transport,
                           const std::vector<Parameter>& tensors, EngineOptions options,
                           std::int64_t bucket_bytes, OrNone<Recorder> recorder,
                           const std::vector<Beside>& beside)
    : recorder_(std::move(recorder).value_or(nullptr)) {
  transport_ = transport ? (*transport)->get() : transport_of_one_worker();
  roll_call_ = transport ? (*transport)->roll_call() : nullptr;
  std::vector<NamedTensor> named;
  for (const auto& [name, tensor, group] : tensors) named.push_back({name, tensor, group});
  for (const auto& [name, tensor, every] : beside) {
    named.push_back({.name = name, .tensor = tensor, .beside_every = every});
  }
  options.recorder = recorder_.get();
  options.while_waiting = [this, before = std::move(options.while_waiting)] {
    if (before) before();
    look();
  };
  const int period = static_cast<int>(std::max<std::int64_t>(options.schedule.period, 1));
  LayoutOptions layout{.bucket_bytes = bucket_bytes, .min_buckets = 1};
  layout.bucket_multiple = std::min(period, 16);
  engine_ = std::make_unique<TensorEngine>(
      std::move(named), TensorEngineOptions{std::move(options), layout}, *transport_);
}

EngineHandle::~EngineHandle() {
  const py::gil_scoped_release no_gil;
  close();
}

TensorEngine& EngineHandle::get() const {
  if (engine_) return *engine_;
  fail_argument({.place = "Gossip",
                 .what = "this Gossip was closed",
                 .remedy = "make a new one, or close it after its last step"});
}

Transport& EngineHandle::transport() const {
  get();
  return *transport_;
}

void EngineHandle::average_gradients(const std::vector<std::pair<std::string, at::Tensor>>& tensors,
                                     std::int64_t bucket_bytes, const std::string& codec,
                                     bool at_end, std::optional<Schedule> rounds, bool staggers,
                                     StandIns stand_ins, ReplicaState replica) {
  Engine& engine = get().engine();
  Collectives& world = engine.collectives();
  std::vector<AveragedTensor> averaged;
  for (const auto& [name, tensor] : tensors) averaged.push_back({name, tensor});
  gradients_ = std::make_unique<GradientAverage>(averaged,
                                                 GradientOptions{.bucket_bytes = bucket_bytes,
                                                                 .codec = find_codec(codec),
                                                                 .recorder = recorder_.get(),
                                                                 .rounds = std::move(rounds),
                                                                 .first_round = engine.steps_done(),
                                                                 .staggers = staggers,
                                                                 .seated = &engine.seating(),
                                                                 .lost = engine.lost(),
                                                                 .collectives = &world,
                                                                 .replica = std::move(replica),
                                                                 .at_end = at_end,
                                                                 .stand_ins = std::move(stand_ins)},
                                                 engine.runner(), world.seating());
}

StepReport EngineHandle::step(const std::vector<Hyper>& groups, bool skip, double loss) {
  const StepReport report = get().step(groups, skip, loss);
  if (gradients_) gradients_->end_step();
  return report;
}

std::vector<py::bytes> EngineHandle::call(const std::string& what, const py::bytes& own) {
  const std::string words = own;
  std::vector<std::string> said;
  {
    const py::gil_scoped_release no_gil;
    said = aside([&](TensorEngine& engine) {
      Progress here = progress();
      if (engine.in_step()) ++here.steps;  // the others need not wait for this worker in it
      if (roll_call_) roll_call_->come_to(what, here);
      auto all = engine.engine().collectives().gather(words);
      if (roll_call_) roll_call_->all_have_come();
      return all;
    });
  }
  return {said.begin(), said.end()};
}

void EngineHandle::close(double gives_for_s) {
  if (!home_.is_here()) {
    abandon(gradients_);
    abandon(engine_);
    abandon(roll_call_);
    abandon(transport_);
    return;
  }
  if (gives_for_s > 0 && engine_) {
    const Deadline deadline = deadline_after(gives_for_s);
    engine_->engine().wait_until_given(deadline);
    if (gradients_) gradients_->wait_until_given(deadline);
  }
  if (gradients_) gradients_->stop();
  engine_.reset();  // its thread may still look at what the averages have
  gradients_.reset();
  roll_call_.reset();
  transport_.reset();
}

Progress EngineHandle::progress() const {
  return {.steps = engine_->engine().steps_done(), .passes = gradients_ ? gradients_->passes() : 0};
}

void EngineHandle::look() const {
  if (roll_call_ && engine_) roll_call_->look(progress(), aside_ == 0);
}

}  // namespace gossamer::python
