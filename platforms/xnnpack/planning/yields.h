// Calls that XNNPACK takes and the Highway kernels compute faster. Data, read from measurements; never timed
// while converting.
#pragma once

#include "runtime/backend/kernel.h"
#include "runtime/backend/target.h"

namespace sinter::xnnpack {

bool yields(const Target& target, const OpCall& call);

}  // namespace sinter::xnnpack
