#include "gossamer/transport/net/job_card.h"

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

std::string to_text(const JobCard& card) {
  const Json json = {{"machine", card.place.machine},
                     {"name", card.place.name},
                     {"node", card.place.node},
                     {"local_rank", card.place.local_rank},
                     {"local_workers", card.place.local_workers},
                     {"reach", card.reach},
                     {"nonce", card.nonce},
                     {"has_secret", card.has_secret}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

JobCard job_card_of(const std::string& text, int rank, std::string_view where) {
  const auto refuse = [&](const char* what) {
    fail_argument({.place = where,
                   .what = "what the store says of rank " + std::to_string(rank) +
                           " is not what a worker says",
                   .got = what,
                   .remedy = "start all ranks with the same gossamer, and let nobody else reach "
                             "the launcher's store"});
  };
  JobCard card;
  try {
    const Json json = parse_json(text);
    card = {.place = {.machine = text_in(json, "machine"),
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
  return card;
}

}  // namespace gossamer
