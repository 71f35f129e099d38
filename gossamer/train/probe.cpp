#include "gossamer/train/probe.h"

#include <torch/nn/module.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "gossamer/engine/tags.h"
#include "gossamer/model/link_load.h"
#include "gossamer/probe/compute.h"
#include "gossamer/probe/links.h"
#include "gossamer/torch/devices/device_link.h"
#include "gossamer/torch/process.h"
#include "gossamer/train/trainer.h"
#include "gossamer/transport/threads.h"

namespace gossamer {
namespace {

// Collectives of engines on the same transport count from 0.
constexpr std::int64_t kProbeWarmUp = 3;
constexpr std::int64_t kLeastSteps = 8;
constexpr std::int64_t kMostSteps = 60;
constexpr double kLongEnough_s = 8;

double seconds_of(const TimelineEvent& event) {
  return std::chrono::duration<double>(event.end - event.begin).count();
}

std::vector<TimedStep> timed_steps(const Records& records) {
  std::map<std::int64_t, TimedStep> steps;
  for (const TimelineEvent& event : records.work) {
    TimedStep& step = steps[event.step];
    switch (event.kind) {
      case TimelineEvent::Kind::forward:
        step.forward_s += seconds_of(event);
        break;
      case TimelineEvent::Kind::backward:
        step.backward_s += seconds_of(event);
        break;
      case TimelineEvent::Kind::update:
        step.update_s += seconds_of(event);
        break;
      default:
        break;
    }
  }
  std::vector<TimedStep> result;
  for (const auto& [number, step] : steps) {
    if (step.backward_s > 0 && step.update_s > 0) result.push_back(step);
  }
  return result;
}

/// This worker alone, training while all others do the same.
class LoneWorker {
 public:
  LoneWorker(const TrainContext& context, Collectives& collectives)
      : context_(context),
        collectives_(collectives),
        shard_{collectives.rank(), collectives.workers()},
        recipe_(alone(*context.recipe)),
        recorder_(collectives.rank(), kMostSteps),
        transports_(make_threads_transports({.hosts = {HostSpec{}}})),
        trainer_(make_trainer()) {
    trainer_->tensors().start();
  }

  /// Seconds per step.
  double run(std::int64_t steps) {
    collectives_.barrier();
    const auto begin = Clock::now();
    recorder_.resume();
    for (std::int64_t k = 0; k < steps; ++k) {
      if (context_.stop != nullptr && *context_.stop) throw Interrupted("interrupted");
      step();
    }
    double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    collectives_.mean({&seconds, 1});
    return seconds / static_cast<double>(steps);
  }

  std::vector<TimedStep> last(std::int64_t steps) const {
    const std::vector<TimedStep> all =
        trainer_->device().is_cpu() ? timed_steps(recorder_.records()) : timed_;
    return {all.end() - std::min<std::ptrdiff_t>(steps, std::ssize(all)), all.end()};
  }

  /// Of this worker's device, while all measure.
  LinkSpec device_link() const {
    const c10::Device& device = trainer_->device();
    return device.is_cpu() ? LinkSpec{} : link_spec_of(measure_device_link(device));
  }

  std::vector<std::int64_t> bucket_sizes() const {
    return gossamer::bucket_sizes(trainer_->tensors().layout());
  }

 private:
  static Recipe alone(Recipe recipe) {
    recipe.algorithm.topology = "complete";
    recipe.algorithm.pattern = &find_pattern("cwa");
    recipe.algorithm.update = UpdateAt::step;
    recipe.algorithm.codec = Codec::fp32;
    recipe.algorithm.late = Late::wait;
    return recipe;
  }

  void step() {
    if (!trainer_->device().is_cpu()) return step_by_parts();
    trainer_->step(*context_.task, shard_, groups_);
  }

  /// With a wait for the device behind each part: the recorder sees what the host does.
  void step_by_parts() {
    auto begin = Clock::now();
    const auto part_s = [&] {
      trainer_->wait_for_device();
      const auto end = Clock::now();
      return std::chrono::duration<double>(end - std::exchange(begin, end)).count();
    };
    TimedStep timed;
    const at::Tensor loss = trainer_->forward(*context_.task, shard_);
    timed.forward_s = part_s();
    trainer_->backward(loss);
    timed.backward_s = part_s();
    trainer_->update(groups_, loss);
    timed.update_s = part_s();
    timed_.push_back(timed);
  }

  std::unique_ptr<Trainer> make_trainer() {
    const HostShape shape = host_shape_of(context_.recipe->cluster);
    TrainModel model =
        make_train_model(recipe_, *context_.task, shape.local_rank_of(collectives_.rank()));
    TensorEngineOptions told = options(model);
    groups_ = told.engine.groups;
    return std::make_unique<Trainer>(recipe_, std::move(model), std::move(told),
                                     *transports_.front());
  }

  TensorEngineOptions options(const TrainModel& model) {
    Recipe recipe = recipe_;
    recipe.cluster.hosts = 1;
    recipe.cluster.per_host = "1";
    AlgorithmSection& algorithm = recipe.algorithm;
    algorithm.local_steps = algorithm.global_average = algorithm.adaptive_average = 0;
    TensorEngineOptions result = engine_options(recipe, model);
    result.engine.schedule = alone_schedule(even_hosts(1, 1));
    result.engine.recorder = &recorder_;
    return result;
  }

  const TrainContext& context_;
  Collectives& collectives_;
  const Shard shard_;
  const Recipe recipe_;
  Recorder recorder_;
  std::vector<std::unique_ptr<Transport>> transports_;
  std::vector<Hyper> groups_;
  const std::unique_ptr<Trainer> trainer_;
  std::vector<TimedStep> timed_;  ///< on a device
};

}  // namespace

ProbedJob probe_worker(const TrainContext& context, Transport& transport) {
  use_one_torch_thread();
  const Recipe& recipe = *context.recipe;
  const TransportInfo info = transport.describe();
  ExchangeRunner runner(transport, recipe.run.timeout_s, [&context] {
    if (context.stop != nullptr && *context.stop) throw Interrupted("interrupted");
  });
  Collectives collectives(runner, {host_shape_of(recipe.cluster), info.rank}, kFirstCallOfProbe);
  const double overhead = info.name == "threads" ? 1 : kEthernetOverhead;
  ProbedJob job;
  job.cluster.cluster = probe_links(runner, collectives, {.overhead = overhead});

  LoneWorker worker(context, collectives);
  worker.run(kProbeWarmUp);
  const double rough_s = worker.run(kProbeWarmUp);
  const auto steps =
      std::clamp(static_cast<std::int64_t>(kLongEnough_s / rough_s), kLeastSteps, kMostSteps);
  worker.run(steps);
  collectives.barrier();
  merge_devices(collectives, worker.device_link(), job.cluster.cluster);
  const ProbedCompute compute = merge_steps(collectives, worker.last(steps));
  job.cluster.speeds = compute.speeds;
  job.workload.workload = {.buckets = worker.bucket_sizes(),
                           .compute = compute.times,
                           .forward_share = compute.forward_share,
                           .update_s = compute.update_s};
  job.workload.target.steps = recipe.run.steps;
  job.workload.target.global_batch = static_cast<double>(recipe.data.global_batch);
  job.workload.target.optimizer = recipe.optimizer.optimizer->name;
  return job;
}

}  // namespace gossamer
