#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kPReluKernel = {Op::kPRelu, [](OpCall&) { return unsupported("PRelu is not implemented yet"); },
                             nullptr, nullptr};

}  // namespace sinter
