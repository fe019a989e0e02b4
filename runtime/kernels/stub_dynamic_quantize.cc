#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kDynamicQuantizeKernel = {
    Op::kDynamicQuantize, [](OpCall&) { return unsupported("DynamicQuantize is not implemented yet"); },
    nullptr, nullptr};

}  // namespace sinter
