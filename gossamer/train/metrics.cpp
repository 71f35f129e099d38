#include "gossamer/train/metrics.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

#include "gossamer/base/disk.h"
#include "gossamer/base/errors.h"
#include "gossamer/base/outside_error.h"

namespace gossamer {
namespace {

/// Behind all others: a line that was cut off, or is none of ours.
std::int64_t step_of(std::string_view line) {
  constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  if (!line.ends_with('\n')) return kNever;
  try {
    return parse_json(line).value("step", std::int64_t{0});
  } catch (const std::invalid_argument&) {
    return kNever;
  } catch (const Json::exception&) {  // no object, or no number
    return kNever;
  }
}

/// The lines up to a step, without what came after its checkpoint or was cut off in the middle.
std::string lines_until(const std::filesystem::path& path, std::int64_t step) {
  if (!is_there(path)) return {};
  const FileBytes bytes = read_file(path);
  std::string_view text(reinterpret_cast<const char*>(bytes.memory.get()), bytes.size);
  std::string kept;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, std::min(text.find('\n'), text.size() - 1) + 1);
    if (step_of(line) <= step) kept += line;
    text.remove_prefix(line.size());
  }
  return kept;
}

}  // namespace

MetricsFile::MetricsFile(const std::filesystem::path& folder, int rank, std::int64_t first) {
  if (folder.empty()) return;
  path_ = folder / ("metrics.rank" + std::to_string(rank) + ".jsonl");
  write_file(path_, first > 0 ? lines_until(path_, first) : "");
  file_.open(path_, std::ios::app);
  if (!file_) fail_outside({.place = "train", .what = "cannot write " + path_.string()});
}

void MetricsFile::write(const Json& line) {
  if (!file_.is_open() || !is_whole_) return;
  file_ << line.dump() << '\n' << std::flush;
  if (file_) return;
  is_whole_ = false;
  const std::string what = "the metrics end before step " + line["step"].dump();
  const Complaint complaint{.place = path_.native(),
                            .what = what,
                            .got = std::system_category().message(errno),
                            .remedy = "the run goes on without them; free space on that disk"};
  std::fprintf(stderr, "gossamer: %s\n", to_string(complaint).c_str());
}

Json edges_json(const TransportInfo& info) {
  Json edges = Json::array();
  for (const EdgeBytes& edge : info.edges) {
    edges.push_back({{"peer", edge.peer}, {"sent", edge.sent}, {"received", edge.received}});
  }
  return edges;
}

}  // namespace gossamer
