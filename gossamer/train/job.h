#pragma once
/// One process of a training run that a launcher started: how it meets the others.

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gossamer/base/cluster.h"
#include "gossamer/recipe/launcher_env.h"
#include "gossamer/torch/c10d/job_store.h"
#include "gossamer/train/members.h"
#include "gossamer/transport/net/net_transport.h"
#include "gossamer/transport/transport.h"

namespace gossamer {

struct ConnectOptions {
  bool tls = false;  ///< between hosts; the same for all
  /// Of a peer before it counts as lost.
  std::chrono::duration<double> longest_silence = NetOptions{}.longest_silence;
  std::optional<int> least_heard = {};  ///< of NetOptions
  std::string about = {};               ///< for those that come back: what all do
};

/// Every process of the job makes one and calls the same functions in the same order. They throw
/// TransportError, which names the rank, where another one does not come within the timeout.
///
/// One that comes back to a job, see Members, meets nobody: it finds the others' cards. What the
/// others have agreed on before holds for it.
class TrainJob {
 public:
  /// Meets the others. Throws std::invalid_argument where find_hosts() does. Rank 0 says on stderr
  /// what is odd, and everybody for whom it has waited for some seconds. `members`: where those
  /// that may come back find each other.
  TrainJob(LauncherEnv env, double timeout_s, std::optional<Members> members = {});

  int rank() const { return env_.rank; }
  int workers() const { return env_.workers; }
  const LauncherEnv& env() const { return env_; }
  /// The workers of each host; see find_hosts().
  const HostShape& shape() const { return shape_; }
  /// A word that only the processes of this job have, on any start.
  const std::string& word() const { return nonce_; }
  bool comes_back() const { return store_ == nullptr; }
  const std::optional<Members>& members() const { return members_; }

  /// Runs `work` here and waits for the others to have run theirs. Where it throws on any rank, all
  /// throw: each its own exception, the others one of the same kind with the first such rank's
  /// message. `what` completes "could not".
  void together(const std::string& what, const std::function<void()>& work);
  /// Throws std::invalid_argument on all ranks unless all have the words of rank 0; the message has
  /// the first line that differs.
  void require_same(const std::string& words);
  /// The transport to all of them; to be called last, once, but by one that comes back as often as
  /// it tries.
  std::unique_ptr<Transport> connect(const ConnectOptions& options);
  /// This worker, which has come back, has the state of the run now.
  void say_state();

 private:
  void meet(double timeout_s);
  void find_others();
  std::string words_of(int first, const std::string& own);
  std::string token_from_store();
  std::vector<std::string> share_sealed(const std::string& mine, const MemberCard& card);
  std::vector<std::string> share_again(const std::string& mine);

  LauncherEnv env_;
  std::optional<Members> members_;
  std::vector<MemberCard> cards_;    ///< of those to whom this one comes back, by rank
  std::unique_ptr<JobStore> store_;  ///< null: it comes back
  HostShape shape_;
  std::string nonce_;
  std::string token_;
  bool has_secret_ = false;      ///< the token comes from the user's secret
  bool is_one_reach_ = false;    ///< all can share memory
  bool is_one_machine_ = false;  ///< all are in one network
};

}  // namespace gossamer
