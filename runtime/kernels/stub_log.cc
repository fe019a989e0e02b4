#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kLogKernel = {Op::kLog, [](OpCall&) { return unsupported("Log is not implemented yet"); },
                           nullptr, nullptr};

}  // namespace sinter
