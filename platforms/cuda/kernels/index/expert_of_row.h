// The expert of a row.
#pragma once

#include "platforms/cuda/grid/report_fault.h"
#include "platforms/cuda/kernels/product/experts.h"

namespace sinter::cuda {

// An expert that is out of range is reported, and becomes 0.
SINTER_DEVICE int64_t expert_of_row(const Experts& e, uint32_t row) {
  const int64_t expert = e.of_row[row];
  if (expert >= 0 && expert < e.count) return expert;
  report_fault(e.fault, FaultCode::kIndex, row);
  return 0;
}

}  // namespace sinter::cuda
