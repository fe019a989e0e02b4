#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kNegKernel = {Op::kNeg, [](OpCall&) { return unsupported("Neg is not implemented yet"); },
                           nullptr, nullptr};

}  // namespace sinter
