#include "gossamer/torch/c10d/job_store.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "gossamer/base/errors.h"
#include "gossamer/base/shared_memory.h"

namespace gossamer {
namespace {

sockaddr_in loopback(const char* address, int port) {
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_port = htons(static_cast<std::uint16_t>(port));
  ::inet_pton(AF_INET, address, &place.sin_addr);
  return place;
}

int free_port() {
  const Descriptor probe(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in place = loopback("127.0.0.1", 0);
  socklen_t length = sizeof place;
  auto* address = reinterpret_cast<sockaddr*>(&place);
  EXPECT_EQ(::bind(probe.get(), address, length), 0);
  EXPECT_EQ(::getsockname(probe.get(), address, &length), 0);
  return ntohs(place.sin_port);
}

bool can_connect(const char* to, int port) {
  const Descriptor probe(::socket(AF_INET, SOCK_STREAM, 0));
  const sockaddr_in place = loopback(to, port);
  return ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&place), sizeof place) == 0;
}

JobStoreOptions options_of(int rank, int workers, int port, double timeout_s = 30) {
  return {.rank = rank,
          .workers = workers,
          .address = "127.0.0.1",
          .port = port,
          .serves = rank == 0,
          .prefix = "test",
          .timeout_s = timeout_s};
}

TEST(JobStore, GivesEverybodyTheWordsOfAllByRank) {
  const int port = free_port();
  constexpr int kWorkers = 3;
  std::vector<std::vector<std::string>> heard(kWorkers);
  std::vector<std::string> from_1(kWorkers);
  {
    std::vector<std::jthread> threads;
    for (int rank = kWorkers - 1; rank >= 0; --rank) {
      threads.emplace_back([&, rank] {
        JobStore store(options_of(rank, kWorkers, port));
        const auto own = static_cast<std::size_t>(rank);
        heard[own] = store.share("names", "worker " + std::to_string(rank));
        if (rank == 1) store.tell("secret", "");
        from_1[own] = store.hear("secret", 1);
        store.done();
      });
    }
  }
  for (const auto& words : heard) {
    EXPECT_EQ(words, (std::vector<std::string>{"worker 0", "worker 1", "worker 2"}));
  }
  EXPECT_EQ(from_1, std::vector<std::string>(kWorkers, ""));
  EXPECT_FALSE(can_connect("127.0.0.1", port));  // needed at the start only
}

TEST(JobStore, ListensOnItsAddressOnly) {
  const int port = free_port();
  const JobStore store(options_of(0, 1, port));
  EXPECT_TRUE(can_connect("127.0.0.1", port));
  EXPECT_FALSE(can_connect("127.0.0.2", port));
}

TEST(JobStore, NamesTheWorkerThatDoesNotCome) {
  JobStore store(options_of(0, 2, free_port(), 0.2));
  try {
    store.share("names", "");
    FAIL() << "nobody else was there";
  } catch (const TransportError& error) {
    EXPECT_EQ(error.details().peer, 1);
    EXPECT_GE(error.details().elapsed_s, 0.2);
    EXPECT_NE(std::string(error.what()).find("'names'"), std::string::npos) << error.what();
  }
}

TEST(JobStore, SaysForWhomItWaitsAndWhatMadeItWait) {
  std::vector<std::string> said;
  JobStoreOptions options = options_of(0, 2, free_port(), 0.2);
  options.why_so_many = "SIZE=2 says 2 workers";
  options.on_wait = [&](const std::string& words) { said.push_back(words); };
  options.patience_s = 0;
  std::string failure;
  try {
    JobStore(options).share("names", "");
  } catch (const TransportError& error) {
    failure = error.what();
  }
  ASSERT_FALSE(said.empty());
  for (const std::string& words : {said[0], failure}) {
    EXPECT_NE(words.find("come to 'names', 1 of 2 have"), std::string::npos) << words;
    EXPECT_NE(words.find("SIZE=2 says 2 workers"), std::string::npos) << words;
    EXPECT_NE(words.find("listens at 127.0.0.1, which is what '127.0.0.1' means here"),
              std::string::npos)
        << words;
  }
  EXPECT_EQ(said[0].find("rank 0 waits for rank 1: "), 0u) << said[0];
}

TEST(JobStore, AWorkerAloneTakesAnyPort) {
  JobStore store(options_of(0, 1, 0));
  EXPECT_EQ(store.share("names", "me"), std::vector<std::string>{"me"});
}

TEST(JobStore, ATimeoutMayBeWithoutLimit) {
  JobStore store(options_of(0, 1, free_port(), std::numeric_limits<double>::infinity()));
  EXPECT_EQ(store.share("names", "me"), std::vector<std::string>{"me"});
}

TEST(JobStore, NamesTheWorkerThatShouldServe) {
  try {
    const JobStore store(options_of(1, 2, free_port(), 0.2));
    FAIL() << "nobody serves";
  } catch (const TransportError& error) {
    EXPECT_EQ(error.details().peer, 0);
    EXPECT_NE(std::string(error.what()).find("refused"), std::string::npos) << error.what();
  }
}

TEST(JobStore, RefusesAnAddressOrPortThatIsNotItsOwn) {
  JobStoreOptions elsewhere = options_of(0, 2, free_port());
  elsewhere.address = "192.0.2.1";  // for documentation: nobody's
  EXPECT_THROW(JobStore{elsewhere}, std::invalid_argument);
  const int port = free_port();
  const JobStore first(options_of(0, 1, port));
  EXPECT_THROW(JobStore{options_of(0, 1, port)}, std::invalid_argument);
}

}  // namespace
}  // namespace gossamer
