#include "gossamer/transport/net/hosts.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "gossamer/transport/net/net_transport.h"

namespace gossamer {
namespace {

using Counts = std::vector<int>;

FoundHosts found(const std::vector<Place>& places) { return find_hosts(places, "test"); }

Counts counts(const std::vector<Place>& places) { return found(places).shape.workers_per_host; }

std::string refusal(const std::vector<Place>& places) {
  try {
    found(places);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(Hosts, AreMachinesWhateverTheirNamesAre) {
  const FoundHosts equal_names =
      found({{"m", "localhost"}, {"m", "localhost"}, {"n", "localhost"}, {"n", "localhost"}});
  EXPECT_EQ(equal_names.shape.workers_per_host, (Counts{2, 2}));
  EXPECT_EQ(equal_names.names, (std::vector<std::string>{"localhost#0", "localhost#1"}));
  EXPECT_NE(equal_names.warning.find("ranks 0 and 2 are on different machines, but both have the "
                                     "name 'localhost'"),
            std::string::npos)
      << equal_names.warning;
  const FoundHosts one = found({{"m", "a"}, {"m", "b"}});
  EXPECT_EQ(one.shape.workers_per_host, Counts{2});  // containers that share a network
  EXPECT_EQ(one.warning, "");
}

TEST(Hosts, ALauncherThatAgreesIsNoReasonToWarn) {
  const FoundHosts by_local = found({{"m", "localhost", "", 0, 2},
                                     {"m", "localhost", "", 1, 2},
                                     {"n", "localhost", "", 0, 2},
                                     {"n", "localhost", "", 1, 2}});
  EXPECT_EQ(by_local.shape.workers_per_host, (Counts{2, 2}));
  EXPECT_EQ(by_local.warning, "");
  EXPECT_EQ(found({{"m", "x", "0", 0, 1}, {"n", "x", "1", 0, 1}}).warning, "");
}

TEST(Hosts, ALauncherMaySplitAMachine) {
  EXPECT_EQ(counts({{"m", "a", "0"}, {"m", "a", "1"}, {"m", "a", "1"}}), (Counts{1, 2}));
  EXPECT_EQ(counts({{"m", "a", "", 0, 1}, {"m", "a", "", 0, 2}, {"m", "a", "", 1, 2}}),
            (Counts{1, 2}));
  EXPECT_EQ(found({{"m", "a", "", 0, 1}, {"m", "a", "", 0, 1}}).warning, "");
  // Each process has a device of its own, which is number 0: no word of several hosts.
  EXPECT_EQ(counts({{"m", "a", "", 0}, {"m", "a", "", 0}}), Counts{2});
}

TEST(Hosts, ALauncherMustNotMakeOneOfTwoMachines) {
  const FoundHosts one_number = found({{"m", "a", "0", 0, 2}, {"n", "b", "0", 1, 2}});
  EXPECT_EQ(one_number.shape.workers_per_host, (Counts{1, 1}));
  EXPECT_NE(
      one_number.warning.find("rank 0 was told that its host '0#0' has 2 workers, but it has 1"),
      std::string::npos)
      << one_number.warning;
  EXPECT_NE(found({{"m", "a", "0"}, {"n", "b", "0"}}).warning.find("the launcher's host number 0"),
            std::string::npos);
}

TEST(Hosts, NamesDecideWhereTheSystemDoesNot) {
  EXPECT_EQ(counts({{"", "a"}, {"", "a"}, {"", "b"}}), (Counts{2, 1}));
  EXPECT_EQ(counts({{"m", "a"}, {"", "a"}}), (Counts{1, 1}));
  const std::string words = refusal({{"", "a", "", 0, 2}, {"", "a", "", 0, 2}});
  EXPECT_NE(words.find("[test] the launcher's numbers must fit the names"), std::string::npos);
  EXPECT_NE(words.find("rank 1 was told that it is worker 0 of its host 'a', but it is worker 1"),
            std::string::npos)
      << words;
}

TEST(Hosts, RanksOfOneFollowEachOther) {
  const std::string by_number = refusal({{"m", "a", "0"}, {"m", "a", "1"}, {"m", "a", "0"}});
  EXPECT_NE(by_number.find("host by host, got hosts 0, 1, 0 in rank order"), std::string::npos)
      << by_number;
  const std::string by_machine = refusal({{"m", "x"}, {"n", "x"}, {"m", "x"}});
  EXPECT_NE(by_machine.find("got hosts x#0, x#1, x#0"), std::string::npos) << by_machine;
}

TEST(Hosts, ThisProcessKnowsItsMachine) {
  const std::string machine = machine_of_this_process();
  EXPECT_NE(machine, "");
  EXPECT_TRUE(reach_of_shared_memory().starts_with(machine + "/")) << machine;
}

}  // namespace
}  // namespace gossamer
