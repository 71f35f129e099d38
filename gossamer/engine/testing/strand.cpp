#include "gossamer/engine/testing/strand.h"

#include <utility>

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#include <semaphore>
#include <thread>
#else
#include <cxxabi.h>
#include <ucontext.h>

#include <cstddef>
#include <cstdint>
#endif

namespace gossamer::simulation {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)

struct Strand::State {
  std::function<void()> work;
  std::binary_semaphore go{0};
  std::binary_semaphore back{0};
  std::jthread thread;
};

Strand::Strand(std::function<void()> work) : state_(std::make_unique<State>()) {
  state_->work = std::move(work);
}

Strand::~Strand() = default;

void Strand::resume() {
  if (!state_->thread.joinable()) {
    state_->thread = std::jthread([state = state_.get()] {
      state->go.acquire();
      state->work();
      state->back.release();
    });
  }
  state_->go.release();
  state_->back.acquire();
}

void Strand::yield() {
  state_->back.release();
  state_->go.acquire();
}

#else

namespace {

constexpr std::size_t kStackBytes = 1 << 20;

/// What the C++ ABI keeps of a thread: exceptions that are handled. A strand may yield meanwhile.
struct Exceptions {
  void* caught = nullptr;
  unsigned uncaught = 0;
};

Exceptions& exceptions_of_thread() {
  return *reinterpret_cast<Exceptions*>(abi::__cxa_get_globals());
}

}  // namespace

struct Strand::State {
  std::function<void()> work;
  std::unique_ptr<std::byte[]> stack;
  ucontext_t own{};
  ucontext_t back{};
  Exceptions exceptions;  ///< of whichever does not run

  static void run(unsigned high, unsigned low) {
    const std::uint64_t place = std::uint64_t{high} << 32U | low;
    reinterpret_cast<State*>(place)->work();
  }
};

Strand::Strand(std::function<void()> work) : state_(std::make_unique<State>()) {
  state_->work = std::move(work);
  state_->stack.reset(new std::byte[kStackBytes]);  // not touched before it is used
  getcontext(&state_->own);
  state_->own.uc_stack.ss_sp = state_->stack.get();
  state_->own.uc_stack.ss_size = kStackBytes;
  state_->own.uc_link = &state_->back;
  const auto place = reinterpret_cast<std::uint64_t>(state_.get());
  makecontext(&state_->own, reinterpret_cast<void (*)()>(&State::run), 2,
              static_cast<unsigned>(place >> 32U), static_cast<unsigned>(place));
}

Strand::~Strand() = default;

void Strand::resume() {
  std::swap(exceptions_of_thread(), state_->exceptions);
  swapcontext(&state_->back, &state_->own);
  std::swap(exceptions_of_thread(), state_->exceptions);
}

void Strand::yield() { swapcontext(&state_->own, &state_->back); }

#endif

}  // namespace gossamer::simulation
