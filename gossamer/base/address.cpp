#include "gossamer/base/address.h"

#include <netdb.h>

#include <array>
#include <cstdlib>

namespace gossamer {

std::string in_numbers(const sockaddr* address, socklen_t length) {
  std::array<char, NI_MAXHOST> text{};
  const int error =
      ::getnameinfo(address, length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  return error == 0 ? text.data() : "";
}

BoundTo bound_to(int socket) {
  sockaddr_storage own{};
  socklen_t length = sizeof own;
  auto* address = reinterpret_cast<sockaddr*>(&own);
  std::array<char, NI_MAXSERV> port{};
  if (::getsockname(socket, address, &length) != 0 ||
      ::getnameinfo(address, length, nullptr, 0, port.data(), port.size(), NI_NUMERICSERV) != 0) {
    return {};
  }
  return {in_numbers(address, length), std::atoi(port.data())};
}

bool is_loopback(std::string_view address) {
  constexpr std::string_view kFourInSix = "::ffff:";
  if (address.starts_with(kFourInSix)) address.remove_prefix(kFourInSix.size());
  return address.starts_with("127.") || address == "::1";
}

}  // namespace gossamer
