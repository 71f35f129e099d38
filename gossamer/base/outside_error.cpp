#include "gossamer/base/outside_error.h"

namespace gossamer {

void fail_outside(const Complaint& complaint) { throw OutsideError(to_string(complaint)); }

}  // namespace gossamer
