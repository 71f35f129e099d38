#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "gossamer/algo/pattern.h"
#include "gossamer/base/index.h"
#include "gossamer/base/json.h"
#include "gossamer/cli/program_run.h"

namespace gossamer {
namespace {

using program_run::Result;
using program_run::run;
using program_run::run_program;

const std::string kQuick = " --hosts 6 --samples 50 --dimension 3 --steps 200 --record-every 100 ";

TEST(LabCommand, HelpNamesItsCommandsAndSaysWhatToTry) {
  const Result result = run("lab");
  EXPECT_EQ(result.code, 0);
  for (const char* word : {"figure", "run", "transient", "try:"}) {
    EXPECT_NE(result.out.find(word), std::string::npos) << word;
  }
}

TEST(LabCommand, RunShowsMethodsSideBySide) {
  const Result result = run("lab run" + kQuick + "--json");
  ASSERT_EQ(result.code, 0) << result.err;
  const Json json = Json::parse(result.out);
  EXPECT_EQ(json["workers"], 6);
  EXPECT_EQ(json["settings"]["lr"], 0.1);
  EXPECT_EQ(json["settings"]["batch"], 1);
  EXPECT_EQ(json["settings"]["steps"], 200);
  EXPECT_TRUE(json["settings"].contains("heterogeneity"));
  EXPECT_FALSE(json["settings"].contains("noise")) << "which is least squares'";
  ASSERT_EQ(json["methods"].size(), 3u);
  EXPECT_EQ(json["methods"][0]["method"], "allreduce");
  for (const Json& method : json["methods"]) {
    EXPECT_EQ(method["step"], (std::vector<double>{100, 200}));
    EXPECT_GT(method["mse"][1].get<double>(), 0);
  }
  EXPECT_LT(json["methods"][0]["disagreement"][1].get<double>(), 1e-20);
}

/// All that a method can be told, and what each word does: W = J makes them one method.
TEST(LabCommand, WordsOfMethodsDoWhatTheySay) {
  const Result result = run("lab run" + kQuick +
                            "allreduce atc@complete atc@ring:average=1 atc@complete:local=1 "
                            "atc@ring:rounds=200 allreduce:lr=0.05 --trials 1 --json");
  ASSERT_EQ(result.code, 0) << result.err;
  const Json methods = Json::parse(result.out)["methods"];
  const double parallel = methods[0]["mse"][1];
  for (std::size_t k = 1; k <= 4; ++k) {
    EXPECT_NEAR(methods[k]["mse"][1].get<double>(), parallel, 1e-9) << methods[k]["method"];
  }
  EXPECT_GT(std::abs(methods[5]["mse"][1].get<double>() - parallel), 1e-6);
  const Result more = run("lab run" + kQuick +
                          "dmsgd@aer:optimizer=momentum:momentum=0.8:nesterov "
                          "cwa@base_k:degree=2:optimizer=accum_adam:accumulate=2:lr=0.01");
  EXPECT_EQ(more.code, 0) << more.err;
}

/// Each row of the table, with the words that it needs beside its name; and options reach the run.
TEST(LabCommand, RunsEveryPattern) {
  const std::map<std::string_view, std::string> needs{{"push_sum", "@random_directed"},
                                                      {"slowmo", "@complete:local=2:outer_every=4"},
                                                      {"allreduce", ""},
                                                      {"noloco", "@one_peer_ring:outer_every=4"},
                                                      {"dmsgd", "@ring:optimizer=momentum"},
                                                      {"qg_dmsgd", "@ring:optimizer=momentum"},
                                                      {"dsgd_ac", "@ring:optimizer=adam"},
                                                      {"cwa_moments", "@ring:optimizer=adam"}};
  std::string methods;
  for (const Pattern& pattern : patterns()) {
    const auto found = needs.find(pattern.name);
    methods += " " + std::string(pattern.name);
    methods += found == needs.end() ? "@ring:lazy" : found->second;
  }
  const Result result = run("lab run" + kQuick + methods +
                            " slowmo@complete:local=2:outer_every=4:outer_momentum=0.1 --trials 1"
                            " --json");
  ASSERT_EQ(result.code, 0) << result.err;
  const Json found = Json::parse(result.out)["methods"];
  ASSERT_EQ(found.size(), patterns().size() + 1);
  for (const Json& method : found) {
    EXPECT_TRUE(std::isfinite(method["mse"][1].get<double>())) << method["method"];
  }
  const auto of = [&](std::string_view name) {
    const auto row = std::ranges::find(patterns(), name, &Pattern::name) - patterns().begin();
    return found[at(row)]["mse"][1].get<double>();
  };
  EXPECT_NE(of("slowmo"), found.back()["mse"][1].get<double>());
}

TEST(LabCommand, CsvHasARowPerMethodTrialAndRecord) {
  const Result result = run("lab run" + kQuick + "cwa@ring atc@star --trials 3 --csv --loss");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(std::ranges::count(result.out, '\n'), 1 + 2 * 3 * 2);
  EXPECT_EQ(result.out.substr(0, result.out.find('\n')),
            "method,trial,step,mse,mean_mse,disagreement,loss");
}

/// What is printed does not need Python, whose package this copy of the program does not have.
TEST(LabCommand, WithoutThePackageAFigureIsPrintedAndNotDrawn) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "lab" / "alone";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const std::filesystem::path program = folder / "gossamer";
  std::filesystem::copy_file(GOSSAMER_PROGRAM, program);
  const std::string out = " --out " + (folder / "figures").string();
  const Result text = run_program(program.string(), "lab figure exact_averaging" + out);
  EXPECT_NE(text.out.find("base_k"), std::string::npos) << text.out;
  const std::string last = "[lab figure] the Python package is not beside this program, got ";
  EXPECT_NE(text.err.find("\n" + last), std::string::npos) << text.err;
  EXPECT_EQ(text.code, 2);
  const Result object = run_program(program.string(), "lab figure exact_averaging --json" + out);
  const Json json = Json::parse(object.out);
  EXPECT_EQ(json["figure"], "exact_averaging");
  EXPECT_EQ(json["rows"].size(), 6u);
  EXPECT_EQ(json["charts"][0]["log_y"], true);
  EXPECT_EQ(json["charts"][0]["series"].size(), 6u);
  EXPECT_EQ(object.code, 2);
  const Result table =
      run_program(program.string(), "lab run" + kQuick + "--svg " + (folder / "a.svg").string());
  EXPECT_EQ(std::ranges::count(table.out, '\n'), 4) << table.out;
  EXPECT_EQ(table.code, 2);
  std::filesystem::remove_all(folder);
}

TEST(LabCommand, TransientFitsAPower) {
  const Result result = run("lab transient --sizes 12,24 --trials 4 --json");
  ASSERT_EQ(result.code, 0) << result.err;
  const Json json = Json::parse(result.out);
  EXPECT_GT(json["exponent"].get<double>(), 1);
  // n ρ²/(1 − ρ) of rings with 1 − ρ = (2/3)(1 − cos 2π/n).
  EXPECT_NEAR(json["bound_exponent"].get<double>(), 3.18, 0.02);
}

TEST(LabCommand, TransientPrintsATable) {
  const Result two = run("lab transient --sizes 12,24 --trials 4");
  ASSERT_EQ(two.code, 0) << two.err;
  EXPECT_EQ(std::ranges::count(two.out, '\n'), 4);
  // 1 - rho = (2/3)(1 - cos 2π/12) of the ring.
  EXPECT_NE(two.out.find("\n      12       0.0893 "), std::string::npos) << two.out;
  EXPECT_NE(two.out.find("the bound as n^3.1"), std::string::npos) << two.out;
  const Result one = run("lab transient --sizes 8 --trials 4");
  EXPECT_NE(one.out.find("steps grow as n^-, the bound as n^-\n"), std::string::npos) << one.out;
}

TEST(LabCommand, TransientOfLogisticRegressionIsLonger) {
  const auto steps_of = [](const std::string& problem) {
    const Result result = run("lab transient --sizes 8,12 --trials 4 --json --problem " + problem);
    EXPECT_EQ(result.code, 0) << result.err;
    const Json json = Json::parse(result.out);
    EXPECT_EQ(json["problem"], problem);
    return json["rows"][1]["steps"].get<double>();
  };
  EXPECT_GT(steps_of("logistic"), 3 * steps_of("least_squares"));
}

TEST(LabCommand, MistakesAreExplained) {
  struct Mistake {
    const char* arguments;
    const char* says;
  };
  for (const Mistake& mistake : {
           Mistake{"lab figures", "did you mean 'figure'"},
           Mistake{"lab figure", "got 0 names"},
           Mistake{"lab figure global_average", "global_averages"},
           Mistake{"lab figure digits", "--images FILE"},
           Mistake{"lab figure digits --images /none --labels /none", "is not a file"},
           Mistake{"lab run atc", "atc@ring"},
           Mistake{"lab run atc@rin", "ring"},
           Mistake{"lab run at@ring", "atc"},
           Mistake{"lab run atc@ring:average", "'average' needs a number"},
           Mistake{"lab run atc@ring:local=0.5", "'local' needs a number from 1"},
           Mistake{"lab run atc@ring:lasy", "lazy"},
           Mistake{"lab run exact_diffusion@ring --hosts 4", "lazy"},
           Mistake{"lab run --problem images", "--images FILE"},
           Mistake{"lab run --heterogeneity 2", "heterogeneity must be from 0 to 1"},
           Mistake{"lab run --svg /nowhere/a.svg",
                   "cannot write the picture, got '/nowhere/a.svg'"},
           Mistake{"lab transient --factor 1", "above 1"},
           Mistake{"lab transient --sizs 3", "--sizes"},
       }) {
    const Result result = run(mistake.arguments);
    EXPECT_NE(result.code, 0) << mistake.arguments;
    EXPECT_EQ(result.out, "") << mistake.arguments;
    EXPECT_NE(result.err.find(mistake.says), std::string::npos)
        << mistake.arguments << ": " << result.err;
    EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << mistake.arguments << ": " << result.err;
  }
}

}  // namespace
}  // namespace gossamer
