#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kSqrtKernel = {Op::kSqrt, [](OpCall&) { return unsupported("Sqrt is not implemented yet"); },
                            nullptr, nullptr};

}  // namespace sinter
