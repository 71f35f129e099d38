#include "gossamer/train/members.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <system_error>
#include <utility>

#include "gossamer/base/disk.h"
#include "gossamer/base/errors.h"
#include "gossamer/base/json.h"

namespace gossamer {
namespace {

constexpr const char* kFolder = "GOSSAMER_MEMBERS";
constexpr int kBitsOfTries = 12;
constexpr std::uint64_t kMostBytes = 1 << 20;  // of a card

/// Of the job's only transport, by number.
constexpr const char* kFirst = "0";

std::uint64_t number_in(const Environment& environment, const char* name) {
  const auto text = environment(name);
  const bool is_number =
      text && std::ranges::all_of(*text, [](unsigned char c) { return c >= '0' && c <= '9'; });
  return is_number ? std::strtoull(text->c_str(), nullptr, 10) : 0;
}

[[noreturn]] void fail(const std::string& what, const std::string& got) {
  fail_io({.place = "train",
           .what = what,
           .got = got,
           .remedy = std::string(kFolder) +
                     " must be a folder that all workers of the job see, the one it began with"});
}

}  // namespace

std::optional<Members> Members::of(const Environment& environment) {
  const auto folder = environment(kFolder);
  if (!folder) return std::nullopt;
  const std::uint64_t restarts = std::max(number_in(environment, "GOSSAMER_RESTARTS"),
                                          number_in(environment, "TORCHELASTIC_RESTART_COUNT"));
  return Members(*folder, restarts);
}

std::uint64_t Members::next_generation() { return (restarts_ << kBitsOfTries) + tries_++; }

std::optional<int> Members::who_has_finished() const {
  std::optional<int> found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, ignored)) {
    if (entry.path().extension() != ".finished") continue;
    const int rank = std::atoi(entry.path().stem().c_str());
    found = std::min(found.value_or(rank), rank);
  }
  return found;
}

void Members::put(int rank, const MemberCard& card) const {
  const std::filesystem::path place = folder_ / kFirst;
  const std::string text =
      Json{{"words", card.words},        {"address", card.address},
           {"nonce", card.nonce},        {"token", card.token},
           {"about", card.about},        {"workers_per_host", card.workers_per_host},
           {"has_state", card.has_state}}
          .dump();
  std::error_code problem;
  std::filesystem::create_directories(folder_, problem);
  ::mkdir(place.c_str(), 0700);  // if it is not there
  const auto temporary = place / ("." + std::to_string(rank) + "-" + std::to_string(::getpid()));
  const int file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  const bool is_written =
      file >= 0 && ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const std::string why = is_written ? "" : std::generic_category().message(errno);
  if (file >= 0) ::close(file);
  if (is_written)
    std::filesystem::rename(temporary, place / (std::to_string(rank) + ".json"), problem);
  if (!is_written || problem) {
    fail("rank " + std::to_string(rank) + " could not put its card into " + place.string(),
         is_written ? problem.message() : why);
  }
}

std::vector<MemberCard> Members::read(int workers) const {
  std::vector<MemberCard> cards;
  for (int rank = 0; rank < workers; ++rank) {
    const auto path = folder_ / kFirst / (std::to_string(rank) + ".json");
    try {
      const FileBytes text = read_file(path, kMostBytes);
      const Json card =
          parse_json(std::string_view(reinterpret_cast<const char*>(text.memory.get()), text.size));
      cards.push_back({.words = card.at("words"),
                       .address = card.at("address"),
                       .nonce = card.at("nonce"),
                       .token = card.at("token"),
                       .about = card.at("about"),
                       .workers_per_host = card.at("workers_per_host"),
                       .has_state = card.value("has_state", true)});
    } catch (const std::exception& error) {
      fail("this worker comes back and found no card of rank " + std::to_string(rank) + " in " +
               path.parent_path().string(),
           printable(error.what()));
    }
  }
  return cards;
}

bool Members::nobody_has_state(int workers) const {
  return std::ranges::none_of(read(workers), &MemberCard::has_state);
}

}  // namespace gossamer
