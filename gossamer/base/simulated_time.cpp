#include "gossamer/base/simulated_time.h"

namespace gossamer {
namespace {

thread_local SimulatedTime* of_thread = nullptr;

}  // namespace

SimulatedTime::SimulatedTime(const Clock::time_point& now) : now_(now) { of_thread = this; }

SimulatedTime::~SimulatedTime() { of_thread = nullptr; }

SimulatedTime* SimulatedTime::of_this_thread() { return of_thread; }

void SimulatedTime::set_of_this_thread(SimulatedTime* time) { of_thread = time; }

void SimulatedTime::do_beside(const void* owner, std::function<void()> work) {
  beside_.emplace_back(owner, std::move(work));
}

void SimulatedTime::take_back(const void* owner) {
  std::erase_if(beside_, [&](const auto& each) { return each.first == owner; });
}

void SimulatedTime::run_beside() const {
  for (const auto& [owner, work] : beside_) work();
}

}  // namespace gossamer
