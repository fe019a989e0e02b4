#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kMulKernel = {Op::kMul, [](OpCall&) { return unsupported("Mul is not implemented yet"); },
                           nullptr, nullptr};

}  // namespace sinter
