#include "gossamer/transport/net/card.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "gossamer/base/errors.h"
#include "gossamer/base/shared_memory.h"
#include "gossamer/transport/net/net_transport.h"

namespace gossamer {

std::string to_text(const Card& card) {
  std::ostringstream text;
  text << card.reach << ' ' << card.name << ' ' << card.generation << ' ' << card.streams.host
       << ' ' << card.streams.port;
  return text.str();
}

Card card_of(const std::string& text) {
  Card card;
  std::istringstream words(text);
  words >> card.reach >> card.name >> card.generation >> card.streams.host >> card.streams.port;
  return card;
}

std::string reach_of_shared_memory() {
  try {
    const SharedMemory probe(1);
  } catch (const IoError&) {
    return "";
  }
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  struct stat network {};
  if (boot.empty() || ::stat("/proc/self/ns/net", &network) != 0) return "";
  return boot + "/" + std::to_string(network.st_ino) + "/" + std::to_string(::geteuid());
}

}  // namespace gossamer
