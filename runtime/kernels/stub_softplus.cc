#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kSoftplusKernel = {
    Op::kSoftplus, [](OpCall&) { return unsupported("Softplus is not implemented yet"); }, nullptr, nullptr};

}  // namespace sinter
