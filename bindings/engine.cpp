#include "bindings/engine.h"

#include <pybind11/functional.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "bindings/process.h"
#include "bindings/signals.h"
#include "bindings/transport.h"
#include "gossamer/base/errors.h"
#include "gossamer/engine/peers.h"
#include "gossamer/engine/roll_call.h"
#include "gossamer/torch/tensors/gradient_average.h"
#include "gossamer/torch/tensors/tensor_engine.h"
#include "gossamer/transport/threads.h"

namespace gossamer::python {
namespace {

using NoGil = py::call_guard<py::gil_scoped_release>;
using NamedTuple = std::tuple<std::string, at::Tensor, int>;

EngineOptions engine_options(Schedule schedule, std::string pattern, std::string optimizer,
                             double timeout_s, bool check_gradients, bool check_payloads,
                             bool in_backward, const std::string& codec, bool skips_late,
                             std::int64_t staleness, bool stagger, const Hyper& hyper) {
  return {.schedule = std::move(schedule),
          .pattern = std::move(pattern),
          .optimizer = std::move(optimizer),
          .groups = {hyper},
          .update = in_backward ? UpdateAt::backward : UpdateAt::step,
          .codec = find_codec(codec),
          .stagger = stagger,
          .late = skips_late ? Late::skip : Late::wait,
          .staleness = staleness,
          .check_gradients = check_gradients,
          .check_payloads = check_payloads,
          .measure_distance = true,
          .timeout_s = timeout_s,
          .while_waiting = raise_signals};
}

/// A TensorEngine with the transport it runs over, which it holds as long as it lives.
class EngineHandle {
 public:
  EngineHandle(const std::shared_ptr<TransportHandle>& transport,
               const std::vector<NamedTuple>& tensors, EngineOptions options,
               std::int64_t bucket_bytes, std::shared_ptr<Recorder> recorder)
      : recorder_(std::move(recorder)) {
    transport_ = transport ? transport->get() : alone();
    roll_call_ = transport ? transport->roll_call() : nullptr;
    std::vector<NamedTensor> named;
    for (const auto& [name, tensor, group] : tensors) named.push_back({name, tensor, group});
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
  ~EngineHandle() {
    const py::gil_scoped_release no_gil;
    close();
  }
  EngineHandle(const EngineHandle&) = delete;
  EngineHandle& operator=(const EngineHandle&) = delete;

  TensorEngine& get() const {
    if (engine_) return *engine_;
    fail_argument({.place = "Gossip",
                   .what = "this Gossip was closed",
                   .remedy = "make a new one, or close it after its last step"});
  }
  Transport& transport() const {
    get();
    return *transport_;
  }
  /// Gradients are averaged in every backward pass from now on.
  void average_gradients(const std::vector<std::pair<std::string, at::Tensor>>& tensors,
                         std::int64_t bucket_bytes, const std::string& codec, bool at_end) {
    Engine& engine = get().engine();
    const Collectives& world = engine.collectives();
    std::vector<AveragedTensor> averaged;
    for (const auto& [name, tensor] : tensors) averaged.push_back({name, tensor});
    gradients_ = std::make_unique<GradientAverage>(
        averaged, GradientOptions{bucket_bytes, find_codec(codec), recorder_.get(), at_end},
        engine.runner(), world.seating());
  }
  GradientAverage* gradients() const { return gradients_.get(); }
  StepReport step(const std::vector<Hyper>& groups, bool skip, double loss) {
    const StepReport report = get().step(groups, skip, loss);
    if (gradients_) gradients_->end_step();
    return report;
  }

  /// Does what no step waits in: what the others have come to meanwhile does not end it.
  template <class Work>
  auto aside(Work work) {
    struct Counted {
      std::atomic<int>& count;
      explicit Counted(std::atomic<int>& of) : count(of) { ++count; }
      ~Counted() { --count; }
    };
    const Counted counted(aside_);
    return work(get());
  }
  /// What all workers say that have come to `what`, by rank, once all have.
  std::vector<py::bytes> call(const std::string& what, const std::string& own);

  void close() {
    if (!home_.is_here()) {
      abandon(gradients_);
      abandon(engine_);
      abandon(roll_call_);
      abandon(transport_);
      return;
    }
    if (gradients_) gradients_->stop();
    engine_.reset();  // its thread may still look at what the averages have
    gradients_.reset();
    roll_call_.reset();
    transport_.reset();
  }

 private:
  static std::shared_ptr<Transport> alone() {
    return std::move(make_threads_transports({.hosts = {{.workers = 1}}})[0]);
  }

  Progress progress() const {
    return {.steps = engine_->engine().steps_done(),
            .passes = gradients_ ? gradients_->passes() : 0};
  }
  /// Now and then while something is waited for; not before the engine is there.
  void look() const {
    if (roll_call_ && engine_) roll_call_->look(progress(), aside_ == 0);
  }

  const HomeProcess home_;
  const std::shared_ptr<Recorder> recorder_;
  std::atomic<int> aside_ = 0;
  std::shared_ptr<Transport> transport_;
  std::shared_ptr<RollCall> roll_call_;
  std::unique_ptr<TensorEngine> engine_;
  std::unique_ptr<GradientAverage> gradients_;
};

std::vector<py::bytes> EngineHandle::call(const std::string& what, const std::string& own) {
  std::vector<std::string> said;
  {
    const py::gil_scoped_release no_gil;
    said = aside([&](TensorEngine& engine) {
      Progress here = progress();
      if (engine.in_step()) ++here.steps;  // the others need not wait for this worker in it
      if (roll_call_) roll_call_->come_to(what, here);
      auto all = engine.engine().collectives().gather(own);
      if (roll_call_) roll_call_->all_have_come();
      return all;
    });
  }
  return {said.begin(), said.end()};
}

void bind_report(py::module_& module) {
  py::class_<StepReport>(module, "StepReport", "What a step did on this worker.")
      .def_readonly("step", &StepReport::step)
      .def_readonly("grad_norm", &StepReport::grad_norm)
      .def_readonly("exposed_s", &StepReport::exposed_s)
      .def_readonly("hidden_s", &StepReport::hidden_s)
      .def_readonly("skipped", &StepReport::skipped)
      .def_readonly("distance", &StepReport::distance);
}

}  // namespace

void bind_engine(py::module_& module) {
  bind_report(module);
  py::class_<EngineOptions>(module, "EngineOptions", "How parameters are mixed and stepped.")
      .def(py::init(&engine_options), py::kw_only(), py::arg("schedule"), py::arg("pattern"),
           py::arg("optimizer"), py::arg("timeout_s"), py::arg("check_gradients"),
           py::arg("check_payloads"), py::arg("in_backward") = false, py::arg("codec") = "fp32",
           py::arg("skips_late") = false, py::arg("staleness") = 1, py::arg("stagger") = true,
           py::arg("hyper"));
  module.def("check_hyper", &check_hyper, py::arg("hyper"),
             "ValueError for a value out of its range.");
  module.def("peers_of", &peers_of, py::arg("options"), py::arg("rank"),
             "The ranks that a worker exchanges anything with, ascending.");
  module.def("can_be_fused", &can_be_fused, py::arg("tensor"),
             "Whether fused optimizers can step this tensor.");
  py::class_<EngineHandle>(module, "Engine",
                           "Mixes and steps tensors; transport None is a worker alone.")
      .def(py::init<std::shared_ptr<TransportHandle>, std::vector<NamedTuple>, EngineOptions,
                    std::int64_t, std::shared_ptr<Recorder>>(),
           py::arg("transport").none(true), py::arg("tensors"), py::arg("options"), py::kw_only(),
           py::arg("bucket_bytes"), py::arg("recorder") = nullptr)
      .def(
          "start", [](EngineHandle& self) { self.aside([](auto& engine) { engine.start(); }); },
          NoGil(), "Checks that all ranks agree, gives everybody rank 0's values. Collective.")
      .def(
          "start_at",
          [](EngineHandle& self, std::int64_t step) {
            self.aside([&](auto& engine) { engine.start_at(step); });
          },
          NoGil(), py::arg("step"),
          "Checks that all ranks agree, goes on after `step` steps with own values. Collective.")
      .def(
          "set_anchors", [](EngineHandle& self) { self.get().set_anchors(); },
          "Before start_at: what the pattern starts phases from is the parameters as they are.")
      .def("step", &EngineHandle::step, NoGil(), py::arg("groups"), py::arg("skip") = false,
           py::arg("loss") = 0.0,
           "Steps every tensor that has a gradient, unless `skip`, and mixes all; `loss` is for "
           "schedules that follow it.")
      .def_property(
          "agreed_losses",
          [](EngineHandle& self) {
            std::vector<std::pair<std::int64_t, double>> losses;
            for (const AgreedLoss& each : self.get().engine().agreed_losses()) {
              losses.emplace_back(each.step, each.loss);
            }
            return losses;
          },
          [](EngineHandle& self, const std::vector<std::pair<std::int64_t, double>>& losses) {
            std::vector<AgreedLoss>& own = self.get().engine().agreed_losses();
            own.clear();
            for (const auto& [step, loss] : losses) own.push_back({step, loss});
          },
          "(step, loss) of what such a schedule has been told so far; set it before start_at.")
      .def(
          "holds",
          [](EngineHandle& self, const std::vector<std::vector<at::Tensor>>& groups) {
            return self.get().holds(groups);
          },
          py::arg("groups"),
          "Whether these are its tensors, by group, as they were; frozen ones do not count.")
      .def(
          "state", [](EngineHandle& self, int i, int k) { return self.get().state(i, k); },
          py::arg("tensor"), py::arg("k"), "State vector k of a tensor, which the engine uses.")
      .def(
          "set_state",
          [](EngineHandle& self, int i, int k, const at::Tensor& values) {
            self.get().set_state(i, k, values);
          },
          py::arg("tensor"), py::arg("k"), py::arg("values"),
          "Uses `values`, or a copy where its dtype or strides differ, as state vector k.")
      .def(
          "reset_state", [](EngineHandle& self, int i) { self.get().reset_state(i); },
          py::arg("tensor"), "Uses new state vectors, of zeros.")
      .def(
          "show_updates",
          [](EngineHandle& self, int i, const at::Tensor& number) {
            self.get().show_updates(i, number);
          },
          py::arg("tensor"), py::arg("number"), "Counts the tensor's steps there from now on.")
      .def(
          "pattern_state",
          [](EngineHandle& self, int i, int k) { return self.get().pattern_state(i, k); },
          py::arg("tensor"), py::arg("k"), "The pattern's state vector k of a tensor: a view.")
      .def(
          "home", [](EngineHandle& self, int i) { return self.get().home(i); }, py::arg("tensor"),
          "What of a tensor was mixed last and travels next: itself, or its wider copy.")
      .def(
          "copy_updates",
          [](EngineHandle& self, const at::Tensor& into) {
            float* updates = into.mutable_data_ptr<float>();
            for (int i = 0; i < self.get().count(); ++i) {
              updates[i] = static_cast<float>(self.get().updates(i));
            }
          },
          py::arg("into"), "Writes how often each tensor has been stepped.")
      .def(
          "set_updates",
          [](EngineHandle& self, int i, std::int64_t t) { self.get().set_updates(i, t); },
          py::arg("tensor"), py::arg("updates"))
      .def_property_readonly("steps_done",
                             [](EngineHandle& self) { return self.get().engine().steps_done(); })
      .def(
          "quiesce",
          [](EngineHandle& self) {
            self.aside([](auto& engine) {
              engine.refuse_in_step("changing or loading parameters");
              engine.engine().quiesce();
            });
          },
          NoGil(), "Waits until everything under way has left and arrived.")
      .def(
          "barrier",
          [](EngineHandle& self) {
            self.aside([](auto& engine) { engine.engine().collectives().barrier(); });
          },
          NoGil())
      .def("call", &EngineHandle::call, py::arg("what"), py::arg("own"),
           "What all ranks say that have come to `what`, once all have. Collective.")
      .def(
          "load_average",
          [](EngineHandle& self) {
            return self.aside([](auto& engine) { return engine.load_average(); });
          },
          NoGil(),
          "Puts the mean over all ranks in place of the local values; returns the disagreement. "
          "Collective.")
      .def(
          "restore_local",
          [](EngineHandle& self) { self.aside([](auto& engine) { engine.restore_local(); }); },
          NoGil())
      .def(
          "broadcast",
          [](EngineHandle& self, const std::vector<at::Tensor>& tensors) {
            self.aside([&](auto& engine) { engine.broadcast(tensors); });
          },
          NoGil(), py::arg("tensors"), "Gives everybody rank 0's values. Collective.")
      .def(
          "average",
          [](EngineHandle& self, const std::vector<at::Tensor>& tensors) {
            self.aside([&](auto& engine) { engine.average(tensors); });
          },
          NoGil(), py::arg("tensors"),
          "Means over all ranks, of floating-point and complex tensors only.")
      .def(
          "edges",
          [](EngineHandle& self) {
            std::vector<std::tuple<int, std::int64_t, std::int64_t>> edges;
            for (const EdgeBytes& edge : self.transport().describe().edges) {
              edges.emplace_back(edge.peer, edge.sent, edge.received);
            }
            return edges;
          },
          "(peer, bytes sent, bytes received) so far.")
      .def("average_gradients", &EngineHandle::average_gradients, py::arg("tensors"),
           py::arg("bucket_bytes"), py::arg("codec") = "fp32", py::arg("at_end") = false,
           "Averages gradients over all ranks in every backward pass from now on.")
      .def(
          "gradients_are_averaged",
          [](EngineHandle& self) {
            return self.gradients() == nullptr || self.gradients()->are_averaged();
          },
          "Whether no gradient is there that `average_missed` would average.")
      .def(
          "average_missed",
          [](EngineHandle& self) {
            if (self.gradients() != nullptr) self.gradients()->average_missed();
          },
          NoGil(), "Averages gradients if some are there that no backward pass has. Collective.")
      .def(
          "set_averaging",
          [](EngineHandle& self, bool enabled) {
            self.get().set_stepping(enabled);
            if (self.gradients() != nullptr) self.gradients()->set_enabled(enabled);
          },
          py::arg("enabled"), "Whether backward passes average gradients, or step with them.")
      .def(
          "watch_gradients",
          [](EngineHandle& self, BeforeBackward before) {
            self.get().watch_gradients(std::move(before));
          },
          py::arg("before_backward") = py::none(),
          "Checks gradients on arrival and, with `in_backward`, steps with them.")
      .def(
          "doubtful_gradients", [](EngineHandle& self) { return self.get().doubtful_gradients(); },
          NoGil(), "Which tensors' gradients are not all finite, or cannot be looked at here.")
      .def_property_readonly(
          "early_buckets", [](EngineHandle& self) { return self.get().early_buckets(); },
          "How many buckets the backward passes of the last step have stepped.")
      .def(
          "pass_without_backward",
          [](EngineHandle& self) {
            if (self.gradients() != nullptr) self.gradients()->pass_without_backward();
          },
          NoGil(), "Averages what stands in `.grad` with the others' backward pass. Collective.")
      .def_property_readonly(
          "gradient_passes",
          [](EngineHandle& self) {
            return self.gradients() == nullptr ? 0 : self.gradients()->passes();
          },
          "How often gradients have been averaged so far.")
      .def_property_readonly(
          "backward_exposed_s",
          [](EngineHandle& self) {
            return self.gradients() == nullptr ? 0.0 : self.gradients()->exposed_s();
          },
          "Seconds that backward passes have waited for other ranks so far.")
      .def_property_readonly(
          "backward_hidden_s",
          [](EngineHandle& self) {
            return self.gradients() == nullptr ? 0.0 : self.gradients()->hidden_s();
          },
          "Seconds in which gradients were under way while backward passes went on.")
      .def("close", &EngineHandle::close, NoGil());
}

}  // namespace gossamer::python
