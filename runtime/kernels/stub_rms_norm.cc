#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kRmsNormKernel = {
    Op::kRmsNorm, [](OpCall&) { return unsupported("RmsNorm is not implemented yet"); }, nullptr, nullptr};

}  // namespace sinter
