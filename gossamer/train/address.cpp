#include "gossamer/train/address.h"

#include <ifaddrs.h>
#include <netdb.h>
#include <sys/socket.h>

#include <memory>

#include "gossamer/base/address.h"
#include "gossamer/base/errors.h"
#include "gossamer/base/shared_memory.h"

namespace gossamer {
namespace {

[[noreturn]] void fail(const LauncherEnv& env, const std::string& what, const std::string& got) {
  fail_argument({.place = "train",
                 .what = "rank " + std::to_string(env.rank) + ": " + what,
                 .got = got,
                 .remedy = "set GLOO_SOCKET_IFNAME to the interface that leads to the other hosts, "
                           "or MASTER_ADDR to an address of rank 0's host that they reach"});
}

/// The first IPv4 address of the interface, else its first IPv6 one; empty where it has none.
std::string address_of_interface(const std::string& name) {
  ifaddrs* found = nullptr;
  if (::getifaddrs(&found) != 0) return "";
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> list(found, &::freeifaddrs);
  for (const int family : {AF_INET, AF_INET6}) {
    const auto length =
        static_cast<socklen_t>(family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    for (const ifaddrs* at = list.get(); at != nullptr; at = at->ifa_next) {
      const bool fits = at->ifa_addr != nullptr && at->ifa_addr->sa_family == family;
      if (fits && name == at->ifa_name) return in_numbers(at->ifa_addr, length);
    }
  }
  return "";
}

/// Where the system would send from to reach `host`; sends nothing.
std::string address_towards(const std::string& host) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  constexpr const char* kAnyPort = "9";
  if (::getaddrinfo(host.c_str(), kAnyPort, &wanted, &found) != 0) return "";
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> list(found, &::freeaddrinfo);
  for (const addrinfo* at = list.get(); at != nullptr; at = at->ai_next) {
    const Descriptor probe(::socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, 0));
    if (probe && ::connect(probe.get(), at->ai_addr, at->ai_addrlen) == 0) {
      const std::string address = bound_to(probe.get()).host;
      if (!address.empty()) return address;
    }
  }
  return "";
}

}  // namespace

std::string address_for_peers(const LauncherEnv& env, const AddressOptions& options) {
  const std::string name = env.interface.substr(0, env.interface.find(','));
  const std::string address =
      name.empty() ? address_towards(env.address) : address_of_interface(name);
  if (address.empty() && !name.empty()) {
    fail(env, "no interface with an address has the name", name);
  }
  if (address.empty()) fail(env, "no way leads to the host of the store", env.address);
  if (!is_loopback(address) || options.may_be_loopback) return address;
  if (name.empty()) {
    fail(env, "other hosts cannot reach this one at the address of the store",
         env.address + ", which is " + address + " here");
  }
  fail(env, "the interface in GLOO_SOCKET_IFNAME leads to no other host", name + ", " + address);
}

}  // namespace gossamer
