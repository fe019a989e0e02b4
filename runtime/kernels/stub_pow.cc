#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kPowKernel = {Op::kPow, [](OpCall&) { return unsupported("Pow is not implemented yet"); },
                           nullptr, nullptr};

}  // namespace sinter
