#pragma once
/// Savers: the workers that save a checkpoint together.

#include <string>
#include <vector>

#include "gossamer/base/errors.h"
#include "gossamer/checkpoint/manifest.h"
#include "gossamer/engine/collectives.h"

namespace gossamer {

/// Thrown where a worker is lost in the middle of a save: its file is missing, or in nobody's list.
struct FewerAreLeft {};

/// Those that are left when the save begins. Their places are those in the checkpoint; the first
/// of them commits. All methods that are not const are collective.
class Savers {
 public:
  explicit Savers(Collectives& collectives);

  const std::vector<int>& ranks() const { return ranks_; }
  /// Of this worker.
  int place() const;
  bool commits() const { return place() == 0; }

  /// What each of them says, by place. Throws FewerAreLeft.
  std::vector<std::string> gather(const std::string& own);
  /// What each has written, by place. Throws FewerAreLeft.
  std::vector<WorkerFile> gather_files(const WorkerFile& own);
  /// What the disk has against a part of a save that every worker does: the complaint of the first
  /// of them that has one; empty: none. Returns when all have done it. Throws FewerAreLeft.
  template <class Work>
  std::string problem_of_all(const Work& work) {
    std::string own;
    try {
      work();
    } catch (const IoError& error) {
      own = error.what();
    }
    for (const std::string& problem : gather(own)) {
      if (!problem.empty()) return problem;
    }
    return "";
  }

 private:
  Collectives& collectives_;
  std::vector<int> ranks_;
};

}  // namespace gossamer
