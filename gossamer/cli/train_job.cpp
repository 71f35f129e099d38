#include "gossamer/cli/train_job.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <exception>
#include <functional>
#include <random>
#include <set>
#include <sstream>
#include <utility>

#include "gossamer/base/errors.h"
#include "gossamer/base/json.h"
#include "gossamer/cli/train_address.h"
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
  std::string host;  ///< the launcher's number for it, else its name
  int local_rank = -1;
  int local_workers = 0;
  std::string reach;
  std::string token;
};

std::string to_text(const Card& card) {
  return Json{{"host", card.host},
              {"local_rank", card.local_rank},
              {"local_workers", card.local_workers},
              {"reach", card.reach},
              {"token", card.token}}
      .dump();
}

Card card_of(const std::string& text) {
  const Json json = Json::parse(text);
  return {json["host"], json["local_rank"], json["local_workers"], json["reach"], json["token"]};
}

[[noreturn]] void refuse_deal(const std::string& what, const std::string& got) {
  fail_argument({.place = kPlace,
                 .what = what,
                 .got = got,
                 .remedy = "start the job with torchrun, with mpirun --map-by slot, or with srun "
                           "--distribution=block"});
}

/// Counts the ranks of each host, which must follow each other and be as many as the host says.
HostShape shape_of(const std::vector<Card>& cards) {
  HostShape shape;
  std::set<std::string> seen;
  for (std::size_t rank = 0; rank < cards.size(); ++rank) {
    const bool goes_on = rank > 0 && cards[rank].host == cards[rank - 1].host;
    if (!goes_on && !seen.insert(cards[rank].host).second) {
      refuse_deal("ranks must be dealt host by host",
                  "rank " + std::to_string(rank) + " on host '" + cards[rank].host + "' again");
    }
    if (!goes_on) shape.workers_per_host.push_back(0);
    const int place = shape.workers_per_host.back()++;
    if (cards[rank].local_rank >= 0 && cards[rank].local_rank != place) {
      refuse_deal("rank " + std::to_string(rank) + " must be local rank " + std::to_string(place) +
                      " of host '" + cards[rank].host + "'",
                  std::to_string(cards[rank].local_rank));
    }
  }
  for (std::size_t rank = 0; rank < cards.size(); ++rank) {
    const int count =
        shape.workers_per_host[static_cast<std::size_t>(shape.host_of(static_cast<int>(rank)))];
    const int told = cards[rank].local_workers;
    if (told == 0 || told == count) continue;
    refuse_deal("host '" + cards[rank].host + "' must have " + std::to_string(told) +
                    " workers, as rank " + std::to_string(rank) + " was told",
                std::to_string(count));
  }
  return shape;
}

/// How an exception is told to other ranks, so that they can throw one of its kind.
std::string kind_of(const std::exception& error) {
  if (dynamic_cast<const std::invalid_argument*>(&error) != nullptr) return "argument";
  if (dynamic_cast<const IoError*>(&error) != nullptr) return "io";
  return "other";
}

[[noreturn]] void fail_like(const std::string& kind, const std::string& message) {
  if (kind == "argument") throw std::invalid_argument(message);
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
  const std::string launcher(name_of(env_.launcher));
  store_ = std::make_unique<JobStore>(
      JobStoreOptions{.rank = env_.rank,
                      .workers = env_.workers,
                      .address = env_.address,
                      .port = env_.port,
                      .serves = env_.rank == 0 && !env_.has_store,
                      .prefix = launcher + "/" + env_.job + "/" + std::to_string(env_.workers),
                      .timeout_s = timeout_s});
  const Card mine{.host = env_.node.empty() ? host_name() : env_.node,
                  .local_rank = env_.local_rank,
                  .local_workers = env_.local_workers,
                  .reach = reach_of_shared_memory(),
                  .token = env_.rank == 0 ? make_token() : ""};
  std::vector<Card> cards;
  for (const std::string& text : store_->share("meet", to_text(mine)))
    cards.push_back(card_of(text));
  for (const Card& card : cards) reaches_.push_back(card.reach);
  token_ = cards[0].token;
  shape_ = shape_of(cards);
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
  const auto all_alike = [](const auto& words) {
    return std::ranges::adjacent_find(words, std::ranges::not_equal_to()) == words.end();
  };
  std::vector<std::string> networks;
  for (const std::string& reach : reaches_) networks.push_back(reach.substr(0, reach.rfind('/')));
  std::string address;
  if (reaches_[0].empty() || !all_alike(reaches_)) {
    address = address_for_peers(env_, {.may_be_loopback = all_alike(networks)});
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
