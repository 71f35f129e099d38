#include "gossamer/train/worker.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <torch/nn/module.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "gossamer/base/errors.h"
#include "gossamer/base/index.h"
#include "gossamer/base/outside_error.h"
#include "gossamer/engine/exchange.h"
#include "gossamer/engine/stop_agreement.h"
#include "gossamer/torch/devices/places.h"
#include "gossamer/torch/process.h"
#include "gossamer/train/checkpoint.h"
#include "gossamer/train/handing_over.h"
#include "gossamer/train/metrics.h"
#include "gossamer/train/model.h"
#include "gossamer/train/model_file.h"
#include "gossamer/train/say_changes.h"
#include "gossamer/train/timed_part.h"
#include "gossamer/train/trainer.h"

namespace gossamer {
namespace {

double seconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

/// Where more workers compute than there are cores, the threads that exchange must not queue behind
/// them: this thread, which computes, lowers its own priority; those it has started keep theirs.
void let_exchanges_go_first() {
  constexpr int kLower = 10;
  const auto self = static_cast<id_t>(::syscall(SYS_gettid));
  ::setpriority(PRIO_PROCESS, self, kLower);
}

/// What the line of a step says beside loss and norm.
struct OpenLine {
  double lr = 0;
  double step_s = 0;
  std::int64_t samples = 0;
  double exposed_s = 0;
  double distance = 0;
  std::vector<int> lost;
  std::vector<int> among;  ///< as in StepReport
};

void warn_of_shared_device(const c10::Device& device, int local_rank) {
  if (device.is_cpu() || local_rank == 0) return;
  const int count = count_devices(device.type());
  if (local_rank < count) return;
  std::fprintf(stderr,
               "gossamer: worker %d of its host shares %s with another one, of %d there are: start "
               "one worker per device\n",
               local_rank, device.str().c_str(), count);
}

std::optional<double> perplexity_of(InputKind kind, const Evaluation& evaluation) {
  if (kind == InputKind::images) return std::nullopt;
  return std::exp(evaluation.mean_loss());
}

class Worker {
 public:
  Worker(const TrainContext& context, Transport& transport)
      : context_(context),
        recipe_(*context.recipe),
        transport_(transport),
        shape_(host_shape_of(recipe_.cluster)),
        rank_(transport.describe().rank),
        recorder_(context.trace == nullptr ? nullptr : context.trace->recorder(rank_)),
        agreement_(context.preempted == nullptr
                       ? nullptr
                       : std::make_unique<StopAgreement>(transport, 0, recipe_.algorithm.lost)),
        trainer_(make_trainer()),
        tensors_(trainer_->tensors()),
        engine_(trainer_->engine()),
        groups_(engine_.groups().begin(), engine_.groups().end()) {
    if (update_of(method_of(recipe_.algorithm, recipe_.run.seed)) == UpdateAt::backward) {
      tensors_.watch_gradients([this] { return groups_; });
    }
  }

  TrainSummary run() {
    if (context_.back == nullptr) {
      begin();
      start_clock();
    } else {
      begin_back(*context_.back);
      reset_clock();
    }
    while (engine_.steps_done() < recipe_.run.steps) {
      if (agreement_) stop_where_agreed();
      train_step();
      give_state();
      const std::int64_t done = engine_.steps_done();
      if (done == began_ + warm_up_steps()) start_clock();
      if (due(recipe_.run.checkpoint_every)) pause([&] { save(); });
      if (due(recipe_.run.evaluate_every) && done < recipe_.run.steps)
        pause([&] { report(evaluate_mean()); });
    }
    stop_clock();
    if (recipe_.run.checkpoint_every > 0 && !due(recipe_.run.checkpoint_every)) save();
    const Evaluation evaluation = evaluate_mean();
    report(evaluation);
    return summary(evaluation);
  }

 private:
  std::unique_ptr<Trainer> make_trainer() {
    const int local_rank = shape_.local_rank_of(rank_);
    TrainModel model = make_train_model(recipe_, *context_.task, local_rank);
    TensorEngineOptions options = engine_options(recipe_, model);
    options.engine.recorder = recorder_;
    options.engine.while_waiting = [this] { look(); };
    warn_of_shared_device(model.device, local_rank);
    return std::make_unique<Trainer>(recipe_, std::move(model), std::move(options), transport_);
  }

  void begin() {
    if (context_.resume) {
      load_checkpoint(saved_run(), *trainer_);
    } else {
      tensors_.broadcast(trainer_->module_tensors().others);
      tensors_.start();
    }
    began_ = engine_.steps_done();
    metrics_ = MetricsFile(context_.out, rank_, began_);
    if (recorder_ != nullptr) share_start(*recorder_, engine_.collectives());
  }

  /// In a step that the others have yet to begin.
  void begin_back(ComingBack& back) {
    began_ = take_state(saved_run(), *trainer_, back.state);
    back.state.clear();
    try {
      tensors_.start_back(back.arrival);
    } catch (const TransportError& error) {
      throw StartMissed(error.details());
    }
    back.on_start();
    metrics_ = MetricsFile(context_.out, rank_, engine_.steps_done());
  }

  /// To those that come back and wait for it.
  void give_state() {
    if (engine_.admission() == nullptr) return;
    const std::vector<int> guests = engine_.admission()->waiting_for_state();
    if (guests.empty()) return;
    std::string state;
    try {
      state = packed_state(saved_run(), *trainer_, began_);
    } catch (const IoError& error) {  // it can ask elsewhere
      std::fprintf(stderr, "gossamer: worker %d has no state for one that comes back: %s\n", rank_,
                   error.what());
    }
    for (const int guest : guests) {
      engine_.admission()->give_state(guest, engine_.steps_done(), state);
    }
  }

  /// Who took part in the last collective; with Lost::go_on those that were left.
  std::vector<int> left() const { return engine_.collectives().took_part(); }
  /// For all of them.
  bool speaks() const { return left().front() == rank_; }

  /// The first steps pay for allocations and caches; they are not timed where there are others.
  std::int64_t warm_up_steps() const {
    return std::min<std::int64_t>(3, (recipe_.run.steps - began_) / 4);
  }

  bool due(std::int64_t every) const { return every > 0 && engine_.steps_done() % every == 0; }

  void train_step() {
    if (context_.stop != nullptr && *context_.stop) {
      throw Interrupted("interrupted after step " + std::to_string(engine_.steps_done()));
    }
    const auto begin = Clock::now();
    const double factor = lr_factor(recipe_.optimizer, recipe_.run, engine_.steps_done() + 1);
    const double lr = recipe_.optimizer.hyper.lr * factor;
    for (Hyper& hyper : groups_) {
      hyper.lr = lr;
      hyper.consensus = consensus_factor(recipe_.algorithm, factor);
    }
    const double exposed_before_s = trainer_->exposed_s();
    const StepReport report = trainer_->step(*context_.task, {rank_, shape_.workers()}, groups_);
    open_.push_back({.lr = lr,
                     .step_s = seconds_between(begin, Clock::now()),
                     .samples = trainer_->samples(),
                     .exposed_s = trainer_->exposed_s() - exposed_before_s,
                     .distance = report.distance,
                     .lost = say_changes(rank_, report),
                     .among = report.among});
    write_known(false);
  }

  /// The lines of steps whose loss is known, on a device some steps late.
  void write_known(bool waits) {
    for (const StepValues& values : trainer_->known(waits)) {
      const OpenLine line = std::move(open_.front());
      open_.pop_front();
      recent_loss_ = recent_loss_ == 0 ? values.loss : 0.9 * recent_loss_ + 0.1 * values.loss;
      Json written = {{"step", values.step},
                      {"loss", values.loss},
                      {"lr", line.lr},
                      {"step_ms", 1e3 * line.step_s},
                      {"samples", line.samples},
                      {"samples_per_s", static_cast<double>(line.samples) / line.step_s},
                      {"exposed_ms", 1e3 * line.exposed_s},
                      {"grad_norm", values.grad_norm},
                      {"mixing_distance", line.distance}};
      if (!line.lost.empty()) written["lost"] = line.lost;
      if (!line.among.empty()) written["among"] = line.among;
      metrics_.write(written);
      if (speaks() && context_.progress) context_.progress(values.step, recent_loss_, line.step_s);
    }
  }

  // The clock runs while all train; it starts and stops when everything sent has arrived.

  void start_clock() {
    write_known(true);
    engine_.quiesce();
    engine_.collectives().barrier();
    reset_clock();
  }

  void reset_clock() {
    timed_.reset(engine_.steps_done(), trainer_->exposed_s());
    if (recorder_ != nullptr) recorder_->resume();
  }

  void stop_clock() {
    write_known(true);
    trainer_->wait_for_device();
    engine_.quiesce();
    engine_.collectives().barrier();
    timed_.pause();
  }

  // See Note [Who stops when].

  void look() {
    if (agreement_) agreement_->look(*context_.preempted);
  }

  /// Returns where another step may begin.
  void stop_where_agreed() {
    const std::int64_t done = engine_.steps_done();
    const Deadline limit = deadline_after(recipe_.run.timeout_s);
    const auto give_up = [&] {
      if (Clock::now() <= limit && (context_.stop == nullptr || !*context_.stop)) return;
      throw Interrupted("interrupted after step " + std::to_string(done), agreement_->signal());
    };
    if (!agreement_->is_last(done, *context_.preempted, give_up)) return;
    if (!due(recipe_.run.checkpoint_every)) pause([&] { save(); });
    const std::string saved = is_save_missing_ ? "stopped" : "stopped and saved";
    throw Interrupted(saved + " after step " + std::to_string(done), agreement_->signal());
  }

  template <class Work>
  void pause(const Work& work) {
    stop_clock();
    work();
    engine_.collectives().barrier();
    timed_.resume();
    if (recorder_ != nullptr) recorder_->resume();
  }

  TrainedRun saved_run() const {
    return {context_.out, recipe_, context_.task->content, context_.lock, context_.job};
  }

  /// A disk that fails once does not end the run; it is over where a second save in a row fails, or
  /// the last one.
  void save() {
    const std::int64_t done = engine_.steps_done();
    const std::string problem = save_checkpoint(saved_run(), *trainer_);
    if (!problem.empty() && (is_save_missing_ || done >= recipe_.run.steps))
      throw OutsideError(problem);
    is_save_missing_ = !problem.empty();
    if (!is_save_missing_ || !speaks()) return;
    const std::int64_t next = std::min(done + recipe_.run.checkpoint_every, recipe_.run.steps);
    std::fprintf(
        stderr,
        "gossamer: step %lld is not saved: %s. The run goes on with the checkpoint before, "
        "and saves again after step %lld\n",
        static_cast<long long>(done), problem.c_str(), static_cast<long long>(next));
  }

  /// Runs `work` on the mean of all workers' parameters and buffers, and brings the local ones
  /// back.
  template <class Work>
  void with_mean(const Work& work) {
    const std::vector<at::Tensor> buffers = floating_buffers(*trainer_->model().module);
    std::vector<at::Tensor> local;
    for (const at::Tensor& buffer : buffers) local.push_back(buffer.clone());
    disagreement_ = tensors_.load_average();
    tensors_.average(buffers);
    work();
    for (std::size_t i = 0; i < buffers.size(); ++i) buffers[i].copy_(local[i]);
    tensors_.restore_local();
  }

  /// Validates the mean model, each worker on its share of the batches. That of one that is lost
  /// meanwhile is missing.
  Evaluation evaluate_mean() {
    Evaluation own;
    with_mean([&] {
      const std::vector<int> ranks = left();
      const auto place = std::ranges::find(ranks, rank_) - ranks.begin();
      for (std::size_t k = at(place); k < context_.task->validation.size(); k += ranks.size()) {
        own += evaluate(trainer_->model(), trainer_->moved(context_.task->validation[k]));
      }
      if (speaks() && engine_.steps_done() == recipe_.run.steps && !context_.out.empty()) {
        save_model(context_.out / kModelFile, *trainer_->model().module);
        const auto& vocabulary = context_.task->vocabulary;
        if (vocabulary) vocabulary->save(context_.out / kVocabularyFile);
      }
    });
    double sums[] = {own.loss_sum, static_cast<double>(own.count),
                     static_cast<double>(own.correct)};
    engine_.collectives().mean(sums);
    const auto n = static_cast<double>(left().size());
    return {sums[0] * n, std::llround(sums[1] * n), std::llround(sums[2] * n)};
  }

  void report(const Evaluation& evaluation) {
    metrics_.write({{"step", engine_.steps_done()},
                    {"val_loss", evaluation.mean_loss()},
                    {"val_accuracy", evaluation.accuracy()},
                    {"disagreement", disagreement_},
                    {"edges", edges_json(transport_.describe())}});
  }

  TrainSummary summary(const Evaluation& evaluation) {
    const auto timed =
        static_cast<double>(std::max<std::int64_t>(1, engine_.steps_done() - timed_.from_step()));
    const double exposed_s = trainer_->exposed_s() - timed_.exposed_before_s();
    double means[] = {timed_.seconds(), exposed_s, timed_.bytes(), recent_loss_,
                      metrics_.is_whole() ? 0.0 : 1.0};
    engine_.collectives().mean(means);
    const double per_host = static_cast<double>(shape_.workers()) / shape_.hosts();
    const std::vector<int> ranks = left();
    return {.steps = engine_.steps_done(),
            .workers_left = static_cast<int>(std::ssize(ranks)),
            .speaker = ranks.front(),
            .ms_per_step = 1e3 * means[0] / timed,
            .exposed_ms = 1e3 * means[1] / timed,
            .bytes_per_host_per_step = means[2] * per_host / timed,
            .train_loss = means[3],
            .val_loss = evaluation.mean_loss(),
            .val_accuracy = evaluation.accuracy(),
            .perplexity = perplexity_of(context_.task->kind, evaluation),
            .disagreement = disagreement_,
            .are_metrics_whole = means[4] == 0,
            .parameters = parameter_count(trainer_->model())};
  }

  const TrainContext& context_;
  const Recipe& recipe_;
  Transport& transport_;
  const HostShape shape_;
  const int rank_;
  Recorder* const recorder_;
  const std::unique_ptr<StopAgreement> agreement_;  ///< null: none is told to stop
  const std::unique_ptr<Trainer> trainer_;
  TensorEngine& tensors_;
  Engine& engine_;
  std::vector<Hyper> groups_;
  MetricsFile metrics_;
  std::deque<OpenLine> open_;  ///< of steps whose loss is not known yet
  std::int64_t began_ = 0;     ///< the run, or what resumed it: with the step after so many
  bool is_save_missing_ = false;
  double recent_loss_ = 0;
  double disagreement_ = 0;
  TimedPart timed_{transport_, shape_};
};

}  // namespace

TrainSummary train_worker(const TrainContext& context, Transport& transport) {
  use_one_torch_thread();
  Worker worker(context, transport);
  let_exchanges_go_first();
  return worker.run();
}

}  // namespace gossamer
