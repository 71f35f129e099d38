// Oracles are formulas of the poster and the lecture, typed again here.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gossamer/base/json.h"
#include "gossamer/cli/program_run.h"
#include "gossamer/cli/theory/figure.h"
#include "gossamer/graph/schedule_spec.h"

namespace gossamer {
namespace {

using program_run::golden;
using program_run::Result;
using program_run::run;

Json theory(const std::string& arguments) {
  const Result result = run("theory " + arguments + " --json");
  EXPECT_EQ(result.code, 0) << arguments << "\n" << result.err;
  return Json::parse(result.out);
}

void expect_close(const Json& found, double expected, const std::string& what) {
  EXPECT_NEAR(found.get<double>() / expected, 1, 1e-12) << what;
}

TEST(TheoryCommand, PrintsTheGoldenTables) {
  const std::pair<const char*, const char*> cases[] = {
      {"theory_bound.txt", "theory bound aer --hosts 4 --per-host 4 --parameters 65M"},
      {"theory_rates.txt", "theory rates ring --hosts 16 --steps 10000"},
      {"theory_transient.txt", "theory transient ring --hosts 16 --global-average 8"},
      {"theory_speedup.txt", "theory speedup --gamma 0.5,2.05 --omega 1,0.47 --sigma 0,0.1"},
  };
  for (const auto& [name, arguments] : cases) {
    const Result result = run(arguments);
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(result.err, "");
    EXPECT_EQ(result.out, golden(name, result.out)) << arguments;
  }
}

TEST(TheoryCommand, HelpNamesItsCommandsAndEveryOneHasExamples) {
  const Result all = run("theory");
  EXPECT_EQ(all.code, 0);
  for (const std::string command : {"bound", "rates", "transient", "speedup"}) {
    EXPECT_NE(all.out.find("  " + command + " "), std::string::npos) << command;
    const Result help = run("theory " + command + " --help");
    EXPECT_EQ(help.code, 0);
    EXPECT_NE(help.out.find("examples:\n  gossamer theory " + command), std::string::npos);
  }
}

TEST(TheoryCommand, BoundIsTheTheorem) {
  const double alpha = 2e-3;
  const double b1 = 0.8;
  const double b2 = 0.99;
  const double eps = 1e-4;
  const double T = 5000;
  const double D = 1500;
  const double R = 3;
  const double L = 7;
  const double excess = 11;
  const double lambda = 0.6;
  const Json json = theory(
      "bound --lambda 0.6 --step-size 2e-3 --beta1 0.8 --beta2 0.99 --epsilon 1e-4 --steps 5000 "
      "--parameters 1.5k --gradient-bound 3 --smoothness 7 --excess-loss 11");
  const double late = T - b1 / (1 - b1);
  const double ratio = 1 - b1 / b2;
  const double per_step = std::log(1 + R / (eps * (1 - b2))) / late - T / late * std::log(b2);
  const double one = 4 * R / (alpha * late) * excess;
  const std::map<std::string, double> expected{
      {"noise", 24 * D * R * R * std::sqrt(1 - b1) / (std::sqrt(1 - b2) * std::pow(ratio, 1.5))},
      {"curvature", 2 * alpha * D * L * R * (1 - b1) / ((1 - b2) * ratio)},
      {"momentum", 4 * alpha * alpha * L * L * D * b1 / (ratio * std::pow(1 - b2, 1.5))},
      {"disagreement", 8 * alpha * alpha * (1 + lambda * lambda) * R * L * L * D *
                           std::sqrt(1 - b1) /
                           (std::pow(1 - lambda * lambda, 2) * (1 - b2) * ratio * std::sqrt(eps))}};
  ASSERT_EQ(json["terms"].size(), 5u);
  expect_close(json["terms"][0]["value"], one, "optimization");
  double sum = one;
  for (std::size_t k = 1; k < 5; ++k) {
    const std::string name = json["terms"][k]["term"];
    expect_close(json["terms"][k]["value"], expected.at(name), name);
    expect_close(json["terms"][k]["in_bound"], expected.at(name) * per_step, name);
    sum += expected.at(name) * per_step;
  }
  expect_close(json["per_step"], per_step, "per_step");
  expect_close(json["bound"], sum, "bound");
  expect_close(json["known_at_start"], 2 * L * excess, "known");
  EXPECT_EQ(json["verdict"], "vacuous");
}

TEST(TheoryCommand, BoundSaysWhereItSaysNothing) {
  const Json infinite = theory("bound --lambda 1");
  EXPECT_EQ(infinite["verdict"], "infinite");
  EXPECT_TRUE(infinite["bound"].is_null());
  EXPECT_NE(run("theory bound --lambda 1").out.find("\ninfinite, so it says nothing"),
            std::string::npos);
  EXPECT_NE(run("theory bound").out.find("\nvacuous: "), std::string::npos);
  const std::string good =
      "bound --lambda 0.5 --parameters 1 --steps 1e13 --step-size 1e-5 --beta1 0.01 --beta2 "
      "0.999999999 --epsilon 1 --gradient-bound 100 --smoothness 1e-3 --excess-loss 1e6";
  EXPECT_EQ(theory(good)["verdict"], "informative");
  EXPECT_NE(run("theory " + good).out.find("\ninformative: "), std::string::npos);
  // Two rounds of hypercube 4 are the average: 1 − 1/2.
  EXPECT_DOUBLE_EQ(theory("bound hypercube --hosts 4")["setting"]["lambda"], 0.5);
}

/// The ten rows of the lecture's tables, and two that follow: Exact-Diffusion for iid data.
TEST(TheoryCommand, TransientHasTheRowsOfTheLecture) {
  const double n = 20;
  const double rho = 0.9;
  const double gap = 1 - rho;
  const double H = 5;
  const double strong = n * rho * rho;
  const double general = std::pow(n, 3) * std::pow(rho, 4);
  struct Row {
    const char* method;
    const char* loss;
    const char* data;
    const char* order;
    double value;
  };
  const Row expected[] = {
      {"d_sgd", "strongly_convex", "iid", "n rho^2/(1 - rho)", strong / gap},
      {"d_sgd", "strongly_convex", "non_iid", "n rho^2/(1 - rho)^2", strong / gap / gap},
      {"d_sgd", "generally_convex", "iid", "n^3 rho^4/(1 - rho)^2", general / std::pow(gap, 2)},
      {"d_sgd", "generally_convex", "non_iid", "n^3 rho^4/(1 - rho)^4", general / std::pow(gap, 4)},
      {"d_sgd", "non_convex", "iid", "n^3 rho^4/(1 - rho)^2", general / std::pow(gap, 2)},
      {"d_sgd", "non_convex", "non_iid", "n^3 rho^4/(1 - rho)^4", general / std::pow(gap, 4)},
      {"exact_diffusion", "strongly_convex", "iid", "n rho^2/(1 - rho)", strong / gap},
      {"exact_diffusion", "strongly_convex", "non_iid", "n rho^2/(1 - rho)", strong / gap},
      {"exact_diffusion", "generally_convex", "iid", "n^3 rho^4/(1 - rho)^2",
       general / std::pow(gap, 2)},
      {"exact_diffusion", "generally_convex", "non_iid", "n^3 rho^4/(1 - rho)^2",
       general / std::pow(gap, 2)},
      {"global_average", "non_convex", "iid", "n^3 rho^4 H^2", general * H * H},
      {"global_average", "non_convex", "non_iid", "n^3 rho^4 H^4", general * std::pow(H, 4)},
  };
  const Json json = theory("transient --hosts 20 --rho 0.9 --global-average 5");
  ASSERT_EQ(json["rows"].size(), std::size(expected));
  for (std::size_t k = 0; k < std::size(expected); ++k) {
    const Json& row = json["rows"][k];
    const Row& e = expected[k];
    const std::string what = std::string(e.method) + " " + e.loss + " " + e.data;
    EXPECT_EQ(row["method"].get<std::string>() + " " + row["loss"].get<std::string>() + " " +
                  row["data"].get<std::string>(),
              what);
    EXPECT_EQ(row["order"], e.order) << what;
    EXPECT_NEAR(row["iterations"].get<double>() / e.value, 1, 1e-12) << what;
  }
}

TEST(TheoryCommand, TransientComparesTopologiesAsTheLecture) {
  const Json json = theory("transient --hosts 64");
  const double n = 64;
  const double log = 6;
  struct Row {
    const char* topology;
    const char* communication;
    double iterations;
  };
  const Row expected[] = {
      {"ring", "2", std::pow(n, 7)},
      {"star", "n", std::pow(n, 7)},
      {"grid", "4", std::pow(n, 5) * log * log},
      {"torus", "4", std::pow(n, 5)},
      {"random", "n/2", std::pow(n, 3)},
      {"exponential", "~1", std::pow(n, 3) * log * log},
      {"one_peer_exponential", "1", std::pow(n, 3) * log * log},
  };
  ASSERT_EQ(json["topologies"].size(), std::size(expected));
  for (std::size_t k = 0; k < std::size(expected); ++k) {
    const Json& row = json["topologies"][k];
    EXPECT_EQ(row["topology"], expected[k].topology);
    EXPECT_EQ(row["communication"], expected[k].communication);
    expect_close(row["printed_iterations"], expected[k].iterations, expected[k].topology);
    const double rho = row["rho"];
    expect_close(row["iterations"], std::pow(n, 3) * std::pow(rho, 4) / std::pow(1 - rho, 2),
                 expected[k].topology);
  }
  EXPECT_NEAR(json["topologies"][5]["rho"].get<double>(), 1 - 2.0 / 7, 1e-12);
  EXPECT_EQ(json["topologies"][6]["neighbours"], 1);
  EXPECT_TRUE(theory("transient --hosts 2000 --rho 0.5")["topologies"][0]["rho"].is_null());
}

TEST(TheoryCommand, RatesAreThoseOfTheLecture) {
  const double n = 32;
  const double rho = 0.7;
  const double T = 4000;
  const double s = 0.5;
  const double b = 2;
  const double H = 4;
  const auto third = [](double value, int thirds) { return std::pow(value, thirds / 3.0); };
  const double sampling = s / std::sqrt(n * T);
  const double slow = third(rho, 2) * third(s, 2) / (third(T, 2) * third(1 - rho, 1));
  const double unequal = third(rho, 2) * third(b, 2) / (third(T, 2) * third(1 - rho, 2));
  const double strong = s * s / (n * T);
  const double strong_slow = rho * rho * s * s / ((1 - rho) * T * T);
  const double strong_unequal = rho * rho * b * b / ((1 - rho) * (1 - rho) * T * T);
  const std::map<std::string, std::vector<double>> expected{
      {"p_sgd strongly_convex", {strong}},
      {"p_sgd generally_convex", {sampling}},
      {"p_sgd non_convex", {sampling}},
      {"d_sgd strongly_convex", {strong, strong_slow, strong_unequal}},
      {"d_sgd generally_convex", {sampling, slow, unequal}},
      {"d_sgd non_convex", {sampling, slow, unequal}},
      {"exact_diffusion strongly_convex", {strong, strong_slow}},
      {"exact_diffusion generally_convex", {sampling, slow}},
      {"one_peer_exponential non_convex", {sampling, third(s, 2) * third(5, 2) / third(T, 2)}},
      {"global_average non_convex",
       {sampling, third(rho, 2) * third(s, 2) * third(H, 1) / third(T, 2),
        third(rho, 2) * third(b, 2) * third(H, 2) / third(T, 2)}},
  };
  const Json json = theory(
      "rates --hosts 16 --per-host 2 --rho 0.7 --steps 4000 --sigma 0.5 --b 2 --global-average 4");
  ASSERT_EQ(json["rates"].size(), expected.size());
  for (const Json& rate : json["rates"]) {
    const std::string name =
        rate["method"].get<std::string>() + " " + rate["loss"].get<std::string>();
    const std::vector<double>& terms = expected.at(name);
    ASSERT_EQ(rate["terms"].size(), terms.size()) << name;
    double sum = 0;
    for (std::size_t k = 0; k < terms.size(); ++k) {
      expect_close(rate["terms"][k]["value"], terms[k], name);
      sum += terms[k];
    }
    expect_close(rate["sum"], sum, name);
  }
  EXPECT_EQ(theory("rates --hosts 2 --rho 0.5")["rates"][5]["terms"][2]["order"],
            "rho^(2/3) b^(2/3)/(T^(2/3) (1 - rho)^(2/3))");
  EXPECT_TRUE(theory("rates --hosts 12")["rates"][8]["sum"].is_null());
}

TEST(TheoryCommand, SpeedUpsAreTheClosedFormsAndTheRecursionAgreesWithoutJitter) {
  const Json json = theory("speedup --gamma 0.1,0.8,3 --omega 0.7,1 --variance 0,0.01 --buckets 4");
  ASSERT_EQ(json["rows"].size(), 12u);
  const double kappa = 1.76599139;  // of 16 normals, as tabulated
  for (const Json& row : json["rows"]) {
    const double gamma = row["gamma"];
    const double omega = row["omega"];
    const double slowest = 1 + kappa * row["sigma"].get<double>();
    const double all = std::max(slowest + gamma / 4, slowest * (1. / 3 + 2. / 12) + gamma);
    const double mixed = std::max(1.0, omega * gamma);
    EXPECT_NEAR(row["closed_form"]["allreduce"].get<double>(), all, 1e-6);
    EXPECT_NEAR(row["closed_form"]["decentralized"].get<double>(), mixed, 1e-12);
    EXPECT_NEAR(row["closed_form"]["speed_up"].get<double>(), 1 - mixed / all, 1e-6);
    const bool is_even = row["sigma"] == 0.0;
    EXPECT_NEAR(row["recursion"]["allreduce"].get<double>(), all, is_even ? 1e-9 : 0.05);
    EXPECT_NEAR(row["recursion"]["decentralized"].get<double>(), mixed, is_even ? 1e-9 : 0.1);
  }
}

/// The poster's first row, translation En-De on 4 hosts of 4: 22.0, 49.4 and 61.1 %.
TEST(TheoryCommand, SpeedUpIsNearThePosters) {
  const std::tuple<const char*, const char*, double> cases[] = {
      {"complete", "1", 0.2203}, {"one_peer_ring", "0.65", 0.4935}, {"aer", "0.47", 0.6105}};
  for (const auto& [topology, omega, published] : cases) {
    const Json json = theory("speedup " + std::string(topology) +
                             " --hosts 4 --per-host 4 --gamma 2.05 --sigma 0.1 --omega " + omega);
    EXPECT_NEAR(json["rows"][0]["recursion"]["speed_up"].get<double>(), published, 0.03)
        << topology;
  }
}

TEST(TheoryFigure, HasAPanelForEachSigmaAndALineForEachOmega) {
  const Schedule schedule = make_schedule({.topology = "ring"}, even_hosts(4, 1));
  const SpeedUpCurves curves =
      speed_up_curves(schedule, {.ratios = {.buckets = 5}, .steps = 20}, {1, 0.5}, {0, 0.1, 0.2});
  ASSERT_EQ(curves.curves.size(), 6u);
  EXPECT_EQ(curves.curves[1].omega, 0.5);
  EXPECT_DOUBLE_EQ(curves.gamma.front(), 0.1);
  EXPECT_DOUBLE_EQ(curves.gamma.back(), 10);
  EXPECT_NEAR(curves.curves[1].speed_up.back(), 1 - 5 / (10 + 1. / 3 + 2. / 15), 1e-9);
  const Figure figure = speed_up_figure("T", curves);
  ASSERT_EQ(figure.charts.size(), 3u);
  EXPECT_EQ(figure.charts[1].title, "σ = 0.1");
  ASSERT_EQ(figure.charts[1].series.size(), 2u);
  EXPECT_EQ(figure.charts[1].series[1].name, "ω = 0.5");
  EXPECT_EQ(figure.charts[1].series[1].y.back(), 100 * curves.curves[3].speed_up.back());
}

TEST(TheoryCommand, MistakesAreOneClearMessage) {
  const program_run::Complaint cases[] = {
      {"theory bund", "[gossamer theory] unknown command, got 'bund'; did you mean 'bound'"},
      {"theory bound --beta1 0.9995", "[DAdam bound] beta1 must lie between 0 and beta2"},
      {"theory bound --parameters many", "[theory bound] --parameters takes a number"},
      {"theory bound --lambda 2", "[theory bound] --lambda"},
      {"theory rates --stepps 3", "[theory rates] unknown argument, got '--stepps'; did you mean"},
      {"theory rates --steps 0", "[rates] there must be at least 1 step"},
      {"theory rates ring --rho 0.5", "[theory rates] topology and --rho contradict each other"},
      {"theory transient rign", "[topology] unknown"},
      {"theory transient random_directed", "[theory] rows and columns of W must sum to 1"},
      {"theory transient --hosts 100000", "[theory transient] there may be up to 65536 workers"},
      {"theory speedup --gamma -1", "[theory speedup] --gamma"},
      {"theory speedup --hosts 1 --per-host 4", "[model] gamma and omega are of links between"},
      {"theory speedup --sigma 0.1 --variance 0.01", "[theory speedup] --"},
      {"theory speedup --figure /nowhere/at/all.svg", "[theory speedup] cannot write the figure"},
  };
  expect_complaints(cases);
}

}  // namespace
}  // namespace gossamer
