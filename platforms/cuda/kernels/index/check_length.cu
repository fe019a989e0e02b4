// CheckLength: passes a length on if another one is within its limit.
#include "platforms/cuda/grid/report_fault.h"
#include "platforms/cuda/kernels/index/check_length.h"

namespace sinter::cuda {

SINTER_KERNEL(check_length, CheckLengthArguments) {
  if (global_thread() != 0) return;
  const int64_t length = *a.length, found = *a.found, limit = *a.limit;
  const bool keeps = a.within ? found >= 0 && found <= limit : found == limit;
  if (!keeps) report_fault(a.fault, FaultCode::kLength, 0);
  *a.result = length;
}

}  // namespace sinter::cuda
