#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kCompareKernel = {
    Op::kCompare, [](OpCall&) { return unsupported("Compare is not implemented yet"); }, nullptr, nullptr};

}  // namespace sinter
