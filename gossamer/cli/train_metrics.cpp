#include "gossamer/cli/train_metrics.h"

#include "gossamer/base/disk.h"
#include "gossamer/base/outside_error.h"

namespace gossamer {
namespace {

/// The lines up to a step, without what came after its checkpoint or was cut off in the middle.
std::string lines_until(const std::filesystem::path& path, std::int64_t step) {
  std::ifstream file(path);
  std::string kept;
  for (std::string line; std::getline(file, line);) {
    const Json object = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (object.is_object() && object.value("step", std::int64_t{0}) <= step) kept += line + '\n';
  }
  return kept;
}

}  // namespace

MetricsFile::MetricsFile(const std::filesystem::path& folder, int rank, std::int64_t first) {
  if (folder.empty()) return;
  const auto path = folder / ("metrics.rank" + std::to_string(rank) + ".jsonl");
  write_file(path, first > 0 ? lines_until(path, first) : "");
  file_.open(path, std::ios::app);
  if (!file_) fail_outside({.place = "train", .what = "cannot write " + path.string()});
}

void MetricsFile::write(const Json& line) {
  if (file_.is_open()) file_ << line.dump() << '\n' << std::flush;
}

Json edges_json(const TransportInfo& info) {
  Json edges = Json::array();
  for (const EdgeBytes& edge : info.edges) {
    edges.push_back({{"peer", edge.peer}, {"sent", edge.sent}, {"received", edge.received}});
  }
  return edges;
}

}  // namespace gossamer
