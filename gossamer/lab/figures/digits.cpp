// Corrections and global averages on images that are dealt by class.
#include "gossamer/base/errors.h"
#include "gossamer/graph/modifiers.h"
#include "gossamer/lab/figures/figure_parts.h"

namespace gossamer {
namespace {

constexpr int kWorkers = 16;
constexpr int kPool = 4;  // pixels per side of a feature

struct Method {
  const char* name;
  const char* pattern;
  Schedule schedule;
};

std::vector<Method> methods() {
  const Schedule ring = topology_of("ring", kWorkers);
  return {{"parallel SGD", "allreduce", ring},
          {"Exact-Diffusion", "exact_diffusion", lazy(ring)},
          {"EXTRA", "extra", lazy(ring)},
          {"gradient tracking", "gradient_tracking", lazy(ring)},
          {"D-SGD, exponential", "atc", topology_of("exponential", kWorkers)},
          {"PGA, H = 16", "atc", with_global_average(ring, 16)},
          {"D-SGD", "atc", ring},
          {"D-SGD, cwa", "cwa", ring},
          {"local SGD, H = 16", "atc", with_local_steps(complete_schedule(ring.shape), 16)}};
}

}  // namespace

Figure digits(const FigureOptions& options) {
  if (options.images.empty() || options.labels.empty()) {
    fail_argument({.place = "lab figure",
                   .what = "figure digits needs two IDX files, as MNIST has them",
                   .got = options.images.empty() ? "no --images" : "no --labels",
                   .remedy = "give --images FILE and --labels FILE"});
  }
  const Images images = read_images(options.images, options.labels, kPool);
  Figure figure{
      .text =
          "Multinomial logistic regression on the given images (means of 4 × 4 pixels, ridge .01) "
          "over a ring of 16 workers, 4 images per worker and step, α = .3 halved every 500 "
          "steps. Left the images are dealt at random, right sorted by class.",
      .header = {"method", "images", "MSE", "±", "ratio to parallel SGD", "loss − least"}};
  for (const Split split : {Split::iid, Split::by_class}) {
    const auto problem = make_softmax(images, {.workers = kWorkers, .batch = 4, .split = split});
    const std::vector<double> minimiser = problem->minimiser();
    std::vector<Contender> contenders;
    for (const Method& method : methods()) {
      contenders.push_back({method.name,
                            {.schedule = method.schedule,
                             .pattern = method.pattern,
                             .step_size = {.first = 0.3, .factor = 0.5, .every = 500},
                             .steps = 2500,
                             .record_every = 250,
                             .seed = options.seed,
                             .records_loss = true}});
    }
    const auto outcomes = compare(*problem, minimiser, contenders, repeats_of(options, 5));
    const double least = problem->loss(minimiser);
    const char* dealt = split == Split::iid ? "at random" : "by class";
    const double first = last_of(outcomes[0], &Point::error).mean;
    for (const Outcome& outcome : outcomes) {
      const Final mse = last_of(outcome, &Point::error);
      figure.rows.push_back({outcome.name, dealt, three_digits(mse.mean), three_digits(mse.error),
                             three_digits(mse.mean / first),
                             three_digits(last_of(outcome, &Point::loss).mean - least)});
    }
    figure.charts.push_back(chart_of(dealt, outcomes, &Point::error, "MSE"));
  }
  return figure;
}

}  // namespace gossamer
