// Endpoints, entries of a launcher's store, and the settings of a user.

#include "gossamer/base/fuzz.h"
#include "gossamer/base/scratch_folder.h"
#include "gossamer/transport/net/endpoint.h"
#include "gossamer/transport/net/job_secret.h"
#include "gossamer/transport/net/store_entry.h"

namespace gossamer {
namespace endpoint_fuzz {

const std::string kJobToken = "open sesame";

bool try_endpoint(const std::string& text) {
  const Endpoint endpoint = endpoint_of(text);
  const bool is_whole =
      !endpoint.reach.empty() && !endpoint.name.empty() && !endpoint.streams.host.empty();
  const std::string again = to_text(endpoint);
  fuzz_check(!is_whole || to_text(endpoint_of(again)) == again, "another endpoint after reading");
  const StreamAddress address{.host = "127.0.0.1", .port = 9};
  const Endpoint own{.reach = "machine/0", .name = "me", .streams = address};
  return takes([&] { check_way(0, own, 1, endpoint); }) && is_whole;
}

/// An entry of the store in each line.
bool try_job(std::string_view text) {
  return takes([&] {
    std::vector<Place> places;
    while (!text.empty() && places.size() < 16) {
      const std::string line(text.substr(0, text.find('\n')));
      text.remove_prefix(std::min(line.size() + 1, text.size()));
      const StoreEntry entry = store_entry_of(line, static_cast<int>(places.size()), "train");
      const std::string again = to_text(entry);
      fuzz_check(to_text(store_entry_of(again, 0, "train")) == again, "another entry");
      places.push_back(entry.place);
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
  const ScratchFolder folder;
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

}  // namespace endpoint_fuzz

bool fuzz_endpoint(std::span<const std::byte> bytes) {
  using namespace endpoint_fuzz;
  FuzzBytes input(bytes);
  const unsigned what = input.take<std::uint8_t>() % 6;
  const std::string text(input.text());
  if (what == 0) return try_endpoint(text);
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
