#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "gossamer/base/errors.h"
#include "gossamer/base/outside_error.h"
#include "gossamer/chart/figure_json.h"
#include "gossamer/cli/command_line.h"
#include "gossamer/cli/lab/commands.h"
#include "gossamer/cli/lab/flags.h"
#include "gossamer/cli/picture/drawing.h"
#include "gossamer/cli/text_table.h"
#include "gossamer/lab/figures.h"

namespace gossamer {
namespace lab_figure_command {

struct Options {
  std::vector<std::string> names;
  std::string out;
  FigureOptions figure;
  bool json = false;
  bool list = false;
};

constexpr const char* kFooter =
    R"(Prints the figure's table and writes its picture, NAME.svg; `all` writes every picture and one
page of them, figures.html. Bands are twice the standard error over the trials. Runs with the
same seed give the same numbers. Pictures need Python with matplotlib and Jinja2.

examples:
  gossamer lab figure --list
  gossamer lab figure global_averages --out figures
  gossamer lab figure all --out figures
  gossamer lab figure digits --images t10k-images-idx3-ubyte.gz --labels t10k-labels-idx1-ubyte.gz)";

void add_options(CLI::App& app, Options& o) {
  app.add_option("name", o.names, "a figure, or all; --list shows them; must be given");
  app.add_option("--out", o.out, "folder for pictures and page (default: this one)");
  app.add_option("--trials", o.figure.trials, "per method (default: each figure's own number)")
      ->check(CLI::Range(1, 10'000));
  add_threads_and_seed(app, o.figure.threads, o.figure.seed);
  app.add_option("--images", o.figure.images,
                 "digits: an IDX file of images, packed or not; left out: no digits");
  app.add_option("--labels", o.figure.labels,
                 "digits: the IDX file of their classes; left out: no digits");
  app.add_flag("--json", o.json, "print one JSON object");
  app.add_flag("--list", o.list, "list the figures");
  app.footer(kFooter);
}

void print_table(const Figure& figure) {
  std::vector<std::vector<std::string>> rows = {figure.header};
  rows.insert(rows.end(), figure.rows.begin(), figure.rows.end());
  std::printf("%s\n%s", figure.title.c_str(), text_table(rows).c_str());
}

std::filesystem::path made_folder(const Options& o) {
  const std::filesystem::path folder = o.out.empty() ? "." : o.out;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    fail_outside({.place = "lab figure",
                  .what = "cannot make the folder " + folder.string(),
                  .got = error.message(),
                  .remedy = "check the path"});
  }
  return folder;
}

/// The figure as JSON; its table is printed unless JSON is wanted.
Json made(const FigureRow& row, const Options& o) {
  const auto begin = std::chrono::steady_clock::now();
  const Figure figure = make_figure(row, o.figure);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  if (!o.json) {
    print_table(figure);
    std::printf("\n");
  }
  std::fprintf(stderr, "%s: %.1f s\n", figure.name.c_str(), took.count());
  return figure_json(figure);
}

int show(const Options& o, const Json& figures, std::vector<std::string> arguments) {
  if (o.json) std::cout << figures.dump() << '\n';
  return draw({.place = "lab figure", .figures = figures, .arguments = std::move(arguments)});
}

int make_all(const Options& o) {
  const std::filesystem::path folder = made_folder(o);
  Json all = Json::array();
  for (const FigureRow& row : figures()) {
    if (row.needs_images && o.figure.images.empty()) {
      std::fprintf(stderr, "%s: skipped, it needs --images and --labels\n", row.name.data());
      continue;
    }
    all.push_back(made(row, o));
  }
  return show(o, all,
              {"--folder", folder.string(), "--page", (folder / "figures.html").string(), "--title",
               "Decentralized optimization in figures"});
}

int make_one(const FigureRow& row, const Options& o) {
  const std::filesystem::path folder = made_folder(o);
  return show(o, made(row, o), {"--folder", folder.string()});
}

void print_list() {
  for (const FigureRow& row : figures()) {
    std::printf("%-26s %s\n", row.name.data(), row.summary.data());
  }
}

}  // namespace lab_figure_command

int run_lab_figure(int argc, char** argv) {
  using namespace lab_figure_command;
  Options o;
  CLI::App app("Makes figures of decentralized optimization.");
  add_options(app, o);
  parse_command_line(app, "lab figure", argc, argv);
  if (o.list) {
    print_list();
    return 0;
  }
  if (o.names.size() != 1) {
    fail_argument({.place = "lab figure",
                   .what = "makes one figure, or all",
                   .got = std::to_string(o.names.size()) + " names",
                   .remedy = "give one name of `gossamer lab figure --list`, or all"});
  }
  if (o.names.front() == "all") return make_all(o);
  return make_one(find_figure(o.names.front()), o);
}

}  // namespace gossamer
