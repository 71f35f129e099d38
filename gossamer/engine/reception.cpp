#include "gossamer/engine/reception.h"

#include <algorithm>
#include <utility>

#include "gossamer/base/rng.h"

namespace gossamer {
namespace {

/// Of the questions of one generation.
constexpr int kBitsOfQuestions = 32;

}  // namespace

std::uint64_t code_of(const std::vector<int>& ranks) {
  std::uint64_t code = 0;
  for (const int rank : ranks) code ^= mix_bits(static_cast<std::uint64_t>(rank), 0);
  return code | 1U;
}

bool are_equal(std::uint64_t one, std::uint64_t other) {
  return one == 0 || other == 0 || one == other;
}

std::span<std::byte> bytes_of(AdmissionWord& word) {
  return std::as_writable_bytes(std::span(&word, 1));
}

Tag tag_of(About about, std::uint64_t generation, std::int64_t number) {
  const auto of_it = static_cast<std::int64_t>(generation << kBitsOfQuestions);
  return {of_it | number, kNewcomers, static_cast<std::int32_t>(about)};
}

Reception::~Reception() {
  for (const Guest& guest : guests_) transport_.release(guest.request);
  for (const AdmissionAnswer& answer : answers_) release(answer);
}

void Reception::release(const AdmissionAnswer& answer) {
  for (const Request request : answer.requests) transport_.release(request);
}

void Reception::ask_next(Guest& guest) {
  const Tag tag = tag_of(About::question, guest.who.generation, guest.number);
  guest.request =
      transport_.receive(guest.who.peer, tag, bytes_of(guest.question), Deadline::max());
}

/// A former generation asks no more.
void Reception::open_to(const Newcomer& newcomer) {
  std::erase_if(guests_, [&](const Guest& guest) {
    if (guest.who.peer != newcomer.peer) return false;
    transport_.release(guest.request);
    return true;
  });
  std::erase_if(answers_, [&](const AdmissionAnswer& answer) {
    if (answer.peer != newcomer.peer) return false;
    release(answer);
    return true;
  });
  ask_next(guests_.emplace_back(Guest{.who = newcomer}));
}

std::vector<Newcomer> Reception::look(const std::function<void(Guest& guest)>& answer) {
  std::vector<Newcomer> newcomers = transport_.newcomers();
  for (const Newcomer& newcomer : newcomers) open_to(newcomer);
  for (Guest& guest : guests_) look(guest, answer);
  std::erase_if(guests_, [&](const Guest& guest) {
    if (guest.is_lost) transport_.release(guest.request);
    return guest.is_lost;
  });
  std::erase_if(answers_, [&](const AdmissionAnswer& sent) {
    const bool has_left = std::ranges::none_of(sent.requests, [&](Request request) {
      return transport_.poll(request).state == Status::State::pending;
    });
    if (has_left) release(sent);
    return has_left;
  });
  return newcomers;
}

/// Where `answer` throws, the question is answered at the next look.
void Reception::look(Guest& guest, const std::function<void(Guest& guest)>& answer) {
  while (!guest.is_lost && !guest.waits_for_state) {
    if (guest.request != 0) {
      const Status status = transport_.poll(guest.request);
      if (status.state == Status::State::pending) return;
      if (status.state == Status::State::failed) {
        guest.is_lost = true;
        return;
      }
      land(status, &guest.question);
      transport_.release(std::exchange(guest.request, 0));
    }
    answer(guest);
  }
}

void Reception::answer(Guest& guest, const AdmissionWord& word, std::string state) {
  AdmissionAnswer& answer = answers_.emplace_back(AdmissionAnswer{
      .peer = guest.who.peer, .word = word, .state = std::move(state), .requests = {}});
  const auto send = [&](About about, std::span<const std::byte> bytes) {
    const Tag tag = tag_of(about, guest.who.generation, guest.number);
    answer.requests.push_back(transport_.send(guest.who.peer, tag, bytes, Deadline::max()));
  };
  send(About::answer, bytes_of(answer.word));
  if (!answer.state.empty()) send(About::state, std::as_bytes(std::span(answer.state)));
  ++guest.number;
  ask_next(guest);
}

}  // namespace gossamer
