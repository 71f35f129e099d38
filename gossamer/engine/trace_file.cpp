#include "gossamer/engine/trace_file.h"

#include <chrono>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "gossamer/base/disk.h"
#include "gossamer/base/gzip.h"

namespace gossamer {

using SystemClock = std::chrono::system_clock;

void share_start(Recorder& recorder, Collectives& collectives) {
  auto start = SystemClock::now().time_since_epoch().count();
  collectives.broadcast(std::as_writable_bytes(std::span(&start, 1)));
  recorder.set_start(SystemClock::time_point(SystemClock::duration(start)));
}

std::filesystem::path trace_file_of(const std::filesystem::path& folder, int rank) {
  return folder / ("trace.rank" + std::to_string(rank) + ".json.gz");
}

void write_trace_file(const std::filesystem::path& file, std::span<const Recorder* const> recorders,
                      const HostShape& shape) {
  std::vector<Records> all;
  SystemClock::time_point start;
  for (const Recorder* recorder : recorders) {
    if (recorder == nullptr || recorder->start() == SystemClock::time_point{}) continue;
    start = recorder->start();
    all.push_back(recorder->records());
  }
  if (all.empty()) return;
  const Timeline timeline = timeline_of(all, steady_at(start));
  std::ostringstream text;
  write_trace(text, timeline.events, timeline.messages, shape);
  write_file(file, packed_for(file, std::move(text).str()));
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

}  // namespace gossamer
