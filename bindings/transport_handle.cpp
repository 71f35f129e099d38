#include "bindings/transport_handle.h"

#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "gossamer/base/errors.h"

namespace gossamer::python {
namespace {

constexpr std::chrono::seconds kPatience{3};
constexpr std::chrono::milliseconds kBetweenLooks{10};

void close_all(Transport& transport) {
  const TransportInfo info = transport.describe();
  for (int peer = 0; peer < info.workers; ++peer) {
    try {
      if (peer != info.rank) transport.close(peer);
    } catch (const std::invalid_argument&) {  // no edge to it
    }
  }
}

}  // namespace

TransportHandle::~TransportHandle() {
  std::optional<py::gil_scoped_release> no_gil;
  if (PyGILState_Check() != 0) no_gil.emplace();
  stop();
}

std::shared_ptr<Transport> TransportHandle::get() const {
  const std::lock_guard lock(mutex_);
  if (transport_) return transport_;
  fail_argument({.place = "transport", .what = "the transport was stopped"});
}

void TransportHandle::begin_roll_call(RollCallOptions options) {
  auto roll_call = std::make_shared<RollCall>(*get(), std::move(options));
  const std::lock_guard lock(mutex_);
  roll_call_ = std::move(roll_call);
}

std::shared_ptr<RollCall> TransportHandle::roll_call() const {
  const std::lock_guard lock(mutex_);
  return roll_call_;
}

void TransportHandle::stop() {
  if (!home_.is_here()) {
    abandon(roll_call_);
    return abandon(transport_);
  }
  std::shared_ptr<Transport> last;
  std::shared_ptr<RollCall> roll_call;
  {
    const std::lock_guard lock(mutex_);
    last = std::move(transport_);
    roll_call = std::move(roll_call_);
  }
  roll_call.reset();                                   // its requests, unless an engine has it too
  if (last && last.use_count() > 1) close_all(*last);  // wakes the threads that are inside
  const Deadline limit = Clock::now() + kPatience;
  while (inside_ > 0 && Clock::now() < limit) std::this_thread::sleep_for(kBetweenLooks);
  last.reset();  // the requests end here, and only then their tensors
  std::unordered_map<Request, at::Tensor> unused;
  const std::lock_guard lock(mutex_);
  unused.swap(tensors_);
}

void TransportHandle::keep(Request request, at::Tensor tensor) {
  const std::lock_guard lock(mutex_);
  tensors_.insert_or_assign(request, std::move(tensor));
}

void TransportHandle::land(Request request, const Status& status) {
  const std::lock_guard lock(mutex_);
  const auto kept = tensors_.find(request);
  if (kept != tensors_.end()) gossamer::land(status, kept->second.data_ptr());
}

void TransportHandle::forget(Request request) {
  at::Tensor unused;  // goes after the lock: freeing it may ask for the interpreter
  const std::lock_guard lock(mutex_);
  const auto kept = tensors_.find(request);
  if (kept == tensors_.end()) return;
  unused = std::move(kept->second);
  tensors_.erase(kept);
}

}  // namespace gossamer::python
