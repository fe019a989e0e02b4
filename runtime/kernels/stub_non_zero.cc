#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kNonZeroKernel = {
    Op::kNonZero, [](OpCall&) { return unsupported("NonZero is not implemented yet"); }, nullptr, nullptr};

}  // namespace sinter
