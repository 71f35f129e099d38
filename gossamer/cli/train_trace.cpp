#include "gossamer/cli/train_trace.h"

#include <sstream>
#include <utility>
#include <vector>

#include "gossamer/base/gzip.h"
#include "gossamer/engine/disk.h"

namespace gossamer {

using SystemClock = std::chrono::system_clock;

RunTrace::RunTrace(const TrainSpec& spec, std::filesystem::path file)
    : shape_(host_shape_of(spec)), file_(std::move(file)) {
  if (spec.trace_steps == 0 || file_.empty()) return;
  for (int rank = 0; rank < shape_.workers(); ++rank)
    recorders_.emplace_back(rank, spec.trace_steps);
}

Recorder* RunTrace::recorder(int rank) {
  return recorders_.empty() ? nullptr : &recorders_[static_cast<std::size_t>(rank)];
}

void RunTrace::around(const std::function<void()>& work) {
  try {
    work();
  } catch (...) {
    try {
      write();
    } catch (const std::exception&) {  // why the run ended matters more
    }
    throw;
  }
  write();
}

void RunTrace::write() const {
  std::vector<Records> all;
  SystemClock::time_point start;
  for (const Recorder& recorder : recorders_) {
    if (recorder.start() == SystemClock::time_point{}) continue;  // of another process
    start = recorder.start();
    all.push_back(recorder.records());
  }
  if (all.empty()) return;
  const Timeline timeline = timeline_of(all, steady_at(start));
  std::ostringstream text;
  write_trace(text, timeline.events, timeline.messages, shape_);
  NewFile file(file_);
  file.write(packed_for(file_, std::move(text).str()));
  file.publish();
}

void remove_traces(const std::filesystem::path& folder) {
  std::error_code ignored;  // one that stays is replaced, or told from this run's by its times
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("trace.") && name.ends_with(".json.gz")) {
      std::filesystem::remove(entry.path(), ignored);
    }
  }
}

void share_start(Recorder& recorder, Collectives& collectives) {
  auto start = SystemClock::now().time_since_epoch().count();
  collectives.broadcast(std::as_writable_bytes(std::span(&start, 1)));
  recorder.set_start(SystemClock::time_point(SystemClock::duration(start)));
}

}  // namespace gossamer
