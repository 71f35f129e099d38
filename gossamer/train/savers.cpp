#include "gossamer/train/savers.h"

#include <algorithm>
#include <cstdint>

#include "gossamer/base/index.h"
#include "gossamer/base/json.h"

namespace gossamer {

Savers::Savers(Collectives& collectives) : collectives_(collectives) {
  collectives.barrier();  // who is left
  ranks_ = collectives.took_part();
}

int Savers::place() const {
  return static_cast<int>(std::ranges::find(ranks_, collectives_.rank()) - ranks_.begin());
}

std::vector<std::string> Savers::gather(const std::string& own) {
  const std::vector<std::string> all = collectives_.gather(own);
  if (collectives_.took_part() != ranks_) throw FewerAreLeft();
  std::vector<std::string> said;
  for (const int rank : ranks_) said.push_back(all[at(rank)]);
  return said;
}

std::vector<WorkerFile> Savers::gather_files(const WorkerFile& own) {
  std::vector<WorkerFile> files;
  for (const std::string& said : gather(Json{own.bytes, own.crc32}.dump())) {
    const Json digest = parse_json(said);
    files.push_back(
        worker_file(static_cast<int>(std::ssize(files)),
                    {digest.at(0).get<std::uint64_t>(), digest.at(1).get<std::uint32_t>()}));
  }
  return files;
}

}  // namespace gossamer
