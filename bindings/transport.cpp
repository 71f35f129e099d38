#include "bindings/transport.h"

#include <pybind11/typing.h>

#include <chrono>
#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <utility>
#include <vector>

#include "bindings/arrival.h"
#include "bindings/transport_handle.h"
#include "bindings/typing.h"
#include "gossamer/base/errors.h"
#include "gossamer/base/launchers.h"
#include "gossamer/base/timeout.h"
#include "gossamer/transport/net/job_secret.h"
#include "gossamer/transport/net/net_transport.h"

namespace gossamer::python {
namespace {

constexpr std::chrono::milliseconds kSignalPeriod{100};
constexpr const char* kJob = "the word for a job";
constexpr std::size_t kDigitsOfJob = 16;

/// For as long as it lives, this thread is inside the transport and other threads may run Python.
class Away {
 public:
  explicit Away(TransportHandle& handle) : handle_(handle) {
    handle_.enter();
    no_gil_.emplace();
  }
  ~Away() {
    no_gil_.reset();
    handle_.leave();
  }
  Away(const Away&) = delete;
  Away& operator=(const Away&) = delete;

 private:
  TransportHandle& handle_;
  std::optional<py::gil_scoped_release> no_gil_;
};

std::span<std::byte> bytes_of(const at::Tensor& tensor) {
  if (!tensor.device().is_cpu() || !tensor.is_contiguous()) {
    fail_argument({.place = "transport",
                   .what = "a payload must be a contiguous CPU tensor",
                   .got = std::string(tensor.is_contiguous() ? "" : "a strided ") + "tensor on " +
                          tensor.device().str()});
  }
  return {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()};
}

Deadline in_seconds(double seconds) { return Clock::now() + duration_of(seconds, "transport"); }

Request send(TransportHandle& handle, int peer, const at::Tensor& tensor, Tag tag,
             double timeout_s) {
  const Request request =
      handle.get()->send(peer, tag, bytes_of(tensor), in_seconds(timeout_s), nullptr);
  handle.keep(request, tensor);
  return request;
}

Request receive(TransportHandle& handle, int peer, const at::Tensor& tensor, Tag tag,
                double timeout_s) {
  const Request request = handle.get()->receive(peer, tag, bytes_of(tensor), in_seconds(timeout_s));
  handle.keep(request, tensor);
  return request;
}

bool done(TransportHandle& handle, Request request) {
  const Status status = handle.get()->poll(request);
  if (status.state == Status::State::failed) std::rethrow_exception(status.error);
  if (status.state == Status::State::pending) return false;
  handle.land(request, status);
  return true;
}

void release(TransportHandle& handle, Request request) {
  handle.get()->release(request);
  handle.forget(request);
}

/// Until the request has ended; releases it in any case.
void wait(TransportHandle& handle, Request request) {
  struct Release {
    TransportHandle& handle;
    Request request;
    ~Release() {
      try {
        release(handle, request);
      } catch (const std::exception&) {  // released by another thread, or stopped: nothing is left
      }
    }
  };
  const std::shared_ptr<Transport> transport = handle.get();
  transport->poll(request);  // refuses one that does not exist
  const Release at_end{handle, request};
  while (!done(handle, request)) {
    transport->progress(Clock::now() + kSignalPeriod);
    const py::gil_scoped_acquire interpreter;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
  }
}

void progress(TransportHandle& handle, double timeout_s) {
  handle.get()->progress(in_seconds(timeout_s));
}

void close(TransportHandle& handle, int peer) { handle.get()->close(peer); }

/// The function as a method that runs without the interpreter.
template <class Result, class... Arguments>
auto away(Result (*function)(TransportHandle&, Arguments...)) {
  return [function](TransportHandle& handle, Arguments... arguments) -> Result {
    const Away without_interpreter(handle);
    return function(handle, std::forward<Arguments>(arguments)...);
  };
}

using TellWhom = py::typing::Callable<void(py::typing::List<int>, py::str)>;

void begin_roll_call(TransportHandle& handle, std::vector<int> peers, bool compares_steps,
                     const TellWhom& report, double patience_s) {
  // Let go with the interpreter held, whoever lets go.
  const std::shared_ptr<py::function> held(new py::function(report), [](py::function* function) {
    const py::gil_scoped_acquire interpreter;
    delete function;
  });
  const auto tell = [held](const std::vector<int>& ranks, const std::string& where) {
    const py::gil_scoped_acquire interpreter;
    (*held)(ranks, where);
  };
  RollCallOptions options{.peers = std::move(peers),
                          .compares_steps = compares_steps,
                          .report = tell,
                          .patience_s = patience_s};
  const py::gil_scoped_release no_gil;
  handle.begin_roll_call(std::move(options));
}

Record describe(const TransportHandle& handle) {
  const TransportInfo info = handle.get()->describe();
  py::list edges;
  for (const EdgeBytes& edge : info.edges) {
    edges.append(py::dict(py::arg("peer") = edge.peer, py::arg("sent") = edge.sent,
                          py::arg("received") = edge.received));
  }
  return Record(py::arg("name") = info.name, py::arg("rank") = info.rank,
                py::arg("workers") = info.workers, py::arg("edges") = edges);
}

/// Whatever kind of process group Python passes, by its pointer: torch's own holder types differ.
c10::intrusive_ptr<::c10d::Backend> backend_of(const py::handle& group) {
  if (py::isinstance<::c10d::ProcessGroup>(group)) {
    auto& whole = group.cast<::c10d::ProcessGroup&>();
    try {
      return whole.getBackend(c10::DeviceType::CPU);
    } catch (const c10::Error&) {
      fail_argument({.place = "transport",
                     .what = "the process group carries no CPU tensors",
                     .got = "backend '" + whole.getBackendName() + "'",
                     .remedy = "make a group with backend 'gloo' beside it"});
    }
  }
  if (!py::isinstance<::c10d::Backend>(group)) {
    fail_argument({.place = "transport",
                   .what = "an edge must be a process group of torch",
                   .got = py::cast<std::string>(py::repr(group))});
  }
  return c10::intrusive_ptr<::c10d::Backend>::unsafe_reclaim_from_nonowning(
      group.cast<::c10d::Backend*>());
}

/// Threads must not outlive the interpreter: it unloads what they use.
void stop_at_exit(const std::shared_ptr<TransportHandle>& handle) {
  py::cpp_function stop([held = std::weak_ptr(handle)] {
    const py::gil_scoped_release no_gil;
    if (const auto alive = held.lock()) alive->stop();
  });
  py::module_::import("atexit").attr("register")(stop);
}

using Groups = py::typing::Dict<int, py::object>;

std::shared_ptr<TransportHandle> make_c10d(int rank, int workers, const Groups& groups,
                                           double linger_s) {
  C10dOptions options = c10d_options(rank, workers, groups);
  options.linger =
      std::chrono::duration_cast<std::chrono::milliseconds>(duration_of(linger_s, "transport"));
  std::shared_ptr<TransportHandle> handle;
  {
    const py::gil_scoped_release no_gil;
    handle = std::make_shared<TransportHandle>(make_c10d_transport(options));
  }
  stop_at_exit(handle);
  return handle;
}

using Share = py::typing::Callable<std::vector<std::string>(py::str)>;

std::shared_ptr<TransportHandle> make_net(int rank, int workers, const std::string& token,
                                          const Share& share, const std::string& address,
                                          bool share_memory, bool tls, std::uint64_t generation,
                                          double longest_silence_s,
                                          std::optional<int> least_heard) {
  const auto ask = [&share](const std::string& mine) {
    return share(mine).cast<std::vector<std::string>>();
  };
  const auto handle = std::make_shared<TransportHandle>(
      make_net_transport({.rank = rank,
                          .workers = workers,
                          .token = token,
                          .share = ask,
                          .address = address,
                          .share_memory = share_memory,
                          .tls = tls,
                          .authenticates = wants_authentication(environment_variable),
                          .generation = generation,
                          .longest_silence = std::chrono::duration<double>(longest_silence_s),
                          .least_heard = least_heard}),
      token_of(token, kJob).substr(0, kDigitsOfJob));
  stop_at_exit(handle);
  return handle;
}

void bind_arrival(py::module_& module) {
  py::class_<ArrivalHandle>(module, "Arrival", R"(
    How a worker comes back to those that are there; all raise TransportError where nobody is.)")
      .def(py::init<const std::shared_ptr<TransportHandle>&, std::vector<int>, double>(),
           py::arg("transport"), py::arg("preferred"), py::arg("timeout_s"))
      .def("take_state", &ArrivalHandle::take_state, "What the first of ``preferred`` has given.");
}

}  // namespace

C10dOptions c10d_options(int rank, int workers, const py::dict& groups) {
  C10dOptions options{.rank = rank, .workers = workers};
  for (const auto& [key, group] : groups) {
    const int peer = key.cast<int>();
    auto backend = backend_of(group);
    const bool pair = backend->getSize() == 2;
    if (!pair && (backend->getSize() != workers || backend->getRank() != rank)) {
      fail_argument({.place = "transport",
                     .what = "a group must have two workers, or all with their own ranks",
                     .got = "rank " + std::to_string(backend->getRank()) + " of " +
                            std::to_string(backend->getSize()) + " for worker " +
                            std::to_string(peer)});
    }
    const int peer_rank = pair ? 1 - backend->getRank() : peer;
    options.edges.emplace(peer, C10dEdgeGroup{std::move(backend), peer_rank});
  }
  return options;
}

namespace {

using TransportClass = py::class_<TransportHandle, std::shared_ptr<TransportHandle>>;

void bind_tag(py::module_& module) {
  py::class_<Tag>(module, "Tag",
                  "Matches a send to its receive; never used twice for one pair of workers.")
      .def(py::init<std::int64_t, std::int32_t, std::int32_t>(), py::arg("step") = 0,
           py::arg("stream") = 0, py::arg("slot") = 0)
      .def_readonly("step", &Tag::step)
      .def_readonly("stream", &Tag::stream)
      .def_readonly("slot", &Tag::slot);
}

void bind_handle(py::module_& module) {
  TransportClass(module, "Transport", R"(
    One worker's end. Requests are numbers; each must be waited for or released.

    ValueError for a peer without an edge, a request that does not exist, and after ``stop``.
    )")
      .def_property_readonly("job", &TransportHandle::job,
                             "A word for the job that all its workers know; no secret.")
      .def("send", away(&send), py::arg("peer"), py::arg("tensor"), py::arg("tag"), py::kw_only(),
           py::arg("timeout_s"),
           "Starts sending a contiguous CPU tensor, which must not change until the request ended.")
      .def("receive", away(&receive), py::arg("peer"), py::arg("tensor"), py::arg("tag"),
           py::kw_only(), py::arg("timeout_s"),
           "Starts receiving exactly the tensor's bytes into a contiguous CPU tensor.")
      .def("done", away(&done), py::arg("request"),
           "True when the request is done, False while it is pending; raises what failed it.")
      .def("wait", away(&wait), py::arg("request"),
           "Blocks until the request has ended and releases it; raises what failed it.")
      .def("release", away(&release), py::arg("request"),
           "Forgets a request, cancelling it if it is pending.")
      .def("progress", away(&progress), py::arg("timeout_s"),
           "Blocks until something happened to a request.")
      .def("close", away(&close), py::arg("peer"),
           "Fails all requests with the peer, now and later, on both sides.")
      .def("stop", &TransportHandle::stop, py::call_guard<py::gil_scoped_release>(),
           "Ends the transport: says good-bye to the peers and closes the groups.")
      .def("begin_roll_call", &begin_roll_call, py::arg("peers"), py::kw_only(),
           py::arg("compares_steps"), py::arg("report"), py::arg("patience_s") = 10.0, R"(
        From now on its workers tell each other what they have come to; ``report(ranks, where)``
        is told once per call whom this one has been waiting for, after ``patience_s``.)")
      .def("describe", &describe, R"(
        Name, rank, workers, and payload bytes by peer: ``edges`` has for each its peer, sent and
        received.)");
}

}  // namespace

void bind_transport(py::module_& module) {
  bind_tag(module);
  bind_handle(module);
  bind_arrival(module);
  module.def("c10d_transport", &make_c10d, py::arg("rank"), py::arg("workers"), py::arg("groups"),
             py::kw_only(), py::arg("linger_s") = 1.0, R"(
    A transport over {peer: Gloo process group of torch}; it takes the groups over.

    ``linger_s``: how long its end waits for peers to take what was sent. ValueError for ranks out
    of range, groups that do not have the two ends, and backends other than Gloo.
    )");
  module.def("net_transport", &make_net, py::arg("rank"), py::arg("workers"), py::kw_only(),
             py::arg("token"), py::arg("share"), py::arg("address") = "",
             py::arg("share_memory") = true, py::arg("tls") = false, py::arg("generation") = 0,
             py::arg("longest_silence_s") = 30.0, py::arg("least_heard") = py::none(), R"(
    A transport over shared memory inside a host and TCP between hosts.

    ``token``: a secret that all workers of the job know. ``share(mine)`` gives everybody's words by
    rank in exchange for this worker's; it is called once. ``address``: of an interface of this
    host, in numbers, where workers connect that cannot share memory with this one; empty: nowhere.
    Not ``share_memory``: TCP inside a host as well. ``tls``: what goes over TCP is encrypted and
    authenticated by TLS 1.3 with a key from the token. ``generation``: how often a worker of this
    rank has been there before; one that comes back takes its former self's place with all others. A
    peer of which nothing has been heard for ``longest_silence_s`` costs the requests with it;
    with ``least_heard`` not while this worker hears fewer than so many, or with 0 fewer than it
    misses. ValueError for ranks out of range, workers that cannot reach each other, and
    those of which only some have ``tls``; IoError where the system gives no sockets or no memory.
    )");
}

}  // namespace gossamer::python
