#pragma once
/// Where the processes of a job meet before they have a transport: c10d's TCPStore, of which
/// torchrun serves one and rank 0 another under launchers that serve none.

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace gossamer {

struct JobStoreOptions {
  int rank = 0;
  int workers = 1;
  std::string address;    ///< a name or number of the host that serves
  int port = 0;           ///< TCP, on that host; 0: any, for a worker alone
  bool serves = false;    ///< this process does, on `address` and on no other interface
  std::string prefix;     ///< of all keys: what tells this start of this job from others
  double timeout_s = 60;  ///< of every wait for another process
  /// Why there are so many workers and what else can be done, for who waits until all have come.
  std::string why_so_many;
  /// Hears for whom this process waits, once for each wait that is longer than `patience_s`.
  std::function<void(const std::string&)> on_wait;
  double patience_s = 8;
};

/// One process's connection to the store. All functions block; they throw TransportError, which
/// names the rank, for what has not come within the timeout.
class JobStore {
 public:
  /// Connects, and serves first where this process is to. Throws std::invalid_argument where it
  /// cannot listen on the address.
  explicit JobStore(JobStoreOptions options);
  /// As done(), but does not throw, nor wait longer than two seconds.
  ~JobStore();
  JobStore(const JobStore&) = delete;
  JobStore& operator=(const JobStore&) = delete;

  /// Everybody's words on a topic by rank, in exchange for this worker's. Every worker calls it
  /// once per topic, of which messages say that a worker has not come to it.
  std::vector<std::string> share(const std::string& topic, const std::string& mine);
  /// The two halves of it.
  void tell(const std::string& topic, const std::string& words);
  std::string hear(const std::string& topic, int rank);
  /// What this worker has told is there no more, for those who come to the store later.
  void forget(const std::string& topic);

  /// Says that this process asks nothing more. One that serves waits for all to have said so.
  void done();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gossamer
