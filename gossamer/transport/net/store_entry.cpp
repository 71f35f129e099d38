#include "gossamer/transport/net/store_entry.h"

#include <cstdint>
#include <stdexcept>
#include <utility>

#include "gossamer/base/errors.h"
#include "gossamer/base/json.h"

namespace gossamer {
namespace {

std::string text_in(const Json& json, const char* key) { return json.at(key).get<std::string>(); }

int number_in(const Json& json, const char* key) {
  const Json& value = json.at(key);
  const auto number = value.is_number_integer() ? value.get<std::int64_t>() : INT64_MAX;
  if (std::in_range<int>(number)) return static_cast<int>(number);
  throw std::invalid_argument(std::string(key) + " is no whole number");
}

}  // namespace

std::string to_text(const StoreEntry& entry) {
  const Json json = {{"machine", entry.place.machine},
                     {"name", entry.place.name},
                     {"node", entry.place.node},
                     {"local_rank", entry.place.local_rank},
                     {"local_workers", entry.place.local_workers},
                     {"reach", entry.reach},
                     {"nonce", entry.nonce},
                     {"has_secret", entry.has_secret}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

StoreEntry store_entry_of(const std::string& text, int rank, std::string_view where) {
  const auto refuse = [&](const char* what) {
    fail_argument({.place = where,
                   .what = "what the store says of rank " + std::to_string(rank) +
                           " is not what a worker says",
                   .got = what,
                   .remedy = "start all ranks with the same gossamer, and let nobody else reach "
                             "the launcher's store"});
  };
  StoreEntry entry;
  try {
    const Json json = parse_json(text);
    entry = {.place = {.machine = text_in(json, "machine"),
                       .name = text_in(json, "name"),
                       .node = text_in(json, "node"),
                       .local_rank = number_in(json, "local_rank"),
                       .local_workers = number_in(json, "local_workers")},
             .reach = text_in(json, "reach"),
             .nonce = text_in(json, "nonce"),
             .has_secret = json.at("has_secret").get<bool>()};
  } catch (const Json::exception& error) {  // a key is missing, or has another type
    refuse(error.what());
  } catch (const std::invalid_argument& error) {
    refuse(error.what());
  }
  return entry;
}

}  // namespace gossamer
