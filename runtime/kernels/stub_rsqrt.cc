#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kRsqrtKernel = {Op::kRsqrt, [](OpCall&) { return unsupported("Rsqrt is not implemented yet"); },
                             nullptr, nullptr};

}  // namespace sinter
