#pragma once
/// Methods as `gossamer lab` names them: exact_diffusion@ring:lazy:lr=0.1.

#include <string>

#include "gossamer/base/cluster.h"
#include "gossamer/lab/comparison.h"

namespace gossamer {

/// PATTERN[@TOPOLOGY][:WORD…] on that shape. What the words do not say is as in `defaults`. Throws
/// std::invalid_argument that names the method and what could stand there.
Contender parse_lab_method(const std::string& text, const HostShape& shape,
                           const LabOptions& defaults);

/// For --help: what a method is.
std::string lab_method_help();

}  // namespace gossamer
