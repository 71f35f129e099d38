#pragma once
/// A Round: which weights every worker gives to what it receives, once.

#include <cstdint>
#include <span>
#include <vector>

namespace gossamer {

/// One non-zero of a row of W: the weight given to what `worker` sent.
struct Entry {
  int worker = 0;
  double weight = 0;
  bool operator==(const Entry&) const = default;
};

/// The mixing matrix W of one round, `W[i][j]` = weight with which i takes what j sent. Either
/// sparse rows, or a partition of the workers into groups that average (then `rows` is empty and
/// W[i][j] = 1/|group| inside a group).
struct Round {
  int workers = 0;
  std::vector<std::vector<Entry>> rows;  ///< by receiver; sorted by sender, includes self
  std::vector<std::vector<int>> groups;  ///< every worker once, each group sorted
  bool operator==(const Round&) const = default;
};

bool is_partition(const Round& round);

/// Whether everybody averages with everybody: a partition of one group.
bool is_global_average(const Round& round);

/// The group of `worker` in a partition.
const std::vector<int>& group_of(const Round& round, int worker);

/// Row `worker` of W, sorted by sender, for both forms.
std::vector<Entry> row_of(const Round& round, int worker);

/// W[worker][worker].
double self_weight(const Round& round, int worker);

/// Every worker keeps its own (W = I).
Round identity_round(int workers);

/// Everybody averages with everybody (W = J).
Round complete_round(int workers);

/// A partition; throws std::invalid_argument unless every worker stands in exactly one group.
Round partition_round(int workers, std::vector<std::vector<int>> groups);

/// Rows as given; sorts them, merges repeated senders and drops zeros. Throws
/// std::invalid_argument for a worker out of range or a weight that is not finite.
Round sparse_round(int workers, std::vector<std::vector<Entry>> rows);

/// Which sums of W are 1.
enum class Stochasticity { doubly, row, column };

/// Throws std::invalid_argument that names the first row or column whose sum is not 1 (to 1e-9) or
/// the first negative weight, as far as `declared` promises it.
void check_stochastic(const Round& round, Stochasticity declared);

}  // namespace gossamer
