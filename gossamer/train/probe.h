#pragma once
/// What a running job measures of its links and of its own computing.

#include "gossamer/base/cluster_file.h"
#include "gossamer/plan/workload_file.h"
#include "gossamer/train/worker.h"

namespace gossamer {

struct ProbedJob {
  ClusterFile cluster;
  WorkloadFile workload;
};

/// One worker's part; all workers must call it, before they train on the transport. First the links
/// (see Note [Probed links]), then some steps of the recipe's model with nobody talking. The same
/// on all workers.
ProbedJob probe_worker(const TrainContext& context, Transport& transport);

}  // namespace gossamer
