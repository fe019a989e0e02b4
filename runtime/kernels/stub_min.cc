#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kMinKernel = {Op::kMin, [](OpCall&) { return unsupported("Min is not implemented yet"); },
                           nullptr, nullptr};

}  // namespace sinter
