/// One end of a pair over the transport net; see run.py.
///
/// net_pair <rank> <folder> <mode> <address or ->, where the mode is in_place, landed, staged,
/// streams, authenticated or tls

#include <cstring>
#include <memory>
#include <vector>

#include "bench/transport/pair.h"
#include "gossamer/transport/net/net_transport.h"

namespace {

using namespace gossamer;
using pair_bench::kMostBytes;

class NetLink {
 public:
  NetLink(int rank, const std::string& folder, const std::string& mode, const std::string& address)
      : peer_(1 - rank), lands_(mode != "in_place"), is_staged_(mode == "staged") {
    NetOptions options{.rank = rank, .workers = 2, .token = "bench"};
    options.share = [&](const std::string& mine) {
      const std::string other = pair_bench::swap_words(folder, rank, mine);
      return rank == 0 ? std::vector{mine, other} : std::vector{other, mine};
    };
    options.tls = mode == "tls";
    options.authenticates = mode == "authenticated";
    options.share_memory = mode != "streams" && !options.authenticates && !options.tls;
    if (!options.share_memory) options.address = address;
    transport_ = make_net_transport(options);
  }

  std::span<std::byte> outgoing() { return {outbox_->data(), kMostBytes}; }

  void transfer(const pair_bench::Transfer& what, const pair_bench::Look& look) {
    const Deadline limit = Clock::now() + std::chrono::seconds(60);
    const Tag tag{.step = step_++};
    const std::span<std::byte> landing(landing_.data(), what.bytes);
    Request received = 0;
    Request sent = 0;
    if (what.receives) received = transport_->receive(peer_, tag, landing, limit);
    if (what.sends) {
      const Owner owner = is_staged_ ? Owner() : Owner(outbox_);
      sent = transport_->send(peer_, tag, {outbox_->data(), what.bytes}, limit, owner);
    }
    if (received != 0) {
      const Status status = wait(received);
      if (lands_) land(status, landing.data());
      look(lands_ ? landing : status.payload);
      transport_->release(received);
    }
    if (sent != 0) {
      wait(sent);
      transport_->release(sent);
    }
  }

 private:
  Status wait(Request request) {
    for (;;) {
      const Status status = transport_->poll(request);
      if (status.state == Status::State::failed) std::rethrow_exception(status.error);
      if (status.state == Status::State::done) return status;
      transport_->progress(Deadline::max());
    }
  }

  const int peer_;
  const bool lands_;
  const bool is_staged_;
  std::shared_ptr<const SharedMemory> outbox_ = std::make_shared<const SharedMemory>(kMostBytes);
  std::vector<std::byte> landing_ = std::vector<std::byte>(kMostBytes);
  std::unique_ptr<Transport> transport_;
  std::int64_t step_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  try {
    const int rank = std::atoi(argv[1]);
    NetLink link(rank, argv[2], argv[3], argv[4]);
    std::cout << "net" << std::endl;
    return pair_bench::obey(link, rank);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
