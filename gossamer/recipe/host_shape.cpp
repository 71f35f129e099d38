#include "gossamer/recipe/host_shape.h"

#include <algorithm>
#include <charconv>

#include "gossamer/base/errors.h"

namespace gossamer {
namespace {

std::string plural(int count, const std::string& word) {
  return std::to_string(count) + " " + word + (count == 1 ? "" : "s");
}

}  // namespace

std::vector<int> parse_counts(std::string_view flag, std::string_view text) {
  std::vector<int> counts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    int count = 0;
    const char* last = text.data() + end;
    const auto [stop, error] = std::from_chars(text.data() + begin, last, count);
    if (error != std::errc() || stop != last || count < 1) {
      fail_argument({.place = "command line",
                     .what = std::string(flag) + " takes whole numbers from 1 up",
                     .got = "'" + std::string(text) + "'",
                     .remedy = "for example 2, or 1,2,4 for one number per host"});
    }
    counts.push_back(count);
    begin = end + 1;
  }
  return counts;
}

HostShape parse_host_shape(int hosts, std::string_view per_host, std::string_view place) {
  HostShape shape{parse_counts("--per-host", per_host)};
  if (shape.hosts() == 1) return even_hosts(hosts, shape.workers_per_host.front(), place);
  check_host_shape(shape, place);
  return shape;
}

HostShape host_shape_of(int hosts, int default_hosts, const std::string& per_host,
                        const std::string& place) {
  HostShape shape = parse_host_shape(hosts == 0 ? default_hosts : hosts, per_host, place);
  if (hosts == 0 || hosts == shape.hosts()) return shape;
  fail_argument({.place = place,
                 .what = "--per-host must have one number, or one for each of the " +
                         std::to_string(hosts) + " hosts",
                 .got = "'" + per_host + "'",
                 .remedy = "leave --hosts out to take as many hosts as there are numbers"});
}

std::string describe(const HostShape& shape) {
  const std::vector<int>& counts = shape.workers_per_host;
  const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
  if (*least == *most) return plural(shape.hosts(), "host") + " x " + plural(*least, "worker");
  std::string text = plural(shape.hosts(), "host") + " with ";
  for (std::size_t h = 0; h < counts.size(); ++h) {
    text += (h == 0 ? "" : ", ") + std::to_string(counts[h]);
  }
  return text + " workers";
}

}  // namespace gossamer
