#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kAvgPoolKernel = {
    Op::kAvgPool, [](OpCall&) { return unsupported("AvgPool is not implemented yet"); }, nullptr, nullptr};

}  // namespace sinter
