#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <regex>
#include <string>
#include <vector>

#include "gossamer/base/index.h"
#include "gossamer/cli/picture/layout.h"
#include "gossamer/cli/picture/matrix.h"
#include "gossamer/cli/topology/report.h"
#include "gossamer/graph/topology.h"

namespace gossamer {
namespace {

std::string picture_of(const std::string& topology, const HostShape& shape) {
  return to_svg(report_on(topology, {}, make_topology(topology, {.shape = shape})));
}

std::size_t times_in(const std::string& text, const std::string& word) {
  std::size_t count = 0;
  for (auto at = text.find(word); at != text.npos; at = text.find(word, at + 1)) ++count;
  return count;
}

/// Columns that the cells of a matrix cover, all rows together.
double cells_in(const std::string& svg, double cell) {
  const std::regex width("h([0-9.]+)v");
  double sum = 0;
  for (std::sregex_iterator at(svg.begin(), svg.end(), width), end; at != end; ++at) {
    sum += std::stod((*at)[1]);
  }
  return sum / cell;
}

TEST(LayOutGrid, PlacesWorkersRowByRow) {
  const PictureLayout layout = lay_out_grid(even_hosts(2, 3), 2, 3);
  for (int worker = 0; worker < 6; ++worker) {
    const PicturePoint& first = layout.workers[0];
    const PicturePoint& own = layout.workers[at(worker)];
    EXPECT_EQ(own.x - first.x, worker % 3 * kGridCell);
    EXPECT_EQ(own.y - first.y, worker / 3 * kGridCell);
  }
  ASSERT_EQ(layout.hosts.size(), 2u) << "a row each";
  EXPECT_EQ(layout.hosts[1].middle.x, 0);
}

TEST(LayOutGrid, GivesAHostABoxInEachOfItsRows) {
  const PictureLayout layout = lay_out_grid(even_hosts(3, 2), 2, 3);
  std::vector<int> hosts;
  for (const Box& box : layout.hosts) hosts.push_back(box.host);
  EXPECT_EQ(hosts, (std::vector{0, 1, 1, 2}));
  EXPECT_EQ(layout.host_names.size(), 3u);
}

TEST(LayOutGrid, GivesTheOnlyHostOneBoxAroundAll) {
  const PictureLayout layout = lay_out_grid(even_hosts(1, 6), 2, 3);
  ASSERT_EQ(layout.hosts.size(), 1u);
  EXPECT_EQ(layout.hosts[0].width, 3 * kGridCell);
  EXPECT_EQ(layout.hosts[0].height, 2 * kGridCell);
  EXPECT_TRUE(layout.host_names.empty());
}

TEST(LayOut, PlacesWorkersOfTheOnlyHostOnACircleInsideItsBox) {
  for (int workers : {1, 2, 3, 8, 24}) {
    SCOPED_TRACE(workers);
    const PictureLayout layout = lay_out(even_hosts(1, workers));
    ASSERT_EQ(layout.workers.size(), static_cast<std::size_t>(workers));
    ASSERT_EQ(layout.hosts.size(), 1u);
    const Box& box = layout.hosts[0];
    const PicturePoint& first = layout.workers[0];
    for (int one = 0; one < workers; ++one) {
      const PicturePoint& own = layout.workers[at(one)];
      EXPECT_NEAR(std::hypot(own.x, own.y), std::hypot(first.x, first.y), 1e-9);
      EXPECT_LE(std::max(std::abs(own.x), std::abs(own.y)) + kWorkerRadius, box.width / 2);
      for (int other = 0; other < one; ++other) {
        const PicturePoint& its = layout.workers[at(other)];
        EXPECT_GT(std::hypot(own.x - its.x, own.y - its.y), 2 * kWorkerRadius);
      }
    }
    EXPECT_GE(layout.extent, box.width / 2);
  }
}

TEST(ToSvg, LinksOfATorusThatGoAroundLeaveAtTheSides) {
  const std::string around = "stroke-dasharray";
  EXPECT_EQ(times_in(picture_of("grid", even_hosts(16, 1)), around), 0u);
  // 4 rows and 4 columns have a link around each, drawn at both of its ends.
  EXPECT_EQ(times_in(picture_of("torus", even_hosts(16, 1)), around), 16u);
  // Of 2 rows, both neighbours along a column are one.
  EXPECT_EQ(times_in(picture_of("torus", even_hosts(6, 1)), around), 4u);
  EXPECT_EQ(times_in(picture_of("torus", even_hosts(7, 1)), around), 0u) << "a ring";
}

TEST(ToSvg, ShowsTheMatrixWhereWorkersAreTooMany) {
  for (const char* topology : {"ring", "exponential", "random_directed"}) {
    EXPECT_GT(times_in(picture_of(topology, even_hosts(24, 1)), "class=\"rank\""), 0u);
    EXPECT_EQ(times_in(picture_of(topology, even_hosts(25, 1)), "class=\"rank\""), 0u);
  }
  EXPECT_EQ(times_in(picture_of("torus", even_hosts(25, 4)), "class=\"rank\""), 100u);
  EXPECT_EQ(times_in(picture_of("torus", even_hosts(26, 4)), "class=\"rank\""), 0u);
}

TEST(DrawMatrix, HasACellForEachWeight) {
  const HostShape shape = even_hosts(32, 1);
  const Schedule ring = make_topology("ring", {.shape = shape});
  // The side less the room for numbers is 32 cells of 10.
  EXPECT_NEAR(cells_in(draw_matrix(ring.round(0, {}), shape, 364), 10), 3 * 32, 1e-9);
  const Schedule complete = make_topology("complete", {.shape = shape});
  EXPECT_NEAR(cells_in(draw_matrix(complete.round(0, {}), shape, 364), 10), 32 * 32, 1e-9);
}

TEST(ToSvg, FitsAnyWidthAndFollowsLightOrDark) {
  const std::string svg = picture_of("aer", even_hosts(4, 2));
  const std::string head = svg.substr(0, svg.find('>'));
  EXPECT_NE(head.find("viewBox=\"0 0 "), head.npos) << head;
  EXPECT_NE(head.find("width=\"100%\" style=\"max-width:"), head.npos) << head;
  EXPECT_EQ(head.find(" height="), head.npos) << head;
  EXPECT_NE(svg.find("@media (prefers-color-scheme: dark)"), svg.npos);
  const std::string marks = svg.substr(svg.find("</style>"));
  EXPECT_FALSE(std::regex_search(marks, std::regex("#[0-9a-f]{6}"))) << "colours are classes";
}

}  // namespace
}  // namespace gossamer
