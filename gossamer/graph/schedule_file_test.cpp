#include "gossamer/graph/schedule_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>

#include "gossamer/base/errors.h"
#include "gossamer/graph/dense.h"
#include "gossamer/graph/schedule_spec.h"

namespace gossamer {
namespace {

/// A file that is there as long as this is.
class File {
 public:
  explicit File(const std::string& text)
      : folder_(testing::TempDir() + "/schedule_file_" + std::to_string(::getpid())) {
    std::filesystem::create_directories(folder_);
    std::ofstream(path()) << text;
  }
  ~File() { std::filesystem::remove_all(folder_); }
  std::string path() const { return (folder_ / "weights.json").string(); }

 private:
  std::filesystem::path folder_;
};

Schedule read(const std::string& text, int workers) {
  const File file(text);
  return schedule_from_file(file.path(), even_hosts(1, workers));
}

std::string message_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

std::string refused(const std::string& text, int workers = 2) {
  return message_of([&] { read(text, workers); });
}

TEST(ScheduleFile, ReadsMatricesEdgesAndGroupsInTurn) {
  const Schedule schedule = read(R"({"rounds": [
      [[0.5, 0.5, 0], [0, 0.5, 0.5], [0.5, 0, 0.5]],
      {"edges": [[0, 2, 0.25], [2, 0, 0.25], [2, 2, 0.75]]},
      {"groups": [[2, 0], [1]]}]})",
                                 3);
  EXPECT_EQ(schedule.period, 3);
  EXPECT_EQ(schedule.stochasticity, Stochasticity::doubly);
  const Round ring = round_at(schedule, 0);
  EXPECT_EQ(row_of(ring, 1), (std::vector<Entry>{{1, 0.5}, {2, 0.5}}));
  const Round edges = round_at(schedule, 4);
  EXPECT_EQ(row_of(edges, 0), (std::vector<Entry>{{0, 0.75}, {2, 0.25}}));
  EXPECT_EQ(row_of(edges, 1), (std::vector<Entry>{{1, 1.0}}));
  EXPECT_EQ(round_at(schedule, 5).groups, (std::vector<std::vector<int>>{{0, 2}, {1}}));
}

TEST(ScheduleFile, FindsOutWhichSumsAreOne) {
  EXPECT_EQ(read(R"({"rounds": [[[0.5, 0.2], [0.5, 0.8]]]})", 2).stochasticity,
            Stochasticity::column);
  EXPECT_EQ(read(R"({"rounds": [[[0.5, 0.5], [0.2, 0.8]]]})", 2).stochasticity, Stochasticity::row);
}

TEST(ScheduleFile, MakesSumsOfRoundedWeightsExact) {
  const Schedule schedule = read(R"({"rounds": [[[0.333333, 0.333333, 0.333334],
      [0.5, 0.166667, 0.333333], [0.166667, 0.5, 0.333333]]]})",
                                 3);
  const Eigen::MatrixXd w = dense_matrix(round_at(schedule, 0));
  EXPECT_LT((w.rowwise().sum().array() - 1).abs().maxCoeff(), 1e-11);
  EXPECT_LT((w.colwise().sum().array() - 1).abs().maxCoeff(), 1e-11);
  EXPECT_NEAR(w(1, 0), 0.5, 1e-6);
  EXPECT_TRUE(is_global_average(round_at(read(R"({"rounds": [[[0.5, 0.5], [0.5, 0.5]]]})", 2), 0)));
}

TEST(ScheduleFile, IsNamedAfterTheFileAndItsWeights) {
  const std::string a = read(R"({"rounds": [[[0.75, 0.25], [0.25, 0.75]]]})", 2).name;
  const std::string same =
      read(R"({ "note": 1,  "rounds": [[[0.75,0.25], [0.25,0.750]]]})", 2).name;
  const std::string b = read(R"({"rounds": [[[0.7, 0.3], [0.3, 0.7]]]})", 2).name;
  EXPECT_EQ(a.substr(0, 13), "weights.json#");
  EXPECT_EQ(a.size(), 21u);
  EXPECT_EQ(a, same);
  EXPECT_NE(a, b);
}

TEST(ScheduleFile, IsATopologyThatModifiersApplyTo) {
  const File file(R"({"rounds": [[[0.5, 0.5], [0.5, 0.5]], {"edges": []}], "workers": 2})");
  const Schedule schedule =
      make_schedule({.topology = file.path(), .lazy = true, .global_average = 4}, even_hosts(2, 1));
  EXPECT_EQ(schedule.period, 4);
  EXPECT_EQ(self_weight(round_at(schedule, 0), 0), 0.75);
  EXPECT_EQ(self_weight(round_at(schedule, 1), 0), 1);
  EXPECT_TRUE(is_global_average(round_at(schedule, 3)));
}

TEST(ScheduleFile, SaysForWhichHostsItIs) {
  const File plain(R"({"rounds": [{"edges": [[0, 2, 0.5], [2, 0, 0.5]]}]})");
  EXPECT_EQ(shape_in_file(plain.path()).workers_per_host, (std::vector<int>{1, 1, 1}));
  const File hosts(R"({"workers_per_host": [1, 2], "rounds": [{"groups": [[0, 1, 2]]}]})");
  EXPECT_EQ(shape_in_file(hosts.path()).workers_per_host, (std::vector<int>{1, 2}));
}

TEST(ScheduleFile, NamesFileRoundAndRemedyOfWhatIsWrong) {
  struct Case {
    const char* text;
    const char* said;
  };
  const Case cases[] = {
      {"rounds",
       "must be JSON with \"rounds\", a list with W of each round, got what is not JSON: "},
      {"[[[[[[[[[[]]]]]]]]]]", "got what is JSON nested in more than 8 levels; for example"},
      {"{}", "got no \"rounds\"; for example {\"rounds\": "},
      {R"({"rounds": []})", "got \"rounds\" that is no list, or empty"},
      {R"({"rounds": [[[1, 0, 0], [0, 1, 0], [0, 0, 1]]]})", "is for 3 workers, got 2; take as"},
      {R"({"rounds": [[[1, 0], [0]]]})", "round 0: row 1 of W must have 2 weights, got 1"},
      {R"({"rounds": [[[1, 0], [0, 1]], [[1, "x"], [0, 1]]]})",
       "round 1: a row of W must be a list of numbers, got [1,\"x\"]"},
      {R"({"rounds": [[[1.5, -0.5], [0, 1]]]})",
       "finite and not negative, got W[0][1] = -0.500000"},
      {R"({"rounds": [[[0.5, 0.5], [0.6, 0.5]]]})",
       "must sum to 1 in each round, got row 1 of round 0 with the sum 1.100000 and column 0 of "
       "round 0 with the sum 1.100000; give the rest to the worker itself"},
      {R"({"rounds": [{"edges": [[0, 1]]}]})", "an edge must be [receiver, sender, weight]"},
      {R"({"workers": 2, "rounds": [{"edges": [[0, 2, 0.5]]}]})", "an edge must be [receiver"},
      {R"({"rounds": [{"groups": [[0, 1], [1]]}]})", "in exactly one group, got worker 1 twice"},
      {R"({"rounds": [{"pairs": [[0, 1]]}]})", "a round must be a list of rows, {\"edges\""},
  };
  for (const Case& c : cases) {
    const std::string message = refused(c.text);
    EXPECT_NE(message.find(c.said), std::string::npos) << c.text << "\n" << message;
    EXPECT_NE(message.find("weights.json"), std::string::npos) << message;
  }
  EXPECT_THROW(schedule_from_file("no/such.json", even_hosts(1, 2)), IoError);
}

TEST(ScheduleFromMatrices, TakesEachInTurnAndRefusesNaN) {
  const Matrix a{{0.75, 0.25}, {0.25, 0.75}};
  const Matrix b{{0.5, 0.5}, {0.5, 0.5}};
  const Schedule schedule = schedule_from_matrices(std::vector{a, b}, even_hosts(2, 1));
  EXPECT_EQ(schedule.period, 2);
  EXPECT_EQ(schedule.name.substr(0, 9), "matrices#");
  EXPECT_EQ(row_of(round_at(schedule, 2), 1), (std::vector<Entry>{{0, 0.25}, {1, 0.75}}));
  EXPECT_TRUE(is_global_average(round_at(schedule, 1)));
  const Matrix bad{{1, std::nan("")}, {0, 1}};
  EXPECT_NE(message_of([&] {
              schedule_from_matrices(std::vector{a, bad}, even_hosts(2, 1));
            }).find("matrices, round 1: weights of W must be finite"),
            std::string::npos);
  EXPECT_THROW(schedule_from_matrices({}, even_hosts(2, 1)), std::invalid_argument);
}

}  // namespace
}  // namespace gossamer
