// The report of a fault by a kernel.
#pragma once

#include "platforms/cuda/grid/fault.h"
#include "platforms/cuda/grid/grid.h"

namespace sinter::cuda {

// `position` is the number of the element, in order.
SINTER_DEVICE void report_fault(const FaultPlace& place, FaultCode code, int64_t position) {
  const FaultKey key = (FaultKey{place.step} << (kFaultCodeBits + kFaultPositionBits)) |
                       (static_cast<FaultKey>(position) << kFaultCodeBits) | static_cast<FaultKey>(code);
  atomic_min(place.key, key);
}

}  // namespace sinter::cuda
