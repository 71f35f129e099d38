#pragma once
/// StoreEntry: what a rank of a launcher's job says of itself in the store, before ranks know each
/// other.

#include <string>
#include <string_view>

#include "gossamer/transport/net/hosts.h"

namespace gossamer {

struct StoreEntry {
  Place place;
  std::string reach;  ///< see reach_of_shared_memory()
  std::string nonce;  ///< of the job, where it is rank 0's
  bool has_secret = false;
};

/// As JSON in one line; a name may be any bytes, which are replaced where they are no text.
std::string to_text(const StoreEntry& entry);
/// Back. Anybody may write to the store: throws std::invalid_argument, which begins with `where`
/// and names the rank, for a text that is no entry.
StoreEntry store_entry_of(const std::string& text, int rank, std::string_view where);

}  // namespace gossamer
