#include "gossamer/engine/stop_agreement.h"

#include <algorithm>
#include <span>

#include "gossamer/engine/collectives.h"
#include "gossamer/engine/tags.h"

namespace gossamer {
namespace {

Tag tag_of(std::int32_t word) { return {.step = 0, .stream = stream::kStop, .slot = word}; }

}  // namespace

StopAgreement::StopAgreement(Transport& transport) : transport_(transport) {
  const TransportInfo info = transport.describe();
  for (const int peer : tree_peers(info.rank, info.workers)) {
    if (peer < info.rank) {
      parent_ = peer;
    } else {
      children_.push_back(peer);
    }
    for (const Word word : {Word::stop, Word::largest}) {
      ears_.push_back(std::make_unique<Ear>(Ear{.peer = peer, .word = word}));
      Ear& ear = *ears_.back();
      ear.request =
          transport.receive(peer, tag_of(static_cast<std::int32_t>(word)),
                            std::as_writable_bytes(std::span(&ear.value, 1)), Deadline::max());
    }
  }
}

StopAgreement::~StopAgreement() {
  for (const auto& ear : ears_) transport_.release(ear->request);
  for (const auto& mouth : mouths_) transport_.release(mouth->request);
}

void StopAgreement::say(int peer, Word word, std::int64_t value) {
  mouths_.push_back(std::make_unique<Mouth>(Mouth{.value = value}));
  Mouth& mouth = *mouths_.back();
  mouth.request = transport_.send(peer, tag_of(static_cast<std::int32_t>(word)),
                                  std::as_bytes(std::span(&mouth.value, 1)), Deadline::max());
}

/// Whether there is news.
bool StopAgreement::hear(Ear& ear) {
  if (ear.request == 0) return false;
  const Status status = transport_.poll(ear.request);
  if (status.state == Status::State::pending) return false;
  const bool has_come = status.state == Status::State::done;
  if (!has_come && ear.word == Word::largest) lost_ = status.error;
  if (has_come) land(status, reinterpret_cast<std::byte*>(&ear.value));
  transport_.release(ear.request);
  ear.request = 0;
  if (has_come && ear.word == Word::largest) take(ear);
  return has_come;
}

void StopAgreement::take(const Ear& ear) {
  if (ear.peer == parent_) {
    last_step_ = ear.value;
    for (const int child : children_) say(child, Word::largest, ear.value);
  } else {
    largest_ = std::max(largest_, ear.value);
    ++heard_;
  }
}

void StopAgreement::fix(int told, std::int64_t bid) {
  signal_ = told;
  bid_ = bid;
  largest_ = std::max(largest_, bid);
  if (parent_ >= 0) say(parent_, Word::stop, told);
  for (const int child : children_) say(child, Word::stop, told);
}

/// Up, once the whole subtree is known; down from the root.
void StopAgreement::pass_on() {
  if (!bid_ || has_gone_up_ || heard_ < children_.size()) return;
  has_gone_up_ = true;
  if (parent_ >= 0) {
    say(parent_, Word::largest, largest_);
    return;
  }
  last_step_ = largest_;
  for (const int child : children_) say(child, Word::largest, largest_);
}

void StopAgreement::look(int told, std::int64_t bid) {
  const std::lock_guard lock(mutex_);
  for (const auto& ear : ears_) {
    const bool is_news = hear(*ear) && ear->word == Word::stop;
    if (is_news && told == 0) told = static_cast<int>(ear->value);
  }
  if (told != 0 && !bid_) fix(told, bid);
  pass_on();
}

std::optional<std::int64_t> StopAgreement::last_step() const {
  const std::lock_guard lock(mutex_);
  return last_step_;
}

int StopAgreement::signal() const {
  const std::lock_guard lock(mutex_);
  return signal_;
}

void StopAgreement::check() const {
  const std::lock_guard lock(mutex_);
  if (bid_ && !last_step_ && lost_) std::rethrow_exception(lost_);
}

bool StopAgreement::may_begin(std::int64_t done) const {
  const std::lock_guard lock(mutex_);
  if (last_step_) return done < *last_step_;
  return !bid_ || done < *bid_;
}

}  // namespace gossamer
