#include "gossamer/torch/c10d/job_store.h"

#include <fcntl.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>

#include "gossamer/base/address.h"
#include "gossamer/base/clock.h"
#include "gossamer/base/errors.h"
#include "gossamer/base/shared_memory.h"
#include "gossamer/base/timeout.h"

namespace gossamer {
namespace {

using AddressList = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

constexpr std::chrono::milliseconds kLongestPause{50};
constexpr double kLinger_s = 2;
constexpr int kBacklog = 1024;

std::string place_of(const JobStoreOptions& options) {
  return options.address + ":" + std::to_string(options.port);
}

/// Null with the system's words in `why` where the name is unknown.
AddressList addresses_of(const JobStoreOptions& options, std::string& why) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(options.port);
  const int error = ::getaddrinfo(options.address.c_str(), port.c_str(), &wanted, &found);
  if (error != 0) why = ::gai_strerror(error);
  return {found, &::freeaddrinfo};
}

/// A socket on which `use` succeeds, for one of the addresses; none with `why` where it fails.
Descriptor open_socket(const JobStoreOptions& options, std::string& why,
                       const std::function<bool(int socket, const addrinfo& to)>& use) {
  const AddressList list = addresses_of(options, why);
  for (const addrinfo* at = list.get(); at != nullptr; at = at->ai_next) {
    Descriptor socket(::socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol));
    if (socket && use(socket.get(), *at)) return socket;
    why = in_numbers(at->ai_addr, at->ai_addrlen) + ": " + std::strerror(errno);
  }
  return Descriptor();
}

/// TCPStore by itself listens on every interface, so it is given a socket that does not.
int listen_on(const JobStoreOptions& options) {
  std::string why;
  const Descriptor socket = open_socket(options, why, [](int number, const addrinfo& at) {
    const int yes = 1;
    ::setsockopt(number, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    return ::bind(number, at.ai_addr, at.ai_addrlen) == 0 && ::listen(number, kBacklog) == 0;
  });
  if (!socket) {
    fail_argument(
        {.place = "job store",
         .what = "rank " + std::to_string(options.rank) + " cannot listen on " + place_of(options),
         .got = why,
         .remedy = "set MASTER_ADDR to an address of rank 0's host that the others reach, "
                   "and MASTER_PORT to a free port of it"});
  }
  return ::fcntl(socket.get(), F_DUPFD_CLOEXEC, 0);  // the store closes it
}

[[noreturn]] void fail_late(const JobStoreOptions& options, int peer, const std::string& operation,
                            double elapsed_s, const std::string& reason) {
  throw TransportError({.rank = options.rank,
                        .peer = peer,
                        .operation = operation,
                        .elapsed_s = elapsed_s,
                        .reason = reason});
}

/// A call of ours that c10d answers with an exception becomes an error of ours.
template <class Call>
auto ask(const JobStoreOptions& options, const Call& call) {
  try {
    return call();
  } catch (const std::exception& error) {
    const std::string words = error.what();
    fail_late(
        options, 0, "meeting", 0,
        "the store at " + place_of(options) + " is gone: " + words.substr(0, words.find('\n')));
  }
}

}  // namespace

struct JobStore::State {
  JobStoreOptions options;
  c10::intrusive_ptr<c10d::TCPStore> store;
  std::string listens_at;  ///< in numbers; empty where another process serves
  bool all_have_come = false;

  std::string key(const std::string& topic, int rank) const {
    return "gossamer/" + options.prefix + "/" + topic + "/" + std::to_string(rank);
  }
  bool has(const std::string& key) const;
  int count_of(const std::string& topic) const;
  std::string about_the_start() const;
  void wait_until(int peer, const std::function<std::string()>& late,
                  const std::function<bool()>& done) const;
  void wait_for_server() const;
};

bool JobStore::State::has(const std::string& key) const {
  return ask(options, [&] { return store->check({key}); });
}

/// How many have come to it.
int JobStore::State::count_of(const std::string& topic) const {
  int count = 0;
  for (int rank = 0; rank < options.workers; ++rank) count += has(key(topic, rank)) ? 1 : 0;
  return count;
}

/// What may keep workers from coming at all.
std::string JobStore::State::about_the_start() const {
  if (all_have_come) return "";
  std::string words;
  if (is_loopback(listens_at)) {
    words = "; this process listens at " + listens_at + ", which is what '" + options.address +
            "' means here and no other machine reaches: for several machines set MASTER_ADDR to "
            "another address of this one";
  }
  return options.why_so_many.empty() ? words : words + "; " + options.why_so_many;
}

/// Asks again and again: c10d's own waits write to stderr what they think of a timeout.
void JobStore::State::wait_until(int peer, const std::function<std::string()>& late,
                                 const std::function<bool()>& done) const {
  const StandstillWatch standstills;
  const auto begin = Clock::now();
  std::chrono::milliseconds nap{1};
  bool has_told = !options.on_wait;
  while (!done()) {
    const std::chrono::duration<double> elapsed = Clock::now() - begin;
    if (elapsed.count() > options.timeout_s) {
      fail_late(options, peer, "meeting", elapsed.count(),
                late() +
                    "; it has failed, or was started too late: see what it said, or raise "
                    "timeout_s" +
                    about_the_start());
    }
    if (!has_told && elapsed.count() > options.patience_s) {
      options.on_wait("rank " + std::to_string(options.rank) + " waits for rank " +
                      std::to_string(peer) + ": " + late() + about_the_start());
      has_told = true;
    }
    std::this_thread::sleep_for(nap);
    nap = std::min(2 * nap, kLongestPause);
  }
}

void JobStore::State::wait_for_server() const {
  std::string why;
  const auto connects = [&] {
    return static_cast<bool>(open_socket(options, why, [](int number, const addrinfo& to) {
      return ::connect(number, to.ai_addr, to.ai_addrlen) == 0;
    }));
  };
  wait_until(
      0, [&] { return "nobody answers at " + place_of(options) + " (" + why + ")"; }, connects);
}

JobStore::JobStore(JobStoreOptions options) : state_(std::make_unique<State>()) {
  state_->options = std::move(options);
  const JobStoreOptions& own = state_->options;
  c10d::TCPStoreOptions store;
  store.port = static_cast<std::uint16_t>(own.port);
  store.isServer = own.serves;
  store.waitWorkers = false;
  store.timeout = std::chrono::duration_cast<std::chrono::milliseconds>(
      duration_of(own.timeout_s, "job store"));
  if (own.serves) {
    store.masterListenFd = listen_on(own);
    const BoundTo bound = bound_to(*store.masterListenFd);
    state_->listens_at = bound.host;
    state_->options.port = bound.port;
    store.port = static_cast<std::uint16_t>(bound.port);
  } else {
    state_->wait_for_server();
  }
  state_->store = ask(own, [&] { return c10::make_intrusive<c10d::TCPStore>(own.address, store); });
}

/// Those that still read what is the matter must not find the store gone.
JobStore::~JobStore() {
  state_->options.timeout_s = std::min(state_->options.timeout_s, kLinger_s);
  try {
    done();
  } catch (const std::exception&) {  // somebody has not come, or the server has gone
  }
}

void JobStore::done() {
  if (!state_->store) return;
  const auto store = std::exchange(state_->store, nullptr);
  const std::string key = state_->key("done", 0);
  const auto count = [&](std::int64_t more) {
    return ask(state_->options, [&] { return store->add(key, more); });
  };
  const int workers = state_->options.workers;
  if (count(1) == workers || !state_->options.serves) return;
  const int last = workers - 1;  // whoever it is
  state_->wait_until(
      last, [] { return "not all workers have connected"; }, [&] { return count(0) == workers; });
}

void JobStore::tell(const std::string& topic, const std::string& words) {
  const std::vector<std::uint8_t> bytes(words.begin(), words.end());
  ask(state_->options,
      [&] { state_->store->set(state_->key(topic, state_->options.rank), bytes); });
}

std::string JobStore::hear(const std::string& topic, int rank) {
  const std::string key = state_->key(topic, rank);
  const auto late = [&] {
    return "it has not come to '" + topic + "', " + std::to_string(state_->count_of(topic)) +
           " of " + std::to_string(state_->options.workers) + " have";
  };
  state_->wait_until(rank, late, [&] { return state_->has(key); });
  const std::vector<std::uint8_t> bytes =
      ask(state_->options, [&] { return state_->store->get(key); });
  return {bytes.begin(), bytes.end()};
}

void JobStore::forget(const std::string& topic) {
  const std::string key = state_->key(topic, state_->options.rank);
  ask(state_->options, [&] { return state_->store->deleteKey(key); });
}

std::vector<std::string> JobStore::share(const std::string& topic, const std::string& mine) {
  tell(topic, mine);
  std::vector<std::string> all;
  for (int rank = 0; rank < state_->options.workers; ++rank) all.push_back(hear(topic, rank));
  state_->all_have_come = true;
  return all;
}

}  // namespace gossamer
