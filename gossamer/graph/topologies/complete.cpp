#include "gossamer/graph/topologies/topologies.h"

namespace gossamer {

Schedule make_complete(const TopologyArgs& args) { return complete_schedule(args.shape); }

}  // namespace gossamer
