#include "gossamer/train/trace.h"

#include <utility>
#include <vector>

#include "gossamer/base/index.h"

namespace gossamer {

RunTrace::RunTrace(HostShape shape, int steps, std::filesystem::path file)
    : shape_(std::move(shape)), file_(std::move(file)) {
  if (steps == 0 || file_.empty()) return;
  for (int rank = 0; rank < shape_.workers(); ++rank) recorders_.emplace_back(rank, steps);
}

Recorder* RunTrace::recorder(int rank) {
  return recorders_.empty() ? nullptr : &recorders_[at(rank)];
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
  std::vector<const Recorder*> all;
  for (const Recorder& recorder : recorders_) all.push_back(&recorder);
  write_trace_file(file_, all, shape_);
}

}  // namespace gossamer
