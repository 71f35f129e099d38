#pragma once
/// Network addresses in numbers, and which of them lead to no other machine.

#include <sys/socket.h>

#include <string>
#include <string_view>

namespace gossamer {

/// As in "10.0.0.1" or "fd00::1"; empty for what is no address of IPv4 or IPv6.
std::string in_numbers(const sockaddr* address, socklen_t length);

/// Of the address that a socket is bound to.
struct BoundTo {
  std::string host;  ///< in numbers
  int port = 0;
};
BoundTo bound_to(int socket);

/// Whether the address, in numbers, is the machine's own for itself.
bool is_loopback(std::string_view address);

}  // namespace gossamer
