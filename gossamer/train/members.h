#pragma once
/// The members folder: where a process that is started again finds the others of its job.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "gossamer/base/launchers.h"

namespace gossamer {

/// Where a worker can be reached, and what its job is; see Note [Members] in
/// python/gossamer/workers/members.py. Whoever reads it can join the job.
struct MemberCard {
  std::string words;    ///< of its transport, sealed
  std::string address;  ///< empty: all share memory
  std::string nonce;    ///< of the job
  std::string token;    ///< empty: it is made from a secret
  std::string about;    ///< what all of them do
  std::vector<int> workers_per_host;
  bool has_state = true;  ///< of the run: its worker is there, and does not come back just now
};

/// The folder of GOSSAMER_MEMBERS, as `gossamer launch` makes it.
class Members {
 public:
  /// Nothing where nobody has made one.
  static std::optional<Members> of(const Environment& environment);

  /// Whether this process takes the place of one that was lost.
  bool comes_back() const { return restarts_ > 0; }
  /// Of its next transport; higher at each call. See Note [Generations].
  std::uint64_t next_generation();
  /// A rank whose program has ended as it should, so that the job is over; nothing: not known.
  std::optional<int> who_has_finished() const;

  /// Only this user may read it. Throws IoError.
  void put(int rank, const MemberCard& card) const;
  /// By rank. Throws IoError where one is missing.
  std::vector<MemberCard> read(int workers) const;
  /// Whether all workers have lost the state of the run, so that none can be given it.
  bool nobody_has_state(int workers) const;

 private:
  Members(std::filesystem::path folder, std::uint64_t restarts)
      : folder_(std::move(folder)), restarts_(restarts) {}

  std::filesystem::path folder_;
  std::uint64_t restarts_ = 0;
  std::uint64_t tries_ = 0;
};

}  // namespace gossamer
