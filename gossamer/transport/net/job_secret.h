#pragma once
/// What the processes of a job know of each other before they meet: a secret of the user's, and the
/// token that follows from it.

#include <optional>
#include <string>
#include <string_view>

#include "gossamer/base/launchers.h"

namespace gossamer {

/// Note [A secret that does not travel]: workers find each other through a store of the launcher's,
/// which anybody may read who reaches its port. So a token that comes from there keeps out those
/// who cannot reach it, and nobody else. A secret that the user gives to all processes by another
/// way never leaves them: the token is derived from it and a number of the job, and what workers
/// tell each other through the store is encrypted and authenticated by a key of it, so that the
/// store can neither read nor forge it.
///
/// GOSSAMER_SECRET_FILE names a file of this user or of root that only its owner and its group can
/// read; GOSSAMER_SECRET has the words themselves. White space around them does not count. Nothing
/// where neither is set. Throws std::invalid_argument for fewer than 16 bytes, for both at once and
/// for a file of another user or that all can read; IoError for one that cannot be read.
std::optional<std::string> secret_of_user(const Environment& environment);

/// Whether payloads are to be authenticated (see NetOptions): as GOSSAMER_AUTHENTICATE says, 1 or
/// 0; without it where there is a secret. Throws std::invalid_argument for other words.
bool wants_authentication(const Environment& environment);

/// Of one job; 64 digits. `nonce` is the job's own, and may be known.
std::string token_of(const std::string& secret, const std::string& nonce);

/// A number that nobody can guess; 64 digits.
std::string random_digits();

/// What rank `rank` tells the others, for a store that is not trusted.
std::string sealed(const std::string& token, int rank, const std::string& words);
/// Back. Throws std::invalid_argument, which names the rank, for what it has not sealed.
std::string opened(const std::string& token, int rank, const std::string& words,
                   std::string_view place);

}  // namespace gossamer
