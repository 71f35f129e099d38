#include "bindings/engine.h"

#include <pybind11/functional.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bindings/arrival.h"
#include "bindings/engine_handle.h"
#include "bindings/signals.h"
#include "bindings/step_report.h"
#include "gossamer/engine/census_steps.h"
#include "gossamer/engine/peers.h"

namespace gossamer::python {
namespace {

using NoGil = py::call_guard<py::gil_scoped_release>;
using EngineClass = py::class_<EngineHandle>;

EngineOptions engine_options(Schedule schedule, std::string pattern, std::string optimizer,
                             double timeout_s, bool check_gradients, bool check_payloads,
                             bool in_backward, const std::string& codec, bool skips_late,
                             std::int64_t staleness, bool stagger, const Hyper& hyper, bool goes_on,
                             int min_workers) {
  return {.schedule = std::move(schedule),
          .pattern = std::move(pattern),
          .optimizer = std::move(optimizer),
          .groups = {hyper},
          .update = in_backward ? UpdateAt::backward : UpdateAt::step,
          .codec = find_codec(codec),
          .stagger = stagger,
          .late = skips_late ? Late::skip : Late::wait,
          .staleness = staleness,
          .lost = goes_on ? Lost::go_on : Lost::error,
          .min_workers = min_workers,
          .check_gradients = check_gradients,
          .check_payloads = check_payloads,
          .measure_distance = true,
          .timeout_s = timeout_s,
          .while_waiting = raise_signals};
}

void bind_options(py::module_& module) {
  py::class_<EngineOptions>(module, "EngineOptions", "How parameters are mixed and stepped.")
      .def(py::init(&engine_options), py::kw_only(), py::arg("schedule"), py::arg("pattern"),
           py::arg("optimizer"), py::arg("timeout_s"), py::arg("check_gradients"),
           py::arg("check_payloads"), py::arg("in_backward") = false, py::arg("codec") = "fp32",
           py::arg("skips_late") = false, py::arg("staleness") = 1, py::arg("stagger") = true,
           py::arg("hyper"), py::arg("goes_on") = false, py::arg("min_workers") = 0);
  module.attr("SUSPECTED_AFTER_S") = kSuspectedAfter.count();
  module.attr("LEAST_SUSPECTED_S") = kLeastSuspected.count();
  module.attr("STEPS_UNTIL_EDGES") = kStepsUntilEdges;
  module.def("check_hyper", &check_hyper, py::arg("hyper"),
             "ValueError for a value out of its range.");
  module.def("peers_of", &peers_of, py::arg("options"), py::arg("rank"),
             "The ranks that a worker exchanges anything with, ascending.");
  module.def("can_be_fused", &can_be_fused, py::arg("tensor"),
             "Whether fused optimizers can step this tensor.");
  module.def(
      "can_pin",
      [](const at::Device& device) {
        std::vector<std::byte> page(1 << 16);
        return PinnedRange(device, page).is_pinned();
      },
      py::arg("device"),
      "Whether a device can copy from and to memory that others read, without waiting.");
}

using Losses = std::vector<std::pair<std::int64_t, double>>;

Losses agreed_losses(const EngineHandle& self) {
  Losses losses;
  for (const AgreedLoss& each : self.get().engine().agreed_losses()) {
    losses.emplace_back(each.step, each.loss);
  }
  return losses;
}

void set_agreed_losses(const EngineHandle& self, const Losses& losses) {
  std::vector<AgreedLoss>& own = self.get().engine().agreed_losses();
  own.clear();
  for (const auto& [step, loss] : losses) own.push_back({step, loss});
}

std::vector<int> waiting_for_state(const EngineHandle& self) {
  Admission* const admission = self.get().engine().admission();
  return admission != nullptr ? admission->waiting_for_state() : std::vector<int>();
}

void give_state(const EngineHandle& self, int rank, const py::bytes& state) {
  Engine& engine = self.get().engine();
  engine.admission()->give_state(rank, engine.steps_done(), state);
}

void bind_life(EngineClass& type) {
  type.def(py::init<OrNone<TransportHandle>, std::vector<EngineHandle::Parameter>, EngineOptions,
                    std::int64_t, OrNone<Recorder>, std::vector<EngineHandle::Beside>>(),
           py::arg("transport"), py::arg("tensors"), py::arg("options"), py::kw_only(),
           py::arg("bucket_bytes"), py::arg("recorder") = py::none(),
           py::arg("beside") = std::vector<EngineHandle::Beside>{})
      .def(
          "start", [](EngineHandle& self) { self.aside([](auto& engine) { engine.start(); }); },
          NoGil(), "Checks that all ranks agree, gives everybody rank 0's values. Collective.")
      .def(
          "start_at",
          [](EngineHandle& self, std::int64_t step) {
            self.aside([&](auto& engine) { engine.start_at(step); });
          },
          NoGil(), py::arg("step"),
          "Checks that all ranks agree, goes on after ``step`` steps with own values. Collective.")
      .def(
          "start_back",
          [](EngineHandle& self, ArrivalHandle& arrival) {
            self.aside([&](auto& engine) { engine.start_back(arrival.get()); });
          },
          NoGil(), py::arg("arrival"),
          "Of a worker that comes back: agrees with the others on the step to begin with.")
      .def_property_readonly("waiting_for_state", &waiting_for_state,
                             "Ranks that come back and ask this one for ``give_state``.")
      .def("give_state", &give_state, py::arg("rank"), py::arg("state"),
           "The state after the last step, which leaves beside the next ones.")
      .def(
          "set_anchors", [](EngineHandle& self) { self.get().set_anchors(); },
          "Before start_at: what the pattern starts phases from is the parameters as they are.")
      .def_property("agreed_losses", &agreed_losses, &set_agreed_losses, R"(
        (step, loss) of what a schedule that follows the loss has been told so far; set it before
        ``start_at``.)")
      .def("step", &EngineHandle::step, NoGil(), py::arg("groups"), py::arg("skip") = false,
           py::arg("loss") = 0.0, R"(
        Steps every tensor that has a gradient, unless ``skip``, and mixes all; ``loss`` is for
        schedules that follow it.)")
      .def_property_readonly(
          "steps_done", [](EngineHandle& self) { return self.get().engine().steps_done(); },
          "Steps since ``start``, or since step 0 before ``start_at``.")
      .def(
          "quiesce",
          [](EngineHandle& self) {
            self.aside([](auto& engine) {
              engine.refuse_in_step("changing or loading parameters");
              engine.engine().quiesce();
            });
          },
          NoGil(), "Waits until everything under way has left and arrived.")
      .def("close", &EngineHandle::close, py::arg("gives_for_s") = 0, NoGil(),
           R"(Ends gossiping; everything else is refused from then on.

``gives_for_s``: once the others have what this worker sent in steps that are done, or
after so many seconds.)");
}

void bind_tensors(EngineClass& type) {
  type.def(
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
          "pattern_state",
          [](EngineHandle& self, int i, int k) { return self.get().pattern_state(i, k); },
          py::arg("tensor"), py::arg("k"),
          "The pattern's state vector k of a tensor: a view, in the dtype in which it is mixed.")
      .def(
          "home", [](EngineHandle& self, int i) { return self.get().home(i); }, py::arg("tensor"),
          "What of a tensor was mixed last and travels next: itself, or its wider copy.")
      .def(
          "set_home",
          [](EngineHandle& self, int i, const at::Tensor& values) {
            self.get().set_home(i, values);
          },
          py::arg("tensor"), py::arg("values"), "Makes `values` the home of what it holds now.")
      .def(
          "show_updates",
          [](EngineHandle& self, int i, const at::Tensor& number) {
            self.get().show_updates(i, number);
          },
          py::arg("tensor"), py::arg("number"), "Counts the tensor's steps there from now on.")
      .def(
          "copy_updates",
          [](EngineHandle& self, const at::Tensor& into) {
            float* updates = into.mutable_data_ptr<float>();
            for (int i = 0; i < std::min<std::int64_t>(into.numel(), self.get().count()); ++i) {
              updates[i] = static_cast<float>(self.get().updates(i));
            }
          },
          py::arg("into"),
          R"(
        Writes how often each of the first tensors has been stepped, into a contiguous float32
        tensor of as many.)")
      .def(
          "set_updates",
          [](EngineHandle& self, int i, std::int64_t t) { self.get().set_updates(i, t); },
          py::arg("tensor"), py::arg("updates"), "Says how often a tensor has been stepped.");
}

void bind_collectives(EngineClass& type) {
  type.def(
          "barrier",
          [](EngineHandle& self) {
            self.aside([](auto& engine) { engine.engine().collectives().barrier(); });
          },
          NoGil(), "Waits for all ranks.")
      .def("call", &EngineHandle::call, py::arg("what"), py::arg("own"), R"(
        What all ranks say that have come to ``what``, once all have. Collective.

        ValueError where a peer waits in a step that this rank has not done, or the other way round.
        )")
      .def(
          "load_average",
          [](EngineHandle& self) {
            return self.aside([](auto& engine) { return engine.load_average(); });
          },
          NoGil(), R"(
        Puts the mean over all ranks in place of the local values; returns the disagreement.

        Collective.
        )")
      .def(
          "restore_local",
          [](EngineHandle& self) { self.aside([](auto& engine) { engine.restore_local(); }); },
          NoGil(), "Puts the local values back after ``load_average``.")
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
          "Means over all ranks, of floating-point and complex tensors only. Collective.")
      .def(
          "edges",
          [](EngineHandle& self) {
            std::vector<std::tuple<int, std::int64_t, std::int64_t>> edges;
            for (const EdgeBytes& edge : self.transport().describe().edges) {
              edges.emplace_back(edge.peer, edge.sent, edge.received);
            }
            return edges;
          },
          "(peer, bytes sent, bytes received) so far.");
}

void bind_gradients(EngineClass& type) {
  using OnPass = std::optional<std::function<void()>>;
  using OrNoTensors = std::optional<decltype(ReplicaState::tensors)>;
  using OrTook = std::optional<decltype(ReplicaState::took)>;
  type.def(
          "average_gradients",
          [](EngineHandle& self, const std::vector<std::pair<std::string, at::Tensor>>& tensors,
             std::int64_t bucket_bytes, const std::string& codec, bool at_end,
             std::optional<Schedule> rounds, bool stagger, OnPass take, OnPass give,
             OrNoTensors replica, OrTook took) {
            self.average_gradients(tensors, bucket_bytes, codec, at_end, std::move(rounds), stagger,
                                   {.take = std::move(take).value_or(nullptr),
                                    .give = std::move(give).value_or(nullptr)},
                                   {.tensors = std::move(replica).value_or(nullptr),
                                    .took = std::move(took).value_or(nullptr)});
          },
          py::arg("tensors"), py::arg("bucket_bytes"), py::arg("codec") = "fp32",
          py::arg("at_end") = false, py::arg("rounds") = py::none(), py::arg("stagger") = false,
          py::arg("take") = py::none(), py::arg("give") = py::none(),
          py::arg("replica") = py::none(), py::arg("took") = py::none(), R"(
        Averages the tensors' gradients in every backward pass from now on.

        They are averaged over all ranks, or with the weights of ``rounds``: those of the step that
        follows, with ``stagger`` a round later in each bucket.

        ``at_end``: they may change until the pass ends, as DistributedDataParallel changes them.

        Tensors may stand for others: ``take`` is called before their gradients are looked at,
        ``give`` when the means are in ``.grad``, and ``gradient_arrived`` says what arrives.

        Where others go on without a lost rank, ``replica`` gives all tensors that are equal on all
        ranks, and ``took`` is called with them once another rank's values have been written there.
        )")
      .def(
          "gradient_arrived",
          [](EngineHandle& self, std::size_t tensor) {
            if (self.gradients() != nullptr) self.gradients()->arrive(tensor);
          },
          py::arg("tensor"), NoGil(),
          "The gradient of one of the averaged tensors has been written, in a backward pass.")
      .def(
          "gradients_are_averaged",
          [](EngineHandle& self) {
            return self.gradients() == nullptr || self.gradients()->are_averaged();
          },
          "Whether no gradient is there that ``average_missed`` would average.")
      .def(
          "averaged_gradients",
          [](EngineHandle& self) {
            const GradientAverage* const gradients = self.gradients();
            return gradients == nullptr ? std::vector<at::Tensor>() : gradients->averaged();
          },
          "The tensors whose gradients have been averaged, if all have been that are there.")
      .def(
          "take_as_averaged",
          [](EngineHandle& self, const std::vector<at::Tensor>& tensors) {
            if (self.gradients() != nullptr) self.gradients()->take_as_averaged(tensors);
          },
          py::arg("tensors"), "The gradients of these have been, by an engine before this one.")
      .def(
          "average_missed",
          [](EngineHandle& self) {
            if (self.gradients() != nullptr) self.gradients()->average_missed();
          },
          NoGil(),
          "Averages gradients if some are there that no backward pass has averaged. Collective.")
      .def(
          "pass_without_backward",
          [](EngineHandle& self) {
            if (self.gradients() != nullptr) self.gradients()->pass_without_backward();
          },
          NoGil(), R"(
        Takes part in a backward pass of the others with what stands in ``.grad``. Collective.)")
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
          "Seconds in which gradients were under way while backward passes went on.");
}

void bind_backward(EngineClass& type) {
  type.def(
          "set_averaging",
          [](EngineHandle& self, bool enabled) {
            self.get().set_stepping(enabled);
            if (self.gradients() != nullptr) self.gradients()->set_enabled(enabled);
          },
          py::arg("enabled"), "Whether backward passes average gradients, or step with them.")
      .def(
          "watch_gradients",
          [](EngineHandle& self, std::optional<BeforeBackward> before) {
            self.get().watch_gradients(std::move(before).value_or(nullptr));
          },
          py::arg("before_backward") = py::none(), R"(
        Checks gradients on arrival and, with ``in_backward``, steps with them.

        ``before_backward`` gives the groups to step with, or None to leave all to ``step``.
        )")
      .def(
          "doubtful_gradients", [](EngineHandle& self) { return self.get().doubtful_gradients(); },
          NoGil(), "Which tensors' gradients are not all finite, or cannot be looked at here.")
      .def_property_readonly(
          "early_buckets", [](EngineHandle& self) { return self.get().early_buckets(); },
          "How many buckets the backward passes of the last step have stepped.");
}

}  // namespace

void bind_engine(py::module_& module) {
  bind_report(module);
  bind_options(module);
  EngineClass engine(module, "Engine", R"(
    Mixes and steps tensors, given as (name, tensor, parameter group); transport None is a worker
    alone. ValueError after ``close``, TransportError where another worker is lost.)");
  bind_life(engine);
  bind_tensors(engine);
  bind_collectives(engine);
  bind_gradients(engine);
  bind_backward(engine);
}

}  // namespace gossamer::python
