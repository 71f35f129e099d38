#include "gossamer/train/job.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <functional>
#include <utility>

#include "gossamer/base/errors.h"
#include "gossamer/base/index.h"
#include "gossamer/base/launchers.h"
#include "gossamer/base/lines.h"
#include "gossamer/base/outside_error.h"
#include "gossamer/base/timeout.h"
#include "gossamer/train/address.h"
#include "gossamer/transport/net/hosts.h"
#include "gossamer/transport/net/job_secret.h"
#include "gossamer/transport/net/store_entry.h"

namespace gossamer {
namespace {

constexpr std::string_view kPlace = "train";

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

Place place_of(const LauncherEnv& env) {
  return {.machine = machine_of_this_process(),
          .name = host_name(),
          .node = env.node,
          .local_rank = env.local_rank,
          .local_workers = env.local_workers};
}

void say(const std::string& words) { std::fprintf(stderr, "gossamer: %s\n", words.c_str()); }

std::string why_so_many(const LauncherEnv& env) {
  return env.workers_from + " says that there are " + std::to_string(env.workers) +
         " workers: start all of them with " + std::string(name_of(env.launcher)) +
         ", or train in this process alone with --transport threads";
}

template <class Values>
bool are_alike(const Values& values) {
  return std::ranges::adjacent_find(values, std::ranges::not_equal_to()) == values.end();
}

/// How an exception is told to other ranks, so that they can throw one of its kind.
std::string kind_of(const std::exception& error) {
  if (dynamic_cast<const std::invalid_argument*>(&error) != nullptr) return "argument";
  if (dynamic_cast<const OutsideError*>(&error) != nullptr) return "outside";
  if (dynamic_cast<const IoError*>(&error) != nullptr) return "io";
  return "other";
}

[[noreturn]] void fail_like(const std::string& kind, const std::string& told) {
  const std::string message = printable(told);  // by whoever writes to the store
  if (kind == "argument") throw std::invalid_argument(message);
  if (kind == "outside") throw OutsideError(message);
  if (kind == "io") throw IoError(message);
  throw std::runtime_error(message);
}

void require_all_or_none(const std::vector<bool>& have_secrets) {
  const auto other = std::ranges::find(have_secrets, !have_secrets[0]);
  if (other == have_secrets.end()) return;
  const std::string rank = std::to_string(other - have_secrets.begin());
  fail_argument({.place = kPlace,
                 .what = "all ranks need the same secret, or none does",
                 .got = "one on rank " + (*other ? rank : std::string("0")) + ", none on rank " +
                        (*other ? std::string("0") : rank),
                 .remedy = "give all of them GOSSAMER_SECRET_FILE, or unset it"});
}

}  // namespace

TrainJob::TrainJob(LauncherEnv env, double timeout_s, std::optional<Members> members)
    : env_(std::move(env)), members_(std::move(members)) {
  check_timeout(timeout_s, kPlace);
  if (members_ && members_->comes_back()) {
    find_others();
  } else {
    meet(timeout_s);
  }
}

void TrainJob::find_others() {
  cards_ = members_->read(env_.workers);
  const MemberCard& own = cards_[at(env_.rank)];
  shape_ = HostShape{own.workers_per_host};
  nonce_ = own.nonce;
  const auto secret = secret_of_user(environment_variable);
  has_secret_ = own.token.empty();
  if (has_secret_ && !secret) {
    fail_argument({.place = kPlace,
                   .what = "rank " + std::to_string(env_.rank) +
                           " comes back without the secret that the others have",
                   .remedy = "give it GOSSAMER_SECRET_FILE"});
  }
  token_ = has_secret_ ? token_of(*secret, nonce_) : own.token;
}

void TrainJob::meet(double timeout_s) {
  const std::string launcher(name_of(env_.launcher));
  store_ = std::make_unique<JobStore>(
      JobStoreOptions{.rank = env_.rank,
                      .workers = env_.workers,
                      .address = env_.address,
                      .port = env_.port,
                      .serves = env_.rank == 0 && !env_.has_store,
                      .prefix = launcher + "/" + env_.job + "/" + std::to_string(env_.workers),
                      .timeout_s = timeout_s,
                      .why_so_many = why_so_many(env_),
                      .on_wait = say});
  const auto secret = secret_of_user(environment_variable);
  const StoreEntry mine{.place = place_of(env_),
                        .reach = reach_of_shared_memory(),
                        .nonce = env_.rank == 0 ? random_digits() : "",
                        .has_secret = secret.has_value()};
  std::vector<bool> have_secrets;
  std::vector<Place> places;
  std::vector<std::string> reaches;
  std::vector<std::string> machines;
  for (const std::string& text : store_->share("meet", to_text(mine))) {
    const StoreEntry entry = store_entry_of(text, static_cast<int>(places.size()), kPlace);
    places.push_back(entry.place);
    reaches.push_back(entry.reach);
    machines.push_back(entry.place.machine.empty() ? entry.place.name : entry.place.machine);
    have_secrets.push_back(entry.has_secret);
    if (nonce_.empty()) nonce_ = entry.nonce;  // rank 0's
  }
  require_all_or_none(have_secrets);
  has_secret_ = secret.has_value();
  token_ = secret ? token_of(*secret, nonce_) : token_from_store();
  is_one_reach_ = !reaches[0].empty() && are_alike(reaches);
  is_one_machine_ = are_alike(machines);
  const FoundHosts found = find_hosts(places, kPlace);
  shape_ = found.shape;
  if (env_.rank == 0 && !found.warning.empty()) say("warning: " + found.warning);
}

/// See Note [A secret that does not travel]: without one, rank 0's, until all have it.
std::string TrainJob::token_from_store() {
  const std::string own = rank() == 0 ? random_digits() : "";
  if (rank() == 0) store_->tell("token", own);
  return rank() == 0 ? own : store_->hear("token", 0);
}

void TrainJob::together(const std::string& what, const std::function<void()>& work) {
  if (comes_back()) return work();
  std::string told;
  std::exception_ptr own;
  try {
    work();
  } catch (const std::exception& error) {
    own = std::current_exception();
    told = kind_of(error) + " " + error.what();
  }
  const std::vector<std::string> all = store_->share(what, told);
  if (own) std::rethrow_exception(own);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].empty()) continue;
    const auto space = all[rank].find(' ');
    fail_like(all[rank].substr(0, space), "[train] rank " + std::to_string(rank) + " could not " +
                                              what + ": " + all[rank].substr(space + 1));
  }
}

std::string TrainJob::words_of(int first, const std::string& own) {
  if (comes_back()) return cards_[at(first)].about;
  if (rank() != first) return store_->hear("recipe", first);
  store_->tell("recipe", own);
  return own;
}

void TrainJob::require_same(const std::string& words) {
  const int first = comes_back() && rank() == 0 ? 1 : 0;
  const std::string expected = words_of(first, words);
  together("take the recipe of rank 0", [&] {
    if (words == expected) return;
    const LinePair lines = first_difference(words, expected);
    fail_argument({.place = kPlace,
                   .what = "all ranks must be given the same: rank " + std::to_string(first) +
                           " has " + lines.there,
                   .got = lines.here + " on rank " + std::to_string(rank()),
                   .remedy = "start all with the same flags, recipe and data"});
  });
}

std::vector<std::string> TrainJob::share_sealed(const std::string& mine, const MemberCard& card) {
  MemberCard own = card;
  own.words = sealed(token_, rank(), mine);
  if (members_ && !own.about.empty()) members_->put(rank(), own);
  std::vector<std::string> all = store_->share("connect", own.words);
  if (rank() == 0 && !has_secret_) store_->forget("token");  // all have read it
  for (std::size_t peer = 0; peer < all.size(); ++peer) {
    all[peer] = opened(token_, static_cast<int>(peer), all[peer], kPlace);
  }
  return all;
}

/// The words of the others are on their cards. They are read after this one's are put there: of
/// two that come back together, one at least finds the other.
std::vector<std::string> TrainJob::share_again(const std::string& mine) {
  cards_[at(rank())].words = sealed(token_, rank(), mine);
  cards_[at(rank())].has_state = false;
  members_->put(rank(), cards_[at(rank())]);
  cards_ = members_->read(env_.workers);
  std::vector<std::string> all;
  for (const MemberCard& card : cards_) {
    all.push_back(opened(token_, static_cast<int>(std::ssize(all)), card.words, kPlace));
  }
  return all;
}

void TrainJob::say_state() {
  cards_[at(rank())].has_state = true;
  members_->put(rank(), cards_[at(rank())]);
}

std::unique_ptr<Transport> TrainJob::connect(const ConnectOptions& options) {
  if (options.tls && !has_secret_ && rank() == 0 && !comes_back()) {
    say("warning: the key of TLS comes from the launcher's store, which anybody reads who reaches "
        "its port; give all ranks GOSSAMER_SECRET_FILE, as SECURITY.md says");
  }
  std::string address;
  if (comes_back()) {
    cards_ = members_->read(env_.workers);  // some may be others than before
    MemberCard& own = cards_[at(rank())];
    if (!own.address.empty()) own.address = address_for_peers(env_, {.may_be_loopback = true});
    address = own.address;
  } else if (!is_one_reach_) {
    together("find an address for the others",
             [&] { address = address_for_peers(env_, {.may_be_loopback = is_one_machine_}); });
  }
  const MemberCard card{.address = address,
                        .nonce = nonce_,
                        .token = has_secret_ ? "" : token_,
                        .about = options.about,
                        .workers_per_host = shape_.workers_per_host};
  auto transport =
      make_net_transport({.rank = env_.rank,
                          .workers = env_.workers,
                          .token = token_,
                          .share =
                              [&](const std::string& mine) {
                                return comes_back() ? share_again(mine) : share_sealed(mine, card);
                              },
                          .address = address,
                          .tls = options.tls,
                          .authenticates = wants_authentication(environment_variable),
                          .generation = comes_back() ? members_->next_generation() : 0,
                          .longest_silence = options.longest_silence,
                          .least_heard = options.least_heard});
  if (store_) store_->done();
  return transport;
}

}  // namespace gossamer
