#include "gossamer/transport/net/endpoint.h"

#include <unistd.h>

#include <sstream>

#include "gossamer/base/errors.h"
#include "gossamer/base/shared_memory.h"
#include "gossamer/transport/net/hosts.h"
#include "gossamer/transport/net/net_transport.h"

namespace gossamer {
namespace {

constexpr const char* kTls = "tls";

}  // namespace

Endpoint with_dashes(Endpoint endpoint) {
  if (endpoint.reach.empty()) endpoint.reach = "-";
  if (endpoint.streams.port == 0) endpoint.streams.host = "-";
  return endpoint;
}

std::string to_text(const Endpoint& endpoint) {
  std::ostringstream text;
  text << endpoint.reach << ' ' << endpoint.name << ' ' << endpoint.generation << ' '
       << endpoint.streams.host << ' ' << endpoint.streams.port;
  if (endpoint.tls) text << ' ' << kTls;
  return text.str();
}

Endpoint endpoint_of(const std::string& text) {
  Endpoint endpoint;
  std::istringstream fields(text);
  std::string tls;
  fields >> endpoint.reach >> endpoint.name >> endpoint.generation;
  fields >> endpoint.streams.host >> endpoint.streams.port;
  endpoint.tls = fields >> tls && tls == kTls;
  return endpoint;
}

bool share_memory(const Endpoint& own, const Endpoint& other) {
  return own.reach == other.reach && own.reach != "-";
}

void check_way(int rank, const Endpoint& own, int peer, const Endpoint& other) {
  const std::string one = std::to_string(own.tls ? rank : peer);
  const std::string another = std::to_string(own.tls ? peer : rank);
  if (own.tls != other.tls) {
    fail_argument({.place = "net",
                   .what = "all workers must have the same tls",
                   .got = "tls on worker " + one + ", none on worker " + another,
                   .remedy = "give tls to all of them, or to none"});
  }
  if (share_memory(own, other) || (own.streams.port != 0 && other.streams.port != 0)) return;
  fail_argument({.place = "net",
                 .what = "workers " + std::to_string(rank) + " and " + std::to_string(peer) +
                         " cannot share memory",
                 .got = "'" + own.reach + "' and '" + other.reach + "'",
                 .remedy = "give all workers an address to listen on"});
}

std::string reach_of_shared_memory() {
  try {
    const SharedMemory probe(1);
  } catch (const IoError&) {
    return "";
  }
  const std::string machine = machine_of_this_process();
  return machine.empty() ? "" : machine + "/" + std::to_string(::geteuid());
}

}  // namespace gossamer
