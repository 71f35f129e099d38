#pragma once
/// For tests: what the recorders of a case's workers have, and what their transports carried.

#include <deque>
#include <vector>

#include "gossamer/engine/testing/engine_case.h"

namespace gossamer::engine_case {

/// One worker's run.
struct Recorded {
  Records records;
  TransportInfo carried;  ///< by the exchanges alone
  StepReport last;
};

/// Runs a case in float with gradients of 1, its buckets in order, and keeps the last `keep` steps.
inline std::vector<Recorded> recorded_run(const Case& c, std::int64_t keep) {
  std::vector<Recorded> all(static_cast<std::size_t>(c.shape().workers()));
  std::deque<Recorder> recorders;
  for (int rank = 0; rank < c.shape().workers(); ++rank) recorders.emplace_back(rank, keep);
  run_workers(make_threads_transports(free_links(c.shape())), [&](Transport& transport) {
    const auto rank = static_cast<std::size_t>(transport.describe().rank);
    const auto model = first_model<float>(c);
    std::ranges::fill(model->g, 1.0F);
    EngineOptions options = c.options;
    Recorder& recorder = recorders[rank];
    options.recorder = &recorder;
    Engine engine(options, transport, model->buckets(c));
    engine.start_at(0);
    for (std::int64_t step = 0; step < c.steps; ++step) {
      recorder.did(TimelineEvent::Kind::forward);
      for (std::size_t b = 0; b < c.bucket_sizes.size(); ++b) {
        recorder.did(TimelineEvent::Kind::backward, static_cast<int>(b));
        engine.gradient_ready(static_cast<int>(b));
      }
      all[rank].last = engine.step();
      if (engine.alternates()) std::swap(model->x, model->spare);
    }
    engine.quiesce();
    all[rank].records = recorder.records();  // late messages may still arrive after it
    all[rank].carried = transport.describe();
    engine.collectives().barrier();  // others may still need what this one has sent
  });
  return all;
}

}  // namespace gossamer::engine_case
