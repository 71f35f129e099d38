#include "gossamer/cli/train_job.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <functional>
#include <random>
#include <sstream>
#include <utility>

#include "gossamer/base/errors.h"
#include "gossamer/base/json.h"
#include "gossamer/base/outside_error.h"
#include "gossamer/base/timeout.h"
#include "gossamer/cli/train_address.h"
#include "gossamer/transport/net/hosts.h"
#include "gossamer/transport/net/net_transport.h"

namespace gossamer {
namespace {

constexpr std::string_view kPlace = "train";

std::string make_token() {
  std::random_device entropy;  // the system's, from which keys are made
  std::ostringstream token;
  for (int k = 0; k < 8; ++k) token << std::hex << entropy();
  return token.str();
}

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

/// What a rank says of itself when it comes.
struct Card {
  Place place;
  std::string reach;  ///< see reach_of_shared_memory()
  std::string token;
};

std::string to_text(const Card& card) {
  const Json json = {{"machine", card.place.machine},
                     {"name", card.place.name},
                     {"node", card.place.node},
                     {"local_rank", card.place.local_rank},
                     {"local_workers", card.place.local_workers},
                     {"reach", card.reach},
                     {"token", card.token}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);  // a name may be any bytes
}

Card card_of(const std::string& text) {
  const Json json = parse_json(text);
  return {.place = {.machine = json["machine"],
                    .name = json["name"],
                    .node = json["node"],
                    .local_rank = json["local_rank"],
                    .local_workers = json["local_workers"]},
          .reach = json["reach"],
          .token = json["token"]};
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

[[noreturn]] void fail_like(const std::string& kind, const std::string& message) {
  if (kind == "argument") throw std::invalid_argument(message);
  if (kind == "outside") throw OutsideError(message);
  if (kind == "io") throw IoError(message);
  throw std::runtime_error(message);
}

std::string line_that_differs(const std::string& here, const std::string& there) {
  std::istringstream ours(here);
  std::istringstream theirs(there);
  std::string line;
  std::string expected;
  for (;;) {
    const bool has_more = static_cast<bool>(std::getline(ours, line));
    const bool wants_more = static_cast<bool>(std::getline(theirs, expected));
    if (!has_more) line = "nothing";
    if (!wants_more) expected = "nothing";
    if (line != expected || (!has_more && !wants_more)) return expected + ", got " + line;
  }
}

}  // namespace

TrainJob::TrainJob(LauncherEnv env, double timeout_s) : env_(std::move(env)) {
  check_timeout(timeout_s, kPlace);
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
  const Card mine{.place = place_of(env_),
                  .reach = reach_of_shared_memory(),
                  .token = env_.rank == 0 ? make_token() : ""};
  std::vector<Place> places;
  std::vector<std::string> reaches;
  std::vector<std::string> machines;
  for (const std::string& text : store_->share("meet", to_text(mine))) {
    const Card card = card_of(text);
    places.push_back(card.place);
    reaches.push_back(card.reach);
    machines.push_back(card.place.machine.empty() ? card.place.name : card.place.machine);
    if (token_.empty()) token_ = card.token;  // rank 0's
  }
  is_one_reach_ = !reaches[0].empty() && are_alike(reaches);
  is_one_machine_ = are_alike(machines);
  const FoundHosts found = find_hosts(places, kPlace);
  shape_ = found.shape;
  if (env_.rank == 0 && !found.warning.empty()) say("warning: " + found.warning);
}

void TrainJob::together(const std::string& what, const std::function<void()>& work) {
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

void TrainJob::require_same(const std::string& words) {
  if (rank() == 0) store_->tell("recipe", words);
  const std::string expected = rank() == 0 ? words : store_->hear("recipe", 0);
  together("take the recipe of rank 0", [&] {
    if (words == expected) return;
    fail_argument({.place = kPlace,
                   .what = "all ranks must be given the same: rank 0 has " +
                           line_that_differs(words, expected) + " on rank " +
                           std::to_string(rank()),
                   .remedy = "start all with the same flags, recipe and data"});
  });
}

std::unique_ptr<Transport> TrainJob::connect(const ConnectOptions& options) {
  std::string address;
  if (!is_one_reach_) {
    together("find an address for the others",
             [&] { address = address_for_peers(env_, {.may_be_loopback = is_one_machine_}); });
  }
  auto transport = make_net_transport(
      {.rank = env_.rank,
       .workers = env_.workers,
       .token = token_,
       .share = [this](const std::string& mine) { return store_->share("connect", mine); },
       .address = address,
       .tls = options.tls});
  store_->done();
  return transport;
}

}  // namespace gossamer
