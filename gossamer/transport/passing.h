#pragma once
/// PassingTransport: a transport that stands before another one, and passes all on to it.

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "gossamer/transport/transport.h"

namespace gossamer {

/// For classes that change some of the functions: the others, as those of workers that come back,
/// stay what they are.
class PassingTransport : public Transport {
 public:
  explicit PassingTransport(std::unique_ptr<Transport> inner) : inner_(std::move(inner)) {}

  using Transport::send;
  Request send(int peer, Tag tag, std::span<const std::byte> payload, Deadline deadline,
               Owner owner) override {
    return inner_->send(peer, tag, payload, deadline, std::move(owner));
  }
  Request receive(int peer, Tag tag, std::span<std::byte> landing, Deadline deadline) override {
    return inner_->receive(peer, tag, landing, deadline);
  }
  Status poll(Request request) override { return inner_->poll(request); }
  void release(Request request) override { inner_->release(request); }
  void progress(Deadline until) override { inner_->progress(until); }
  void close(int peer) override { inner_->close(peer); }
  void expel(int peer) override { inner_->expel(peer); }
  void leave_out(int peer) override { inner_->leave_out(peer); }
  TransportInfo describe() const override { return inner_->describe(); }
  std::optional<Unheard> unheard(int peer) const override { return inner_->unheard(peer); }
  void hold_back_newcomers() override { inner_->hold_back_newcomers(); }
  std::vector<Newcomer> newcomers() override { return inner_->newcomers(); }
  void let_in(const Newcomer& newcomer) override { inner_->let_in(newcomer); }
  void count_in(int peer, Standing standing) override { inner_->count_in(peer, standing); }
  Standing standing(int peer) const override { return inner_->standing(peer); }
  std::uint64_t generation(int rank) const override { return inner_->generation(rank); }

 protected:
  Transport& inner() { return *inner_; }

 private:
  std::unique_ptr<Transport> inner_;
};

}  // namespace gossamer
