#pragma once
/// The address under which the workers of other hosts reach this one.

#include <string>

#include "gossamer/recipe/launcher_env.h"

namespace gossamer {

struct AddressOptions {
  bool may_be_loopback = false;  ///< all workers share this host's network
};

/// In numbers: of the interface that GLOO_SOCKET_IFNAME names, else of the one that leads to the
/// store. Throws std::invalid_argument where there is no such address, or it is loopback but must
/// not be.
std::string address_for_peers(const LauncherEnv& env, const AddressOptions& options);

}  // namespace gossamer
