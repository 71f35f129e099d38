#pragma once
/// For tests: a piece of work with a stack of its own, which runs only while somebody waits for it.

#include <functional>
#include <memory>

namespace gossamer::simulation {

/// Note [Strands]: a context of its own in the thread that resumes it, since handing over between
/// threads is most of what a simulation would do. Sanitizers follow threads, so they get threads.
class Strand {
 public:
  explicit Strand(std::function<void()> work);
  /// Its work is over, or was never begun.
  ~Strand();
  Strand(const Strand&) = delete;
  Strand& operator=(const Strand&) = delete;

  /// Runs it until it yields, or its work is over. What it throws ends the program.
  void resume();
  /// In it: goes on when it is resumed.
  void yield();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gossamer::simulation
