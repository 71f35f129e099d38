#pragma once
/// Schedules of one's own: mixing matrices as values, or from a file.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gossamer/graph/schedule.h"

namespace gossamer {

/// W by rows: `matrix[i][j]` is the weight with which i takes what j sent.
using Matrix = std::vector<std::vector<double>>;

/// Rounds in turn. Doubly stochastic where all of W's rows and columns sum to 1, else column or row
/// stochastic. Sums that miss 1 by less than 1e-5, as those of rounded weights do, are made exact.
/// The name is "matrices" with a digest of the weights. Throws std::invalid_argument that names the
/// round.
Schedule schedule_from_matrices(std::span<const Matrix> matrices, const HostShape& shape);

/// Whether a topology of this name is a file: it ends in .json.
bool is_schedule_file(std::string_view topology);

/// The rounds of a file {"rounds": [ROUND, …]}, of which each is W as a list of rows,
/// {"edges": [[receiver, sender, weight], …]}, where a worker without an edge to itself keeps what
/// its others leave of 1, or {"groups": [[0, 1], [2, 3]]}, which average. "workers" says how many
/// there are where the rounds do not. What `gossamer topology --json` prints is such a file. The
/// name is that of the file, with a digest of its weights. Throws IoError for a file that cannot be
/// read, std::invalid_argument that names file and round.
Schedule schedule_from_file(const std::string& path, const HostShape& shape);

/// For whom a file is: its "workers_per_host", else as many hosts as workers.
HostShape shape_in_file(const std::string& path);

}  // namespace gossamer
