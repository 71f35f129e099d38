// Cards, and what a user or the store of a launcher says before workers meet.

#include "gossamer/base/fuzz_folder.h"
#include "gossamer/transport/net/card.h"
#include "gossamer/transport/net/job_card.h"
#include "gossamer/transport/net/job_secret.h"

namespace gossamer {
namespace card_fuzz {

const std::string kJobToken = "open sesame";

bool try_card(const std::string& text) {
  const Card card = card_of(text);
  const bool is_whole = !card.reach.empty() && !card.name.empty() && !card.streams.host.empty();
  const std::string again = to_text(card);
  fuzz_check(!is_whole || to_text(card_of(again)) == again, "another card after reading");
  const Card own{.reach = "machine/0", .name = "me", .streams = {.host = "127.0.0.1", .port = 9}};
  return takes([&] { check_way(0, own, 1, card); }) && is_whole;
}

/// A card of a job in each line.
bool try_job(std::string_view text) {
  return takes([&] {
    std::vector<Place> places;
    while (!text.empty() && places.size() < 16) {
      const std::string line(text.substr(0, text.find('\n')));
      text.remove_prefix(std::min(line.size() + 1, text.size()));
      const JobCard card = job_card_of(line, static_cast<int>(places.size()), "train");
      const std::string again = to_text(card);
      fuzz_check(to_text(job_card_of(again, 0, "train")) == again, "another card of a job");
      places.push_back(card.place);
    }
    if (places.empty()) fail_argument({.place = "train", .what = "no ranks"});
    const FoundHosts found = find_hosts(places, "train");
    fuzz_check(found.shape.workers() == static_cast<int>(places.size()), "all are on a host");
  });
}

bool try_sealed(std::string_view words, int rank) {
  const std::string closed = sealed(kJobToken, rank, std::string(words));
  fuzz_check(opened(kJobToken, rank, closed, "net") == words, "other words than were sealed");
  fuzz_check(!takes([&] { opened(kJobToken, rank + 1, closed, "net"); }), "of another rank");
  std::string changed = closed;
  char& digit = changed[words.size() % changed.size()];
  digit = digit == 'a' ? 'b' : 'a';
  fuzz_check(!takes([&] { opened(kJobToken, rank, changed, "net"); }), "changed words");
  fuzz_check(!takes([&] { opened(kJobToken, rank, std::string(words), "net"); }), "never sealed");
  return true;
}

bool try_secret(std::string_view text, bool from_file) {
  const FuzzFolder folder;
  const std::filesystem::path path = folder.put("secret", text);
  std::filesystem::permissions(path, std::filesystem::perms::owner_read);
  const Environment get = [&](const std::string& name) -> std::optional<std::string> {
    if (name == "GOSSAMER_SECRET_FILE" && from_file) return path.native();
    if (name == "GOSSAMER_SECRET_FILE") return std::nullopt;
    return std::string(text);
  };
  const Environment file_only = [&](const std::string& name) {
    return name == "GOSSAMER_SECRET" ? std::nullopt : get(name);
  };
  takes([&] { wants_authentication(get); });
  return takes([&] {
    const auto secret = secret_of_user(from_file ? file_only : get);
    fuzz_check(secret && secret->size() >= 16, "a secret that is too short");
    token_of(*secret, "job");
  });
}

}  // namespace card_fuzz

bool fuzz_card(std::span<const std::byte> bytes) {
  using namespace card_fuzz;
  FuzzBytes input(bytes);
  const unsigned what = input.take<std::uint8_t>() % 6;
  const std::string text(input.text());
  if (what == 0) return try_card(text);
  if (what == 1) return try_sealed(text, static_cast<int>(text.size() % 3));
  if (what == 5) return try_job(text);
  if (what == 2) {
    return takes([&] {
      const PortRange ports = ports_of_user(text.c_str());
      fuzz_check(1 <= ports.first && ports.first <= ports.last && ports.last <= 65535, "ports");
    });
  }
  return try_secret(text, what == 3);
}

}  // namespace gossamer
