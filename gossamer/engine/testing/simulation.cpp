#include "gossamer/engine/testing/simulation.h"

#include <algorithm>
#include <utility>

#include "gossamer/base/index.h"
#include "gossamer/base/simulated_time.h"
#include "gossamer/engine/testing/strand.h"
#include "gossamer/transport/cut_off.h"

namespace gossamer::simulation {

/// A life, which runs only while run() waits for it.
struct Simulation::Worker {
  std::shared_ptr<Process> process;
  SimulatedTime* time = nullptr;
  bool is_awake = false;
  bool sleeps = false;      ///< whatever happens to its process
  bool is_killed = false;   ///< by the next call
  bool is_noticed = false;  ///< something has happened since it last began to wait
  Time wakes = Time::max();
  std::uint64_t wait = 0;  ///< number of the wait
  int sends_left = -1;
  std::unique_ptr<Strand> strand;
};

/// The end of one life.
class SimulatedTransport final : public Transport {
 public:
  SimulatedTransport(Simulation& simulation, Simulation::Worker& worker)
      : simulation_(simulation), worker_(worker), process_(*worker.process) {}
  ~SimulatedTransport() override { simulation_.network_.leave(process_); }

  Request send(int peer, Tag tag, std::span<const std::byte> payload, Deadline deadline,
               Owner) override {
    check();
    check_peer(peer, process_.rank, static_cast<int>(process_.views.size()));
    if (worker_.sends_left > 0 && --worker_.sends_left == 0) simulation_.be_killed(worker_);
    return simulation_.network_.post(process_, {.sending = true,
                                                .peer = peer,
                                                .tag = tag,
                                                .payload = {payload.begin(), payload.end()},
                                                .deadline = deadline});
  }
  Request receive(int peer, Tag tag, std::span<std::byte> landing, Deadline deadline) override {
    check();
    check_peer(peer, process_.rank, static_cast<int>(process_.views.size()));
    return simulation_.network_.post(
        process_, {.peer = peer, .tag = tag, .landing = landing, .deadline = deadline});
  }
  Status poll(Request request) override {
    check();
    return simulation_.network_.poll(process_, request);
  }
  void release(Request request) override {
    if (request != 0 && !process_.is_over) simulation_.network_.release(process_, request);
  }
  void progress(Deadline until) override {
    check();
    Network& network = simulation_.network_;
    if (!network.expire_due(process_)) {
      simulation_.wait(worker_, std::min(until, network.next_deadline(process_)), false);
      network.expire_due(process_);
    }
    SimulatedTime::of_this_thread()->run_beside();
  }
  void close(int peer) override { end(peer, kClosedHere, kClosedByPeer); }
  void expel(int peer) override {
    if (process_.views[at(peer)].was_silent) end(peer, kSilent, kExpelledByPeer);
  }
  void leave_out(int peer) override {
    if (!process_.newcomers.is_held_back(peer)) end(peer, kLeftOut, kExpelledByPeer);
  }
  TransportInfo describe() const override {
    return {.name = "simulated",
            .rank = process_.rank,
            .workers = static_cast<int>(process_.views.size()),
            .lends = Lends::nothing,
            .edges = {}};
  }
  void hold_back_newcomers() override { process_.newcomers.hold_back(); }
  std::vector<Newcomer> newcomers() override { return process_.newcomers.take(); }
  void count_in(int rank, Standing standing) override {
    process_.newcomers.count_in(rank, standing);
  }
  Standing standing(int rank) const override { return process_.newcomers.standing(rank); }
  void let_in(const Newcomer& newcomer) override {
    if (generation(newcomer.peer) == newcomer.generation) {
      process_.newcomers.let_in(newcomer.peer);
    }
  }
  std::uint64_t generation(int peer) const override {
    return peer == process_.rank ? process_.generation : process_.views[at(peer)].generation;
  }
  void sleep(Duration duration) {
    check();
    simulation_.wait(worker_, simulation_.now() + duration, true);
  }

 private:
  void check() const {
    if (process_.is_over) throw Killed();
  }
  void end(int peer, const char* here, const char* told) {
    check();
    simulation_.network_.close(process_, peer, here, told);
  }

  Simulation& simulation_;
  Simulation::Worker& worker_;
  Process& process_;
};

Simulation::Simulation(int workers, std::uint64_t seed, const NetworkOptions& options)
    : rng_(seed), network_(*this, workers, options), lives_(at(workers), 0) {
  for (const int rank : options.late) lives_[at(rank)] = 1;
}

/// Those whose lives are not over are killed.
Simulation::~Simulation() {
  when_over_ = nullptr;
  for (const auto& worker : workers_) {
    if (worker->process->is_over) continue;
    worker->is_killed = true;
    go_on(*worker);
  }
}

void Simulation::do_at(Time when, std::function<void()> work) {
  events_.push({std::max(when, now_), ++events_so_far_, std::move(work)});
}

void Simulation::begin(int rank, Time when, Life life) {
  ++begun_;
  do_at(when, [this, rank, life = std::move(life)] { start(rank, life); });
}

void Simulation::start(int rank, const Life& life) {
  Worker& worker = *workers_.emplace_back(std::make_unique<Worker>());
  worker.process = network_.begin(rank, lives_[at(rank)]++);
  worker.strand = std::make_unique<Strand>([this, &worker, life] { live(worker, life); });
  go_on(worker);
}

void Simulation::live(Worker& worker, const Life& life) {
  {
    SimulatedTime time(now_);
    worker.time = &time;
    SimulatedTransport transport(*this, worker);
    try {
      life(transport);
    } catch (const Killed&) {
    }
  }
  ++over_;
  worker.time = nullptr;
  if (when_over_) when_over_(worker.process->rank, worker.process->generation);
}

/// Lets it run until it waits, or its life is over.
void Simulation::go_on(Worker& worker) {
  digest_ = mix_bits(digest_, static_cast<std::uint64_t>(now_.time_since_epoch().count()));
  worker.is_awake = true;
  SimulatedTime::set_of_this_thread(worker.time);
  worker.strand->resume();
  SimulatedTime::set_of_this_thread(nullptr);
  worker.is_awake = false;
}

void Simulation::wait(Worker& worker, Time until, bool sleeps) {
  worker.sleeps = sleeps;
  ++worker.wait;
  worker.wakes = Time::max();
  // Between two things that a thread does some time goes by.
  const Duration pause(1000 + static_cast<Duration::rep>(rng_.below(20000)));
  const bool goes_on = !sleeps && std::exchange(worker.is_noticed, false);
  wake_at(worker, goes_on ? now_ + pause : std::max(until, now_ + pause));
  worker.strand->yield();
  worker.is_noticed = worker.is_noticed && sleeps;
  if (std::exchange(worker.is_killed, false)) be_killed(worker);
}

void Simulation::be_killed(Worker& worker) {
  network_.die(*worker.process);
  throw Killed();
}

void Simulation::wake_at(Worker& worker, Time when) {
  if (when >= worker.wakes) return;
  worker.wakes = when;
  if (when == Time::max()) return;
  do_at(when, [this, &worker, wait = worker.wait, when] {
    if (worker.process->is_over || worker.wait != wait || worker.wakes != when) return;
    if (!worker.process->is_frozen) go_on(worker);
  });
}

Simulation::Worker* Simulation::living(int rank, std::uint64_t generation) {
  for (const auto& worker : workers_) {
    const Process& process = *worker->process;
    if (process.rank == rank && process.generation == generation && !process.is_over) {
      return worker.get();
    }
  }
  return nullptr;
}

void Simulation::wake(const Process& process) {
  Worker* worker = living(process.rank, process.generation);
  if (worker == nullptr) return;
  worker->is_noticed = true;
  if (worker->is_awake || worker->sleeps) return;
  wake_at(*worker, now_ + Duration(1000 + static_cast<Duration::rep>(rng_.below(50000))));
}

void Simulation::kill(int rank, std::uint64_t generation, Time when) {
  do_at(when, [this, rank, generation] {
    Worker* worker = living(rank, generation);
    if (worker == nullptr) return;
    worker->is_killed = true;
    go_on(*worker);
  });
}

void Simulation::kill_at_send(int rank, std::uint64_t generation, int send) {
  if (Worker* worker = living(rank, generation)) worker->sends_left = send;
}

void Simulation::freeze(int rank, std::uint64_t generation, Time when, Duration duration) {
  do_at(when, [this, rank, generation, duration] {
    Worker* worker = living(rank, generation);
    if (worker == nullptr) return;
    network_.freeze(*worker->process);
    do_at(now_ + duration, [this, worker] {
      if (worker->process->is_over) return;
      network_.thaw(*worker->process);
      worker->sleeps = false;
      worker->wakes = Time::max();
      wake_at(*worker, now_ + Duration(1));
    });
  });
}

void Simulation::part(const std::set<int>& ranks, Time when, Duration duration) {
  do_at(when, [this, ranks] { network_.part(ranks); });
  do_at(when + duration, [this] { network_.mend(); });
}

bool Simulation::run(Duration limit) {
  const Time end = now_ + limit;
  while (over_ < begun_) {
    if (events_.empty() || events_.top().when > end) return false;
    const Event event = events_.top();
    events_.pop();
    now_ = event.when;
    event.work();
  }
  return true;
}

void Simulation::sleep(Transport& transport, Duration duration) {
  dynamic_cast<SimulatedTransport&>(transport).sleep(duration);
}

}  // namespace gossamer::simulation
